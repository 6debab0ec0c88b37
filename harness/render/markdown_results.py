"""Sections of the Markdown report about single results and their groups: what is unexpected, what is known, where
targets differ, what ran where."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.facets import written
from harness.model.verdict import judged
from harness.render.markdown_counts import OTHER_TYPES
from harness.render.markup import case_id, code, escape, link, table
from harness.render.terminal import describe
from harness.render.text import folded_types, line, ranks
from harness.results.explain.in_common import InCommon, rules
from harness.results.explain.words import inseparable, title
from harness.results.known_deviations import PENDING, DeviationRow, numbers
from harness.results.nearness import ratio_text
from harness.results.report import Report
from harness.results.summary import count, target_facts
from harness.results.tables import Tables

_LISTED = 500
_SECTION_ROWS = 2000


def nearness_section(tables: Tables) -> Iterator[str]:
    rows = tables.nearnesses.rows(tables.targets)
    if not rows:
        return
    yield "## Errors and bounds"
    yield ""
    yield (
        "The largest error of a result, divided by the bound that follows from the operator's formula in the arithmetic declared of the "
        "target: at most 1 is right. A result with an infinite bound is not judged."
    )
    yield ""
    cells = (
        [
            escape(row.operator),
            escape(row.target),
            ratio_text(row.all.ratio) if row.all.example else "–",
            row.worst if row.all.example else "–",
            f"{row.all.ulp:.2g}",
            f"{row.all.results:,}",
            f"{row.all.outside:,}",
            f"{row.all.unclaimed:,}",
            case_id(line(row.all.example, 400)) if row.all.example else "–",
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
        "wrong",
        "not judged",
        "largest ratio at",
    ]
    yield from table(heads, cells, right=(2, 4, 5, 6, 7))


def unexpected_section(tables: Tables) -> Iterator[str]:
    unexpected = tables.unexpected
    groups = unexpected.groups()
    if not groups:
        return
    yield f"## Not as expected: {sum(unexpected.numbers.values()):,} results"
    yield ""
    cells = (
        [
            f"{group.number:,}",
            judged(group.kind.outcome, group.kind.verdict),
            escape(group.kind.target),
            escape(line(group.cases)),
            escape(describe(group.example)),
            case_id(line(group.example.case, 400)),
        ]
        for group in groups[:_SECTION_ROWS]
    )
    yield from table(
        ["results", "verdict", "target", "cases", "what happened, for instance", "for instance"],
        cells,
        right=(0,),
    )


def in_common_section(common: InCommon) -> Iterator[str]:
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


def listing_section(tables: Tables) -> Iterator[str]:
    for verdict, results in tables.unexpected.results.items():
        number = tables.unexpected.numbers[verdict]
        if not number:
            continue
        shown = results[:_LISTED]
        which = f"the first {len(shown):,} of {number:,}" if number > len(shown) else f"{number:,}"
        yield f"<details><summary>{verdict.value}: {which}</summary>"
        yield ""
        rows = (
            [escape(result.target), case_id(line(result.case, 400)), escape(describe(result))]
            for result in shown
        )
        yield from table(["target", "case", "what happened"], rows)
        yield "</details>"
        yield ""


def left_out_section(tables: Tables) -> Iterator[str]:
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


def differences_section(tables: Tables) -> Iterator[str]:
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
            escape(", ".join(folded_types(group.dtypes))) or "–",
            *([escape(written(group.types)) or "–"] if several else []),
            ranks(group.ranks) or "–",
            escape(", ".join(group.levels)),
            group.validity.value,
            *(escape(outcome.value) if outcome else "–" for outcome in group.outcomes),
            case_id(line(group.example, 400)),
        ]
        for group in groups[:_SECTION_ROWS]
    )
    targets = [escape(target) for target in tables.targets]
    heads = [
        "cases",
        "operator, opsets",
        "dtypes",
        *OTHER_TYPES[:several],
        "ranks",
        "levels",
        "validity",
        *targets,
        "for instance",
    ]
    yield from table(heads, rows, right=(0,))


def deviations_section(report: Report) -> Iterator[str]:
    tables = report.tables
    rows, pending = (tables.deviations.rows(pending=each) for each in (False, True))
    if not (rows or pending):
        return
    yield f"## Known defects: {count(sum(row.results for row in (*rows, *pending)), 'result')}"
    yield ""
    yield " ".join(
        [
            "What is known, by the entry that says why: wrong, crashed and accepted results first, then what is not supported.",
            *tables.deviations.remarks(report.known),
        ]
    )
    yield ""
    heads = ["known defect", "results", "why"]
    yield from table(heads, map(_deviation, rows[:_SECTION_ROWS]), right=(1,))
    if pending:
        yield "### Not reviewed yet"
        yield ""
        yield escape(PENDING)
        yield ""
        yield from table(heads, map(_deviation, pending[:_SECTION_ROWS]), right=(1,))


def _deviation(row: DeviationRow) -> list[str]:
    entry = row.entry
    documents = f" Microsoft's documents: {escape(line(entry.documents, 1000))}" if entry.documents else ""
    by_reading = ", ".join(f"{reading.value} {number:,}" for reading, number in row.by_reading.items())
    by = [numbers(row.by_target)] if len(row.by_target) > 1 else list(row.by_target)
    return [
        f"{escape(line(entry.name))}<br>{by_reading}; expected: {escape(row.expects)}",
        f"{row.results:,}"
        + (f", {row.contradicting:,} otherwise ✗" if row.contradicting else "")
        + "".join(
            f"<br>{escape(each)}"
            for each in (*by, f"levels {numbers(row.by_level)}" if row.by_level else "")
            if each
        ),
        f"{escape(line(entry.reason, 1000))}{documents} {link(entry.link)}",
    ]


def environment_section(tables: Tables) -> Iterator[str]:
    header = tables.header
    yield "## What ran where"
    yield ""
    for target, info in header.targets.items():
        facts = "; ".join(f"{name} {escape(value)}" for name, value in target_facts(info))
        yield f"- **{escape(target)}**: {facts}" + (
            f"; not available: {escape(line(info.unavailable, 400))}" if info.unavailable else ""
        )
    yield f"- run {code(header.run_id)}, seed {header.seed}, command {code(line(header.command, 400))}"
    yield ""
    yield "<details><summary>Hashes</summary>"
    yield ""
    for name, value in sorted(header.hashes.items()):
        yield f"- {escape(name)} {code(value)}"
    yield ""
    yield "</details>"
    yield ""
