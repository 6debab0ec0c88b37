"""The page of what plugins get wrong: counts by entry and operator, what no entry explains, and runs that are
of no plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.header import Expectation, Header
from harness.model.result import Diff, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunWriter
from tests.synthetic import CPU, end_of
from tools.plugin_findings import PluginRun, main, page

PLUGIN = TargetInfo("mine", onnxruntime="1.31.1", plugin="libmine.so", package="onnxruntime-mine", vendor="V")
ENTRY = Expectation((Outcome.NOT_PLACED,), "it has no\nsuch operator", "https://example.org/a", "No Where")


def result(case: str, outcome: Outcome, expectation: int | None = None) -> Result:
    expected = expectation is not None or outcome is Outcome.PASS
    mismatch = outcome is Outcome.MISMATCH
    return Result(
        case,
        case.partition("@")[0],
        "mine",
        Validity.VALID,
        {"directml": "2_1"},
        outcome,
        Verdict.EXPECTED if expected else Verdict.NEW,
        placed_on="mine" if outcome in (Outcome.PASS, Outcome.MISMATCH) else None,
        error=Error("NotPlaced", "no kernel") if outcome is Outcome.NOT_PLACED else None,
        diff=Diff(3, 1, 2, (1,), "2.0", "3.0") if mismatch else None,
        **({} if expectation is None else {"expectation": expectation}),
    )


def written(folder: Path, results: list[Result], targets: dict[str, TargetInfo]) -> Path:
    path = folder / "run.jsonl"
    header = Header(1, "20260101T030405Z-7", "harness run", 7, {}, targets, expectations={4: ENTRY})
    with RunWriter(path, header) as writer:
        for each in results:
            writer.add(each)
        writer.add(end_of(results))
    return path


RESULTS = [
    result("Where@16:sweep=a;X=float32[2]", Outcome.NOT_PLACED, 4),
    result("Where@16:sweep=b;X=float32[2,2]", Outcome.NOT_PLACED, 4),
    result("Add@14:sweep=a;A=float32[2]", Outcome.PASS),
    result("Add@14:sweep=a;A=float64[2]", Outcome.MISMATCH),
]


def test_the_page(tmp_path: Path) -> None:
    lines = list(page([PluginRun(written(tmp_path, RESULTS, {"mine": PLUGIN}))]))
    for line in (
        "| run | 4 of 4 |",
        "| correct | 1 |",
        "| wrong | 1 |",
        "| not supported | 2 |",
        "| of these unexpected | 1 |",
        "None of these passes, since the provider has none of them: 1 operator, Where.\n",
        "| Add | 1 | 2 | wrong 1 |",
        "| [1](#mine-1) | 2 | No Where | Where | not_placed 2 |",
        "| [2](#mine-2) | 1 | not explained by any entry | Add | mismatch 1 |",
        "- it has no such operator [Source](https://example.org/a)",
        "- Expected: not_placed",
        "- For example `Add@14:sweep=a;A=float64[2]` (valid): mismatch, "
        "1 of 2 differ at [1]: expected 2.0, actual 3.0; max 3 ULP",
    ):
        assert line in lines
    assert len([line for line in lines if line.startswith("####")]) == 2


@pytest.mark.parametrize("targets", [{"cpu": CPU}, {"mine": PLUGIN, "cpu": CPU}])
def test_a_run_of_no_plugin_is_refused(tmp_path: Path, targets: dict[str, TargetInfo]) -> None:
    path = written(tmp_path, [], targets)
    with pytest.raises(UsageError, match=r"run\.jsonl: is no run of one plugin that was here: "):
        PluginRun(path)


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == "harness: write: python -m tools.plugin_findings RUN…\n"
