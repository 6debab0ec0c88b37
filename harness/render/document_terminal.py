"""Writes a document to the terminal; made for 80 columns."""

from __future__ import annotations

from itertools import product

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from harness.render.document import Document, Items, Paragraph, Remark, Section, Span, Table, line, spanned
from harness.render.terminal import TONES, indented
from harness.render.text import one_line
from harness.results.summary import count

_STYLES = {"": "", "bold": "bold", "soft": "dim", "good": "green", "bad": "red", "warn": "yellow"}
_ITEMS = 20
_SENTENCE, _LONG = 1000, 400
_WORDS = 24
"""Columns that the last column of a table needs when it is broken into lines."""


def write_terminal(document: Document, console: Console) -> None:
    """Print the finding, what limits it, and the sections."""
    indented(
        console, line(document.headline, _SENTENCE), TONES[document.tone] if document.tone else "bold", 0
    )
    for remark in document.remarks:
        indented(console, line(remark, _LONG), "yellow")
    for section in document.parts("terminal"):
        _section(section, console)


def _section(section: Section, console: Console) -> None:
    if section.title or not isinstance(section.blocks[0], Items):
        console.print()
    if section.title:
        console.print(Text(line(section.title, _LONG), style="bold"))
    for place, block in enumerate(section.blocks):
        if isinstance(block, Paragraph):
            _paragraph(block.text, console)
        elif isinstance(block, Items):
            _items(block, console)
        elif isinstance(block, Table):
            if place and isinstance(section.blocks[place - 1], Table):
                console.print()
            _table(block, console)


def _paragraph(span: Span, console: Console) -> None:
    if span.code:
        console.print(_text(span), soft_wrap=True)
    else:
        indented(console, line(span.text, _LONG), _STYLES[span.style], 0)


def _items(block: Items, console: Console) -> None:
    for item in block.items[:_ITEMS]:
        console.print()
        head = Text(f"{one_line(item.tag)} " if item.tag else "", style="bold")
        head.append(line(item.head, _LONG), style="" if item.tag else "bold")
        for part in head.wrap(console, console.width):
            part.rstrip()
            console.print(part, soft_wrap=True)
        for remark in item.remarks:
            _remark(remark, console)
        if item.case:
            console.print(Text(f"  {one_line(item.case)}"), soft_wrap=True)
    if len(block.items) > _ITEMS:
        more = count(len(block.items) - _ITEMS, "more group")
        console.print(Text(f"and {more}: see --format html", style="dim"))


def _remark(remark: Remark, console: Console) -> None:
    if remark.case:
        text = f"{' ' * 2 * remark.depth}{line(remark.text, _LONG)}: {one_line(remark.case)}"
        console.print(Text(text, style=_STYLES[remark.style]), soft_wrap=True)
    else:
        text = " ".join(filter(None, (line(remark.text, _LONG), one_line(remark.link))))
        indented(console, text, _STYLES[remark.style], 2 * remark.depth)


def _table(block: Table, console: Console) -> None:
    """Print a table; where it is too wide, with heads and its last column broken into lines, and row by row where
    even that does not fit."""
    skipped = int(block.grouped)
    right = [place - skipped for place in block.right]
    heads = [Text(one_line(head), style="bold") for head in block.heads[skipped:]]
    rows = [(spanned(row[0]), [_text(spanned(cell)) for cell in row[skipped:]]) for row in block.rows]
    gap, widths = _widths(heads, [cells for _, cells in rows], console.width)
    before = None
    if widths:
        _row(heads, widths, gap, right, console)
    for first, cells in rows:
        if block.grouped and first.text != before:
            console.print(_text(first._replace(style="bold")), soft_wrap=True)
        before = first.text
        if widths:
            _row(cells, widths, gap, right, console)
        else:
            said = [f"{head} {cell}".strip() for head, cell in zip(heads, cells, strict=True) if cell.plain]
            indented(console, " · ".join([cells[0].plain, *said[1:]]), "", 2 * skipped)


def _row(cells: list[Text], widths: list[int], gap: int, right: list[int], console: Console) -> None:
    """Print the cells of a row beside each other; one that is too wide is broken into lines."""
    broken = [cell.wrap(console, max(width, 1)) for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, broken))):
        made = Text()
        for place, (parts, width) in enumerate(zip(broken, widths, strict=True)):
            part = parts[number] if number < len(parts) else Text()
            part.rstrip()
            made.append(" " * (gap if place else 0))
            free = " " * (width - part.cell_len)
            made = made.append(free).append(part) if place in right else made.append(part).append(free)
        made.rstrip()
        console.print(made, soft_wrap=True)


def _widths(heads: list[Text], rows: list[list[Text]], room: int) -> tuple[int, list[int]]:
    """Return the gap between the columns and the width of each; none where they do not fit."""
    columns = [[head, *(row[place] for row in rows)] for place, head in enumerate(heads)]
    whole = [max(cell.cell_len for cell in column) for column in columns]
    broken = [
        max([*map(cell_len, head.plain.split()), *(cell.cell_len for cell in column[1:])], default=0)
        for head, column in zip(heads, columns, strict=True)
    ]
    for gap, (*first, last) in product((2, 1), (whole, broken)):
        left = room - sum(first) - gap * len(first)
        if left >= min(last, _WORDS):
            return gap, [*first, min(last, left)]
    return 0, []


def _text(span: Span) -> Text:
    return Text(one_line(span.text) if span.code else line(span.text, _LONG), style=_STYLES[span.style])
