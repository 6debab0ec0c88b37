"""Counts which interactions of factors the cases of a selection show: pairs or triples of levels.

What is possible say the sweeps that choose shapes by rank and size: the product of their factors, without what their
generator found no case for. What is covered is counted from the cases, from whatever sweep, by the levels that each shows
(`factors`). A case that shows levels which a target may refuse (`alone`) shows only interactions of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Validity
from harness.specs.coverage.factors import Shown, shown_by
from harness.specs.coverage.kind_matrix import KindCount, SeenKinds, count_kinds
from harness.specs.expand import Plan
from harness.specs.selection import Selection
from harness.specs.sweeps.interactions import Interactions

Levels = tuple[tuple[str, str], ...]
"""Levels of different factors."""
COUNTED = (Validity.VALID, Validity.INVALID)


class Coverage(NamedTuple):
    """What the cases of one operator and validity show of `strength` levels together.

    `forbidden` counts by reason what no case can show, `elsewhere` what no sweep asks for. Without a sweep that
    covers interactions (not `declared`) the factors are those in which cases differ, and all counts as possible.
    """

    operator: str
    validity: Validity
    strength: int
    declared: bool
    cases: int
    factors: dict[str, tuple[str, ...]]
    covered: int
    possible: int
    forbidden: Counter[str]
    elsewhere: int
    missing: list[Levels]


def coverages(selection: Selection, strength: int) -> list[Coverage]:
    """Count for every operator of a selection, its valid and its invalid cases."""
    found: dict[tuple[str, Validity], Counter[frozenset[tuple[str, frozenset[str]]]]] = {}
    for case in selection:
        if case.directml is None and case.validity in COUNTED:
            key = case.operator, case.validity
            found.setdefault(key, Counter())[frozenset(shown_by(case).items())] += 1
    return [
        _coverage(operator, validity, strength, _interactions(selection.plan, operator, validity), shows)
        for (operator, validity), shows in sorted(
            found.items(), key=lambda item: (item[0][0], item[0][1] != COUNTED[0])
        )
    ]


def _interactions(plan: Plan, operator: str, validity: Validity) -> list[Interactions]:
    return [
        each.calls.interactions
        for each in plan.sweeps
        if each.operator.name == operator
        and each.sweep.validity is validity
        and each.calls.interactions is not None
        and each.calls.interactions.of_sizes
    ]


def _coverage(
    operator: str,
    validity: Validity,
    strength: int,
    sweeps: Sequence[Interactions],
    shows: Counter[frozenset[tuple[str, frozenset[str]]]],
) -> Coverage:
    factors = _declared(sweeps) if sweeps else _observed(dict(each) for each in shows)
    space = _Space(factors, strength)
    asked, refused = space.none(), dict[tuple[int, ...], str]()
    possible = space.none() if sweeps else space.every()
    for sweep in sweeps:
        own, no = _of_sweep(space, sweep)
        refused |= {places: why for places, why in no.items() if not possible[places]}
        asked |= own
        for places in no:
            own[places] = False
        possible |= own
    alone = {pair for each in sweeps for pair in _pairs(each.cover.alone)}
    illegal = {pair for each in sweeps for pair in _pairs(each.cover.illegal)}
    seen = space.none()
    for each in shows:
        space.mark(seen, dict(each), alone, illegal)
    refused = {places: why for places, why in refused.items() if not possible[places]}
    missing = [space.levels(places) for places in map(tuple, np.argwhere(possible & ~seen))]
    number = int(possible.sum())
    return Coverage(
        operator,
        validity,
        strength,
        bool(sweeps),
        shows.total(),
        factors,
        number - len(missing),
        number,
        Counter(refused.values()),
        int(space.every().sum()) - number - len(refused) if not illegal else 0,
        missing,
    )


def _pairs(levels: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Yield each level with its factor."""
    return ((name, one) for name, several in levels.items() for one in several)


def _declared(sweeps: Sequence[Interactions]) -> dict[str, tuple[str, ...]]:
    """Return the factors of sweeps with all levels that any of them has, where these are several."""
    found: dict[str, dict[str, None]] = {}
    for sweep in sweeps:
        for factor in sweep.factors:
            found.setdefault(factor.name, {}).update(dict.fromkeys(factor.levels))
    return {name: tuple(levels) for name, levels in found.items() if len(levels) > 1}


