"""Writes a document as Markdown for an issue, a pull request or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.render.document import Block, Document, Items, Paragraph, Section, Span, Table, spanned
from harness.render.markdown import LIMIT, assemble
from harness.render.markup import code, escape, link, table
from harness.render.text import line

_ITEMS = 2000
_NUMBER = re.compile(r"[+-]?[0-9,]+")
_SENTENCE, _LONG, _ID = 1000, 600, 400


def write_markdown(document: Document, *, limit: int = LIMIT) -> str:
    """Write a document; what does not fit in `limit` bytes is left out by whole lines and named at the end."""
    parts = [(section.title.lower(), _section(section)) for section in document.parts("markdown")]
    return assemble([("the headline", _head(document)), *parts], limit)


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
        yield from _block(block)
    if section.folded:
        yield "</details>"
        yield ""


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield _span(block.text)
        yield ""
    elif isinstance(block, Table):
        rows = ([_span(spanned(cell)) or "–" for cell in row] for row in block.rows)
        yield from table([escape(head) for head in block.heads], rows, block.right)
    elif isinstance(block, Items):
        yield from _items(block)


def _items(block: Items) -> Iterator[str]:
    for item in block.items[:_ITEMS]:
        head = f"**{escape(line(item.head, _LONG))}**"
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
    return code(line(text, _ID))


def _span(span: Span) -> str:
    text = line(span.text, _LONG)
    if _NUMBER.fullmatch(text):
        return text
    return (code(text) if span.code else escape(text)) if text else ""
