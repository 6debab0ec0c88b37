"""Writes a document as Markdown for an issue, a pull request or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.render.document import Block, Document, Items, Paragraph, Section, Span, Table, line, spanned
from harness.render.markup import case_id, code, escape, link, table
from harness.results.summary import count

LIMIT = 900 * 1024
"""A job summary may have 1 MiB; the rest is left to whatever else writes into it."""
_ITEMS = 2000
_NUMBER = re.compile(r"[+-]?[0-9,]*")
_SENTENCE, _LONG, _CODE = 1000, 1500, 6000


def write_markdown(document: Document, *, limit: int = LIMIT) -> str:
    """Write a document; what does not fit in `limit` bytes is left out by whole lines and named at the end."""
    parts = [(section.name.replace("-", " "), _section(section)) for section in document.parts("markdown")]
    return _assemble([("the headline", _head(document)), *parts], limit)


def _assemble(sections: Iterable[tuple[str, Iterator[str]]], limit: int) -> str:
    """Join named sections of lines to a document; what does not fit in `limit` bytes is left out by whole
    lines and named at the end."""
    budget = limit - 1024
    written: list[str] = []
    left_out = []
    for name, lines in sections:
        missing = 0
        for text in lines:
            cost = len(text.encode()) + 1
            if missing or cost > budget:
                missing += 1
                continue
            budget -= cost
            written.append(text)
        if missing:
            left_out.append(f"{missing:,} lines of {name}")
            written.append("")
    if left_out:
        written.append(
            f"**Left out to stay under {limit // 1024:,} KiB:** {', '.join(left_out)}. The whole is in the HTML report and the run file."
        )
    return "\n".join(written).rstrip() + "\n"


def _head(document: Document) -> Iterator[str]:
    if document.title:
        yield f"# {escape(document.title)}"
        yield ""
    yield f"**{escape(line(document.headline, _SENTENCE))}**"
    yield ""
    yield from (remarks := [f"- {escape(line(remark, _LONG))}" for remark in document.remarks])
    if remarks:
        yield ""


def _section(section: Section) -> Iterator[str]:
    title = escape(section.title)
    if title:
        yield f"<details><summary>{title}</summary>" if section.folded else f"## {title}"
        yield ""
    for block in section.blocks:
        yield from _block(block, section.most)
    if section.folded:
        yield "</details>"
        yield ""


def _block(block: Block, most: int | None) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield code(line(block.text.text, _LONG)) if block.text.code else _span(block.text)
        yield ""
    elif isinstance(block, Table):
        rows = ([_span(spanned(cell)) or "–" for cell in row] for row in block.rows[:most])
        yield from table([escape(head) for head in block.heads], rows, block.right)
        if left_out := len(block.rows[most:]) if most else 0:
            yield f"{count(left_out, 'more row is', 'more rows are')} in report.html."
            yield ""
    elif isinstance(block, Items):
        yield from _items(block)


def _items(block: Items) -> Iterator[str]:
    for item in block.items[:_ITEMS]:
        head = escape(line(item.head, _LONG))
        head = f"**{head}**" if item.remarks or item.case else head
        yield f"- {escape(item.tag)} {head}" if item.tag else f"- {head}"
        for remark in item.remarks:
            said = escape(line(remark.text, _LONG)) + (f": {_id(remark.case)}" if remark.case else "")
            said += f" {link(remark.link)}" if remark.link else ""
            yield f"{'  ' * remark.depth}- {said}"
        if item.case:
            yield f"  - {_id(item.case)}"
    if more := len(block.items) - _ITEMS:
        yield from [f"- and {more:,} more"] * (more > 0)
    yield ""


def _id(text: str) -> str:
    return code(line(text, _CODE))


def _span(span: Span) -> str:
    text = line(span.text, _LONG)
    if _NUMBER.fullmatch(text):
        return text
    if span.code:
        return case_id(text)
    if "://" in span.link:
        return link(span.link)
    return f"**{escape(text)}**" if span.style == "bold" else escape(text)
