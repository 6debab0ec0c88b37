"""A comparison as a document, and as the data that docs/reports.md describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.model.case import BEYOND, Validity
from harness.model.facets import Facets, facets
from harness.model.result import Repeats
from harness.render.document import (
    Block,
    CaseTable,
    Document,
    Item,
    Items,
    Paragraph,
    Remark,
    Row,
    Section,
    Span,
    Style,
    Table,
    run_data,
)
from harness.render.html import query
from harness.render.payload import Payload, kind_rows
from harness.render.terminal import details, repeated
from harness.render.text import line, message, visible
from harness.results.compare.comparison import (
    Change,
    Changed,
    ChangeGroup,
    ChangeKind,
    ComparedCounts,
    ComparedResult,
    Comparison,
    Pair,
)
from harness.results.compare.tables import (
    PLURALS,
    BothCell,
    BothRow,
    both_levels,
    both_readings,
    both_rows,
    environment_differences,
    exit_code,
    outcome_of,
    pair_facts,
    placed_on,
    run_facts,
    said,
    summarize_comparison,
)
from harness.results.level_table import rate
from harness.results.numbering import Numbering
from harness.results.tables import Tables
from harness.results.tally import shown_kinds

SCHEMA = 1
LISTED = {
    Change.REGRESSION: 50_000,
    Change.FIX: 50_000,
    Change.CHANGED: 50_000,
    Change.NEW: 20_000,
    Change.MISSING: 20_000,
}
"""Changed results in the page's table of cases, by kind of change."""
_ROWS = 500
"""Changed results of each kind that Markdown lists."""
_OPENED = 300
"""Groups whose example the page opens."""
_FIELDS = ("target", "outcome", "before", "change")
_SIGNS = {
    Change.REGRESSION: "✗",
    Change.FIX: "+",
    Change.CHANGED: "≠",
    Change.NEW: "new ",
    Change.MISSING: "missing ",
}
_MARKS: dict[str, str] = {"worse": " ✗", "better": " +", "other": " ≠"}
_STYLES: dict[str, Style] = {"none": "soft", "same": "", "worse": "bad", "better": "good", "other": "warn"}
_PAGES = ("markdown", "html")


def compare_document(comparison: Comparison) -> Document:
    """Show how the runs differ, the groups of changes, the counts, both runs by level, and what ran where."""
    summary = summarize_comparison(comparison)
    found = [
        Section("differences", "What differs between the runs", [_differences(comparison)]),
        Section("changes", "Changes", [Items(_groups(comparison))]),
        Section("counts", "Counts", [_counts(comparison), _readings(comparison)]),
        *_levels(comparison),
        *_listing(comparison),
        Section("where", "What ran where", [_environment(comparison)], _PAGES),
    ]
    kept = [section for section in found if not _empty(section.blocks[-1])]
    title = "Comparison of two conformance runs"
    return Document(
        title, summary.sentence, kept, summary.remarks, summary.tone, lambda: _case_table(comparison)
    )


def _empty(block: Block) -> bool:
    return (isinstance(block, Table) and not block.rows) or (isinstance(block, Items) and not block.items)


def _differences(comparison: Comparison) -> Table:
    rows = [
        (name, fact.name, _short(fact.base), _short(fact.head))
        for name, fact in environment_differences(comparison)
    ]
    return Table(("target", "fact", "BASE", "HEAD"), rows, grouped=True)


def _short(text: str) -> str:
    """Abbreviate a hash."""
    return f"{text[:12]}…" if len(text) == 64 and text.isalnum() else text


def _environment(comparison: Comparison) -> Table:
    facts = [(pair.name, fact) for pair in comparison.pairs for fact in pair_facts(comparison, pair)]
    facts += [("run", fact) for fact in run_facts(comparison)]
    base, head = comparison.base.header, comparison.head.header
    rows: list[Row] = [
        (name, fact.name, fact.base, Span(fact.head, "warn" if fact.differs else "")) for name, fact in facts
    ]
    rows.append(("run", "id", Span(base.run_id, code=True), Span(head.run_id, code=True)))
    rows.append(("run", "command", Span(base.command, code=True), Span(head.command, code=True)))
    return Table(("target", "fact", "BASE", "HEAD"), rows, grouped=True)


