from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.result import Error, Result
from harness.model.verdict import Outcome, Reading, Verdict, fails
from harness.results.counted import read_tables
from harness.results.level_table import counts, level_table, levels, rate, status, validity_table
from harness.results.runfile import RunReader
from harness.results.tables import Tables
from harness.results.tally import Tally
from harness.results.unexpected import KEEP, MESSAGE_LIMIT
from tests import synthetic
from tests.synthetic import CPU, DML

CASE = "Round@22:sweep=a;X=float32[2]"


def result(
    outcome: Outcome,
    verdict: Verdict = Verdict.EXPECTED,
    validity: Validity = Validity.VALID,
    case: str = CASE,
    target: str = "cpu",
) -> Result:
    return synthetic.result(case, outcome, verdict, target=target, validity=validity)


def table(*results: Result) -> Tables:
    tables = Tables(synthetic.header({"cpu": CPU}))
    for each in results:
        tables.add(each)
    tables.finish(synthetic.end_of(results))
    return tables


def test_a_rate_has_its_denominators() -> None:
    tally = table(
        result(Outcome.PASS), result(Outcome.UNSUPPORTED), result(Outcome.NOT_RUN, Verdict.MISSING)
    ).tally()
    assert (tally.selected, tally.run, tally.correct, tally.unexpected) == (3, 2, 1, 0)
    assert (tally.known(Reading.NOT_SUPPORTED), tally.red(Reading.NOT_SUPPORTED)) == (2, 0)
    assert rate(tally) == "1 / 3"
    assert counts(tally) == "not supported 2"
    assert rate(Tally()) == "–"


@pytest.mark.parametrize(
    ("outcome", "verdict", "validity", "expected"),
    [
        (Outcome.MISMATCH, Verdict.REGRESSION, Validity.VALID, True),
        (Outcome.CRASH, Verdict.CHANGED, Validity.UNSPECIFIED, True),
        (Outcome.TIMEOUT, Verdict.REGRESSION, Validity.UNSPECIFIED, True),
        (Outcome.CRASH, Verdict.EXPECTED, Validity.UNSPECIFIED, False),
        (Outcome.MISMATCH, Verdict.CHANGED, Validity.UNSPECIFIED, False),
        (Outcome.CRASH, Verdict.CHANGED, Validity.VALID, True),
        (Outcome.MISMATCH, Verdict.NEW, Validity.VALID, True),
        (Outcome.PASS, Verdict.NEW, Validity.VALID, False),
        (Outcome.REJECTED, Verdict.NEW, Validity.INVALID, False),
        (Outcome.UNAVAILABLE, Verdict.MISSING, Validity.VALID, False),
        (Outcome.NOT_RUN, Verdict.NEW, Validity.VALID, False),
        (Outcome.PASS, Verdict.IMPROVEMENT, Validity.VALID, False),
        (Outcome.MISMATCH, Verdict.EXPECTED, Validity.VALID, False),
    ],
)
def test_what_turns_a_run_red(outcome: Outcome, verdict: Verdict, validity: Validity, expected: bool) -> None:
    assert fails(validity, outcome, verdict) is expected
    improved = verdict is Verdict.IMPROVEMENT  # red too, though it is no failure
    assert table(result(outcome, verdict, validity)).tally().unexpected == int(expected or improved)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], "none"),
        ([result(Outcome.UNAVAILABLE, Verdict.MISSING)], "unjudged"),
        ([result(Outcome.PASS), result(Outcome.PASS, validity=Validity.UNSPECIFIED)], "unjudged"),
        ([result(Outcome.UNSUPPORTED)], "absent"),
        ([result(Outcome.PASS)], "pass"),
        ([result(Outcome.PASS), result(Outcome.NOT_RUN, Verdict.MISSING)], "partial"),
        ([result(Outcome.PASS), result(Outcome.MISMATCH)], "known"),
        ([result(Outcome.MISMATCH), result(Outcome.MISMATCH, Verdict.REGRESSION)], "failing"),
        ([result(Outcome.PASS, Verdict.IMPROVEMENT)], "failing"),
    ],
)
def test_status_of_a_cell(results: list[Result], expected: str) -> None:
    assert status(table(*results).tally()) == expected


