"""Renders a run as CSV, for spreadsheets and databases: a line for each result; or the level table, with a line for each
operator, target, validity and level and a column for each outcome."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import product

from harness.model.case import Validity
from harness.model.facets import facets
from harness.model.result import Accuracy, Result
from harness.model.verdict import Outcome, Reading
from harness.render.payload import INEXPRESSIBLE
from harness.render.text import message, visible
from harness.results.level_table import levels
from harness.results.runfile import RunReader
from harness.results.summary import one_line
from harness.results.tables import Tables
from harness.results.tally import state_of

MESSAGE = 1000
"""Characters of an error message; the run file has it whole."""
COLUMNS = (
    "target", "case", "operator", "opset", "element type", "rank", "validity", "level", "outcome", "verdict",
    "reading", "why not judged", "unexpected", "stage",
    "placed on", "function nodes", "error", "message", "differing", "elements", "max ulp", "error / bound",
    "entry", "milliseconds",
)  # fmt: skip


def render_case_csv(run: RunReader) -> Iterator[str]:
    """Yield a header line, then a line for each result in the order of the run; no cell can be taken for a
    formula. Errors: UsageError for a damaged run."""
    yield csv_line(COLUMNS)
    for result in run:
        yield csv_line(_row(result, run))


def _row(result: Result, run: RunReader) -> list[object]:
    read = facets(result.case)
    state = state_of(result, baseline=run.header.baseline is not None)
    error, diff, near = result.error, result.diff, result.accuracy
    entry = run.header.entry(result.expectation)
    return [
        *map(cell, (result.target, result.case, read.operator)),
        read.opset,
        read.dtype,
        read.rank if read.rank >= 0 else "",
        result.validity.value,
        cell(result.levels.get("directml", "")),
        result.outcome.value,
        result.verdict.value,
        state.reading.value if state.reading else INEXPRESSIBLE,
        state.reason,
        "yes" if state.unexpected else "no",
        result.stage or "",
        cell(result.placed_on or ""),
        result.function_nodes if isinstance(result.function_nodes, int) else "",
        cell(error.class_) if error else "",
        cell(message(error.message, MESSAGE)) if error else "",
        diff.differing if diff else "",
        diff.total if diff else "",
        "" if diff is None or diff.max_ulp is None else diff.max_ulp,
        f"{near.ratio:.3g}" if isinstance(near, Accuracy) else "",
        cell(entry.name) if entry else "",
        f"{result.seconds * 1000:.3g}",
    ]


def csv_line(values: Iterable[object]) -> str:
    """Write a line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(text: str) -> str:
    """Write a text on one line, so that no spreadsheet takes it for a formula."""
    shown = one_line(visible(text))
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def render_csv(tables: Tables) -> Iterator[str]:
    """Yield a header line, then a line for each operator, target, validity and level; lines end with a line feed, and no
    cell can be taken for a formula."""
    readings, outcomes = [each.value for each in Reading], list(Outcome)
    counted = ["selected", "run", *readings, *(f"unexpected {name}" for name in readings)]
    yield csv_line(["operator", "target", "validity", "level", *counted, *(each.value for each in outcomes)])
    cells, columns = tables.by("operator", "target", "validity", "level"), levels(tables)
    for operator, target, validity, level in product(tables.operators, tables.targets, Validity, columns):
        if (tally := cells.get((operator, target, validity, level))) is not None:
            row = [cell(operator), cell(target), validity.value, cell(level), tally.selected, tally.run]
            row += [*(tally[each] for each in Reading), *(tally.red(each) for each in Reading)]
            yield csv_line([*row, *(tally.outcomes[each] for each in outcomes)])
