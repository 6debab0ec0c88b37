"""Renders a comparison as one self-contained HTML page, with the look, the table of cases and the case view
of a run's report (`html.py`)."""

from __future__ import annotations

from typing import Any

from harness.model.case import BEYOND, Validity
from harness.model.facets import Facets, facets
from harness.render.compare_markdown import what_happened
from harness.render.html import GROUPS, fill, query
from harness.render.payload import Payload, kind_rows
from harness.render.terminal import repeated
from harness.render.text import message, visible
from harness.results.cell import shown_kinds
from harness.results.compare.comparison import Change, Changed, Comparison
from harness.results.compare.tables import (
    PLURALS,
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
from harness.results.numbering import Numbering

LISTED = {
    Change.REGRESSION: 50_000,
    Change.FIX: 50_000,
    Change.CHANGED: 50_000,
    Change.NEW: 20_000,
    Change.MISSING: 20_000,
}
"""Changed results in the page's table, by kind of change."""
_FIELDS = ("target", "outcome", "before", "change")
_SIGNS = {"worse": "✗", "better": "+", "other": "≠", "same": "=", "none": "–"}
_SHADES = {"worse": "failing", "better": "pass", "other": "partial", "same": "same", "none": "none"}
_WORDS = {
    "worse": "has regressions",
    "better": "only fixes",
    "other": "other changes",
    "same": "equal",
    "none": "no case",
}


def render_compare_html(comparison: Comparison) -> str:
    """Render the page."""
    return fill("compare.html.j2", _context(comparison), _data(comparison))


def _listed(comparison: Comparison, change: Change) -> list[Changed]:
    return comparison.kept[change][: LISTED[change]]


def _data(comparison: Comparison) -> str:
    payload = Payload()
    kinds: Numbering[tuple[Facets, str, Validity]] = Numbering()
    states: Numbering[tuple[str, str, str, int]] = Numbering()
    for place, change in enumerate(Change):
        for found in _listed(comparison, change):
            result = found.result
            kind = kinds[facets(result.case), result.levels.get("directml", BEYOND), result.validity]
            state = states[visible(found.pair.head), outcome_of(found.after), outcome_of(found.before), place]
            payload.add(
                result, kind, state, message(" · ".join(filter(None, [said(found), repeated(result)])), 400)
            )
    return payload.encode_with(
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


def _context(comparison: Comparison) -> dict[str, Any]:
    total = comparison.total
    groups = comparison.groups()
    counted = [
        {
            "name": pair.name,
            "base": comparison.base.tally(target=pair.base).selected,
            "head": comparison.head.tally(target=pair.head).selected,
            "counts": counts,
            "link": query(target=pair.head),
            "all": False,
        }
        for pair, counts in comparison.counts.items()
    ]
    if len(counted) > 1:
        base, head = comparison.base, comparison.head
        sums = {
            "base": sum(base.tally(target=pair.base).selected for pair in comparison.pairs),
            "head": sum(head.tally(target=pair.head).selected for pair in comparison.pairs),
        }
        counted.append({"name": "all", **sums, "counts": total, "link": "target=", "all": True})
    listed = {change: _listed(comparison, change) for change in Change}
    left_out = {change: comparison.left_out(change, LISTED[change]) for change in Change}
    of_pairs = [(pair.name, pair_facts(comparison, pair)) for pair in comparison.pairs]
    opened = {(found.result.case, found.pair) for group in groups[:GROUPS] for found in [group.example]}
    opened &= {(found.result.case, found.pair) for each in listed.values() for found in each}
    return {
        "readings": both_readings(comparison),
        "summary": summarize_comparison(comparison),
        "base": comparison.base.header,
        "head": comparison.head.header,
        "environment": [*of_pairs, ("run", run_facts(comparison))],
        "differing": len(environment_differences(comparison)),
        "changes": list(Change),
        "plurals": PLURALS,
        "counted": counted,
        "groups": groups[:GROUPS],
        "groups_left_out": max(0, len(groups) - GROUPS),
        "opens": lambda found: (found.result.case, found.pair) in opened,
        "levels": both_levels(comparison),
        "level_rows": both_rows(comparison),
        "both_rates": both_rates,
        "outcome_of": outcome_of,
        "what_happened": what_happened,
        "signs": _SIGNS,
        "shades": _SHADES,
        "state_words": _WORDS,
        "shown": sum(map(len, listed.values())),
        "total_changes": total.changes.total(),
        "left_out": ", ".join(
            f"{number:,} {PLURALS[change]}" for change, number in left_out.items() if number
        ),
    }
