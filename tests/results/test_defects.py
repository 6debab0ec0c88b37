"""The defects at the top of every report: one line each, the worst first, with releases and the smallest case."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from harness.model.case import Validity
from harness.model.caseid import elements
from harness.model.header import Expectation
from harness.model.result import Error, Result
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.render.report import render_markdown
from harness.render.terminal import render_terminal
from harness.results.defects import WITHOUT_ENTRY, defects, releases
from harness.results.report import Report
from harness.results.tables import Tables, tabulate
from tests import synthetic
from tests.synthetic import ABSENT, CPU, DML

ENTRIES = {
    1: Expectation((Outcome.MISMATCH,), "Why.", "https://example.com/1", "Late", releases={"onnxruntime": ">=1.24,<1.28"}),
    2: Expectation((Outcome.CRASH,), "Why.", "https://example.com/2", "Ends", releases={}),
    3: Expectation((Outcome.ACCEPTED_INVALID,), "Why.", "https://example.com/3", "Takes", pending=True),
    4: Expectation((Outcome.MISMATCH,), "Why.", "https://example.com/4", "Often", releases={}),
    5: Expectation((Outcome.UNSUPPORTED,), "Why.", "https://example.com/5", "No kernel", releases={}),
}  # fmt: skip


def result(case: str, outcome: Outcome, entry: int | None = None, *, target: str = "cpu") -> Result:
    validity = Validity.INVALID if outcome is Outcome.ACCEPTED_INVALID else Validity.VALID
    verdict = Verdict.EXPECTED if entry is not None else Verdict.REGRESSION
    found = synthetic.result(case, outcome, verdict, target=target, validity=validity)
    return found if entry is None else msgspec.structs.replace(found, expectation=entry)


def counted(*found: Result, targets: dict[str, TargetInfo] | None = None) -> Tables:
    header = msgspec.structs.replace(
        synthetic.header(targets or {"cpu": CPU}), expectations=ENTRIES, baseline=None
    )
    return tabulate(header, found, synthetic.end_of(found))


KNOWN = (
    result("Exp@13:sweep=a;input=float32[2,3]", Outcome.MISMATCH, 1),
    result("Log@13:sweep=a;input=float32[9]", Outcome.MISMATCH, 4),
    result("Log@13:sweep=a;input=float32[2]", Outcome.MISMATCH, 4),
    result("Exp@13:sweep=a;input=float32[7]", Outcome.MISMATCH, 4),
    result("Sum@13:sweep=a;x=float32[2]", Outcome.CRASH, 2),
    result("Sum@13:sweep=b;x=float32[2]", Outcome.ACCEPTED_INVALID, 3),
    result("Sum@13:sweep=c;x=complex64[2]", Outcome.UNSUPPORTED, 5),
)
NEW = msgspec.structs.replace(
    result("Abs@13:sweep=a;x=int8[2]", Outcome.REJECTED), error=Error("Fail", "no such kernel")
)


def test_the_worst_come_first_and_missing_kernels_are_none() -> None:
    found = defects(counted(*KNOWN, NEW, result("Abs@13:sweep=b;x=int8[2]", Outcome.CRASH)))
    assert [(row.title, row.operator, row.reading.value, row.cases, row.state) for row in found] == [
        ("opset 13, int8: crash", "Abs", "crashed", 1, "unexpected"),
        ("opset 13, int8: rejected, Fail", "Abs", "not supported", 1, "unexpected"),
        ("Often", "Log, Exp", "wrong", 3, "every release"),
        ("Late", "Exp", "wrong", 1, "since 1.24, mended in 1.28"),
        ("Ends", "Sum", "crashed", 1, "every release"),
        ("Takes (not reviewed yet)", "Sum", "accepted", 1, ""),
    ]


def test_the_smallest_case_stands_for_a_defect() -> None:
    found = {row.title: (row.example, row.target) for row in defects(counted(*KNOWN))}
    assert found["Often"] == ("Log@13:sweep=a;input=float32[2]", "cpu")
    backwards = defects(counted(*reversed(KNOWN)))
    assert {row.title: (row.example, row.target) for row in backwards} == found
    large, small = (result(f"Abs@13:sweep=a;x=int8[{size}]", Outcome.CRASH) for size in (12, 3))
    assert [row.example for row in defects(counted(large, small))] == [small.case]


def test_every_defect_is_counted_once() -> None:
    tables = counted(*KNOWN, NEW)
    known = [row for row in defects(tables) if not row.unexpected]
    assert sum(row.cases for row in known) == tables.tally().defects == 6


def test_what_no_entry_explains_is_a_line_of_its_own() -> None:
    known = msgspec.structs.replace(
        result("Abs@13:sweep=a;x=int8[2]", Outcome.CRASH), verdict=Verdict.EXPECTED
    )
    assert [(row.title, row.cases) for row in defects(counted(known, *KNOWN[4:5]))] == [
        ("Ends", 1),
        (WITHOUT_ENTRY, 1),
    ]


def test_improvements_are_no_defects() -> None:
    better = msgspec.structs.replace(
        result("Abs@13:sweep=a;x=int8[2]", Outcome.PASS), verdict=Verdict.IMPROVEMENT
    )
    assert defects(counted(better)) == []


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ({"onnxruntime": "<1.28"}, ("", "1.28")),
        ({"onnxruntime": ">=1.24.3"}, ("1.24.3", "")),
        ({"onnxruntime": "<1.24.3,!=1.18.*,!=1.19.*"}, ("", "1.24.3")),
        ({"onnxruntime": ">=1.14", "directml": "<1.10"}, ("1.14", "DirectML 1.10")),
        ({}, ("", "")),
    ],
)
def test_releases_are_read_from_version_ranges(ranges: dict[str, str], expected: tuple[str, str]) -> None:
    assert releases(ranges) == expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("Conv@11:sweep=a;X=float32[1,2,5];W=float32[2,2,3];strides=[3]", 22),
        ("Slice@13:case=a;data=float32[4];starts=int64{0,2};axes=int64(1)", 7),
        ("nothing", 0),
    ],
)
def test_elements_of_a_case(case: str, expected: int) -> None:
    assert elements(case) == expected


class TestFirstScreen:
    """Release, date, machine and verdict, then defects, then support: levels only where a DirectML target ran."""

    def test_in_markdown(self) -> None:
        text = render_markdown(Report(counted(*KNOWN)))
        assert (
            "- 2026-01-02 03:04 UTC\n- cpu: CPUExecutionProvider, onnxruntime 1.23.0, Linux x86_64\n" in text
        )
        order = ["## Defects: 2 wrong, 1 crashed, 1 accepted", "## Element types with a kernel", "Operators"]
        assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
        row = next(line for line in text.splitlines() if line.startswith("| Late "))
        assert row.startswith("| Late | Exp | wrong | 1 | since 1.24, mended in 1.28 | [example.com]")

    @pytest.mark.parametrize(
        ("targets", "expected"),
        [({"cpu": CPU}, False), ({"cpu": CPU, "dml": DML}, True), ({"cpu": CPU, "dml": ABSENT}, False)],
    )
    def test_levels_are_directmls(self, targets: dict[str, TargetInfo], expected: bool) -> None:
        text = render_markdown(Report(counted(*KNOWN, targets=targets)))
        assert ("## By DirectML feature level" in text) is expected

    def test_kernels_by_type(self) -> None:
        by_function = msgspec.structs.replace(
            result("Elu@13:sweep=a;x=float16[2]", Outcome.PASS, 4), function_nodes=3
        )
        both = msgspec.structs.replace(
            result("Exp@13:sweep=b;input=float32[2]", Outcome.PASS, 4), function_nodes=3
        )
        tables = counted(*KNOWN, by_function, both, targets={"cpu": CPU, "dml": ABSENT})
        rows = {row.dtype: (row.on("cpu"), row.on("dml")) for row in Report(tables).kernels}
        assert rows == {"float16": ("0 + 1 / 1", "–"), "float32": ("2 / 3", "–"), "complex64": ("0 / 1", "–")}

    def test_in_the_terminal(self) -> None:
        out = io.StringIO()
        render_terminal(Report(counted(*KNOWN)), Console(file=out, width=80, no_color=True))
        text = out.getvalue()
        assert "  wrong     1  Exp: Late; since 1.24, mended in 1.28\n" in text
        assert "feature level" not in text
