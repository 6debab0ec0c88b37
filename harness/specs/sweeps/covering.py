"""Covering arrays with constraints: few rows in which every possible tuple of levels of different factors occurs.

A factor is a number of levels, a row one level of each, by number. A tuple has as many levels as the strength says: 1,
2 or 3. Levels have places among all levels of all factors; a set of levels is an integer with a bit for each. Rows are
built greedily, as AETG does (Cohen, Dalal, Fredman, Patton, "The AETG System", 1997): the next tuple to cover is fixed,
and every further factor takes the level that covers most uncovered tuples. Impossible combinations are not known
beforehand, and only a complete row can be judged. A tuple whose greedy rows are refused waits until the others are
done; then it is completed with pairs that occur together in accepted rows, so that whatever is impossible is most
likely the tuple itself.

A level stands `alone` if it can hide what a target does with the rest of a row: of a row with such levels, only tuples
that hold them all count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, combinations, product
from random import Random
from typing import NamedTuple

_GREEDY, _SAFE = 2, 16
"""Rows that are built greedily for a tuple, until it waits; and of what accepted rows show, before every other row is
drawn."""
Row = tuple[int, ...]
Tuple = tuple[int, ...]
"""Places of levels, in rising order."""
Judge = Callable[[Row], str | None]
"""Returns why a row is impossible; None if it is possible."""
Worth = Callable[[Sequence[int], int, int], Sequence[int]]
"""Returns what each of some levels is worth beside those chosen, of which some hide the rest."""


class CoveringArray(NamedTuple):
    """The rows; the tuples that no possible row was found for, each with the usual reason; and the number of tuples
    that are uncovered because the budget was spent."""

    rows: list[Row]
    refused: dict[Tuple, str]
    left: int


def covering(
    sizes: Sequence[int],
    judge: Judge,
    seed: str,
    *,
    strength: int = 2,
    budget: int | None = None,
    tries: int = 16,
    alone: Iterable[int] = (),
    one_of: Iterable[int] = (),
    start: CoveringArray | None = None,
) -> CoveringArray:
    """Return at most `budget` rows that cover every tuple that a possible row can show, or, with `one_of`, every one
    that holds exactly one of these places. A tuple counts as impossible once as many rows as `tries` were refused that
    hold it. `start` is the array of a lower strength that the rows go on from. The same seed gives the same rows."""
    if not sizes:
        return CoveringArray([()] if judge(()) is None else [], {}, 0)
    if 0 in sizes:
        return CoveringArray([], {}, 0)
    array = _Array(sizes, judge, seed, min(strength, len(sizes)), _bits(alone), _bits(one_of))
    return array.built(start, budget, tries)


class _Array:
    def __init__(
        self, sizes: Sequence[int], judge: Judge, seed: str, strength: int, alone: int, one_of: int
    ) -> None:
        self.judge, self.random, self.strength, self.alone = judge, Random(seed), strength, alone
        self.starts = list(accumulate(sizes, initial=0))
        self.levels = [
            [1 << start + level for level in range(size)]
            for start, size in zip(self.starts, sizes, strict=False)
        ]
        self.free = [[one for one in levels if not one & alone] or levels for levels in self.levels]
        self.factors = [factor for factor, levels in enumerate(self.levels) for _ in levels]
        """By the place of a level, its factor."""
        self.rows: list[Row] = []
        self.impossible: dict[Row, str] = {}
        self.refused: dict[Tuple, str] = {}
        self.uncovered = dict(self._tuples(one_of))
        """By the other levels of a tuple, the levels that make it an uncovered one."""
        self.shown, self.suspect = (
            dict.fromkeys((one for each in self.levels for one in each), 0) for _ in "12"
        )
        """By a level, those that an accepted row shows with it, and those that may not go with it."""

    def _tuples(self, one_of: int) -> Iterator[tuple[int, int]]:
        every = (1 << self.starts[-1]) - 1
        for factors in combinations(self.levels, self.strength - 1):
            others = every ^ sum(map(sum, factors))
            for levels in product(*factors):
                key = sum(levels)
                rest = (one_of, others & ~one_of, 0)[min(2, (key & one_of).bit_count())]
                yield key, (others & rest if one_of else others)

    def built(self, start: CoveringArray | None, budget: int | None, tries: int) -> CoveringArray:
        for row in () if start is None else start.rows:
            self._take(row)
        for places, reason in {} if start is None else start.refused.items():
            self._refuse(places, reason)
        waiting: list[tuple[int, int]] = []
        for key in self.uncovered:
            above, passed = key.bit_length(), 0
            while (left := (self.uncovered[key] & ~passed) >> above) and len(self.rows) != budget:
                level = (left & -left) << above
                if self._found(key | level, [self._gains] * _GREEDY) is not None:
                    passed |= level
                    self._suspect(key | level)
                    waiting.append((key, level))
        for key, level in waiting:
            if self.uncovered[key] & level and len(self.rows) != budget:
                worths = [self._seen] * _SAFE + [self._seen, _alike] * (tries // 2)
                why = self._found(key | level, worths[:tries])
                if why is not None:
                    self._refuse(_places(key | level), why)
        left = sum(levels.bit_count() for levels in self.uncovered.values()) // self.strength
        return CoveringArray(self.rows, self.refused, left)

    def _found(self, fixed: int, worths: Iterable[Worth]) -> str | None:
        """Take a row that holds a tuple, completed by what levels are worth; if none is possible, return the usual
        reason."""
        reasons: Counter[str] = Counter()
        for worth in worths:
            row = self._completed(fixed, worth)
            reason = self.impossible.get(row) or self.judge(row)
            if reason is None:
                self._take(row)
                return None
            self.impossible[row] = reason
            reasons[reason] += 1
        return reasons.most_common(1)[0][0]

    def _completed(self, fixed: int, worth: Worth) -> Row:
        """Complete a tuple to a row; among levels that are worth as much one is drawn."""
        row = [-1] * len(self.levels)
        for place in _places(fixed):
            factor = self.factors[place]
            row[factor] = place - self.starts[factor]
        rest = [factor for factor, level in enumerate(row) if level < 0]
        self.random.shuffle(rest)
        chosen = fixed
        for factor in rest:
            draw, among = self.random.random(), self.free[factor]
            if len(among) > 1:  # most factors of a sweep have one level
                worths = worth(among, chosen, fixed & self.alone)
                best = max(worths)
                among = [level for level, each in zip(among, worths, strict=True) if each == best]
            level = among[int(draw * len(among))]
            chosen |= level
            row[factor] = level.bit_length() - 1 - self.starts[factor]
        return tuple(row)

    def _gains(self, levels: Sequence[int], chosen: int, hiding: int) -> list[int]:
        """Count for each level the uncovered tuples that it makes with chosen levels, all that hide something among
        them; suspects count against it."""
        uncovered, suspect, factors = self.uncovered, self.suspect, len(self.levels)
        others: list[int] = [0]
        mask = hiding or chosen
        if self.strength == 1:
            return [(uncovered[0] & level).bit_count() for level in levels]
        if hiding.bit_count() >= self.strength:
            others = []
        elif self.strength == 3:
            first = hiding & -hiding
            others, mask = ([first] if first else list(_each(chosen))), hiding ^ first or chosen
        return [
            sum([(uncovered[level | other] & mask).bit_count() for other in others])
            - factors * (suspect[level] & chosen).bit_count()
            for level in levels
        ]

    def _seen(self, levels: Sequence[int], chosen: int, _hiding: int) -> list[int]:
        """Count for each level the chosen ones that accepted rows show with it."""
        return [(self.shown[level] & chosen).bit_count() for level in levels]

    def _take(self, row: Row) -> None:
        self.rows.append(row)
        levels = [each[level] for each, level in zip(self.levels, row, strict=True)]
        together = sum(levels)
        for level in levels:
            self.shown[level] |= together ^ level
        hiding = together & self.alone
        for others in combinations(levels, self.strength - 1):
            key = sum(others)
            missing = hiding & ~key
            if missing.bit_count() < 2:
                self.uncovered[key] &= ~(missing or together)

    def _suspect(self, together: int) -> None:
        if together.bit_count() == 2:
            for level in _each(together):
                self.suspect[level] |= together ^ level

    def _refuse(self, places: Tuple, reason: str) -> None:
        """Give up a tuple; of a lower strength, all that hold it."""
        together = _bits(places)
        if len(places) == self.strength:
            self.refused[places] = reason
        self._suspect(together)
        for key in self.uncovered:
            missing = together & ~key
            if missing.bit_count() < 2:
                self.uncovered[key] &= ~missing if missing else 0


def _alike(levels: Sequence[int], _chosen: int, _hiding: int) -> Sequence[int]:
    return [0] * len(levels)


def _bits(places: Iterable[int]) -> int:
    return sum(1 << place for place in set(places))


def _each(levels: int) -> Iterator[int]:
    while levels:
        yield levels & -levels
        levels &= levels - 1


def _places(levels: int) -> Tuple:
    return tuple(level.bit_length() - 1 for level in _each(levels))
