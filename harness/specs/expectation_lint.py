"""What is wrong with expectations before any run: expired, written twice, not reviewed, or matching no case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from harness.model.caseid import operator_of
from harness.specs.expectation_scope import ExpectationScope
from harness.specs.expectations import Expectations
from harness.specs.located import Located


def lint(
    expectations: Expectations,
    today: date,
    case_ids: Iterable[str] = (),
    scope: ExpectationScope | None = None,
) -> list[str]:
    """Return what is wrong with entries before any run: expired, written twice, and, given every case of a
    scope, matching none."""
    problems: list[str] = []
    seen: dict[tuple[object, ...], Located] = {}
    for located in expectations.entries:
        problems += [*located.unfilled(), *located.expired(today)]
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
