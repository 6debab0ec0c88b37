"""Flakes: unexpected results are repeated, those that differ are flaky with their rate, and every rendering
says so."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.model.result import Repeats
from harness.model.verdict import Outcome, Verdict
from harness.render.html import render_html
from harness.render.terminal import repeated
from harness.results.runfile import RunReader
from tests import synthetic
from tests.running import ROUND, Ended, harness, results_of

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the misbehaving workers use signals and process groups"
)

FLAKY, BROKEN, FINE = (f"Round@22:sweep=sizes;X=float16[{size}];values=ordinary" for size in (5, 7, 8))


def script(folder: Path, *rules: tuple[str, str, int]) -> str:
    path = folder / "script.yaml"
    text = "".join(f'  - {{match: "{query}", do: {how}, every: {every}}}\n' for query, how, every in rules)
    path.write_text(f"rules:\n{text}", encoding="utf-8")
    return f"fake,script={path}"


def run(folder: Path, target: str, *options: str | Path) -> Ended:
    queries = [part for case in (FLAKY, BROKEN, FINE) for part in ("-k", case)]
    return harness("run", ROUND, "-t", target, "-j", "1", *queries, "-o", folder / "run", *options)


def repeats(run: Path) -> dict[str, Any]:
    return {
        case: result.get("repeats")
        for case, result in results_of(run).items()
        if case in (FLAKY, BROKEN, FINE)
    }


def test_a_flake_is_told_from_a_failure_by_its_rate(tmp_path: Path) -> None:
    """The first run fails; of the five repeats in another worker the 1st, 3rd and 5th do."""
    target = script(tmp_path, (FLAKY, "ulp", 2), (BROKEN, "ulp", 1))
    ended = run(tmp_path, target, "--rerun-unexpected", "5")
    assert ended.code == 1, ended.err
    assert repeats(tmp_path / "run") == {
        FLAKY: {"runs": 5, "failed": 3, "outcomes": {"pass": 2, "mismatch": 3}},
        BROKEN: {"runs": 5, "failed": 5, "outcomes": {"mismatch": 5}},
        FINE: None,
    }
    found = results_of(tmp_path / "run")
    assert (found[FLAKY]["outcome"], found[FLAKY]["verdict"]) == ("mismatch", "regression")
    assert found[FLAKY]["diff"]["max_ulp"] == 1
    assert "1 of the unexpected results is flaky: repeated, they did not always do the same." in " ".join(
        ended.out.split()
    )
    assert "flaky: failed 3 of 5 repeats (pass 2, mismatch 3)" in " ".join(ended.out.split())
    assert "failed 5 of 5 repeats" in ended.out


def test_without_the_option_nothing_is_repeated_or_recorded(tmp_path: Path) -> None:
    assert run(tmp_path, script(tmp_path, (FLAKY, "ulp", 2))).code == 1
    assert "repeats" not in (tmp_path / "run" / "run.jsonl").read_text(encoding="utf-8")


@pytest.mark.slow
def test_expected_results_are_not_repeated(tmp_path: Path) -> None:
    known = tmp_path / "known.yaml"
    known.write_text(
        f'- match: "{BROKEN}"\n  when: {{provider: FakeExecutionProvider}}\n  expect: mismatch\n'
        "  difference: {kind: value}\n  reason: known\n  link: https://example.com/1\n",
        encoding="utf-8",
    )
    target = script(tmp_path, (BROKEN, "ulp", 1))
    assert run(tmp_path, target, "--rerun-unexpected", "2", "--expectations", known).code == 0
    assert set(repeats(tmp_path / "run").values()) == {None}
    fixed = script(tmp_path, (BROKEN, "ulp", 1000), (FINE, "pass", 1))
    (tmp_path / "script.yaml").write_text("rules:\n  - {match: Round, do: pass}\n", encoding="utf-8")
    assert run(tmp_path, fixed, "--rerun-unexpected", "2", "--expectations", known, "--force").code == 1
    assert repeats(tmp_path / "run")[BROKEN] == {"runs": 2, "failed": 0, "outcomes": {"pass": 2}}


@pytest.mark.slow
@pytest.mark.parametrize("action", ["crash", "exit", "garbage"])
def test_a_crash_that_comes_and_goes(tmp_path: Path, action: str) -> None:
    """A crash takes its worker's count of times with it, so that every repeat is a worker's first time."""
    target = script(tmp_path, (FLAKY, action, 2))
    assert run(tmp_path, target, "--rerun-unexpected", "2").code == 1
    assert repeats(tmp_path / "run")[FLAKY] == {"runs": 2, "failed": 2, "outcomes": {"crash": 2}}


def test_workers_that_no_longer_start_lose_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of the repeats do not start: the results stand as they were first."""
    from harness.model.errors import TargetUnavailable
    from harness.targets.pool import WorkerPool

    target = script(tmp_path, (FLAKY, "ulp", 1))
    real = WorkerPool._spawn

    def spawn(pool: WorkerPool) -> object:
        if spawned:
            raise TargetUnavailable("gone")
        spawned.append(pool)
        return real(pool)

    spawned: list[WorkerPool] = []
    monkeypatch.setattr(WorkerPool, "_spawn", spawn)
    ended = run(tmp_path, target, "--rerun-unexpected", "2")
    assert ended.code == 1
    assert results_of(tmp_path / "run")[FLAKY]["outcome"] == "mismatch"
    assert set(repeats(tmp_path / "run").values()) == {None}


