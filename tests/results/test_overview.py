"""Operator × target at a glance, and how near results with a bound came to it."""

from __future__ import annotations

import io

import msgspec
import pytest
from msgspec import UNSET
from rich.console import Console

from harness.model.case import Validity
from harness.model.facets import facets
from harness.model.result import (
    Accuracy,
    Diff,
    Error,
    Result,
)
from harness.model.verdict import Outcome, Verdict
from harness.render.csv_tables import render_csv
from harness.render.foreign import status as foreign_status
from harness.render.report import render_markdown
from harness.render.terminal import describe, render_terminal
from harness.results.bound_ratios import Nearnesses, in_words, ratio_text
from harness.results.level_table import MANY, counts, many, overview, rate, status
from harness.results.reading_rows import reading_rows
from harness.results.report import Report
from harness.results.tables import Tables, tabulate
from tests import synthetic
from tests.many import TARGETS, results
from tests.synthetic import CPU, DML

CASE = "Exp@13:sweep=a;input=float32[2];values=ordinary"


def result(
    case: str = CASE, target: str = "cpu", *, near: Accuracy | None = None, diff: Diff | None = None
) -> Result:
    outcome, verdict = (
        (Outcome.PASS, Verdict.EXPECTED) if diff is None else (Outcome.MISMATCH, Verdict.REGRESSION)
    )
    found = synthetic.result(case, outcome, verdict, target=target, diff=diff)
    return found if near is None else msgspec.structs.replace(found, accuracy=near)


def tables(*found: Result) -> Tables:
    targets = {"cpu": CPU, "dml": DML}
    return tabulate(
        synthetic.header({name: targets[name] for name in dict.fromkeys(each.target for each in found)}),
        found,
        None,
    )


def many_tables() -> Tables:
    found = list(results(15, 60))
    return tabulate(synthetic.header(TARGETS), found, synthetic.end_of(found))


NOTHING = Accuracy(0.0, 0.0, 2, 2)


def test_types_and_ranks_of_an_operator_count_once_and_as_run_if_any_target_ran_one() -> None:
    one, other = CASE, CASE.replace("float32[2]", "float16[2,3]")
    refused = msgspec.structs.replace(
        result(other, "dml"), outcome=Outcome.UNAVAILABLE, stage=None, placed_on=None
    )
    invalid = msgspec.structs.replace(result(CASE.replace("float32", "int8")), validity=Validity.INVALID)
    (row,) = overview(tables(result(one), result(one, "dml"), result(one + ";a=1"), refused, invalid))
    assert row.kinds == (1, 2)


def test_operators_with_unexpected_results_come_first() -> None:
    rows = overview(many_tables())
    assert [row.operator for row in rows] == [
        "Operator004",
        "Operator014",
        *(f"Operator{n:03}" for n in range(14) if n != 4),
    ]
    assert (rows[0].status, rows[0].total.unexpected) == ("failing", 3)
    assert [rate(tally) for tally in rows[0].by_target.values()] == ["59 / 60", "47 / 60", "47 / 60"]


@pytest.mark.parametrize(("operators", "expected"), [(MANY, False), (MANY + 1, True)])
def test_many_operators_are_folded(operators: int, expected: bool) -> None:
    found = tabulate(synthetic.header(TARGETS), results(operators, 4), None)
    assert many(found) is expected
    written = io.StringIO()
    render_terminal(Report(found), Console(file=written, width=80, no_color=True))
    assert ("by the feature level that first allows them" in written.getvalue()) is not expected
    assert ("The levels of each of the 13 operators" in render_markdown(Report(found))) is expected


def test_what_has_an_infinite_bound_is_not_judged() -> None:
    found = tables(
        result(near=NOTHING),
        result(f"{CASE};draw=1", near=Accuracy(0.25, 1.0, 1, 2)),
        result(f"{CASE};draw=2"),
    )
    tally = found.tally()
    assert (tally.selected, tally.run, tally.correct, tally.unexpected) == (3, 3, 2, 0)
    assert (rate(tally), status(tally), counts(tally)) == ("2 / 3", "unjudged", "not judged 1")
    assert tally.reasons == {"infinite bound": 1}
    assert [row.detail for row in reading_rows(found)] == ["", "infinite bound 1"]
    assert foreign_status(result(near=NOTHING), synthetic.header()) == "skipped"
    assert (
        foreign_status(result(near=Accuracy(0.0, 0.0, 0, 0)), synthetic.header())
        == foreign_status(result(), synthetic.header())
        == "passed"
    )
    assert "nothing is claimed of its 2 elements" in describe(result(near=NOTHING))
    line = list(render_csv(found))[1]
    assert line.startswith("Exp,cpu,valid,2_1,3,3,2,0,0,0,0,1,0,0,0,0,0,0,3,")