def _observed(shows: Iterable[Shown]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for each in shows:
        for name, levels in each.items():
            if not name.endswith(".shape"):  # rank and size tell what matters of the first
                found.setdefault(name, set()).update(levels)
    return {name: tuple(sorted(levels)) for name, levels in sorted(found.items()) if len(levels) > 1}


class _Space:
    """All tuples of levels of different factors, by the places of the levels, which rise in each tuple."""

    def __init__(self, factors: dict[str, tuple[str, ...]], strength: int) -> None:
        self.strength = strength
        self.named = [*_pairs(factors)]
        self.place = {each: n for n, each in enumerate(self.named)}
        self.starts = list(accumulate(map(len, factors.values()), initial=0))

    def none(self) -> NDArray[np.bool_]:
        return np.zeros((len(self.named),) * self.strength, np.bool_)

    def every(self) -> NDArray[np.bool_]:
        """Mark all."""
        found = self.none()
        for chosen in combinations(range(len(self.starts) - 1), self.strength):
            found[tuple(np.ix_(*(range(self.starts[n], self.starts[n + 1]) for n in chosen)))] = True
        return found

    def levels(self, places: tuple[int, ...]) -> Levels:
        return tuple(self.named[place] for place in places)

    def mark(
        self,
        seen: NDArray[np.bool_],
        shows: Shown,
        alone: set[tuple[str, str]],
        illegal: set[tuple[str, str]],
    ) -> None:
        """Mark the levels that a case has."""
        shown = [pair for pair in _pairs(shows) if pair in self.place]
        wrong = [each for each in shown if each in illegal]
        if illegal and len({name for name, _ in wrong}) != 1:
            return
        harmless = {name for name, one in shown if (name, one) not in alone and (name, one) not in illegal}
        hiding = {name for name, _ in shown} - harmless
        if len(hiding) > self.strength:
            return
        every = sorted(self.place[each] for each in shown)
        axes = [[self.place[each] for each in shown if each[0] == name] for name in sorted(hiding)]
        for picked in product(*axes):
            spread = [np.array([place]) for place in picked]
            spread += [np.array(every, np.intp)] * (self.strength - len(picked))
            found = np.stack(np.meshgrid(*spread, indexing="ij"), -1).reshape(-1, self.strength)
            seen[tuple(np.sort(found, axis=1).T)] = True


def _of_sweep(space: _Space, sweep: Interactions) -> tuple[NDArray[np.bool_], dict[tuple[int, ...], str]]:
    """Mark the levels that a sweep requests, and return those that no case of it can have, with the
    reasons."""
    asked = space.none()
    illegal = {*_pairs(sweep.cover.illegal)}
    factors = [
        [space.place[factor.name, one] for one in factor.levels]
        for factor in sweep.factors
        if (factor.name, next(iter(factor.levels))) in space.place
    ]
    for chosen in combinations(sorted(factors), space.strength):
        asked[tuple(np.ix_(*chosen))] = True
    if illegal:
        wrong = np.array([each in illegal for each in space.named])
        axes = np.meshgrid(*[wrong.astype(np.int8)] * space.strength, indexing="ij", sparse=True)
        asked &= sum(axes[1:], start=axes[0]) == 1
    refused: dict[tuple[int, ...], str] = {}
    known = (
        (sweep.named(each), why)
        for found in sweep.covered(space.strength)
        for each, why in found.refused.items()
    )
    for named, why in known:
        places = [space.place[each] for each in named if each in space.place]
        if len(places) < len(named):
            continue
        every = np.array([place in places for place in range(len(space.named))])
        holding = np.argwhere(asked) if len(places) < space.strength else np.array([sorted(places)])
        for each in holding[every[holding].sum(axis=1) == len(places)]:
            refused.setdefault(tuple(int(n) for n in each), why)
    return asked, {places: why for places, why in refused.items() if asked[places]}


def kind_counts(selection: Selection) -> list[KindCount]:
    """Count for every operator of a selection, by name; a graph's inputs are those of its operators."""
    seen = {spec.model.operator: SeenKinds(spec) for spec in selection.plan.specs if spec.graph is None}
    for case in selection:
        if case.operator in seen and case.directml is None and case.options.variant is None:
            seen[case.operator].add(case)
    return [count_kinds(each) for _, each in sorted(seen.items())]
