"""A document of headings, lines, tables and items that every writer renders: terminal text, Markdown, HTML.

Texts stand as they are recorded. The writers escape them, shorten long ones, and leave out what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from harness.model.header import Header
from harness.render import text
from harness.results.summary import MARKS, Tone, target_facts

Style = Literal["", "bold", "soft", "good", "bad", "warn"]
FORMATS = ("terminal", "markdown", "html")
line = partial(text.line, options=True)
"""Make a text of a document one line; two targets that are compared may differ in the path of an option alone."""


class Span(NamedTuple):
    """A text with its looks. `code` keeps an id or a command as it is typed. Only HTML has `link`, an address, and
    `picture`, an SVG that stands before the text."""

    text: str
    style: Style = ""
    code: bool = False
    link: str = ""
    picture: str = ""


Row = Sequence[str | Span]


class Paragraph(NamedTuple):
    """One paragraph."""

    text: Span


class Table(NamedTuple):
    """A table. `right` has the places of the columns of numbers; where it is `grouped`, neighbouring rows with the
    same first cell belong together."""

    heads: Sequence[str]
    rows: Sequence[Row]
    right: Sequence[int] | range = ()
    grouped: bool = False


class Remark(NamedTuple):
    """A line below an item, `depth` 2 below the remark before it; perhaps with the id of a case or a command, or the address
    of its source."""

    text: str
    style: Style = ""
    depth: int = 1
    case: str = ""
    link: str = ""


class Item(NamedTuple):
    """A group of results: a line, the known facts about it, and the id of one of its cases. In HTML `link`
    leads to its results, `opens` to the case."""

    head: str
    remarks: Sequence[Remark] = ()
    case: str = ""
    tag: str = ""
    link: str = ""
    opens: str = ""


class Items(NamedTuple):
    """A list of groups, the most important first."""

    items: Sequence[Item]


class Picture(NamedTuple):
    """An SVG made of escaped text, which only HTML shows."""

    svg: str


Block = Paragraph | Table | Items | Picture


class Section(NamedTuple):
    """A part with a title; `formats` says which writers have it, `folded` that a reader opens it, and `most`
    how many rows of each table Markdown has."""

    name: str
    title: str
    blocks: Sequence[Block]
    formats: tuple[str, ...] = FORMATS
    folded: bool = False
    most: int | None = None


class CaseTable(NamedTuple):
    """The interactive table of cases in an HTML page: `Payload`'s data, and what the table has."""

    data: str
    about: str


class Document(NamedTuple):
    """A title, empty where the text is part of another; the finding in a sentence; what limits it; the parts."""

    title: str
    sentence: str
    sections: Sequence[Section]
    remarks: Iterable[str] = ()
    tone: Tone | None = None
    cases: Callable[[], CaseTable] | None = None

    @property
    def headline(self) -> str:
        """The sentence with its mark."""
        return f"{MARKS[self.tone]} {self.sentence}" if self.tone else self.sentence

    def parts(self, format: str) -> Iterator[Section]:
        """Yield the sections that a writer has."""
        return (section for section in self.sections if format in section.formats)


def spanned(cell: str | Span) -> Span:
    """Return a cell as a span."""
    return cell if isinstance(cell, Span) else Span(cell)


def run_data(header: Header) -> dict[str, Any]:
    """Return what ran where as data."""
    return {name: getattr(header, name) for name in ("run_id", "command", "seed", "hashes", "targets")}


def run_table(runs: Iterable[tuple[str, Header]]) -> Table:
    """Return what ran where: the facts of each run and of each of its targets."""
    rows: list[Row] = []
    for name, header in runs:
        for target, info in header.targets.items():
            missing = [("not available", info.unavailable)] if info.unavailable else []
            rows += [(f"{name}{target}", *fact) for fact in (*missing, *target_facts(info))]
        facts = {"id": header.run_id, "seed": str(header.seed), "command": header.command, **header.hashes}
        rows += [(f"{name}run", fact, Span(text, code=True)) for fact, text in facts.items()]
    return Table(("target", "fact", "value"), rows, grouped=True)
