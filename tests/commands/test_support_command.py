"""`harness support`: one short answer from runs, and from tables and entries where no run has a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import synthetic
from tests.results.test_defects import KNOWN, counted
from tests.running import complaint, harness
from tests.synthetic import CPU, DML


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    entries = counted(*KNOWN).header.expectations
    (tmp_path / "run").mkdir()
    synthetic.write_results(tmp_path / "run" / "run.jsonl", KNOWN, {"cpu": CPU}, expectations=entries)
    return tmp_path / "run"


def asked(*words: str | Path) -> dict[str, Any]:
    ended = harness("support", *words, "--format", "json")
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_a_run_answers_for_its_cases_alone(run: Path) -> None:
    answer = asked("Exp", run)
    assert answer["summary"] == "Exp: cpu 1.23.0 yes, 2 wrong"
    (row,) = answer["rows"]
    assert (row["cases"], row["readings"]["wrong"], row["documented"], row["run"]) == (2, 2, "–", str(run))
    defects = [(each["title"], each["cases"], each["since"], each["mended"]) for each in row["defects"]]
    assert defects == [("Late", 1, "1.24", "1.28"), ("Often", 1, "", "")]
    assert asked("Exp:input=float32[7]", run)["rows"][0]["cases"] == 1


def test_the_terminal_is_short(run: Path) -> None:
    ended = harness("support", "Exp", run)
    assert ended.out.splitlines()[0] == "Exp: cpu 1.23.0 yes, 2 wrong"
    assert "Late: on cpu 1.23.0" in ended.out
    assert "since 1.24, mended in 1.28" in ended.out
    assert len(ended.out.splitlines()) < 14
    assert max(map(len, ended.out.splitlines())) <= 80


def test_the_latest_run_stands_for_none_that_is_named(run: Path) -> None:
    (Path("reports")).mkdir()
    run.rename(Path("reports") / "latest")
    assert asked("Sum")["rows"][0]["measured"] == "no: 0 of 2 correct, 1 crashed, 1 not supported"


def test_without_a_run_tables_and_entries_speak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    entry = """
- match: "Round@11:X=float16"
  when: {provider: CPUExecutionProvider, onnxruntime: "%s"}
  expect: mismatch
  difference: {kind: value}
  title: "%s"
  reason: Why.
  link: https://example.com/
"""
    text = entry % ("<1.20", "Mended") + entry % (">=1.22", "Begun")
    Path("known.yaml").write_text(text, encoding="utf-8")
    words = ("Round:X=float16", "-t", "cpu@ort-1.22.1", "-t", "dml@level-5_0", "--expectations", "known.yaml")
    cpu, dml = asked(*words)["rows"]
    assert [(each["title"], each["holds"], each["mended"]) for each in cpu["defects"]] == [
        ("Mended", False, "1.20"),
        ("Begun", True, ""),
    ]
    assert (cpu["documented"], cpu["registered"], cpu["measured"]) == (
        "–",
        "no (11), yes (22)",
        "not run",
    ) or (cpu["registered"].startswith("yes"))
    assert dml["documented"].endswith(" cases, from 2_1 up to 5_0")
    assert (dml["release"], dml["defects"], dml["readings"]) == ("1.11.1", [], None)
    shown = harness("support", *words).out
    assert "harness run -t cpu@ort-1.22.1 -t dml@level-5_0 -k Round:X=float16" in shown
    older = asked("Round:X=float16", "-t", "cpu@ort-1.18.0", "--expectations", "known.yaml")["rows"][0]
    assert [each["holds"] for each in older["defects"]] == [True, False]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("X=float16",), 2, "X=float16: name an operator, for instance 'Conv:X=float16'"),
        (("Rounds",), 4, "no case matches Rounds; no operator 'Rounds'; did you mean 'Round'?"),
        (("Round", "-t", "ggml"), 2, "ggml: no table says what this provider has; name a run of it"),
        (("Round", "absent"), 2, "absent: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_answered(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = harness("support", *words)
    assert (ended.code, complaint(ended)) == (code, said)


def test_directml_is_documented(run: Path) -> None:
    synthetic.write_results(
        run / "run.jsonl", KNOWN, {"cpu": DML}, expectations=counted(*KNOWN).header.expectations
    )
    assert asked("Exp", run)["rows"][0]["documented"] == "2 of 2 cases, from 2_1 up to 6_4"


def test_each_operator_has_its_own_defects(run: Path) -> None:
    rows = {
        row["operator"]: [each["title"] for each in row["defects"]] for row in asked("*:sweep=a", run)["rows"]
    }
    assert rows == {"Exp": ["Often", "Late"], "Log": ["Often"], "Sum": ["Ends"]}
