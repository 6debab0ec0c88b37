from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from harness.records import Diff, Outcome, Result, TargetInfo, Validity, Verdict
from harness.render.terminal import describe, render_terminal
from harness.tables import Tables
from tests import synthetic
from tests.golden import check_golden
from tests.synthetic import ABSENT, CPU, DML

GOLDEN = Path(__file__).parent.parent / "golden"


def rendered(tables: Tables, *, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    render_terminal(tables, Console(file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "targets", "faults"),
    [
        ("terminal_failures.txt", {"cpu": CPU, "dml": DML, "dml@windows": ABSENT}, 0.01),
        ("terminal_good.txt", {"cpu": CPU}, 0.0),
    ],
)
def test_what_a_run_ends_with(name: str, targets: dict[str, TargetInfo], faults: float) -> None:
    text = "\n".join(part.rstrip() for part in rendered(synthetic.tables(3000, targets, faults=faults)).splitlines()) + "\n"
    check_golden(GOLDEN / name, text)


def test_level_table_fits_80_columns_with_large_counts() -> None:
    tables = synthetic.tables(20_000, {"cpu": CPU, "dml": DML, "dml@windows": ABSENT})
    text = rendered(tables)
    table = text[text.index("2_1") - 25 : text.index("passed / selected")]
    rows = [row for row in table.splitlines() if "/" in row]
    assert len(rows) == 9
    assert all(row.count("/") + row.count("–") == 5 for row in rows)
    assert "GatherElements\n" in re.sub(" +\n", "\n", table)


def test_colour_is_the_consoles_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = synthetic.tables(200)
    assert "\x1b[" not in rendered(tables)
    assert "\x1b[" in rendered(tables, colour=True)
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    render_terminal(tables, Console(file=out, width=80, force_terminal=True))
    assert "\x1b[3" not in out.getvalue()


def test_case_ids_are_not_broken() -> None:
    tables = synthetic.tables(3000)
    text = rendered(tables)
    for group in tables.attention.groups()[:8]:
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
    result = Result("Exp@13:", "Exp", "cpu", Validity.VALID, {}, Outcome.MISMATCH, Verdict.NEW, placed_on="P", diff=diff)
    assert describe(result) == f"mismatch · 1 of 2 differ at [0]: expected 2 ± 0.1, actual 2.25 (0x40100000) · max 7 ULP · {said}"
