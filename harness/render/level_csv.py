"""Renders the level table as CSV: a line for each operator, target, validity and level, a column for each
outcome."""

from __future__ import annotations

import csv
import io

from harness.model.case import Validity
from harness.model.verdict import Outcome, Reading
from harness.render.text import visible
from harness.results.level_table import levels
from harness.results.summary import one_line
from harness.results.tables import Tables

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(text: str) -> str:
    """Write a text on one line, so that no spreadsheet takes it for a formula."""
    shown = one_line(visible(text))
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def render_csv(tables: Tables) -> str:
    """Write the table with a header line; lines end with a line feed, and no cell can be taken for a
    formula."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    outcomes = list(Outcome)
    table.writerow(
        [
            "operator",
            "target",
            "validity",
            "level",
            "selected",
            "run",
            *(reading.value for reading in Reading),
            *(f"unexpected {reading.value}" for reading in Reading),
            *(o.value for o in outcomes),
        ]
    )
    cells = tables.by("operator", "target", "validity", "level")
    for operator in tables.operators:
        for target in tables.targets:
            for validity in Validity:
                for level in levels(tables):
                    tally = cells.get((operator, target, validity, level))
                    if tally is None:
                        continue
                    counts = [
                        tally.selected,
                        tally.run,
                        *(tally[reading] for reading in Reading),
                        *(tally.red(reading) for reading in Reading),
                    ]
                    row = [cell(operator), cell(target), validity.value, cell(level)]
                    table.writerow([*row, *counts, *(tally.outcomes[outcome] for outcome in outcomes)])
    return text.getvalue()