def _groups(comparison: Comparison) -> list[Item]:
    groups = comparison.groups()
    examples = {(group.example.result.case, group.kind.pair) for group in groups[:_OPENED]}
    listed = {
        key
        for change in Change
        for found in _listed(comparison, change)
        if (key := (found.result.case, found.kind.pair)) in examples
    }
    return [
        Item(
            f"{group.number:,} × {line(group.cases)} ({group.kind.validity.value}) on {group.kind.pair.name}",
            [Remark(" · ".join((_turn(group.kind), *_happened(group.example))), "soft")],
            group.example.result.case,
            group.kind.change.value,
            "#"
            + query(
                operator=group.kind.operator,
                target=group.kind.pair.head,
                validity=group.kind.validity.value,
                before=outcome_of(group.kind.before),
                outcome=outcome_of(group.kind.after),
                change=group.kind.change.value,
            ),
            "#" + query(case=group.example.result.case, on=group.kind.pair.head)
            if (group.example.result.case, group.kind.pair) in listed
            else "",
        )
        for group in groups
    ]


def _turn(kind: ChangeKind) -> str:
    return f"{outcome_of(kind.before)} → {outcome_of(kind.after)}"


def _happened(found: Changed) -> list[str]:
    """Describe the difference, and the known facts about the shown result."""
    return [*filter(None, [said(found)]), *details(found.result)]


def _counts(comparison: Comparison) -> Table:
    base, head = comparison.base, comparison.head
    held = [
        (base.tally(target=pair.base).selected, head.tally(target=pair.head).selected)
        for pair in comparison.pairs
    ]
    rows = [
        _count_row(pair.name, both, comparison.counts[pair], query(target=pair.head))
        for pair, both in zip(comparison.pairs, held, strict=True)
    ]
    if len(rows) > 1:
        rows.append(_count_row("all", tuple(map(sum, zip(*held, strict=True))), comparison.total, "target="))
    heads = ["target", "BASE", "HEAD", "in both", "equal", *(PLURALS[change] for change in Change)]
    return Table((*heads, "neither"), rows, range(1, 11))


def _count_row(name: str, held: tuple[int, ...], counts: ComparedCounts, link: str) -> Row:
    changes = (
        Span(
            f"{number:,}",
            "bad" if change is Change.REGRESSION and number else "",
            link=f"#{link}&{query(change=change.value)}" if number else "",
        )
        for change in Change
        for number in [counts.changes[change]]
    )
    numbers = (f"{number:,}" for number in (*held, counts.compared, counts.equal))
    return (name, *numbers, *changes, f"{counts.neither:,}")


def _readings(comparison: Comparison) -> Table:
    rows = [
        (name, f"{base:,}", f"{head:,}", f"{head - base:+,}")
        for name, base, head in both_readings(comparison)
    ]
    return Table(("reading", "BASE", "HEAD", "HEAD \N{MINUS SIGN} BASE"), rows, range(1, 4))


