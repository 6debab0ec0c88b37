"""A bisection as a document, and as data."""

from __future__ import annotations

from typing import Any

from harness.render.document import Document, Paragraph, Row, Section, Span, Style, Table
from harness.render.text import gist, line, visible
from harness.results.bisection.search import SIGNATURE, By, ReleaseChange
from harness.results.bisection.summary import ReleaseRow, Searched, moves, remarks, rows, sentence

SCHEMA = 1
_DETAIL = 160


def bisection_document(searched: Searched) -> Document:
    """Show a table release × outcome."""
    found = searched.found
    asked = Paragraph(Span(searched.single or searched.asked, code=True))
    number = [Paragraph(Span(f"{len(searched.cases):,} cases"))] if searched.single is None else []
    if searched.single is not None:
        heads: tuple[str, ...] = (searched.over, "outcome", "", "what happened")
        cells: list[Row] = [
            (row.version, _outcome(row), Span(row.change, "bold"), Span(_detail(row), "soft"))
            for row in rows(searched)
        ]
        table = Table(heads, cells)
    else:
        heads = (searched.over, "ran", "fail", "outcomes", "against the release above")
        cells = [
            (row.version, f"{row.ran:,}", f"{row.failing:,}", _outcome(row), row.change or _detail(row))
            for row in rows(searched)
        ]
        table = Table(heads, cells, (1, 2))
    measured = Span(f"{len(found.measured)} of {len(found.versions)} releases measured", "soft")
    section = Section("releases", "", [asked, *number, table, Paragraph(measured)])
    return Document("", sentence(searched), [section], remarks(searched))


def bisection_data(searched: Searched) -> dict[str, Any]:
    """Return the JSON document: keys are stable within a schema, new ones may be added."""
    found = searched.found
    return {
        "schema": SCHEMA,
        "over": searched.over,
        "target": searched.target,
        "asked": searched.asked,
        "by": found.by,
        "cases": searched.cases,
        "summary": sentence(searched),
        "remarks": remarks(searched),
        "first": found.first.after.version if found.first else None,
        "changes": [_change(change, found.by) for change in found.changes],
        "returning": found.returning,
        "versions": found.versions,
        "measured": [
            {
                "version": measured.version,
                "skipped": measured.skipped or None,
                "left_out": measured.left_out,
                "ran": len(measured.seen),
                "outcomes": dict(row.outcomes),
                "not_conforming": {
                    case: seen.outcome.value
                    for case, seen in sorted(measured.seen.items())
                    if seen.failure is not None
                },
            }
            for measured, row in zip(found.measured, rows(searched), strict=True)
        ],
    }


def _change(change: ReleaseChange, by: By) -> dict[str, Any]:
    worse, better, other = moves(change)
    cases: dict[str, dict[str, str]] = {}
    for case in change.cases:
        sides = {"before": change.before.seen[case], "after": change.after.seen[case]}
        cases[case] = {side: seen.outcome.value for side, seen in sides.items()}
        if by == SIGNATURE:
            cases[case] |= {f"{side}_signature": str(seen.signature) for side, seen in sides.items()}
    return {
        "before": change.before.version,
        "after": change.after.version,
        "skipped": change.skipped,
        "fail_anew": worse,
        "fail_no_longer": better,
        "otherwise": other,
        "cases": cases,
    }


def _outcome(row: ReleaseRow) -> Span:
    style: Style = "warn" if row.skipped else "bad" if row.failing else "good"
    return Span(_plain(row), style)


def _plain(row: ReleaseRow) -> str:
    if row.skipped:
        return "skip"
    if row.ran == 1:
        return row.outcomes[0][0]
    return ", ".join(f"{name} {number:,}" for name, number in row.outcomes)


def _detail(row: ReleaseRow) -> str:
    if row.skipped:
        return line(row.skipped, _DETAIL)
    return ": ".join(filter(None, (visible(row.error), gist(row.message, _DETAIL))))
