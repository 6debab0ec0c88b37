"""Sections of the report about single results and their groups: unexpected results, known deviations,
differences between targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.facets import written
from harness.model.verdict import judged
from harness.render.document import Block, Item, Items, Paragraph, Remark, Row, Section, Span, Table
from harness.render.report_counts import OTHER_TYPES
from harness.render.terminal import describe
from harness.render.text import folded_types, ranks
from harness.results.bound_ratios import ratio_text, ulp_text
from harness.results.defects import defect_words
from harness.results.explain.in_common import InCommon, rules
from harness.results.explain.words import inseparable, title
from harness.results.known_deviations import PENDING, DeviationRow, numbers
from harness.results.report import Report
from harness.results.summary import count
from harness.results.tables import Tables

_LISTED = 500
_SECTION_ROWS = 2000


def nearness_sections(tables: Tables) -> Iterator[Section]:
    """Yield the largest errors beside their bounds."""
    about = (
        "The largest error of a result, divided by the bound that follows from the operator's formula in the arithmetic declared of the "
        "target: at most 1 is right. A result with an infinite bound is not judged."
    )
    cells: list[Row] = [
        (
            row.operator,
            row.target,
            ratio_text(row.all.ratio) if row.all.example else "",
            row.worst if row.all.example else "",
            ulp_text(row.all.ulp).removesuffix(" ULP"),
            f"{row.all.results:,}",
            f"{row.all.outside:,}",
            f"{row.all.unclaimed:,}",
            Span(row.all.example or "", code=True),
        )
        for row in tables.nearnesses.rows(tables.targets)
    ]
    heads = ("operator", "target", "error / bound", "dtype", "ULP", "results", "wrong", "not judged")
    if cells:
        table = Table((*heads, "largest ratio at"), cells, (2, 4, 5, 6, 7))
        yield Section("nearness", "Errors and bounds", [Paragraph(Span(about)), table])


def defect_sections(report: Report) -> Iterator[Section]:
    """Yield a line for each defect, the worst first."""
    several = len(report.tables.targets) > 1
    rows: list[Row] = [
        (
            row.title,
            row.operator,
            *(row.where,) * several,
            row.reading.value,
            f"{row.cases:,}",
            row.state,
            Span(row.link, link=row.link),
            Span(row.example, code=True),
        )
        for row in report.defects[:_SECTION_ROWS]
    ]
    heads = (
        "defect",
        "operator",
        *("target",) * several,
        "reading",
        "cases",
        "releases",
        "source",
        "smallest case",
    )
    if rows:
        yield Section(
            "defects", f"Defects: {defect_words(report.defects)}", [Table(heads, rows, (3 + several,))]
        )


def unexpected_sections(tables: Tables) -> Iterator[Section]:
    """Yield the groups of unexpected results."""
    items = [
        Item(
            f"{group.number:,} × {group.cases} on {group.kind.target}",
            [Remark(describe(group.example))],
            group.example.case,
            judged(group.kind.outcome, group.kind.verdict),
        )
        for group in tables.unexpected.groups()
    ]
    if items:
        number = sum(tables.unexpected.numbers.values())
        yield Section("unexpected", f"Not as expected: {number:,} results", [Items(items)])


def in_common_sections(common: InCommon) -> Iterator[Section]:
    """Yield what unexpected failures have in common."""
    items = [
        Item(
            title(group),
            [
                *map(Remark, rules(group)),
                *(Remark(words) for rule in group.separation.rules[:1] for words in inseparable(rule)),
            ],
        )
        for group in common.groups
    ]
    remark = [Paragraph(Span(common.remark))] if common.remark else []
    if common:
        yield Section("in-common", "What they have in common", [Items(items), *remark])


def listing_sections(tables: Tables) -> Iterator[Section]:
    """Yield single unexpected results by verdict."""
    for verdict, results in tables.unexpected.results.items():
        number = tables.unexpected.numbers[verdict]
        shown = results[:_LISTED]
        which = f"the first {len(shown):,} of {number:,}" if number > len(shown) else f"{number:,}"
        rows = [(result.target, Span(result.case, code=True), describe(result)) for result in shown]
        table = Table(("target", "case", "what happened"), rows)
        if number:
            yield Section("single-results", f"{verdict.value}: {which}", [table], folded=True)


def left_out_sections(tables: Tables) -> Iterator[Section]:
    """Yield why combinations are no cases of the run."""
    reasons = sorted(tables.left_out.items(), key=lambda item: (-item[1], item[0]))
    table = Table(("combinations", "reason"), [(f"{number:,}", reason) for reason, number in reasons], (0,))
    if reasons:
        number = sum(tables.left_out.values())
        yield Section(
            "combinations-left-out", f"Left out before the run: {number:,} combinations", [table], folded=True
        )


def difference_sections(tables: Tables) -> Iterator[Section]:
    """Yield the groups of cases on which targets differ."""
    groups = tables.differences.groups()
    several = any(group.types for group in groups[:_SECTION_ROWS])
    rows: list[Row] = [
        [
            f"{group.number:,}",
            f"{group.operator} {', '.join(map(str, group.opsets))}",
            ", ".join(folded_types(group.dtypes)),
            *[written(group.types)][:several],
            ranks(group.ranks),
            ", ".join(group.levels),
            group.validity.value,
            *(outcome.value if outcome else "" for outcome in group.outcomes),
            Span(group.example, code=True),
        ]
        for group in groups[:_SECTION_ROWS]
    ]
    heads = ["cases", "operator, opsets", "dtypes", *OTHER_TYPES[:several], "ranks", "levels", "validity"]
    if groups:
        number = sum(group.number for group in groups)
        table = Table([*heads, *tables.targets, "for instance"], rows, (0,))
        yield Section("differences", f"Where targets differ: {number:,} cases", [table])


def deviation_sections(report: Report) -> Iterator[Section]:
    """Yield the known deviations, grouped by the entry that gives the reason."""
    tables = report.tables
    rows, pending = (tables.deviations.rows(pending=each) for each in (False, True))
    if not (rows or pending):
        return
    about = [
        "What is known, by the entry that says why: wrong, crashed and accepted results first, then what is not supported.",
        *tables.deviations.remarks(report.known),
    ]
    blocks: list[Block] = [Paragraph(Span(" ".join(about))), _deviations(rows)]
    if pending:
        blocks += [Paragraph(Span(f"Not reviewed yet. {PENDING}")), _deviations(pending)]
    number = sum(row.results for row in (*rows, *pending))
    yield Section("deviations", f"Known defects: {count(number, 'result')}", blocks)


def _deviations(rows: Sequence[DeviationRow]) -> Table:
    heads = ("known defect", "results", "reading", "expected", "where", "why", "source")
    return Table(heads, [_deviation(row) for row in rows[:_SECTION_ROWS]], (1,))


def _deviation(row: DeviationRow) -> Row:
    entry = row.entry
    by = [numbers(row.by_target)] if len(row.by_target) > 1 else list(row.by_target)
    by += [f"levels {numbers(row.by_level)}"] if row.by_level else []
    documents = f" Microsoft's documents: {entry.documents}" if entry.documents else ""
    return (
        entry.name,
        f"{row.results:,}" + (f", {row.contradicting:,} otherwise ✗" if row.contradicting else ""),
        ", ".join(f"{reading.value} {number:,}" for reading, number in row.by_reading.items()),
        row.expects,
        "; ".join(filter(None, by)),
        f"{entry.reason}{documents}",
        Span(entry.link, link=entry.link),
    )
