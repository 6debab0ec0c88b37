"""The answer to a question about support, as a document and as data."""

from __future__ import annotations

import shlex
from typing import Any

from harness.model.verdict import DEFECTS, Reading
from harness.render.document import Block, Document, Item, Items, Paragraph, Remark, Row, Section, Span, Table
from harness.results.summary import count
from harness.results.support_answer import KnownHere, SupportAnswer, SupportRow

SCHEMA = 1
_MANY = 4


def support_document(answer: SupportAnswer) -> Document:
    """Show a row for each target, then the defects."""
    several = len({row.operator for row in answer.rows}) > 1
    heads = [*["operator"][:several], "target", "release", "documented", "registered", "measured"]
    cells: list[Row] = [
        [*[row.operator][:several], row.target, row.release, row.documented, row.registered, row.measured]
        for row in answer.rows
    ]
    found: dict[KnownHere, list[SupportRow]] = {}
    for row in answer.rows:
        for each in row.defects:
            found.setdefault(each, []).append(row)
    items = [
        Item(
            f"{each.title}: {_where(rows, several)}{'' if each.holds else ', not in this release'}",
            [Remark(f"{_cases(each)}; {each.state}", "soft", link=each.link)],
        )
        for each, rows in found.items()
    ]
    known = [Section("defects", "Known defects", [Items(items)])] if items else []
    none = [] if items else [Paragraph(Span("No defect is known of these cases."))]
    table: list[Block] = [Table(heads, cells), *_measuring(answer), *none]
    return Document("", sentence(answer), [Section("support", "", table), *known])


def _measuring(answer: SupportAnswer) -> list[Items]:
    """Name the command that measures the targets that no run has; of many targets nothing."""
    targets = dict.fromkeys(row.target for row in answer.rows if not row.tally.run)
    if not 0 < len(targets) < _MANY:
        return []
    words = ["harness", "run", *(word for name in targets for word in ("-t", name)), "-k", answer.asked]
    return [Items([Item("What is not run is measured by", case=shlex.join(words))])]


def _cases(each: KnownHere) -> str:
    return f"{count(each.cases, 'case')}{', ' + each.reading if each.reading else ''}"


def _where(rows: list[SupportRow], several: bool) -> str:
    more = f" and {count(len(rows) - 1, 'more target')}" if len(rows) > 1 else ""
    operator = f"{rows[0].operator} " if several else ""
    return f"{operator}on {_named(rows[0])}{more}"


def _named(row: SupportRow) -> str:
    return row.target if row.release in row.target else f"{row.target} {row.release}"


def sentence(answer: SupportAnswer) -> str:
    """Answer in one line: `Conv:X=float16: cpu 1.32.0 yes, 3 wrong; dml 1.24.4 not run, registered: yes`."""
    said: dict[str, list[SupportRow]] = {}
    for row in answer.rows:
        said.setdefault(_short(row), []).append(row)
    return (
        f"{answer.asked}: {'; '.join(f'{_where(rows, False)[3:]} {words}' for words, rows in said.items())}"
    )


def _short(row: SupportRow) -> str:
    if not row.tally.run:
        return f"not run, registered: {row.registered}"
    wrong = "".join(f", {row.tally[each]:,} {each.value}" for each in DEFECTS if row.tally[each])
    return row.measured.partition(":")[0] + wrong


def support_data(answer: SupportAnswer) -> dict[str, Any]:
    """Return the JSON document: keys are stable within a schema, new ones may be added."""
    return {
        "schema": SCHEMA,
        "asked": answer.asked,
        "summary": sentence(answer),
        "rows": [
            {
                "operator": row.operator,
                "opsets": row.opsets,
                "target": row.target,
                "release": row.release,
                "documented": row.documented,
                "registered": row.registered,
                "measured": row.measured,
                "cases": row.tally.selected,
                "readings": {reading.value: row.tally[reading] for reading in Reading}
                if row.tally.run
                else None,
                "run": row.source or None,
                "defects": [each._asdict() for each in row.defects],
            }
            for row in answer.rows
        ],
    }
