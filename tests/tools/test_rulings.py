from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.case import Validity
from harness.model.header import Origin
from harness.model.result import Diff, Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from tests import synthetic
from tools.rulings import Answers, main, page

CPU = TargetInfo("CPUExecutionProvider", onnxruntime="1.31.1")
DML = TargetInfo("DmlExecutionProvider", onnxruntime="1.24.4", directml="1.15.4", adapter="llvmpipe")
ORIGINS = {
    "Clip:sweep=nans": Origin("says nothing | of it", "what becomes of NaN"),
    "Neg:case=least": Origin("ONNX", "the least integer"),
}


def result(case: str, target: str, validity: Validity, outcome: Outcome) -> Result:
    diff = Diff(1, 1, 1, (0,), "0", "1") if outcome is Outcome.MISMATCH else None
    error = Error("NotPlaced") if outcome is Outcome.NOT_PLACED else None
    return synthetic.result(
        case,
        outcome,
        target=target,
        validity=validity,
        error=error,
        diff=diff,
    )


def run(folder: Path, target: str, info: TargetInfo, outcomes: dict[str, Outcome]) -> Path:
    results = [result(case, target, Validity.UNSPECIFIED, outcome) for case, outcome in outcomes.items()]
    valid = result("Clip@13:case=valid", target, Validity.VALID, Outcome.PASS)
    path = folder / f"{target}.jsonl"
    return synthetic.write_results(path, [valid, *results], {target: info}, run_id="r", origins=ORIGINS)


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    cpu = {
        "Clip@6:sweep=nans;X=float32[2]": Outcome.PASS,
        "Clip@13:sweep=nans;X=float32[3,4]": Outcome.PASS,
        "Neg@13:case=least;X=int8[1]": Outcome.PASS,
    }
    dml = {
        **cpu,
        "Clip@6:sweep=nans;X=float32[2]": Outcome.MISMATCH,
        "Neg@13:case=least;X=int8[1]": Outcome.NOT_PLACED,
    }
    return [run(tmp_path, "cpu", CPU, cpu), run(tmp_path, "dml", DML, dml)]


def test_questions_are_told_apart_by_whether_the_targets_agree(runs: list[Path]) -> None:
    lines = list(page(Answers(runs)))
    differ, alike = lines.index("## Where they differ"), lines.index("## Where all do the same")
    nan, least = (
        next(n for n, line in enumerate(lines) if text in line)
        for text in ("becomes of NaN", "least integer")
    )
    assert differ < nan < alike < least
    assert r"says nothing \| of it" in lines[nan]
    assert (
        "| `pass` 2 | `mismatch` 1, `pass` 1 |" in lines[nan]
        or "| `pass` 2 | `pass` 1, `mismatch` 1 |" in lines[nan]
    )
    assert "`Clip@6:sweep=nans;X=float32[2]`" in lines[nan]
    assert "| `pass` 1 | `not_placed` 1 |" in lines[least]
    assert "`dml`: onnxruntime 1.24.4, DirectML 1.15.4, on llvmpipe" in lines[4]
    assert not any("case=valid" in line for line in lines)


def test_of_a_target_that_several_runs_have_the_last_counts(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    later = run(tmp_path / "later", "dml", DML, {"Clip@6:sweep=nans;X=float32[2]": Outcome.PASS})
    answers = Answers([*runs, later])
    assert not any(answers.differ(question) for question in answers.operators)


def test_without_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err == "harness: write: python -m tools.rulings RUN…\n"
