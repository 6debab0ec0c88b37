"""Explains failures: finds for each group the rules that separate it from passing cases.

Failing results are those that turn a run red; expected deviations are explained only on request. A group is
compared with the conforming results of the same target and validity. With a second run, a group is what
changed in one way, compared with the results that were the same in BASE and did not change.

The cross-check is applied to the failing results of a run, line by line of its file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harness.model.case import Validity
from harness.model.errors import NothingRan
from harness.model.header import Header, differing_inputs
from harness.model.query import Query
from harness.model.result import Result, inexpressible
from harness.model.result_key import result_key
from harness.model.verdict import NOT_EXECUTED, conforms
from harness.results.compare.comparison import Change, ComparedResult, classify, compared_result, pair_targets
from harness.results.cross_check import (
    COMPOSED,
    Agreement,
    CheckedResult,
    checked,
    checked_pair,
    compare,
    composed,
)
from harness.results.explain.failures import (
    FailureGroup,
    FailureKind,
    Failures,
    FailureScope,
    cases_at,
    selected,
)
from harness.results.result_signature import signature
from harness.results.rules.feature_table import Rows
from harness.results.rules.separation import Population, Separation
from harness.results.runfile import RunReader
from harness.results.summary import lacks


class CrossChecked:
    """Holds both targets' results of a case against each other; one result a case is remembered until the
    other one comes."""

    def __init__(self, header: Header) -> None:
        self.pair = checked_pair(header)
        self._first: dict[bytes, tuple[CheckedResult, int]] = {}
        self._known: dict[tuple[CheckedResult, int], tuple[CheckedResult, int]] = {}
        self._said: dict[int, Agreement] = {}

    def add(self, line: int, result: Result) -> None:
        """Take one result of any target, which stands on a line of the run file."""
        if self.pair is None or result.target not in self.pair:
            return
        if result.outcome in NOT_EXECUTED or result.validity is Validity.UNSPECIFIED:
            return
        key = result_key(result.case, 0)
        first = self._first.pop(key, None)
        if first is None:
            conforming = result.conforms
            mine = (checked(result), 0 if conforming else line)
            self._first[key] = self._known.setdefault(mine, mine) if conforming else mine
            return
        provider, api = (
            (first[0], checked(result)) if result.target == self.pair[1] else (checked(result), first[0])
        )
        agreement = COMPOSED if composed(result.case) else compare(provider, api)
        for each, where in (first, (checked(result), line)):
            if not conforms(each.validity, each.outcome):
                self._said[where] = agreement

    def of(self, target: str, lines: Iterable[int]) -> tuple[str, Counter[Agreement]]:
        """Return which target the cross-check holds this one against, and what the two say of the failing results on some
        lines; ("", {}) without one."""
        if self.pair is None or target not in self.pair:
            return "", Counter()
        other = self.pair[1] if target == self.pair[0] else self.pair[0]
        return other, Counter(self._said[line] for line in lines if line in self._said)


GROUPS = 60
"""Groups that are explained; the worst and largest come first, the rest is counted."""
EXCEPTIONS = 20
"""Exceptions of each side whose ids are kept."""


class Explanation(NamedTuple):
    """Groups, worst first; `unexplained` counts those beyond `GROUPS`.

    `results` counts what ran and is selected; `failing` what the groups hold; `known` expected deviations
    left aside. With BASE, `results` ran in both runs, `failing` are the changed ones, and `base` is its
    header.
    """

    header: Header
    base: Header | None
    groups: tuple[FailureGroup, ...]
    unexplained: int
    results: int
    failing: int
    known: int
    remarks: tuple[str, ...]


def explain(
    run: RunReader, queries: Sequence[Query] = (), *, known: bool = False, most: int = GROUPS
) -> Explanation:
    """Explain the failures of a run, the `most` important groups of them.

    Errors: UsageError for a damaged run, NothingRan where no result is selected.
    """
    failures, agreements = Failures(), CrossChecked(run.header)
    places = {target: place for place, target in enumerate(run.header.targets)}
    results = held = 0
    for line, result in enumerate(run, start=2):
        failures.once(run, line, result, places[result.target])
        if not selected(result, queries):
            continue
        held += 1
        if inexpressible(result):
            continue  # it says nothing of the target
        results += result.outcome not in NOT_EXECUTED
        agreements.add(line, result)
        if result.conforms:
            failures.hold(line, result, FailureScope(result.target, result.validity))
        else:
            failures.fail(line, result, FailureKind(result.target, not result.fails, signature(result)))
    if not held:
        raise _nothing(run, queries)
    wanted = [group for group in failures.groups.values() if known or not group.kind.known]
    aside = sum(group.number for group in failures.groups.values()) - sum(group.number for group in wanted)
    found = Explanation(run.header, None, (), 0, results, 0, aside, lacks(run.path))
    return _explained(found, failures, agreements, wanted, run, most)


class _State(NamedTuple):
    """The outcome of a case on a target, and its distance in ULP plus one; 0 if it has none."""

    result: ComparedResult
    ulp: int


def _state(result: Result, header: Header) -> _State:
    ulp = 0 if result.diff is None or result.diff.max_ulp is None else result.diff.max_ulp + 1
    return _State(compared_result(result, header.targets[result.target].provider), ulp)


_change = lru_cache(4096)(classify)


def explain_changes(base: RunReader, head: RunReader, queries: Sequence[Query] = ()) -> Explanation:
    """Explain what differs in HEAD from BASE among the results that ran in both. Errors: as `explain`, and no
    target in common."""
    pairs = pair_targets(base.header, head.header)
    states: dict[_State, _State] = {}
    """Each once, however many results it is of."""
    before: dict[bytes, _State] = {}
    of_base = {pair.base: place for place, pair in enumerate(pairs)}
    for line, result in enumerate(base, start=2):
        if result.target in of_base and selected(result, queries):
            key = result_key(result.case, of_base[result.target])
            if key in before:
                raise base.twice(line, result)
            state = _state(result, base.header)
            before[key] = states.setdefault(state, state)
    failures, agreements = Failures(), CrossChecked(head.header)
    of_head = {pair.head: place for place, pair in enumerate(pairs)}
    results = 0
    for line, result in enumerate(head, start=2):
        place = of_head.get(result.target)
        if selected(result, queries):
            agreements.add(line, result)
        if place is None:
            continue
        failures.once(head, line, result, place)
        was = before.get(result_key(result.case, place))
        if was is None or not selected(result, queries):
            continue
        results += 1
        now = _state(result, head.header)
        change = None if was == now else _change(was.result, now.result, ulp_grew=0 < was.ulp < now.ulp)[0]
        name, pooled = pairs[place].name, was.result.pooled
        if change is None:
            failures.hold(line, result, FailureScope(name, result.validity, pooled))
        else:
            failures.fail(line, result, FailureKind(name, False, signature(result), change, pooled))
    if not results:
        raise _nothing(head, queries, f" and ran in {base.path} as well")
    remarks = [
        f"{name} is incomplete: explained as far as it goes."
        for name, run in (("BASE", base), ("HEAD", head))
        if lacks(run.path)
    ]
    remarks += [
        f"BASE and HEAD have {'other' if name == 'specs' else 'another'} {name}: a change need not be the target's."
        for name in differing_inputs(base.header, head.header)
    ]
    found = Explanation(head.header, base.header, (), 0, results, 0, 0, tuple(remarks))
    return _explained(found, failures, agreements, failures.groups.values(), head, GROUPS)


def _nothing(run: RunReader, queries: Sequence[Query], besides: str = "") -> NothingRan:
    matches = (
        f" matches {' or '.join(query.text for query in queries)}"
        if queries
        else " ran on a case whose result is specified"
    )
    return NothingRan(f"{run.path}: nothing to explain: no result{matches}{besides}")


def _explained(
    found: Explanation,
    failures: Failures,
    agreements: CrossChecked,
    wanted: Iterable[FailureGroup],
    run: RunReader,
    most: int,
) -> Explanation:
    """Find the rules of the groups, then read the ids of exceptions."""
    order = {change: place for place, change in enumerate(Change)}
    ranked = sorted(
        wanted,
        key=lambda g: (g.kind.known, order[g.kind.change] if g.kind.change else 0, -g.number, g.example.case),
    )
    populations: dict[FailureScope, Population] = {}
    groups: list[FailureGroup] = []
    for group in ranked[:most]:
        scope = group.kind.scope
        if scope not in populations:
            populations[scope] = Population(failures.table, _held_against(failures, scope))
        for part in _separated(populations[scope], group):
            part.population = len(populations[scope].rows)
            part.all_changed = scope not in failures.passing and part.kind.change is not None
            groups.append(part)
    for group in groups:
        _held_against_others(failures, group)
        target = group.kind.target.rpartition(" → ")[2]
        group.cross_check, group.agreements = agreements.of(
            target, failures.lines(np.array(group.rows, np.intp))
        )
    _name_exceptions(failures, groups, run)
    number = sum(group.number for group in ranked)
    return found._replace(groups=tuple(groups), unexplained=max(0, len(ranked) - most), failing=number)


def _held_against(failures: Failures, scope: FailureScope) -> Rows:
    """Return the results that are the same in BASE; if there are none, all unchanged results of the target
    and validity."""
    exactly = failures.passing.get(scope)
    if exactly is not None:
        return np.array(exactly, np.intp)
    like = [rows for other, rows in failures.passing.items() if other[:2] == scope[:2]]
    return np.concatenate([np.empty(0, np.intp), *(np.array(rows, np.intp) for rows in like)]).astype(np.intp)


def _separated(population: Population, group: FailureGroup) -> Iterator[FailureGroup]:
    """Separate a group; where no one rule holds for all its kinds of difference but one does for each, each
    is a group of its own."""
    group.separation = population.separate(np.array(group.rows, np.intp))
    parts = group.by_signature()
    if group.separation.exact or not 1 < len(parts) <= 8:
        yield group
        return
    separations = [population.separate(rows) for rows in parts]
    if not all(separation.exact for separation in separations):
        yield group
        return
    for exactly, rows, separation in zip(group.signatures, parts, separations, strict=True):
        part = FailureGroup(
            group.kind._replace(signature=exactly),
            group.examples[exactly],
            operators=group.operators,
            separation=separation,
        )
        part.rows.extend(rows.tolist())
        part.signatures[exactly] = len(rows)
        yield part


def _held_against_others(failures: Failures, group: FailureGroup) -> None:
    """Count what fails in another way although a rule of the group holds for it, and find what tells the
    group from that."""
    own = set(group.rows)
    rows = [
        row
        for other in failures.groups.values()
        if other.kind.scope[:2] == group.kind.scope[:2]
        for row in other.rows
        if row not in own
    ]
    others = np.array(rows, np.intp)
    held = others[_holds(failures, group.separation, others)]
    group.otherwise = len(held)
    if len(held) and group.separation.exact:
        apart = Population(failures.table, held).separate(np.array(group.rows, np.intp))
        group.apart = apart.rules[0].terms if apart.exact else ()


def _holds(failures: Failures, separation: Separation, rows: Rows) -> Rows:
    found = np.zeros(len(rows), np.bool_)
    for rule in separation.rules:
        found |= failures.table.all_hold(rule.terms, rows)
    return np.flatnonzero(found)


def _name_exceptions(failures: Failures, groups: Sequence[FailureGroup], run: RunReader) -> None:
    lines = [
        [failures.lines(rows[:EXCEPTIONS]) for rows in (g.separation.missed, g.separation.wrong)]
        for g in groups
    ]
    asked = {line for both in lines for each in both for line in each}
    ids = cases_at(run, asked) if asked else {}
    for group, (missed, wrong) in zip(groups, lines, strict=True):
        group.missed = tuple(ids[line] for line in missed)
        group.wrong = tuple(ids[line] for line in wrong)
