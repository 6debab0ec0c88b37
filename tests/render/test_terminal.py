from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import rich.console

from harness.model.case import Validity
from harness.model.result import Diff
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Verdict
from harness.render.console import Console
from harness.render.terminal import describe, render_terminal
from harness.results.report import Report
from harness.results.tables import Tables, tabulate
from tests import synthetic
from tests.golden import check_golden
from tests.synthetic import ABSENT, CPU, DML

GOLDEN = Path(__file__).parent.parent / "golden"


def rendered(tables: Tables, *, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    render_terminal(
        Report(tables),
        rich.console.Console(
            file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None
        ),
    )
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "targets", "faults"),
    [
        ("terminal_failures.txt", {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}, 0.01),
        ("terminal_good.txt", {"cpu": CPU}, 0.0),
    ],
)
def test_what_a_run_ends_with(name: str, targets: dict[str, TargetInfo], faults: float) -> None:
    text = (
        "\n".join(
            part.rstrip() for part in rendered(synthetic.tables(3000, targets, faults=faults)).splitlines()
        )
        + "\n"
    )
    check_golden(GOLDEN / name, text)


def test_level_table_fits_80_columns_with_large_counts() -> None:
    tables = synthetic.tables(20_000, {"cpu": CPU, "dml": DML, "dml@windows": ABSENT})
    text = rendered(tables)
    table = text[text.index("2_1") - 25 : text.index("correct / selected")]
    rows = [row for row in table.splitlines() if "/" in row]
    assert len(rows) == 9
    assert all(row.count("/") + row.count("–") == 5 for row in rows)
    assert "GatherElements\n" in re.sub(" +\n", "\n", table)


LEVELS = ["1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1", "6_2", "beyond"]


def wide(number: int) -> Tables:
    """A run of many levels, and names as long as ONNX has them."""
    names = [
        "AveragePool",
        "DynamicQuantizeLinear",
        "SoftmaxCrossEntropyLoss",
        "NegativeLogLikelihoodLoss",
        *(f"Operator{n}" for n in range(30)),
    ]
    results = [
        synthetic.result(
            f"{name}@13:case=a{n}",
            outcome,
            validity=validity,
            levels={"directml": level},
            placed_on=DML.provider,
        )
        for name in names[:number]
        for n, level in enumerate(LEVELS * 12)
        for validity, outcome in (
            (Validity.VALID, Outcome.PASS),
            (Validity.UNSPECIFIED, Outcome.PASS),
            (Validity.UNSPECIFIED, Outcome.ACCEPTED_INVALID),
            (Validity.UNSPECIFIED, Outcome.CRASH),
        )
    ]
    return tabulate(synthetic.header({"cpu": DML}), results, None)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("number", [4, 34])
def test_no_name_is_broken(width: int, number: int) -> None:
    tables = wide(number)
    lines = rendered(tables, width=width).splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    shown = [name for name in tables.operators if any(line.startswith(name) for line in lines)]
    assert shown == (tables.operators if number <= 12 else [])
    heads = next((line.split() for line in lines if line.split()[-1:] == ["all"]), [])
    assert heads == ([] if number > 12 else ["all"] if width == 80 else [*LEVELS, "all"])


@pytest.mark.parametrize(
    "names",
    [
        ["cpu", "dml"],
        ["cpu@ort-1.22.1", "dml@ort-1.22.1", "dml@ssh:someone@elsewhere.example", "directml@level-5_0"],
    ],
)
def test_targets_that_do_not_fit_beside_each_other_are_summed(names: list[str]) -> None:
    results = [
        synthetic.result(
            f"Operator{n}@13:case=a",
            Outcome.PASS,
            target=name,
            operator=f"Operator{n}",
            levels={"directml": "1_0"},
        )
        for n in range(13)
        for name in names
    ]
    text = rendered(tabulate(synthetic.header(dict.fromkeys(names, CPU)), results, None))
    heads = [line.split() for line in text.splitlines() if line.split() == [*names, "all"]]
    assert bool(heads) is (len(names) == 2)
    row = next(line.split() for line in text.splitlines() if line.startswith("  correct"))
    assert row == ["correct", *(["13", "13"] if heads else []), str(13 * len(names))]
    assert all(len(line) <= 80 for line in text.splitlines())


def test_colour_is_the_consoles_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = synthetic.tables(200)
    assert "\x1b[" not in rendered(tables)
    assert "\x1b[" in rendered(tables, colour=True)
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    render_terminal(Report(tables), rich.console.Console(file=out, width=80, force_terminal=True))
    assert "\x1b[3" not in out.getvalue()


def test_case_ids_are_not_broken() -> None:
    tables = synthetic.tables(3000)
    text = rendered(tables)
    groups = tables.unexpected.groups()[:8]
    assert len(groups) == 8
    for group in groups:
        assert group.example.case in text


@pytest.mark.parametrize(
    ("error", "bound", "said"),
    [
        (0.25, 0.1, "error 0.25, 2.5 × its bound"),
        (1e9, 0.5, "error 1e+09, 2e+09 × its bound"),
        (0.25, 0.0, "error 0.25 where none is admissible"),
        (None, 0.5, "no number within 0.5"),
    ],
)
def test_an_error_is_told_with_its_bound(error: float | None, bound: float, said: str) -> None:
    diff = Diff(7, 1, 2, (0,), "2 ± 0.1", "2.25 (0x40100000)", error, bound)
    result = synthetic.result("Exp@13:", Outcome.MISMATCH, Verdict.NEW, diff=diff)
    assert (
        describe(result)
        == f"mismatch · 1 of 2 differ at [0]: expected 2 ± 0.1, actual 2.25 (0x40100000) · max 7 ULP · {said}"
    )


@pytest.mark.parametrize("columns", ["0", "1"])
def test_a_terminal_without_columns_is_written_to(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Console().width == 20
