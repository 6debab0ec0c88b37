"""The fake target: right about every case without a script, and what its document says of scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.targets.fake_script import ACTIONS, STARTUPS
from tests.running import SPECS, harness, lines_of, results_of, script_of
from tests.sampled import one_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "fake.md"
CASE = "Round@22:sweep=values;X=float16[24];values=specials"


@pytest.mark.slow
def test_without_a_script_every_operator_and_element_type_is_green(tmp_path: Path) -> None:
    """Initializers too: they come with the graph and not with the case."""
    queries = (
        "initializer=*",
        "sweep=initializer_types",
        "sweep=dtype_rank",
        "case=*",
        "Round:sweep=rank",
        "sweep=api*",
    )
    words = [word for query in queries for word in ("-k", query)]
    specs = [SPECS / f"{name}.yaml" for name in ("GatherElements", "GatherND", "Round")]
    ended = harness("run", *specs, "-t", "fake", *words, "--select", "pairwise", "-o", tmp_path)
    assert ended.code == 0, ended.out
    found = results_of(tmp_path)
    assert {name.partition("@")[0] for name in found} == {"GatherElements", "GatherND", "Round"}
    assert any("data=string" in name and "initializer=data" in name for name in found)
    assert {"pass", "rejected"} <= {result["outcome"] for result in found.values()}


def test_graphs_are_composed(tmp_path: Path) -> None:
    """Of nodes, of those whose attributes are graphs, with constants of both."""
    specs = [SPECS / "graphs" / f"{name}.yaml" for name in ("IfBranches", "LoopSequences")]
    ended = harness("run", *specs, "-t", "fake", "-k", "optimization=basic", "-o", tmp_path)
    assert ended.code == 0, ended.out
    assert {each["outcome"] for each in results_of(tmp_path).values()} == {"pass"}


def test_the_document_names_every_action_and_startup() -> None:
    named = set(
        re.findall(
            r"`([a-z_]+)`",
            "".join(
                line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("|")
            ),
        )
    )
    assert {*ACTIONS, *STARTUPS} <= named


def documented() -> list[tuple[str, str]]:
    """Read the table of actions: what each makes of a valid case."""
    found = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and (outcome := re.match(r"`([a-z_]+)`", cells[2])):
            found += [
                (action, outcome[1]) for action in re.findall(r"`([a-z_]+)`", cells[0]) if action in ACTIONS
            ]
    return found


@pytest.mark.parametrize(("action", "outcome"), one_of(3, documented()))
def test_the_document_says_what_comes_of_an_action(tmp_path: Path, action: str, outcome: str) -> None:
    script = script_of(tmp_path, [("Round@22:X=float16", action)])
    seconds = "2" if action == "hang" else "30"
    asked = ("-t", f"fake,script={script}", "-k", CASE, "-j", "1", "--timeout", seconds)
    harness("run", SPECS / "Round.yaml", *asked, "-o", tmp_path / "run")
    (result,) = (
        line for line in lines_of(tmp_path / "run") if line["type"] == "result" and line["case"] == CASE
    )
    assert result["outcome"] == outcome


def test_every_action_has_an_outcome_in_the_document() -> None:
    assert {action for action, _ in documented()} == set(ACTIONS)
