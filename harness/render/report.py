"""A run's report as a document, which is written as Markdown for a pull request or a job summary: regressions first."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.verdict import Reading
from harness.render.directml import cross_check_sections, support_summary
from harness.render.document import (
    Block,
    Document,
    Item,
    Items,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    run_table,
)
from harness.render.document_markdown import LIMIT, write_markdown
from harness.render.report_counts import (
    level_sections,
    matrix_sections,
    operator_sections,
    support_sections,
    validity_sections,
)
from harness.render.report_results import (
    defect_sections,
    deviation_sections,
    difference_sections,
    in_common_sections,
    left_out_sections,
    listing_sections,
    nearness_sections,
    unexpected_sections,
)
from harness.render.text import whole
from harness.results.level_table import many
from harness.results.reading_rows import BESIDE, MEANINGS
from harness.results.report import Report

_MANY_ROWS = 40
"""Rows of a table where a run has many operators; the page has them all."""


def render_markdown(report: Report, *, limit: int = LIMIT) -> str:
    """Write the report as Markdown; what does not fit in `limit` bytes is left out by whole rows and named at the
    end."""
    return write_markdown(report_document(report), limit=limit)


def report_document(report: Report) -> Document:
    """Show the verdict, the unexpected results, the counts, the known defects, and the placement of nodes."""
    tables, summary = report.tables, report.summary
    remarks = [*summary.remarks, *(f"expectation: {problem}" for problem in tables.problems)]
    sections = list(_sections(report))
    if many(tables):
        sections = [
            section if section.name in ("readings", "operators") else section._replace(most=_MANY_ROWS)
            for section in sections
        ]
    sentence = f"{summary.sentence} {summary.where}".rstrip()
    return Document("Conformance report", sentence, sections, remarks, summary.tone)


def _sections(report: Report) -> Iterator[Section]:
    tables = report.tables
    if summary := report.summary.ran:
        yield Section("ran", "", [Items([Item(line) for line in summary])])
    if report.readings:
        yield Section("readings", "", list(_readings(report)))
    steps = [Item(step.what, case=whole(step.command)) for step in report.steps]
    yield Section("next", "", [Paragraph(Span("What to do next", "bold")), Items(steps)])
    if notes := report.summary.notes:
        yield Section(
            "notes", "What is not counted", [Items([Item(note.text) for note in notes])], folded=True
        )
    yield from defect_sections(report)
    yield from unexpected_sections(tables)
    yield from in_common_sections(report.common)
    yield from support_sections(report)
    if report.lowers_to_directml:
        yield from level_sections(report)
    yield from operator_sections(report)
    yield from validity_sections(tables)
    yield from matrix_sections(report)
    yield from deviation_sections(report)
    yield from difference_sections(tables)
    yield from cross_check_sections(tables)
    yield from nearness_sections(tables)
    yield from support_summary(tables)
    yield from listing_sections(tables)
    yield from left_out_sections(tables)
    where = [run_table([("", tables.header)])]
    yield Section("where", "What ran where", where, folded=len(tables.targets) > BESIDE)


def _readings(report: Report) -> Iterator[Block]:
    """Yield the table of the six readings: a column per target, then all targets and the unexpected
    results."""
    tables = report.tables
    total = tables.tally()
    several = tables.targets if 1 < len(tables.targets) <= BESIDE else []
    red = bool(total.unexpected)
    heads = ["reading", *several, "results", *["unexpected"][:red], "what it means"]
    rows: list[Row] = [
        [
            row.reading.value,
            *(f"{row.by_target[target]:,}" for target in several),
            f"{row.number:,}",
            *[f"{row.unexpected:,}"][:red],
            "; ".join(filter(None, (MEANINGS[row.reading], row.detail))),
        ]
        for row in report.readings
    ]
    sums = [f"{tables.tally(target=target).selected:,}" for target in several]
    rows.append(["all results", *sums, f"{total.selected:,}", *[f"{total.unexpected:,}"][:red], ""])
    yield Table(heads, rows, range(1, len(heads) - 1))
    if len(tables.targets) > BESIDE:
        by_target = [(target, tables.tally(target=target)) for target in tables.targets]
        rows = [
            [target, *(f"{n:,}" for n in (*map(of.__getitem__, Reading), of.selected, of.unexpected))]
            for target, of in by_target
        ]
        columns = ["target", *(reading.value for reading in Reading), "all results", "unexpected"]
        yield Table(columns, rows, range(1, len(columns)))
