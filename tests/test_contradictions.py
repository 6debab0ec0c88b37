"""Lines of a run file of which each field is possible and all together are not: every rule, on a real kind of
line."""

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
        (altered(MISMATCH, outcome=O.REJECTED), "rejected with a difference"),
        (
            altered(MISMATCH, outcome=O.ACCEPTED_INVALID, validity=V.INVALID),
            "accepted_invalid with a difference",
        ),
        (altered(MISMATCH, diff=None), "mismatch without a difference"),
        (altered(WRONG_ORACLE, diff=None), "oracle_error without a difference"),
        (altered(MISMATCH, error=FAIL), "mismatch with an error"),
        (
            altered(MISMATCH, placed_on="DmlExecutionProvider"),
            "mismatch on DmlExecutionProvider, but cpu is CPUExecutionProvider",
        ),
        (altered(MISMATCH, placed_on=None), "mismatch on None, but cpu is CPUExecutionProvider"),
        (altered(MISMATCH, validity=V.INVALID), "mismatch of a case that is invalid"),
        (
            altered(MISMATCH, validity=V.UNSPECIFIED),
            "the verdict 'regression' for mismatch of a case that is unspecified",
        ),
        (
            altered(MISMATCH, verdict=W.IMPROVEMENT),
            "the verdict 'improvement' for mismatch of a case that is valid",
        ),
        (altered(MISMATCH, verdict=W.MISSING), "the verdict 'missing' for mismatch of a case that is valid"),
        (altered(PASS, verdict=W.REGRESSION), "the verdict 'regression' for pass of a case that is valid"),
        (altered(PASS, verdict=W.CHANGED), "the verdict 'changed' for pass of a case that is valid"),
        (altered(PASS, validity=V.INVALID), "pass of a case that is invalid"),
        (altered(PASS, outcome=O.MISMATCH), "mismatch without a difference"),
        (altered(PASS, outcome=O.REJECTED), "rejected without an error"),
        (
            altered(PASS, output="0123456789abcdef"),
            "pass with the hash of an output that is not the oracle's",
        ),
        (altered(PASS, target="gone"), "pass on gone, which was unavailable according to the header"),
        (altered(PASS, operator="GatherND"), "operator 'GatherND' of a case of 'Round'"),
        (altered(PASS, operator="Roun"), "operator 'Roun' of a case of 'Round'"),
        (
            altered(PASS, call="DML_OPERATOR_ELEMENT_WISE_ROUND"),
            "a call of DirectML's own API on CPUExecutionProvider",
        ),
        (altered(REJECTED, error=None), "rejected without an error"),
        (
            altered(REJECTED, output="0123456789abcdef"),
            "rejected with the hash of an output that is not the oracle's",
        ),
        (
            altered(REFUSED, verdict=W.REGRESSION),
            "the verdict 'regression' for rejected of a case that is invalid",
        ),
        (altered(REFUSED, validity=V.VALID, outcome=O.UNAVAILABLE), "unavailable with an error"),
        (altered(ACCEPTED, validity=V.VALID), "accepted_invalid of a case that is valid"),
        (altered(ELSEWHERE, placed_on=CPU), "not_placed, yet placed on CPUExecutionProvider"),
        (altered(CRASH, error=None), "crash without an error"),
        (
            altered(CRASH, outcome=O.PASS, error=None, placed_on="X"),
            "pass on X, but cpu is CPUExecutionProvider",
        ),
        (altered(SLOW, diff=DIFF), "timeout with a difference"),
        (altered(LACKING, error=None), "unsupported without an error"),
        (altered(NOT_RUN, error=None), "not_run without an error"),
        (altered(NOT_RUN, placed_on=CPU), "not_run, yet placed on CPUExecutionProvider"),
        (
            altered(NOT_RUN, verdict=W.REGRESSION),
            "the verdict 'regression' for not_run of a case that is valid",
        ),
        (
            altered(UNAVAILABLE, verdict=W.EXPECTED),
            "the verdict 'expected' for unavailable of a case that is valid",
        ),
        (altered(MISMATCH, diff=altered(DIFF, differing=5)), "5 of 4 elements differ"),
        (altered(MISMATCH, diff=altered(DIFF, differing=0)), "a difference of no element"),
        (
            altered(MISMATCH, diff=altered(DIFF, actual=DIFF.expected)),
            "a difference of '1.0 (0x3f800000)' to itself",
        ),
        (altered(MISMATCH, output="0123456789abcdeg"), "the hash of the output is not 16 hexadecimal digits"),
        (
            altered(FLAKY, repeats=Repeats(5, 3, {"pass": 1, "mismatch": 3})),
            "repeats: 3 of 5 failed, but by outcome 3 of 4",
        ),
        (
            altered(FLAKY, repeats=Repeats(4, 1, {"pass": 1, "mismatch": 3})),
            "repeats: 1 of 4 failed, but by outcome 3 of 4",
        ),
        (
            altered(FLAKY, repeats=Repeats(4, 4, {"passed": 4})),
            "'passed' among the repeats is not an outcome",
        ),
        (altered(FLAKY, repeats=Repeats(0, 0, {})), "repeats of a case that was not repeated"),
    ],
)
def test_what_no_measurement_gives_is_damage(tmp_path: Path, result: Result, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, result)
    assert str(caught.value) == f"{tmp_path / 'run.jsonl'}:3: damaged run file: {complaint}"


@pytest.mark.parametrize(
    ("field", "number", "complaint"),
    [
        ("run", 1, "the end counts 1 results that ran, the file holds 2"),
        ("run", 3, "the end counts 3 results that ran, the file holds 2"),
        ("selected", 1, "the end counts 1 results selected, but 2 that ran"),
        (
            "outcomes",
            {"pass": 2, "unavailable": 1},
            "the end counts 0 results that are 'mismatch', the file holds 1",
        ),
        (
            "verdicts",
            {"expected": 2, "missing": 1},
            "the end counts 2 results with the verdict 'expected', the file holds 1",
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
