"""An explanation as a document, and as the data that docs/triage.md describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.render.document import Document, Item, Items, Remark, Section, Style, run_data, run_table
from harness.render.terminal import describe
from harness.results.compare.comparison import ComparedResult
from harness.results.explain.explanation import Explanation
from harness.results.explain.failures import FailureGroup
from harness.results.explain.words import (
    apart,
    cross_checked,
    differences,
    elsewhere,
    headline,
    inseparable,
    statement,
    thresholds,
    title,
    verdict_of,
)
from harness.results.rules.separation import Rule
from harness.results.rules.terms import Term
from harness.results.summary import count

SCHEMA = 1
_EXCEPTIONS = 3
"""Cases that are named of each kind of exception to a rule."""


def explain_document(found: Explanation) -> Document:
    """Show each group with its rules, their counts, and the facts that they cannot separate."""
    tone, sentence = headline(found)
    remarks = list(found.remarks)
    if found.unexplained:
        remarks.append(f"{count(found.unexplained, 'smaller group')} not explained: narrow with -k")
    runs = [("", found.header)] if found.base is None else [("BASE ", found.base), ("HEAD ", found.header)]
    groups = [Item(title(group), list(_remarks(group)), group.example.case) for group in found.groups]
    sections = [
        Section("groups", "", [Items(groups)]),
        Section("where", "What ran where", [run_table(runs)], ("markdown", "html")),
    ]
    what = "failures" if found.base is None else "changes"
    return Document(f"What the {what} have in common", sentence, sections[not groups :], remarks, tone)


def _remarks(group: FailureGroup) -> Iterator[Remark]:
    yield Remark(describe(group.example), "soft")
    if words := differences(group):
        yield Remark(words, "soft")
    rules = group.separation.rules
    if len(rules) != 1 or not group.separation.exact or not group.population or group.all_changed:
        yield Remark(verdict_of(group), "warn")
    for rule in rules if group.population else ():
        yield Remark(statement(group, rule))
        for words in (*thresholds(rule), *inseparable(rule)):
            yield Remark(words, "soft", 2)
    if group.population and len(rules) > 1:
        yield Remark(elsewhere(group))
    if words := apart(group):
        yield Remark(words, "soft")
    if words := cross_checked(group):
        yield Remark(words)
    yield from _exceptions("fails all the same", group.missed, len(group.separation.missed))
    yield from _exceptions("passes all the same", group.wrong, len(group.separation.wrong))


def _exceptions(how: str, ids: tuple[str, ...], number: int) -> Iterator[Remark]:
    style: Style = "warn"
    for case in ids[:_EXCEPTIONS]:
        yield Remark(how, style, case=case)
    if number > _EXCEPTIONS:
        yield Remark(f"{how}: {number - _EXCEPTIONS:,} more", style)


def explain_data(found: Explanation) -> dict[str, Any]:
    """Return the JSON document: keys are stable within a schema, new ones may be added."""
    return {
        "schema": SCHEMA,
        "summary": headline(found)[1],
        "remarks": found.remarks,
        "run": run_data(found.header),
        "base": None if found.base is None else run_data(found.base),
        "results": found.results,
        "failing": found.failing,
        "known_left_aside": found.known,
        "groups": [_group(group) for group in found.groups],
        "groups_left_out": found.unexplained,
    }


def _group(group: FailureGroup) -> dict[str, Any]:
    kind, separation = group.kind, group.separation
    return {
        "target": kind.target,
        "known": kind.known,
        "change": kind.change,
        "before": _result(kind.before),
        **({"culprit": kind.culprit} if kind.culprit else {}),
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


def _result(result: ComparedResult | None) -> dict[str, Any] | None:
    return None if result is None else {"outcome": result.outcome, "error": result.error or None}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "terms": [_term(term) for term in rule.terms],
        "failing": rule.failing,
        "passing": rule.passing,
        "nearest_passing": rule.nearest,
        "inseparable": [[_term(other) for other in others] for others in rule.alternatives],
    }


def _term(term: Term) -> dict[str, Any]:
    return term._asdict() | {"words": term.words}
