"""Checks expectations before any run: expired, duplicate, not reviewed, matching no case, or shadowed by an
earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fnmatch import fnmatchcase

import numpy as np

from harness.model.caseid import operator_of
from harness.specs.expectations.expectation_entry import Entry, When, beside, within
from harness.specs.expectations.expectations import Expectations
from harness.specs.expectations.target_expectations import ExpectationScope, Located
from harness.specs.expectations.tried_conditions import Conditions, Met


def lint(
    expectations: Expectations,
    today: date,
    case_ids: Iterable[str] = (),
    scope: ExpectationScope | None = None,
) -> list[str]:
    """Return the problems of entries before any run: expired, duplicate, and, if every case of a scope is
    given, matching none."""
    problems: list[str] = []
    seen: dict[tuple[object, ...], Located] = {}
    for located in expectations.entries:
        problems += located.flaws(today)
        entry = located.entry
        scope_of = (
            frozenset(entry.match),
            frozenset(entry.unless or ()),
            entry.when,
            entry.kernel,
            entry.level,
        )
        first = seen.setdefault(scope_of, located)
        if first is not located:
            problems.append(
                located.problem(
                    f"has the same 'match', 'unless' and 'when' as {first.file.where(first.position)}"
                )
            )
    judged = [located for located in expectations.entries if scope is not None and scope.judges(located)]
    return problems + [
        located.problem("matches no case; remove it or correct its query")
        for located in _unmatched(judged, case_ids)
    ]


def _unmatched(entries: Sequence[Located], case_ids: Iterable[str]) -> list[Located]:
    """Return the entries that match none of the cases."""
    left = dict(enumerate(entries))
    speaking: dict[str, list[int]] = {}
    for case_id in case_ids:
        operator = operator_of(case_id)
        if operator not in speaking:
            speaking[operator] = [n for n, located in left.items() if located.speaks_of((operator,))]
        found = [n for n in speaking[operator] if n in left and entries[n].matches(case_id)]
        if found:
            for number in found:
                del left[number]
            speaking[operator] = [n for n in speaking[operator] if n in left]
    return list(left.values())


def shadowed(entries: Sequence[Located], of: Conditions) -> Iterator[str]:
    """Yield the entries that never speak: of each of their cases an earlier one does, wherever they apply, and expects
    the same."""
    for number, located in enumerate(entries):
        earlier = [one for one in entries[:number] if _covers(one.entry, located.entry)]
        before: list[Located] = []
        left = False
        for operator in dict.fromkeys(name for query in located.queries for name in of.operators(query)):
            own = _cases(located, operator, of)
            for one in earlier if own.any() else ():
                theirs = _cases(one, operator, of)
                before += [one] if (own & theirs).any() else []
                own &= ~theirs
            left |= bool(own.any())
        if before and not left:
            places = ", ".join(dict.fromkeys(one.file.where(one.position) for one in before))
            yield located.problem(
                f"is shadowed: of each of its cases {places} speaks first; remove it, or narrow that"
            )


def _covers(first: Entry, entry: Entry) -> bool:
    """Say whether an entry expects and states what another one does wherever that applies."""
    stated = [(each.gives, each.difference, each.memory, each.message) for each in (first, entry)]
    return (
        not (first.pending or entry.pending)
        and (first.expect, first.kernel, first.level) == (entry.expect, entry.kernel, entry.level)
        and (stated[0] == stated[1] or (stated[0] == (None, None, None, None) and entry.memory is None))
        and _holds_with(first.when, entry.when)
    )


def _holds_with(first: When, when: When) -> bool:
    """Say whether a condition holds wherever another one does."""
    ranges = ("onnxruntime", "directml", "max_feature_level")
    return (
        all(
            any(fnmatchcase(glob, wider) for wider in getattr(first, name))
            for name in ("target", "provider")
            for glob in getattr(when, name)
        )
        and (first.adapter is None or fnmatchcase(when.adapter or "", first.adapter))
        and all(_contains(getattr(first, name), getattr(when, name)) for name in ranges)
    )


def _contains(wider: str | None, narrower: str | None) -> bool:
    """Say whether a range of versions contains another one, by the versions at and beside its ends."""
    if wider is None or narrower is None:
        return wider is None
    return all(within(each, wider) for each in beside(wider, narrower) if within(each, narrower))


def _cases(located: Located, operator: str, of: Conditions) -> Met:
    """Say which cases of an operator an entry matches, shape (cases,)."""
    found = np.zeros(len(of.cases(operator)), np.bool_)
    for query in located.queries:
        found |= of.select(query, operator) if query.speaks_of(operator) else False
    for query in located.exceptions:
        found &= ~of.select(query, operator) if query.speaks_of(operator) else True
    return found