def test_a_pass_without_an_element_is_not_judged() -> None:
    empty = msgspec.structs.replace(result(f"{CASE};draw=1"), empty=True)
    found = tables(result(), empty)
    tally = found.tally()
    assert (tally.selected, tally.run, tally.correct, tally.reasons) == (2, 2, 1, {"no element": 1})
    assert (rate(tally), status(tally), counts(tally)) == ("1 / 2", "unjudged", "not judged 1")
    assert (foreign_status(empty, synthetic.header()), empty.apart) == ("skipped", "empty")
    assert describe(empty).endswith("its outputs have no element")
    (row,) = [line for line in render_csv(found) if line.startswith("Exp,")]
    assert row.split(",")[4:12] == ["2", "2", "1", "0", "0", "0", "0", "1"]


def test_what_the_core_refused_is_not_the_providers() -> None:
    def refused(draw: int, by: str | None) -> Result:
        error = Error("Fail", "no", UNSET if by is None else "core")
        return msgspec.structs.replace(
            result(f"{CASE};draw={draw}"),
            validity=Validity.INVALID,
            outcome=Outcome.REJECTED,
            placed_on=None,
            error=error,
        )

    found = tables(refused(1, None), refused(2, "core"))
    tally = found.tally()
    assert (tally.selected, tally.correct, tally.unexpected) == (2, 1, 0)
    assert tally.reasons == {"refused by the core": 1}
    assert foreign_status(refused(2, "core"), synthetic.header()) == "skipped"
    assert "refused by the core 1" in render_markdown(Report(found))


def test_the_largest_ratio_by_operator_and_target() -> None:
    outside = Diff(9, 1, 2, (1,), "1 ± 0.5", "2", 1.0, 0.5)
    half = CASE.replace("float32", "float16")
    given = [
        result(near=Accuracy(0.25, 1.5, 0, 2)),
        result(half, near=Accuracy(2.0, 1.0, 1, 2), diff=outside),
        result(f"{CASE};draw=1", near=NOTHING),
        result(f"{CASE};draw=2"),
        result(target="dml", near=NOTHING),
    ]
    near = Nearnesses()
    for each in given:
        near.add(each, facets(each.case))
    cpu, dml = near.rows(["dml", "cpu"])[::-1]
    assert (cpu.target, cpu.worst, cpu.all) == (
        "cpu",
        "float16",
        (("float16", "float32"), 2.0, 1.5, 3, 1, 1, half),
    )
    assert (dml.target, dml.all.ratio, dml.all.unclaimed, dml.all.example) == ("dml", 0.0, 1, "")
    text = render_markdown(Report(tables(*given)))
    assert "| Exp | cpu | 2 | float16 | 1.5 | 3 | 1 | 1 |" in text
    assert "| Exp | dml | – | – | 0 | 1 | 0 | 1 | – |" in text
    assert "error 1, 2 × its bound" in describe(given[1])
    assert "## Errors and bounds" not in render_markdown(Report(tables(result())))


def test_an_output_of_several_and_a_missing_number_are_said() -> None:
    nan = Diff(None, 1, 2, (0,), "1 ± 0.5", "nan", None, 0.5, 2)
    assert "output 2: 1 of 2 differ at [0]: expected 1 ± 0.5, actual nan · no number within 0.5" in describe(
        result(diff=nan)
    )
    exact = Diff(1, 1, 2, (0,), "1 ± 0", "2", 1.0, 0.0)
    assert "error 1 where none is admissible" in describe(result(diff=exact))


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.314, "0.31"), (0.9999, "0.9999"), (1.0, "1"), (1.00004, "1.00004"), (12.4, "12"), (0.0, "0")],
)
def test_a_ratio_is_never_rounded_to_one(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text


def test_accuracy_in_words() -> None:
    assert in_words(Accuracy(0.314, 1.5, 0, 12)) == "error 0.31 of its bound, 1.5 ULP"
    assert (
        in_words(Accuracy(0.5, 2.0, 2, 12))
        == "error 0.5 of its bound, 2 ULP; nothing claimed of 2 of 12 elements"
    )