def _levels(comparison: Comparison) -> Iterator[Section]:
    """Yield the changes by level for the terminal, both runs by level for the others."""
    columns, rows = both_levels(comparison), both_rows(comparison)
    title = "By DirectML feature level"
    changed: list[Row] = [
        (
            row.operator,
            row.pair.name,
            *map(_changes, [*(row.by_level[level] for level in columns), row.total]),
        )
        for row in rows
        if row.total.changes.total()
    ]
    heads = ("operator", "", *columns, "all")
    key = "changed valid cases: ✗ regressions  + fixes  ≠ changed"
    table = Table(heads, changed, range(2, len(heads)), grouped=True)
    yield Section("levels", title, [Paragraph(Span(key, "soft")), table], ("terminal",))
    both: list[Row] = [
        (
            row.operator,
            row.pair.name,
            *(_rates(row, level) for level in [*columns, ""]),
            f"{row.total.head.correct - row.total.base.correct:+,}",
            row.total.words,
        )
        for row in rows
    ]
    about = (
        "Correct / selected valid cases of BASE → HEAD, by the feature level that first allows them; one figure where both are equal. "
        "✗ has regressions · + only fixes · ≠ other changes · – no case"
    )
    heads = ("operator", "target", *columns, "all", "correct, HEAD \N{MINUS SIGN} BASE", "changes")
    table = Table(heads, both, range(2, len(heads) - 1), grouped=True)
    yield Section("levels", title, [Paragraph(Span(about, "soft")), table], _PAGES)


def _changes(cell: BothCell) -> Span:
    words = " ".join(f"{_SIGNS[change]}{cell.changes[change]}" for change in Change if cell.changes[change])
    return Span(words or ("=" if cell.status != "none" else ""), _STYLES[cell.status] or "soft")


def _rates(row: BothRow, level: str) -> Span:
    """Write a cell of a level, of all where it is empty."""
    cell = row.by_level[level] if level else row.total
    if cell.status == "none":
        return Span("–", "soft")
    base, head = rate(cell.base), rate(cell.head)
    link = "#" + query(operator=row.operator, target=row.pair.head, validity="valid", level=level)
    rates = head if base == head else f"{base} → {head}"
    return Span(
        rates + _MARKS.get(cell.status, ""), _STYLES[cell.status], link=link if cell.changes.total() else ""
    )


def _listing(comparison: Comparison) -> Iterator[Section]:
    for change in Change:
        number, shown = comparison.total.changes[change], comparison.kept[change][:_ROWS]
        rows = [
            (
                found.kind.pair.name,
                Span(found.result.case, code=True),
                _turn(found.kind),
                " · ".join(_happened(found)),
            )
            for found in shown
        ]
        which = f"the first {len(shown):,} of {number:,}" if number > len(shown) else f"{number:,}"
        title = f"{PLURALS[change].capitalize()}: {which}"
        table = Table(("target", "case", "outcome", "what happened"), rows)
        yield Section("single-results", title, [table], ("markdown",), folded=True)


def _listed(comparison: Comparison, change: Change) -> list[Changed]:
    return comparison.kept[change][: LISTED[change]]


def _case_table(comparison: Comparison) -> CaseTable:
    payload = Payload()
    kinds: Numbering[tuple[Facets, str, Validity]] = Numbering()
    states: Numbering[tuple[str, str, str, int]] = Numbering()
    listed = {change: _listed(comparison, change) for change in Change}
    for place, change in enumerate(Change):
        for found in listed[change]:
            result = found.result
            kind = kinds[facets(result.case), result.levels.get("directml", BEYOND), result.validity]
            pair, before, after = found.kind.pair, found.kind.before, found.kind.after
            state = states[visible(pair.head), outcome_of(after), outcome_of(before), place]
            note = message(" · ".join(filter(None, [said(found), repeated(result)])), 400)
            payload.add(result, kind, state, note)
    data = payload.encode_with(
        {
            "targets": [visible(pair.head) for pair in comparison.pairs],
            "levels": [visible(level) for level in both_levels(comparison)],
            **kind_rows(shown_kinds(kinds)),
            "states": list(states),
            "judgements": [change.value for change in Change],
            "fields": _FIELDS,
            "labels": {"outcome": "HEAD"},
        }
    )
    shown, total = sum(map(len, listed.values())), comparison.total.changes.total()
    left_out = ", ".join(
        f"{number:,} {PLURALS[change]}"
        for change in Change
        if (number := comparison.left_out(change, LISTED[change]))
    )
    why = f"; left out to keep the page small: {left_out}" if left_out else ""
    about = f"Only what changed: {shown:,} of {total:,} changed results{why}. Results that are equal are not listed."
    return CaseTable(data, about)


