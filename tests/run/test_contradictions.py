"""Results that no measurement gives: some no reader can use, and the others end no reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.model.case import Validity
from harness.model.errors import TargetUnavailable, UsageError
from harness.model.header import Header
from harness.model.query import parse_all
from harness.model.result import (
    Diff,
    Error,
    Repeats,
    Result,
)
from harness.model.target_info import DIRECTML, TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.runfile import RunReader, RunWriter
from harness.run.job import TargetRun
from harness.run.pipeline import Request, run
from harness.targets.registry import parse_target
from tests.running import harness
from tests.synthetic import end_of

CPU = "CPUExecutionProvider"
TARGETS = {
    "cpu": TargetInfo(CPU),
    "gone": TargetInfo(CPU, unavailable="no device"),
    "directml": TargetInfo(DIRECTML),
}
V, O, W = Validity, Outcome, Verdict  # noqa: E741 - the tables below stay readable
DIFF = Diff(1, 1, 4, (2,), "1.0 (0x3f800000)", "2.0 (0x40000000)")
SHAPES = Diff(None, 0, 0, None, "float32[0]", "float32[1]")
FAIL = Error("Fail", "no")

PASS = Result(
    "Round@22:case=a;X=float32[4]",
    "Round",
    "cpu",
    V.VALID,
    {"directml": "2_1"},
    O.PASS,
    W.EXPECTED,
    "compare",
    CPU,
)
MISMATCH = msgspec.structs.replace(
    PASS, outcome=O.MISMATCH, verdict=W.REGRESSION, diff=DIFF, output="0123456789abcdef"
)
SHAPE = msgspec.structs.replace(MISMATCH, diff=SHAPES)
REJECTED = msgspec.structs.replace(
    PASS, outcome=O.REJECTED, verdict=W.REGRESSION, stage="load", placed_on=None, error=FAIL
)
REFUSED = msgspec.structs.replace(REJECTED, validity=V.INVALID, verdict=W.EXPECTED)
ACCEPTED = msgspec.structs.replace(
    PASS, outcome=O.ACCEPTED_INVALID, validity=V.INVALID, verdict=W.REGRESSION, output="0123456789abcdef"
)
OPEN = msgspec.structs.replace(REJECTED, validity=V.UNSPECIFIED, verdict=W.EXPECTED)
ELSEWHERE = msgspec.structs.replace(
    PASS, outcome=O.NOT_PLACED, verdict=W.REGRESSION, placed_on="Other", error=FAIL
)
CRASH = msgspec.structs.replace(REJECTED, outcome=O.CRASH, stage="run", error=Error("SIGSEGV"))
SLOW = msgspec.structs.replace(CRASH, outcome=O.TIMEOUT, error=Error("Timeout"))
LACKING = msgspec.structs.replace(
    REJECTED, outcome=O.UNSUPPORTED, verdict=W.EXPECTED, error=Error("NotImplemented")
)
NOT_RUN = msgspec.structs.replace(
    REJECTED, outcome=O.NOT_RUN, verdict=W.EXPECTED, error=Error("UnknownVersionError")
)
UNAVAILABLE = msgspec.structs.replace(
    PASS, target="gone", outcome=O.UNAVAILABLE, verdict=W.MISSING, stage=None, placed_on=None
)
WRONG_ORACLE = msgspec.structs.replace(MISMATCH, outcome=O.ORACLE_ERROR)
CALLED = msgspec.structs.replace(
    PASS, target="directml", placed_on=DIRECTML, call="DML_OPERATOR_ELEMENT_WISE_ROUND"
)
FLAKY = msgspec.structs.replace(MISMATCH, repeats=Repeats(4, 3, {"pass": 1, "mismatch": 2, "crash": 1}))
POSSIBLE = {name: value for name, value in {**globals()}.items() if isinstance(value, Result)}


def read(folder: Path, result: Result) -> list[Result]:
    path = folder / "run.jsonl"
    with RunWriter(path, Header(1, "20260101T000000Z", "harness run", 0, {}, TARGETS)) as writer:
        writer.add(msgspec.structs.replace(PASS, case="Round@22:case=before;X=float32[4]"))
        writer.add(result)
    return list(RunReader(path))


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_can_be_measured_is_read(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, POSSIBLE[name])[1] == POSSIBLE[name]


def altered(result: Result, **changes: object) -> Result:
    """Replace fields, also those that only a falsified line can have."""
    return msgspec.structs.replace(result, **changes)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (
            altered(PASS, operator="GatherND"),
            "operator 'GatherND' of the case 'Round@22:case=a;X=float32[4]'",
        ),
        (altered(PASS, operator="Roun"), "operator 'Roun' of the case 'Round@22:case=a;X=float32[4]'"),
        (altered(PASS, placed_on="X"), "pass on X, but cpu is CPUExecutionProvider"),
        (altered(PASS, target="other"), "target 'other' is not in the header"),
        (altered(MISMATCH, expectation=3), "expectation 3 is not in the header"),
    ],
)
def test_what_no_reader_can_use_is_damage(tmp_path: Path, result: Result, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, result)
    assert str(caught.value) == f"{tmp_path / 'run.jsonl'}:3: damaged run file: {complaint}"


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"diff": None}, O.MISMATCH),
        ({"error": FAIL}, O.MISMATCH),
        ({"validity": V.INVALID}, O.MISMATCH),
        ({"diff": DIFF}, O.REJECTED),
        ({"placed_on": "Other"}, O.TIMEOUT),
        ({"diff": msgspec.structs.replace(DIFF, differing=5)}, O.MISMATCH),
        ({"repeats": Repeats(0, 0, {})}, O.MISMATCH),
    ],
)
def test_a_result_that_no_measurement_gives_ends_no_reader(
    tmp_path: Path, changes: dict[str, object], outcome: Outcome
) -> None:
    """Whoever writes a file can write any result: readers show it."""
    result = altered(MISMATCH, outcome=outcome, **changes)
    assert read(tmp_path, result)[1] == result
    for format_ in ("md", "html", "csv", "junit.xml", "ctrf.json"):
        ended = harness("report", tmp_path / "run.jsonl", "-o", tmp_path / f"report.{format_}")
        assert ended.code in (0, 1, 4), ended.err


@pytest.mark.parametrize(
    ("field", "number", "complaint"),
    [
        (
            "outcomes",
            {"pass": 2, "unavailable": 1},
            "the end counts 0 results that are 'mismatch', the file holds 1",
        ),
        (
            "verdicts",
            {"expected": 2, "missing": 1},
            "the end counts 2 results that are 'expected', the file holds 1",
        ),
    ],
)
def test_an_end_that_counts_what_is_not_there(
    tmp_path: Path, field: str, number: object, complaint: str
) -> None:
    results = [PASS, MISMATCH, UNAVAILABLE]
    path = tmp_path / "run.jsonl"
    with RunWriter(path, Header(1, "20260101T000000Z", "harness run", 0, {}, TARGETS)) as writer:
        for result in results:
            writer.add(result)
        writer.close(altered(end_of(results), **{field: number}))  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        list(RunReader(path))
    assert str(caught.value) == f"{path}:5: damaged run file: {complaint}"


def test_a_run_whose_workers_no_longer_start_has_fewer_results_than_selected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is whole all the same: what was not reached has no line."""
    answered = 0
    real = TargetRun._result

    def result(job: TargetRun, *answer: Any) -> Result:
        nonlocal answered
        answered += 1
        if answered > 5:
            raise TargetUnavailable("the worker ended before it started a case (exit code 3)")
        return real(job, *answer)

    monkeypatch.setattr(TargetRun, "_result", result)
    summary = run(
        Request(tmp_path, "harness run", (parse_target("cpu"),), queries=parse_all(["Round@22:case=*"]))
    )
    reader = RunReader(summary.path)
    assert len(list(reader)) == 5
    assert reader.end == summary.end
    assert summary.end.selected > summary.end.run == 5
    assert summary.exit_code == 3