def test_attention_keeps_what_must_be_read_and_counts_the_rest() -> None:
    many = [result(Outcome.MISMATCH, Verdict.REGRESSION) for _ in range(KEEP + 5)]
    tables = table(
        *many,
        result(Outcome.PASS, Verdict.NEW),
        result(Outcome.CRASH, Verdict.NEW),
        result(Outcome.UNAVAILABLE, Verdict.MISSING),
    )
    unexpected = tables.unexpected
    assert len(unexpected.results[Verdict.REGRESSION]) == KEEP
    assert unexpected.numbers == {
        Verdict.REGRESSION: KEEP + 5,
        Verdict.CHANGED: 0,
        Verdict.NEW: 1,
        Verdict.IMPROVEMENT: 0,
    }
    assert [each.outcome for each in unexpected.results[Verdict.NEW]] == [Outcome.CRASH]
    first, second = unexpected.groups()
    assert (first.number, first.kind.outcome, first.cases) == (
        KEEP + 5,
        Outcome.MISMATCH,
        "Round 22, float32",
    )
    assert (second.number, second.kind.verdict) == (1, Verdict.NEW)


def test_a_kept_message_is_short() -> None:
    long = synthetic.result(CASE, Outcome.REJECTED, Verdict.REGRESSION, error=Error("Fail", "x" * 1_000_000))
    kept = table(long).unexpected.results[Verdict.REGRESSION][0]
    assert kept.error is not None
    assert kept.error.message == "x" * MESSAGE_LIMIT + "… [1,000,000 characters in the run file]"


def test_level_table_counts_every_case_once() -> None:
    tables = synthetic.tables(3000)
    assert levels(tables) == ["2_1", "3_0", "4_1", "beyond"]
    rows = level_table(tables)
    assert [(row.operator, row.target) for row in rows] == [
        (operator, target)
        for operator in ("GatherElements", "GatherND", "Round")
        for target in ("cpu", "dml")
    ]
    for row in rows:
        assert sum(tally.selected for tally in row.by_level.values()) == row.total.selected
        assert row.total.selected == sum(row.total.outcomes.values())
    others = sum(row.tally.selected for row in validity_table(tables))
    assert sum(row.total.selected for row in rows) + others == tables.tally().selected == 6000


def test_what_the_devices_level_allows() -> None:
    low = msgspec.structs.replace(DML, max_feature_level="3_0")
    rows = {
        (row.operator, row.target): row
        for row in level_table(synthetic.tables(3000, {"cpu": CPU, "dml": low}))
    }
    cpu, dml = rows["GatherElements", "cpu"], rows["GatherElements", "dml"]
    assert (cpu.device_level, dml.device_level) == (None, "3_0")
    assert cpu.allowed.selected == sum(cpu.by_level[level].selected for level in ("2_1", "3_0", "4_1"))
    assert dml.allowed.selected == sum(dml.by_level[level].selected for level in ("2_1", "3_0"))


def test_a_level_that_no_table_names_gets_a_column() -> None:
    tables = Tables(synthetic.header({"cpu": CPU}))
    tables.add(synthetic.result(CASE, Outcome.UNSUPPORTED, levels={"directml": "6_4"}))
    tables.add(synthetic.result(CASE, Outcome.UNSUPPORTED, levels={}))
    tables.finish(None)
    assert levels(tables) == ["2_1", "3_0", "6_4", "beyond"]
    assert tables.tally(level="beyond").selected == 1


def test_a_run_file_that_is_cut_off(tmp_path: Path) -> None:
    tables = read_tables(RunReader(synthetic.write_run(tmp_path / "run.jsonl", 300, whole=False)))
    assert tables.truncated
    assert tables.end is None
    assert 0 < tables.selected < 600


def test_a_damaged_line_is_one_clear_error(tmp_path: Path) -> None:
    path = synthetic.write_run(tmp_path / "run.jsonl", 10)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"{not json}\n", *lines[5:]]))
    with pytest.raises(UsageError, match=r"run\.jsonl:6: damaged run file"):
        read_tables(RunReader(path))


@pytest.mark.slow
def test_memory_grows_with_variety_and_not_with_results() -> None:
    """Measured between two passes that are both traced: what a full cache replaces is then no growth."""
    tables = Tables(synthetic.header({"cpu": CPU}))
    tracemalloc.start()
    held = []
    for _ in range(3):
        for each in synthetic.results(6000, {"cpu": CPU}, faults=0.0):
            tables.add(each)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[2] - held[1] < 10_000, held
    assert tables.tally().selected == 18_000


def test_two_targets_cost_an_entry_a_case() -> None:
    tables = synthetic.tables(1000, {"cpu": CPU, "dml": DML})
    assert sum(group.number for group in tables.differences.groups()) > 0
