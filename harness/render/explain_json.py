"""Renders an explanation as one JSON document; docs/triage.md describes its keys."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.model.header import Header
from harness.results.compare.comparison import ComparedResult
from harness.results.explain.explanation import Explanation
from harness.results.explain.failures import FailureGroup
from harness.results.explain.words import headline
from harness.results.rules.separation import Rule
from harness.results.rules.terms import Term

SCHEMA = 1


def render_explain_json(found: Explanation) -> str:
    """Write the document: keys are stable within a schema, new ones may be added."""
    document = {
        "schema": SCHEMA,
        "summary": headline(found)[1],
        "remarks": found.remarks,
        "run": _run(found.header),
        "base": None if found.base is None else _run(found.base),
        "results": found.results,
        "failing": found.failing,
        "known_left_aside": found.known,
        "groups": [_group(group) for group in found.groups],
        "groups_left_out": found.unexplained,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _run(header: Header) -> dict[str, Any]:
    return {
        "run_id": header.run_id,
        "command": header.command,
        "seed": header.seed,
        "hashes": header.hashes,
        "targets": header.targets,
    }


def _group(group: FailureGroup) -> dict[str, Any]:
    kind, separation = group.kind, group.separation
    return {
        "target": kind.target,
        "known": kind.known,
        "change": kind.change,
        "before": _did(kind.before),
        **kind.signature._asdict(),
        "number": group.number,
        "held_against": group.population,
        "all_changed": group.all_changed,
        "operators": dict(sorted(group.operators.items())),
        "differences": {
            each.difference: number for each, number in group.signatures.most_common() if each.difference
        },
        "exact": separation.exact,
        "noise": separation.noise,
        "rules": [_rule(rule) for rule in separation.rules] if group.population else [],
        "failing_elsewhere": len(separation.missed),
        "failing_elsewhere_first": group.missed,
        "passing_within": len(separation.wrong),
        "passing_within_first": group.wrong,
        "failing_otherwise_within": group.otherwise,
        "apart_from_these": [_term(term) for term in group.apart],
        "cross_check": _cross_check(group) if group.cross_check else None,
        "example": group.example.case,
    }


def _cross_check(group: FailureGroup) -> dict[str, Any]:
    said = [{**each._asdict(), "number": number} for each, number in group.agreements.most_common()]
    return {"target": group.cross_check, "agreements": said}


def _did(did: ComparedResult | None) -> dict[str, Any] | None:
    return None if did is None else {"outcome": did.outcome, "error": did.error or None}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "terms": [_term(term) for term in rule.terms],
        "failing": rule.failing,
        "passing": rule.passing,
        "nearest_passing": rule.nearest,
        "inseparable": [[_term(other) for other in others] for others in rule.alternatives],
    }


def _term(term: Term) -> dict[str, Any]:
    return {"column": term.column, "relation": term.relation, "value": term.value, "words": term.words}