def test_every_rendering_says_it(tmp_path: Path) -> None:
    target = script(tmp_path, (FLAKY, "ulp", 2))
    assert run(tmp_path, target, "--rerun-unexpected", "3").code == 1
    said = "flaky: failed 2 of 3 repeats (pass 1, mismatch 2)"
    folder = tmp_path / "run"
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    assert said in markdown.replace("\\", "")
    assert "1 of the unexpected results is flaky" in markdown
    assert said in render_html(folder)
    junit = ET.fromstring(harness("report", folder, "--format", "junit").out)
    failure = next(case.find("failure") for case in junit.iter("testcase") if case.get("name") == FLAKY)
    assert failure is not None
    assert said in failure.get("message", "")
    ctrf = json.loads(harness("report", folder, "--format", "ctrf").out)
    by_name = {test["name"]: test for test in ctrf["results"]["tests"]}
    assert (by_name[FLAKY]["flaky"], by_name[FLAKY]["retries"], by_name[FLAKY]["status"]) == (
        True,
        3,
        "failed",
    )
    assert "flaky" not in by_name[FINE]


def test_flaky_results_are_a_group_of_their_own(tmp_path: Path) -> None:
    target = script(tmp_path, (FLAKY, "ulp", 2), (BROKEN, "ulp", 1))
    ended = run(tmp_path, target, "--rerun-unexpected", "2")
    assert " ".join(ended.out.split()).count("regression 1 × Round 22, float16") == 2


@pytest.mark.slow
def test_a_run_with_repeats_can_be_resumed_compared_and_merged(tmp_path: Path) -> None:
    target = script(tmp_path, (FLAKY, "ulp", 2))
    run(tmp_path, target, "--rerun-unexpected", "3")
    path = tmp_path / "run" / "run.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b'{"type":"end"')])
    assert run(tmp_path, target, "--rerun-unexpected", "3", "--resume").code == 1
    assert repeats(tmp_path / "run")[FLAKY]["runs"] == 3
    assert harness("compare", tmp_path / "run", tmp_path / "run").code == 0
    assert harness("merge", tmp_path / "run", "-o", tmp_path / "merged").code == 1
    assert repeats(tmp_path / "merged")[FLAKY]["failed"] == 2
    (flaky,) = [result for result in RunReader(path) if result.flaky]
    assert flaky.case == FLAKY


def test_what_is_said_of_repeats() -> None:
    result = synthetic.result("Round@22:case=a;X=float32[1]", Outcome.MISMATCH, Verdict.REGRESSION)
    assert (repeated(result), result.flaky) == ("", False)
    always = msgspec.structs.replace(result, repeats=Repeats(3, 3, {"mismatch": 3}))
    assert (repeated(always), always.flaky) == ("failed 3 of 3 repeats", False)
    never = msgspec.structs.replace(result, repeats=Repeats(4, 0, {"pass": 4}))
    assert (repeated(never), never.flaky) == ("flaky: failed 0 of 4 repeats (pass 4)", True)


@pytest.mark.parametrize("text", ["-1", "often", "1001"])
def test_a_wrong_number_is_refused(text: str) -> None:
    ended = harness("run", ROUND, "-t", "fake", "--rerun-unexpected", text)
    assert ended.code == 2
    assert "--rerun-unexpected" in ended.err