def compare_data(comparison: Comparison) -> dict[str, Any]:
    """Return the JSON document: keys are stable within a schema, new ones may be added."""
    summary = summarize_comparison(comparison)
    base_only, head_only = comparison.unmatched
    return {
        "schema": SCHEMA,
        "exit_code": exit_code(comparison),
        "summary": summary.sentence,
        "remarks": summary.remarks,
        "differing_inputs": comparison.differing_inputs,
        "base": _run(comparison.base),
        "head": _run(comparison.head),
        "environment": [
            {
                "target": None if name == "run" else name,
                "name": fact.name,
                "base": fact.base or None,
                "head": fact.head or None,
            }
            for name, fact in environment_differences(comparison)
        ],
        "counts": _numbers(comparison.total),
        "readings": {name: {"base": base, "head": head} for name, base, head in both_readings(comparison)},
        "flaky": {change.value: number for change, number in comparison.flaky.items() if number},
        "targets": [
            {**pair._asdict(), "counts": _numbers(counts)} for pair, counts in comparison.counts.items()
        ],
        "not_compared": {"base": base_only, "head": head_only},
        "groups": [_group(comparison, group) for group in comparison.groups()],
        "changes": [_changed(comparison, found) for change in Change for found in comparison.kept[change]],
        "changes_left_out": {
            change.value: comparison.left_out(change) for change in Change if comparison.left_out(change)
        },
    }


def _run(tables: Tables) -> dict[str, Any]:
    counted = {"results": tables.tally().selected, "complete": not tables.truncated}
    return run_data(tables.header) | counted


def _numbers(counts: ComparedCounts) -> dict[str, int]:
    changes = {change.value: counts.changes[change] for change in Change}
    return {
        "compared": counts.compared,
        "equal": counts.equal,
        **changes,
        "not_run_in_either": counts.neither,
    }


def _group(comparison: Comparison, group: ChangeGroup) -> dict[str, Any]:
    kind = group.kind
    return {
        "change": kind.change,
        "number": group.number,
        **_where(kind.pair),
        "operator": kind.operator,
        "validity": kind.validity,
        **_sides(comparison, kind),
        "why": kind.why,
        "opsets": sorted(group.opsets),
        "dtypes": sorted(group.dtypes),
        "ranks": sorted(group.ranks),
        "example": group.example.result.case,
    }


def _changed(comparison: Comparison, found: Changed) -> dict[str, Any]:
    result, kind = found.result, found.kind
    sides = _sides(comparison, kind)
    for side, ulp in (("before", found.ulp_before), ("after", found.ulp_after)):
        if sides[side] is not None:
            sides[side]["max_ulp"] = ulp
    if isinstance(result.repeats, Repeats):
        sides["before" if kind.after is None else "after"]["repeats"] = result.repeats
    if sides["after"] is not None and result.error is not None:
        sides["after"]["message"] = result.error.message
    return {
        "change": kind.change,
        **_where(kind.pair),
        "case": result.case,
        "operator": result.operator,
        "validity": result.validity,
        "levels": result.levels,
        **sides,
        "why": kind.why,
    }


def _where(pair: Pair) -> dict[str, str]:
    return {"base_target": pair.base, "head_target": pair.head}


def _sides(comparison: Comparison, kind: ChangeKind) -> dict[str, Any]:
    base = comparison.base.header.targets[kind.pair.base]
    head = comparison.head.header.targets[kind.pair.head]
    return {"before": _result(kind.before, base.provider), "after": _result(kind.after, head.provider)}


def _result(result: ComparedResult | None, provider: str) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "outcome": result.outcome,
        "error_class": result.error or None,
        "stage": result.signature.stage or None,
        "difference": result.signature.difference or None,
        "placed_on": placed_on(result, provider),
        "flaky": result.flaky,
    }
