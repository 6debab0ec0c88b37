"""Renders the report as Markdown for a pull request or a job summary: regressions first, never over `LIMIT`
bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.facets import written
from harness.model.records import Validity
from harness.render.directml import cross_check_section, support_summary
from harness.render.markup import code, escape, level_head, link, table
from harness.render.terminal import describe
from harness.render.text import line, ranks
from harness.results.explain.in_common import InCommon, rules
from harness.results.explain.words import inseparable, title
from harness.results.known_deviations import PENDING, DeviationRow, numbers
from harness.results.level_table import counts, levels, rate, status, validity_table
from harness.results.nearness import ratio_text
from harness.results.overview import conform, many
from harness.results.report import Report
from harness.results.summary import count, target_facts
from harness.results.tables import Tables, Tally

LIMIT = 900 * 1024
"""A job summary may have 1 MiB; the rest is left to whatever else writes into it."""
_SECTION_ROWS = 2000
_OTHER_TYPES = ("other types",)
"""The head of the column of further inputs' element types, which only stands where one has another type than
the first."""
_LISTED = 500
_MARKS = {
    "none": "",
    "absent": " ⊘",
    "pass": " ✓",
    "failing": " ✗",
    "known": " ~",
    "partial": " !",
    "unclaimed": " ∞",
}
_LEGEND = "✓ all pass · ✗ unexpected results · ~ known deviations · ! not all ran · ∞ some test nothing · ⊘ nothing ran · – no case"


def _cell(tally: Tally) -> str:
    return rate(tally) + _MARKS[status(tally)]


def render_markdown(report: Report, *, limit: int = LIMIT) -> str:
    """Write the report.

    What does not fit in `limit` bytes is left out by whole rows and named at the end.
    """
    tables = report.tables
    sections: list[tuple[str, Iterator[str]]] = [
        ("verdict", _verdict(report)),
        ("unexpected results", _unexpected(tables)),
        ("what failures have in common", _in_common(report.common)),
        ("operators", _operators(report)),
        ("level table", _levels(report)),
        ("other validities", _validities(tables)),
        ("errors and bounds", _nearness(tables)),
        ("where targets differ", _differences(tables)),
        ("cross-check", cross_check_section(tables)),
        ("DirectML's tensor support", support_summary(tables)),
        ("support", _support(report)),
        ("matrices", _matrices(report)),
        ("known deviations", _deviations(tables)),
        ("single results", _listing(tables)),
        ("combinations left out", _left_out(tables)),
        ("what ran where", _environment(tables)),
    ]
    return assemble(sections, limit)


def assemble(sections: Iterable[tuple[str, Iterator[str]]], limit: int) -> str:
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


def _verdict(report: Report) -> Iterator[str]:
    tables = report.tables
    summary = report.summary
    total = tables.tally()
    yield "# Conformance report"
    yield ""
    yield f"**{summary.mark} {escape(summary.sentence)}**"
    yield ""
    for remark in summary.remarks:
        yield f"- {escape(line(remark, 600))}"
    for problem in tables.problems:
        yield f"- expectation: {escape(line(problem, 600))}"
    yield ""
    if len(tables.targets) > 0:
        rows = []
        for target in tables.targets:
            tally = tables.tally(target=target)
            rows.append([escape(target), *_numbers(tally), escape(counts(tally))])
        if len(rows) > 1:
            rows.append(["all", *_numbers(total), escape(counts(total))])
        heads = [
            "target",
            "selected",
            "run",
            "conform",
            "known deviations",
            "unexpected",
            "outcomes other than pass",
        ]
        yield from table(heads, rows, right=range(1, 6))


def _numbers(tally: Tally) -> list[str]:
    return [
        f"{number:,}"
        for number in (tally.selected, tally.run, tally.conforming, tally.known, tally.unexpected)
    ]


def _operators(report: Report) -> Iterator[str]:
    tables = report.tables
    rows = report.overview
    if not rows:
        return
    yield "## Operators"
    yield ""
    yield "Conforming / selected cases of every validity; operators with unexpected results come first."
    yield ""
    cells = (
        [
            escape(row.operator),
            *(conform(tally) + _MARKS[status(tally)] + _failing(tally) for tally in row.by_target.values()),
        ]
        for row in rows
    )
    yield from table(
        ["operator", *map(escape, tables.targets)], cells, right=range(1, 1 + len(tables.targets))
    )
    yield _LEGEND
    yield ""


def _failing(tally: Tally) -> str:
    return f" {tally.unexpected:,} unexpected" if tally.unexpected else ""


def _nearness(tables: Tables) -> Iterator[str]:
    rows = tables.nearnesses.rows(tables.targets)
    if not rows:
        return
    yield "## Errors and bounds"
    yield ""
    yield (
        "The largest error of a result, divided by the bound that follows from the operator's formula in the arithmetic declared of the "
        "target: at most 1 is right. Of results with an infinite bound nothing is claimed; they test nothing and are no passes."
    )
    yield ""
    cells = (
        [
            escape(row.operator),
            escape(row.target),
            ratio_text(row.all.ratio) + (" ✗" if row.all.ratio > 1 else "") if row.all.example else "–",
            row.worst if row.all.example else "–",
            f"{row.all.ulp:.2g}",
            f"{row.all.results:,}",
            f"{row.all.outside:,}",
            f"{row.all.unclaimed:,}",
            code(line(row.all.example, 400)) if row.all.example else "–",
        ]
        for row in rows
    )
    heads = [
        "operator",
        "target",
        "error / bound",
        "dtype",
        "ULP",
        "results",
        "outside",
        "nothing claimed",
        "largest ratio at",
    ]
    yield from table(heads, cells, right=(2, 4, 5, 6, 7))


def _unexpected(tables: Tables) -> Iterator[str]:
    unexpected = tables.unexpected
    groups = unexpected.groups()
    if not groups:
        return
    yield f"## Not as expected: {sum(unexpected.numbers.values()):,} results"
    yield ""
    cells = (
        [
            f"{group.number:,}",
            group.kind.verdict.value,
            escape(group.kind.target),
            escape(line(group.cases)),
            escape(describe(group.example)),
            code(line(group.example.case, 400)),
        ]
        for group in groups[:_SECTION_ROWS]
    )
    yield from table(
        ["results", "verdict", "target", "cases", "what happened, for instance", "for instance"],
        cells,
        right=(0,),
    )


def _in_common(common: InCommon) -> Iterator[str]:
    if not common:
        return
    yield "### What they have in common"
    yield ""
    for group in common.groups:
        yield f"- **{escape(title(group))}**"
        for said in rules(group):
            yield f"  - {escape(said)}"
        for rule in group.separation.rules[:1]:
            for remark in inseparable(rule):
                yield f"  - {escape(remark)}"
    if common.remark:
        yield f"- {escape(common.remark)}"
    yield ""


def _listing(tables: Tables) -> Iterator[str]:
    for verdict, results in tables.unexpected.results.items():
        number = tables.unexpected.numbers[verdict]
        if not number:
            continue
        shown = results[:_LISTED]
        which = f"the first {len(shown):,} of {number:,}" if number > len(shown) else f"{number:,}"
        yield f"<details><summary>{verdict.value}: {which}</summary>"
        yield ""
        rows = (
            [escape(result.target), code(line(result.case, 400)), escape(describe(result))]
            for result in shown
        )
        yield from table(["target", "case", "what happened"], rows)
        yield "</details>"
        yield ""


def _left_out(tables: Tables) -> Iterator[str]:
    if not tables.left_out:
        return
    yield f"<details><summary>Left out before the run: {sum(tables.left_out.values()):,} combinations</summary>"
    yield ""
    reasons = sorted(tables.left_out.items(), key=lambda item: (-item[1], item[0]))
    yield from table(
        ["combinations", "reason"],
        ([f"{number:,}", escape(line(reason))] for reason, number in reasons),
        right=(0,),
    )
    yield "</details>"
    yield ""


def _levels(report: Report) -> Iterator[str]:
    tables = report.tables
    columns = levels(tables)
    yield "## By DirectML feature level"
    yield ""
    yield (
        "Passed / selected valid cases, by the feature level that first allows them; under *device's level* all that it allows, "
        "or that any published level does where the device reports none."
    )
    yield ""
    rows = (
        [
            escape(row.operator),
            escape(row.target),
            *(_cell(row.by_level[level]) for level in columns),
            _cell(row.total),
            _cell(row.allowed) + (f" ({escape(row.device_level)})" if row.device_level else ""),
            escape(counts(row.total)),
        ]
        for row in report.levels
    )
    heads = [
        "operator",
        "target",
        *map(level_head, columns),
        "all",
        "device's level",
        "outcomes other than pass",
    ]
    yield from _folded(tables, "Levels", table(heads, rows, right=range(2, 4 + len(columns))))
    yield _LEGEND
    yield ""


def _folded(tables: Tables, what: str, lines: Iterable[str]) -> Iterator[str]:
    """Fold a table with rows for each operator where there are many."""
    if not many(tables):
        yield from lines
        return
    yield f"<details><summary>{what} of all {len(tables.operators):,} operators</summary>"
    yield ""
    yield from lines
    yield "</details>"
    yield ""


def _validities(tables: Tables) -> Iterator[str]:
    rows = validity_table(tables)
    if not rows:
        return
    yield "## Invalid and unspecified cases"
    yield ""
    yield "An invalid case conforms when it is rejected; what an unspecified case does is recorded and never a failure."
    yield ""
    cells = (
        [
            escape(row.operator),
            escape(row.target),
            row.validity.value,
            f"{row.tally.conforming:,} / {row.tally.selected:,}" if row.validity is Validity.INVALID else "–",
            escape(
                ", ".join(
                    f"{outcome.value} {number:,}"
                    for outcome, number in sorted(row.tally.outcomes.items())
                    if number
                )
            ),
        ]
        for row in rows
    )
    rows_of = table(["operator", "target", "validity", "conform / selected", "outcomes"], cells, right=(3,))
    yield from _folded(tables, "Invalid and unspecified cases", rows_of)


def _differences(tables: Tables) -> Iterator[str]:
    groups = tables.differences.groups()
    if not groups:
        return
    several = any(group.types for group in groups[:_SECTION_ROWS])
    yield f"## Where targets differ: {sum(group.number for group in groups):,} cases"
    yield ""
    rows = (
        [
            f"{group.number:,}",
            escape(f"{group.operator} {', '.join(map(str, group.opsets))}"),
            escape(", ".join(group.dtypes)) or "–",
            *([escape(written(group.types)) or "–"] if several else []),
            ranks(group.ranks) or "–",
            escape(", ".join(group.levels)),
            group.validity.value,
            *(escape(outcome.value) if outcome else "–" for outcome in group.outcomes),
            code(line(group.example, 400)),
        ]
        for group in groups[:_SECTION_ROWS]
    )
    targets = [escape(target) for target in tables.targets]
    heads = [
        "cases",
        "operator, opsets",
        "dtypes",
        *_OTHER_TYPES[:several],
        "ranks",
        "levels",
        "validity",
        *targets,
        "for instance",
    ]
    yield from table(heads, rows, right=(0,))


def _support(report: Report) -> Iterator[str]:
    rows = report.support
    found = [row for row in rows if row.disagreements]
    yield f"## Documented, registered and measured support: disagreement in {len(found):,} of {count(len(rows), 'group')}"
    yield ""
    if not found:
        return
    several = any(row.types for row in found)
    cells = (
        [
            escape(f"{row.operator} {', '.join(map(str, row.opsets))}"),
            escape(row.target),
            escape(", ".join(row.dtypes)),
            *([escape(written(row.types)) or "–"] if several else []),
            escape(", ".join(row.documented)),
            row.registered,
            f"{row.measured} ({row.tally.passed:,} / {row.tally.selected:,} pass)",
            escape("; ".join(row.disagreements)),
        ]
        for row in found
    )
    yield from table(
        [
            "operator, opsets",
            "target",
            "dtypes",
            *_OTHER_TYPES[:several],
            "documented",
            "registered",
            "measured",
            "disagreement",
        ],
        cells,
    )


def _matrices(report: Report) -> Iterator[str]:
    for each in report.matrices:
        yield f"<details><summary>{escape(each.operator)} on {escape(each.target)}: {escape(each.title)}</summary>"
        yield ""
        rows = (
            [
                escape(each.label(row)),
                *(
                    _cell(each.cells[row, rank].tally) if (row, rank) in each.cells else "–"
                    for rank in each.ranks
                ),
            ]
            for row in each.rows
        )
        ranks = [str(rank) if rank >= 0 else "?" for rank in each.ranks]
        yield from table(
            [escape(", ".join(each.names)) or "dtype", *ranks], rows, right=range(1, 1 + len(ranks))
        )
        yield "</details>"
        yield ""


def _deviations(tables: Tables) -> Iterator[str]:
    rows, pending = (tables.deviations.rows(pending=each) for each in (False, True))
    if not (rows or pending):
        return
    yield f"## Known deviations: {count(sum(row.results for row in (*rows, *pending)), 'result')}"
    yield ""
    yield " ".join(
        [
            "What deviates as expected, by the entry that says why.",
            *tables.deviations.remarks(tables.tally().known),
        ]
    )
    yield ""
    heads = ["known deviation", "expected", "results", "by target", "by level", "why", "more"]
    yield from table(heads, map(_deviation, rows[:_SECTION_ROWS]), right=(2,))
    if pending:
        yield "### Not reviewed yet"
        yield ""
        yield escape(PENDING)
        yield ""
        yield from table(heads, map(_deviation, pending[:_SECTION_ROWS]), right=(2,))


def _deviation(row: DeviationRow) -> list[str]:
    entry = row.entry
    documents = f" Microsoft's documents: {escape(line(entry.documents, 1000))}" if entry.documents else ""
    return [
        escape(line(entry.name)),
        escape(row.expects),
        f"{row.results:,}" + (f", {row.contradicting:,} otherwise ✗" if row.contradicting else ""),
        escape(numbers(row.by_target)),
        escape(numbers(row.by_level)),
        escape(line(entry.reason, 1000)) + documents,
        link(entry.link),
    ]


def _environment(tables: Tables) -> Iterator[str]:
    header = tables.header
    yield "## What ran where"
    yield ""
    for target, info in header.targets.items():
        facts = "; ".join(f"{name} {escape(value)}" for name, value in target_facts(info))
        yield f"- **{escape(target)}**: {facts}" + (
            f"; not available: {escape(line(info.unavailable, 400))}" if info.unavailable else ""
        )
    yield f"- run {code(header.run_id)}, seed {header.seed}, command {code(line(header.command, 400))}"
    for name, value in sorted(header.hashes.items()):
        yield f"- {escape(name)} {code(value)}"
    yield ""
