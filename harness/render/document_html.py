"""Writes a document as one self-contained HTML page, with the look of a run's report and, where the document has
one, its table of cases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from harness.render.document import Document, Span, Table, spanned
from harness.render.html import fill

_ITEMS = 500
_SHADES = {"good": "pass", "bad": "failing", "warn": "partial", "soft": "none"}
"""The class of a cell's colour."""


def write_html(document: Document) -> str:
    """Write the page."""
    cases = document.cases() if document.cases is not None else None
    context = {
        "document": document,
        "sections": list(document.parts("html")),
        "about": cases.about if cases else "",
        "most": _ITEMS,
        "shades": _SHADES,
        "kind": lambda block: type(block).__name__,
        "spanned": spanned,
        "grouped": _grouped,
        "drawn": Markup,  # made of numbers and escaped text
    }
    return fill("document.html.j2", context, cases.data if cases else "")


def _grouped(table: Table) -> list[list[Sequence[str | Span]]]:
    """Return the rows of a table, neighbours with the same first cell together."""
    if not table.grouped:
        return [list(table.rows)]
    return [list(rows) for _, rows in groupby(table.rows, key=lambda row: spanned(row[0]).text)]
