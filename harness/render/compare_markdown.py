"""Renders a comparison as Markdown for a pull request or a job summary: how the runs differ, then regressions
first."""

from __future__ import annotations

from collections.abc import Iterator

from harness.render.markdown import LIMIT, assemble
from harness.render.markup import code, escape, table
from harness.render.terminal import details
from harness.render.text import line
from harness.results.compare.comparison import Change, Changed, Comparison
from harness.results.compare.tables import (
    PLURALS,
    BothCell,
    both_levels,
    both_rates,
    both_readings,
    both_rows,
    environment_differences,
    outcome_of,
    pair_facts,
    run_facts,
    said,
    summarize_comparison,
)

_ROWS = 2000
_LISTED = 500
_SIGNS = {"none": "", "same": "", "worse": " ✗", "better": " +", "other": " ≠"}


def render_compare_markdown(comparison: Comparison, *, limit: int = LIMIT) -> str:
    """Write the comparison; what does not fit in `limit` bytes is left out by whole rows and named at the
    end."""
    return assemble(
        [
            ("verdict", _verdict(comparison)),
            ("what differs between the runs", _differences(comparison)),
            ("changes", _groups(comparison)),
            ("level table", _levels(comparison)),
            ("single results", _listing(comparison)),
            ("what ran where", _environment(comparison)),
        ],
        limit,
    )


def _verdict(comparison: Comparison) -> Iterator[str]:
    summary = summarize_comparison(comparison)
    yield "# Comparison of two conformance runs"
    yield ""
    yield f"**{summary.mark} {escape(summary.sentence)}**"
    yield ""
    for remark in summary.remarks:
        yield f"- {escape(line(remark, 600))}"
    yield ""
    rows = [(pair.name, counts) for pair, counts in comparison.counts.items()]
    if len(rows) > 1:
        rows.append(("all", comparison.total))
    cells = (
        [
            escape(name),
            f"{counts.compared:,}",
            f"{counts.equal:,}",
            *(f"{counts.changes[change]:,}" for change in Change),
        ]
        for name, counts in rows
    )
    heads = ["target", "ran in both", "equal", "regressions", "fixes", "changed", "new", "missing"]
    yield from table(heads, cells, right=range(1, 8))
    readings = (
        [name, f"{base:,}", f"{head:,}", f"{head - base:+,}"]
        for name, base, head in both_readings(comparison)
    )
    yield from table(["reading", "BASE", "HEAD", "HEAD \N{MINUS SIGN} BASE"], readings, right=range(1, 4))


def _differences(comparison: Comparison) -> Iterator[str]:
    found = environment_differences(comparison)
    if not found:
        return
    yield "## What differs between the runs"
    yield ""
    cells = (
        [
            escape(name),
            escape(fact.name),
            *(escape(line(text, 300)) or "–" for text in (fact.base, fact.head)),
        ]
        for name, fact in found
    )
    yield from table(["target", "", "BASE", "HEAD"], cells)


def _groups(comparison: Comparison) -> Iterator[str]:
    groups = comparison.groups()
    for change in Change:
        of_change = [group for group in groups if group.kind.change is change]
        if not of_change:
            continue
        yield f"## {PLURALS[change].capitalize()}: {comparison.total.changes[change]:,}"
        yield ""
        cells = (
            [
                f"{group.number:,}",
                escape(group.kind.pair.name),
                escape(f"{line(group.cases)} ({group.kind.validity.value})"),
                escape(outcome_of(group.kind.before)),
                escape(outcome_of(group.kind.after)),
                escape(what_happened(group.example)) or "–",
                code(line(group.example.result.case, 400)),
            ]
            for group in of_change[:_ROWS]
        )
        yield from table(
            ["results", "target", "cases", "BASE", "HEAD", "what happened, for instance", "for instance"],
            cells,
            right=(0,),
        )


def what_happened(found: Changed) -> str:
    """Say what differs, and what is known of the result that is shown."""
    words = said(found)
    return " · ".join([*([words] if words else []), *details(found.result)])


def _levels(comparison: Comparison) -> Iterator[str]:
    rows = both_rows(comparison)
    if not rows:
        return
    columns = both_levels(comparison)
    yield "## By DirectML feature level"
    yield ""
    yield "Passed / selected valid cases of BASE → HEAD, by the feature level that first allows them; one figure where both are equal."
    yield ""
    cells = (
        [
            escape(row.operator),
            escape(row.pair.name),
            *(_cell(row.by_level[level]) for level in columns),
            _cell(row.total),
            escape(row.total.words),
        ]
        for row in rows
    )
    heads = ["operator", "target", *map(escape, columns), "all", "changes"]
    yield from table(heads, cells, right=range(2, 3 + len(columns)))
    yield "✗ has regressions · ✓ only fixes · ~ other changes · – no case"
    yield ""


def _cell(cell: BothCell) -> str:
    base, head = both_rates(cell)
    return (base if base == head else f"{base} → {head}") + _SIGNS[cell.status]


def _listing(comparison: Comparison) -> Iterator[str]:
    for change in Change:
        kept = comparison.kept[change]
        if not kept:
            continue
        number, shown = comparison.total.changes[change], kept[:_LISTED]
        which = f"the first {len(shown):,} of {number:,}" if number > len(shown) else f"{number:,}"
        yield f"<details><summary>{PLURALS[change]}: {which}</summary>"
        yield ""
        rows = (
            [
                escape(found.pair.name),
                code(line(found.result.case, 400)),
                escape(outcome_of(found.before)),
                escape(outcome_of(found.after)),
                escape(what_happened(found)) or "–",
            ]
            for found in shown
        )
        yield from table(["target", "case", "BASE", "HEAD", "what happened"], rows)
        yield "</details>"
        yield ""


def _environment(comparison: Comparison) -> Iterator[str]:
    yield "## What ran where"
    yield ""
    for pair in comparison.pairs:
        for name, place, target in (("BASE", 1, pair.base), ("HEAD", 2, pair.head)):
            facts = "; ".join(
                f"{fact.name} {escape(line(fact[place], 400))}"
                for fact in pair_facts(comparison, pair)
                if fact[place]
            )
            yield f"- {name} **{escape(target)}**: {facts}"
    for name, place, tables in (("BASE", 1, comparison.base), ("HEAD", 2, comparison.head)):
        facts = "; ".join(
            f"{escape(fact.name)} {code(fact[place])}" for fact in run_facts(comparison) if fact[place]
        )
        yield f"- {name}: run {code(tables.header.run_id)}, command {code(line(tables.header.command, 400))}; {facts}"
    yield ""
