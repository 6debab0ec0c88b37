"""Covering arrays with constraints, of strength 2 or 3: few rows in which every possible pair, or triple, of
levels of different factors occurs.

A factor is a number of levels, a row one level of each, by number; levels have places among all levels. Rows
are built greedily, as AETG does (Cohen, Dalal, Fredman, Patton, "The AETG System", 1997): the next tuple to
cover is fixed, and every further factor takes the level that covers most uncovered tuples. What is possible
is learned by asking: of a refused row the fewest levels that an accepted row cannot take over are looked for
(Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), and avoided from then on.

A row shows a level `alone` if nothing else in it can hide what a target does there: of a row with such levels,
only tuples that hold them all count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, permutations
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_CANDIDATES, _FIRST = 4, 500
_TRIES = {1: 1000, 2: 100, 3: 30}
"""How many rows are built for a tuple, how many are tried at random until one is accepted at all; and by strength how
many near accepted rows, until a tuple counts as impossible."""
_AVOIDED = 1000
Row = tuple[int, ...]
Tuple = tuple[int, ...]
"""Places of levels."""
Judge = Callable[[Row], str | None]
"""Says why a row is impossible; None if it is possible."""


class CoveringArray(NamedTuple):
    """The rows, and the tuples that no possible row was found for, each with the usual reason."""

    rows: list[Row]
    refused: dict[Tuple, str]


def array(
    sizes: Sequence[int],
    judge: Judge,
    seed: str,
    *,
    strength: int = 2,
    alone: Iterable[int] = (),
    one_of: Iterable[int] = (),
    start: CoveringArray | None = None,
) -> CoveringArray:
    """Return rows that cover every tuple that a possible row can show, or, with `one_of`, every one that holds
    exactly one of these places. `start` is the array of a lower strength that the rows go on from."""
    return _Array(sizes, judge, seed, strength, frozenset(alone), sorted(one_of)).built(start)


class _Array:
    def __init__(
        self,
        sizes: Sequence[int],
        judge: Judge,
        seed: str,
        strength: int,
        alone: frozenset[int],
        one_of: Sequence[int],
    ) -> None:
        self.sizes, self.random = sizes, Random(seed)
        self.strength = min(strength, len(sizes))
        self.alone = alone
        self.starts = list(accumulate(sizes, initial=0))
        self.owner = [factor for factor, size in enumerate(sizes) for _ in range(size)]
        self.free = [
            np.array([place for place in levels if place not in alone] or list(levels))
            for levels in (
                range(start, start + size) for start, size in zip(self.starts, sizes, strict=False)
            )
        ]
        self.rows: list[Row] = []
        self.refused: dict[Tuple, str] = {}
        self._judge, self._asked = judge, dict[Row, str | None]()
        count = len(self.owner)
        self.uncovered = self._every(one_of)
        self.avoided = np.zeros((count, count), np.bool_)

    def _every(self, one_of: Sequence[int]) -> NDArray[np.bool_]:
        """Mark the tuples of different factors that are to be covered, in every order of their places."""
        owner = np.array(self.owner)
        found = np.ones((len(owner),) * self.strength, np.bool_)
        for one in range(self.strength):
            for other in range(one):
                shape = [1] * self.strength
                shape[one] = shape[other] = len(owner)
                differ = owner[:, None] != owner[None, :]
                found &= differ.reshape(shape)
        if one_of:
            marked = np.zeros(len(owner), np.int8)
            marked[list(one_of)] = 1
            axes = np.meshgrid(*[marked] * self.strength, indexing="ij", sparse=True)
            found &= sum(axes[1:], start=axes[0]) == 1
        return found

    def built(self, start: CoveringArray | None) -> CoveringArray:
        if 0 in self.sizes:
            return CoveringArray([], {})
        if not self.sizes:
            return CoveringArray([()] if self.judge(()) is None else [], {})
        for row in () if start is None else start.rows:
            self._take(row)
        for tuple_, reason in {} if start is None else start.refused.items():
            self._refuse(tuple_, reason)
        if not self.rows:
            self._first()
        waiting: list[Tuple] = []
        left = self.uncovered.copy()
        while (place := int(np.argmax(left))) or left.flat[0]:
            fixed = tuple(int(n) for n in np.unravel_index(place, left.shape))
            if not self._covered_by_greedy(fixed):
                waiting.append(fixed)
                _mark(left, [[each] for each in fixed])
            left &= self.uncovered
        for fixed in waiting:
            if self.uncovered[fixed]:
                self._search(fixed)
        return CoveringArray(self.rows, self.refused)

    def judge(self, row: Row) -> str | None:
        if row not in self._asked:
            self._asked[row] = self._judge(row)
        return self._asked[row]

    def _take(self, row: Row) -> None:
        self.rows.append(row)
        places = self._places(row)
        hiding = [place for place in places if place in self.alone]
        if len(hiding) <= self.strength:
            _mark(
                self.uncovered,
                [[place] for place in hiding] + [places] * (self.strength - len(hiding)),
            )

    def _refuse(self, fixed: Tuple, reason: str) -> None:
        """Give up a tuple; of a lower strength, all that hold it."""
        if len(fixed) == self.strength:
            self.refused[tuple(sorted(fixed))] = reason
        every = list(range(len(self.owner)))
        _mark(self.uncovered, [[each] for each in fixed] + [every] * (self.strength - len(fixed)))
        if len(fixed) == 2:
            self.avoided[fixed] = self.avoided[fixed[::-1]] = True

    def _places(self, row: Row) -> list[int]:
        return [start + level for start, level in zip(self.starts, row, strict=False)]

    def _row(self, places: Iterable[int]) -> Row:
        by_factor = sorted((self.owner[place], place) for place in places)
        return tuple(place - self.starts[factor] for factor, place in by_factor)

    def _pick(self, most: int) -> int:
        return int(self.random.random() * most)

    def _first(self) -> None:
        """Take any possible row, to learn from."""
        for _ in range(_FIRST):
            row = tuple(self._pick(size) for size in self.sizes)
            if self.judge(row) is None:
                self._take(row)
                return

    def _covered_by_greedy(self, fixed: Tuple) -> bool:
        built = [self._completed(fixed) for _ in range(_CANDIDATES)]
        for _, row in sorted(built, key=lambda each: -each[0]):
            if self.judge(row) is None:
                self._take(row)
                return True
            self._learn(row)
        return False

    def _completed(self, fixed: Tuple) -> tuple[int, Row]:
        """Complete a tuple greedily; return how many uncovered ones the row holds, and the row."""
        factors = [n for n in range(len(self.sizes)) if n not in {self.owner[place] for place in fixed}]
        order = sorted((self.random.random(), n) for n in factors)
        hiding = tuple(place for place in fixed if place in self.alone)[: self.strength - 1]
        uncovered = self.uncovered[hiding]
        # what each level would cover together with those that are chosen
        worth = (uncovered if uncovered.ndim == 1 else np.zeros(len(self.owner), np.bool_)).astype(np.int64)
        places: list[int] = []
        for place in fixed:
            self._count(worth, uncovered, place, places)
            places.append(place)
        gained = 0
        for _, factor in order:
            allowed = self.free[factor]
            among = worth[allowed]
            best = np.flatnonzero(among == among.max())
            place = int(allowed[best[self._pick(len(best))]])
            gained += int(worth[place])
            self._count(worth, uncovered, place, places)
            places.append(place)
        return gained, self._row(places)

    def _count(
        self, worth: NDArray[np.int64], uncovered: NDArray[np.bool_], place: int, places: Sequence[int]
    ) -> None:
        """Add to the worth of each level what it covers together with a place, and with one of those before."""
        if uncovered.ndim == 2:
            worth += uncovered[place]
        elif uncovered.ndim == 3 and places:
            worth += uncovered[place][:, places].sum(axis=1)
        worth -= _AVOIDED * self.avoided[place]

    def _learn(self, row: Row) -> None:
        """Find the fewest levels of a refused row that an accepted one cannot take over; avoid two that do not
        go together."""
        if not self.rows:
            return
        base = self.rows[self._pick(len(self.rows))]
        differing = [n for n in range(len(row)) if row[n] != base[n]]
        culprits = list(differing)
        for each in differing:
            fewer = [n for n in culprits if n != each]
            if self.judge(_changed(base, row, fewer)) is not None:
                culprits = fewer
        if len(culprits) == 2:
            pair = tuple(self._places(row)[n] for n in culprits)
            self.avoided[pair] = self.avoided[pair[::-1]] = True

    def _search(self, fixed: Tuple) -> None:
        """Try a tuple in accepted rows that are nearest to it, unchanged and with other levels changed."""
        reasons: Counter[str] = Counter()
        factors = {self.owner[place]: place - self.starts[self.owner[place]] for place in fixed}
        free = [n for n in range(len(self.sizes)) if n not in factors]
        near = sorted(
            (-sum(row[n] == level for n, level in factors.items()), self.random.random(), row)
            for row in self.rows
            if not any(self.starts[n] + row[n] in self.alone for n in free)
        )
        tries = _TRIES[len(fixed)]
        for number in range(tries):
            row = list(near[number % len(near)][2]) if near else [self._pick(size) for size in self.sizes]
            for n in free:
                if number * 4 > tries and self._pick(tries) < number:
                    row[n] = int(self.free[n][self._pick(len(self.free[n]))]) - self.starts[n]
            for n, level in factors.items():
                row[n] = level
            reason = self.judge(tuple(row))
            if reason is None:
                self._take(tuple(row))
                if not self.uncovered[fixed]:
                    return
            else:
                reasons[reason] += 1
        self._refuse(fixed, reasons.most_common(1)[0][0] if reasons else "no row of its own")


def _changed(base: Row, row: Row, at: Sequence[int]) -> Row:
    return tuple(row[n] if n in at else level for n, level in enumerate(base))


def _mark(uncovered: NDArray[np.bool_], places: Sequence[Sequence[int]]) -> None:
    """Take tuples off, in every order."""
    for order in permutations(places):
        uncovered[np.ix_(*order)] = False
