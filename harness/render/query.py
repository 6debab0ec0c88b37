"""Renders the answer to a question in SQL: as a table, CSV or JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from harness.model.errors import UsageError
from harness.render.csv_tables import cell, csv_line
from harness.render.document import Document, Section, Span, Table
from harness.render.text import json_text
from harness.results.columns import Answer
from harness.results.summary import count

MOST = 1000
"""Rows that a table shows."""


def answer_document(answer: Answer) -> Document:
    """Show the first rows of an answer."""
    rows = [tuple(map(_plain, row)) for row in islice(answer.rows, MOST + 1)]
    more = [f"These are the first {MOST:,} rows; --format csv and json have all."] if len(rows) > MOST else []
    numbers = [
        place
        for place in range(len(answer.names))
        if any(isinstance(row[place], int | float) and not isinstance(row[place], bool) for row in rows)
    ]
    table = Table(answer.names, [[Span(_text(each)) for each in row] for row in rows[:MOST]], numbers)
    shown = count(len(rows[:MOST]), "row")
    return Document("", shown, [Section("rows", "", [table])] if rows else [], more)


def answer_csv(answer: Answer) -> Iterator[str]:
    """Yield a line of names, then a line for each row; no cell can be taken for a formula."""
    yield csv_line(map(cell, answer.names))
    for row in answer.rows:
        yield csv_line(
            cell(_text(each)) if not isinstance(each, int | float) else _text(each)
            for each in map(_plain, row)
        )


def answer_json(answer: Answer) -> Iterator[str]:
    """Yield a list with an object for each row, a row a line. Errors: UsageError for two columns of one name."""
    if doubled := [name for name, number in Counter(answer.names).items() if number > 1]:
        raise UsageError(f"two columns are called {', '.join(doubled)}: name one of them with AS")
    before = "[\n"
    for row in answer.rows:
        yield before + json_text(dict(zip(answer.names, map(_plain, row), strict=True)))
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _plain(value: Any) -> Any:
    """Return a value as JSON: text for types that JSON lacks, null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else str(value)
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str) else str(value)


def _text(plain: Any) -> str:
    return plain if isinstance(plain, str) else "" if plain is None else json_text(plain)


RENDERINGS = {"csv": answer_csv, "json": answer_json}
