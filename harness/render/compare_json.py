"""Renders a comparison as one JSON document; docs/reports.md describes its keys."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.model.result import Repeats
from harness.results.compare.comparison import (
    Change,
    Changed,
    ChangeGroup,
    ComparedCounts,
    ComparedResult,
    Comparison,
    Pair,
)
from harness.results.compare.tables import (
    both_readings,
    environment_differences,
    exit_code,
    placed_on,
    summarize_comparison,
)
from harness.results.tables import Tables

SCHEMA = 1


def render_compare_json(comparison: Comparison) -> str:
    """Write the document: keys are stable within a schema, new ones may be added."""
    summary = summarize_comparison(comparison)
    base_only, head_only = comparison.unmatched
    document = {
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
        "counts": _counts(comparison.total),
        "readings": {name: {"base": base, "head": head} for name, base, head in both_readings(comparison)},
        "flaky": {change.value: number for change, number in comparison.flaky.items() if number},
        "targets": [
            {**pair._asdict(), "counts": _counts(counts)} for pair, counts in comparison.counts.items()
        ],
        "not_compared": {"base": base_only, "head": head_only},
        "groups": [_group(comparison, group) for group in comparison.groups()],
        "changes": [_changed(comparison, found) for change in Change for found in comparison.kept[change]],
        "changes_left_out": {
            change.value: comparison.left_out(change) for change in Change if comparison.left_out(change)
        },
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _run(tables: Tables) -> dict[str, Any]:
    header = tables.header
    return {
        "run_id": header.run_id,
        "command": header.command,
        "seed": header.seed,
        "hashes": header.hashes,
        "targets": header.targets,
        "results": tables.tally().selected,
        "complete": not tables.truncated,
    }


def _counts(counts: ComparedCounts) -> dict[str, int]:
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
        **_sides(comparison, kind.pair, kind.before, kind.after),
        "why": kind.why,
        "opsets": sorted(group.opsets),
        "dtypes": sorted(group.dtypes),
        "ranks": sorted(group.ranks),
        "example": group.example.result.case,
    }


def _changed(comparison: Comparison, found: Changed) -> dict[str, Any]:
    result = found.result
    sides = _sides(comparison, found.pair, found.before, found.after)
    for side, ulp in (("before", found.ulp_before), ("after", found.ulp_after)):
        if sides[side] is not None:
            sides[side]["max_ulp"] = ulp
    if isinstance(result.repeats, Repeats):
        sides["before" if found.after is None else "after"]["repeats"] = result.repeats
    if sides["after"] is not None and result.error is not None:
        sides["after"]["message"] = result.error.message
    return {
        "change": found.change,
        **_where(found.pair),
        "case": result.case,
        "operator": result.operator,
        "validity": result.validity,
        "levels": result.levels,
        **sides,
        "why": found.why,
    }


def _where(pair: Pair) -> dict[str, str]:
    return {"base_target": pair.base, "head_target": pair.head}


def _sides(
    comparison: Comparison, pair: Pair, before: ComparedResult | None, after: ComparedResult | None
) -> dict[str, Any]:
    base, head = comparison.base.header.targets[pair.base], comparison.head.header.targets[pair.head]
    return {"before": _did(before, base.provider), "after": _did(after, head.provider)}


def _did(did: ComparedResult | None, provider: str) -> dict[str, Any] | None:
    if did is None:
        return None
    return {
        "outcome": did.outcome,
        "error_class": did.error or None,
        "stage": did.signature.stage or None,
        "difference": did.signature.difference or None,
        "placed_on": placed_on(did, provider),
        "flaky": did.flaky,
    }
