from __future__ import annotations

import re

import msgspec
import pytest

from harness.model.case import Validity
from harness.model.header import Against, Asked
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.results.summary import summarize, target_facts
from harness.results.tables import tabulate
from tests import synthetic
from tests.synthetic import ABSENT, CPU, DML


@pytest.mark.parametrize(
    ("number", "targets", "faults", "tone", "sentence"),
    [
        (0, {"cpu": CPU}, 0.0, "warn", "Nothing ran: 0 of 0 selected results."),
        (
            500,
            {"cpu": CPU},
            0.0,
            "good",
            "Nothing unexpected in 500 results.",
        ),
        (500, {"dml": ABSENT}, 0.0, "warn", "Nothing ran: 0 of 500 selected results."),
        (1, {"cpu": CPU}, 0.0, "good", "Nothing unexpected in 1 result."),
        (
            500,
            {"cpu": CPU, "dml": ABSENT},
            0.0,
            "warn",
            "Nothing unexpected in 1,000 results, 500 of them of a target that is not available.",
        ),
    ],
)
def test_the_verdict_in_one_sentence(
    number: int, targets: dict[str, TargetInfo], faults: float, tone: str, sentence: str
) -> None:
    summary = summarize(synthetic.tables(number, targets, faults=faults))
    assert (summary.tone, summary.sentence) == (tone, sentence)


def test_failures_come_first_in_the_sentence() -> None:
    summary = summarize(synthetic.tables(500, {"cpu": CPU, "dml": DML}, faults=0.5))
    assert summary.tone == "bad"
    assert summary.mark == "✗"
    assert re.match(r"\d+ unexpected in 1,000 results: \d+ wrong, \d+ crashed", summary.sentence)


def test_what_a_reader_must_know() -> None:
    found = list(synthetic.results(10, {"cpu": CPU, "dml": ABSENT}))
    end = msgspec.structs.replace(synthetic.end_of(found), problems=("stale entry",), selected=30)
    tables = tabulate(synthetic.header({"cpu": CPU, "dml": ABSENT}), found, end)
    summary = summarize(tables)
    assert summary.tone == "bad"
    assert summary.sentence.startswith("1 problem in the expectations in 20 results")
    assert summary.remarks == (
        "The run file holds 20 of 30 selected results.",
        "dml is not available here: onnxruntime here has no DmlExecutionProvider; run `harness windows install`",
    )
    assert [note.text for note in summary.notes] == [
        "12 combinations that the specs describe are no case of this run (12: the operator forbids it)."
    ]
    tables.finish(None)
    assert (
        summarize(tables).remarks[0]
        == "The run file ends after 20 results, without its last line. Continue the run with --resume."
    )


def test_calls_of_models_count_as_often_as_they_are_made() -> None:
    found = list(synthetic.results(3, {"cpu": CPU}, faults=0))
    right, other, free = (each for each in found if each.outcome is Outcome.PASS)
    wrong = msgspec.structs.replace(other, uses=7, outcome=Outcome.MISMATCH, verdict=Verdict.REGRESSION)
    tables = tabulate(
        synthetic.header({"cpu": CPU}), [msgspec.structs.replace(right, uses=1200), wrong, free], None
    )
    assert (
        "Weighed by use, 1,200 of 1,207 nodes of the models are correct on cpu." in summarize(tables).remarks
    )


def test_facts_that_a_runtime_cannot_tell_are_left_out() -> None:
    assert target_facts(TargetInfo("CPUExecutionProvider")) == [
        ("provider", "CPUExecutionProvider"),
        ("runtime", "this interpreter"),
    ]
    assert ("adapter", "AMD Radeon 780M") in target_facts(DML)


@pytest.mark.parametrize(
    ("release", "selection", "baseline", "said"),
    [
        ("1.23.0", Asked(), None, True),
        ("1.32.0", Asked(), None, False),
        ("1.23.0", Asked(expectations=("mine.yaml",)), None, False),
        ("1.23.0", Asked(), Against("earlier", {"cpu": "cpu"}), False),
        ("1.23.0", None, None, False),
    ],
)
def test_what_no_entry_was_written_for_is_no_regression_of_its_release(
    release: str, selection: Asked | None, baseline: Against | None, said: bool
) -> None:
    targets = {"cpu": msgspec.structs.replace(CPU, onnxruntime=release)}
    found = list(synthetic.results(500, targets, faults=0.5))
    header = msgspec.structs.replace(synthetic.header(targets), selection=selection, baseline=baseline)
    remarks = summarize(tabulate(header, found, synthetic.end_of(found))).remarks
    expected = "with 1.23.0 may be as old as that release, and is no regression of it."
    assert [line.endswith(expected) for line in remarks if "were reviewed" in line] == [True] * said


@pytest.mark.parametrize(
    ("outcomes", "tone", "sentence"),
    [
        ((Outcome.UNSUPPORTED, Outcome.UNSUPPORTED), "warn", "Nothing unexpected in 2 results, but no valid case is correct on cpu."),
        ((Outcome.UNSUPPORTED, Outcome.PASS), "good", "Nothing unexpected in 2 results."),
    ],
)  # fmt: skip
def test_a_run_without_a_correct_result_is_not_praised(
    outcomes: tuple[Outcome, ...], tone: str, sentence: str
) -> None:
    cases = zip(synthetic.results(2, {"cpu": CPU}, faults=0), outcomes, strict=True)
    found = [
        msgspec.structs.replace(result, validity=Validity.VALID, outcome=outcome, verdict=Verdict.EXPECTED)
        for result, outcome in cases
    ]
    summary = summarize(tabulate(synthetic.header({"cpu": CPU}), found, synthetic.end_of(found)))
    assert (summary.tone, summary.sentence) == (tone, sentence)
