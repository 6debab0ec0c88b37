"""One document in every format: what is escaped, what is broken into lines, what is left out."""

from __future__ import annotations

from io import StringIO

import pytest

from harness.render.console import Console
from harness.render.document import Document, Item, Items, Paragraph, Picture, Remark, Section, Span, Table
from harness.render.document_html import write_html
from harness.render.document_markdown import write_markdown
from harness.render.document_terminal import write_terminal

EVIL = "<b>|`*[/red]\x1b[31m\u202e"


def terminal(document: Document, width: int = 80) -> str:
    output = StringIO()
    write_terminal(document, Console(file=output, width=width, no_color=True))
    return output.getvalue()


def of_table(*rows: tuple[str, ...], heads: tuple[str, ...] = ("name", "what happened")) -> Document:
    return Document("", "Found.", [Section("part", "Part", [Table(heads, rows)])])


def test_a_table_that_fits_stands_in_columns() -> None:
    assert terminal(of_table(("a", "passed"), ("longer", "failed"))).splitlines()[3:] == [
        "name    what happened",
        "a       passed",
        "longer  failed",
    ]


def test_the_last_column_is_broken_into_lines() -> None:
    shown = terminal(of_table(("name", "word " * 12)), 40).splitlines()[4:]
    assert shown == ["name  " + "word " * 6 + "word", "      " + "word " * 4 + "word"]


def test_a_table_that_does_not_fit_stands_row_by_row() -> None:
    shown = terminal(of_table(("first", "x" * 30, "y" * 30), heads=("a", "b", "c")), 42).splitlines()[3:]
    assert shown == [f"first · b {'x' * 30} ·", f"c {'y' * 30}"]


def test_rows_of_a_group_stand_below_its_name() -> None:
    rows = [("one", "1"), ("one", "2"), ("two", "3")]
    document = Document("", "Found.", [Section("part", "", [Table(("of", "n"), rows, (1,), grouped=True)])])
    assert terminal(document).splitlines()[2:] == ["n", "one", "1", "2", "two", "3"]
    assert '<th scope="rowgroup" rowspan="2">one</th><td class="num">1</td>' in write_html(document)


def test_a_section_is_for_the_formats_that_it_names() -> None:
    parts = [Section("a", "Alone", [Paragraph(Span("text"))], ("html",)), Section("b", "All", [])]
    document = Document("Title", "Found.", [parts[0]], tone="bad")
    assert terminal(document) == "✗ Found.\n"
    assert write_markdown(document) == "# Title\n\n**✗ Found.**\n"
    assert "Alone" in write_html(document)


def test_more_groups_than_a_terminal_shows_are_counted() -> None:
    document = Document("", "Found.", [Section("a", "", [Items([Item(f"group {n}") for n in range(23)])])])
    assert terminal(document).endswith("group 19\nand 3 more groups: see --format html\n")
    assert "group 22" in write_markdown(document)


@pytest.mark.parametrize("place", ["title", "sentence", "remark", "heading", "cell", "item", "case", "code"])
def test_a_text_stays_text_wherever_it_stands(place: str) -> None:
    def at(here: str) -> str:
        return EVIL if here == place else "plain"

    blocks = [
        Paragraph(Span(at("code"), code=True)),
        Table((at("heading"), "b"), [(at("cell"), Span(at("cell"), "bad", link="a"))]),
        Items([Item(at("item"), [Remark(at("remark"), case=at("case"))], at("case"), link="b")]),
        Picture("<svg></svg>"),
    ]
    sections = [Section("part", at("heading"), blocks)]
    document = Document(at("title"), at("sentence"), sections, [at("remark")])
    shown = {
        "terminal": terminal(document),
        "markdown": write_markdown(document),
        "html": write_html(document),
    }
    for text in shown.values():
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<b>|" not in shown["html"]
    assert "&lt;b&gt;|" in shown["html"]
    assert "<svg></svg>" in shown["html"]
    if place not in ("case", "code"):
        assert "<b>|" not in shown["markdown"]
