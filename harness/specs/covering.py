"""Covering arrays: few rows in which every pair of alternatives of any two factors stands together at least once.

A factor is a number of alternatives, a row one alternative of each, by number. Rows are built greedily (as AETG does: Cohen, Dalal,
Fredman, Patton, "The AETG System", 1997): the pair that is to be covered next is fixed, every further factor takes the alternative that
covers most pairs still open. What cannot stand together is not told beforehand: a row is offered, and may be refused. A pair whose greedy
rows are refused waits until the others are done; then it is completed with pairs that stand together in rows that were taken, so that
whatever is impossible is most likely the pair itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

_GREEDY, _SAFE = 2, 16
"""How many rows of either kind are offered for a pair, until it counts as impossible."""
Row = tuple[int, ...]
Pair = tuple[int, int, int, int]
"""A factor with its alternative, and a later factor with its own."""


class Covered(NamedTuple):
    """The rows that were taken; `refused` pairs were found in no possible row, `left` are uncovered because the budget was spent."""

    rows: list[Row]
    refused: int
    left: int


class _Open:
    """The pairs that no row covers yet, those that stand in a row, and those whose greedy rows were refused."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.pairs = _by_factor(sizes, full=True)
        self.proven = _by_factor(sizes, full=False)
        self.suspects: set[Pair] = set()
        self.number = (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2

    def has(self, pair: Pair) -> bool:
        """Say whether a pair is open."""
        a, x, b, y = pair
        return y in self.pairs[a][x][b]

    def close(self, pair: Pair) -> None:
        """Take one pair out."""
        a, x, b, y = pair
        if self.has(pair):
            self.pairs[a][x][b].discard(y)
            self.pairs[b][y][a].discard(x)
            self.number -= 1

    def cover(self, row: Row) -> None:
        """Take out the pairs of a row."""
        for a, x in enumerate(row):
            for b in range(a + 1, len(row)):
                self.close((a, x, b, row[b]))
                self.proven[a][x][b].add(row[b])
                self.proven[b][row[b]][a].add(x)

    def gain(self, factor: int, alternative: int, fixed: Mapping[int, int]) -> int:
        """Count the open pairs of an alternative with those that are fixed; below 0 where one of them is suspect."""
        there = self.pairs[factor][alternative]
        gain = sum(fixed[other] in there[other] for other in fixed)
        for other, value in fixed.items() if self.suspects and gain else ():
            pair = (other, value, factor, alternative) if other < factor else (factor, alternative, other, value)
            if pair in self.suspects:
                gain -= len(self.sizes)
        return gain

    def safety(self, factor: int, alternative: int, fixed: Mapping[int, int]) -> int:
        """Count the pairs of an alternative with those that are fixed which stand in a row."""
        there = self.proven[factor][alternative]
        return sum(fixed[other] in there[other] for other in fixed)

    def each(self) -> Iterator[Pair]:
        """Yield the open pairs, each once."""
        for a, alternatives in enumerate(self.pairs):
            for x, others in enumerate(alternatives):
                for b, there in others.items():
                    if b > a:
                        for y in sorted(there):
                            yield a, x, b, y


def _by_factor(sizes: Sequence[int], *, full: bool) -> list[list[dict[int, set[int]]]]:
    return [
        [{other: set(range(sizes[other]) if full else ()) for other in range(len(sizes)) if other != factor} for _ in range(size)]
        for factor, size in enumerate(sizes)
    ]


def covering(sizes: Sequence[int], take: Callable[[Row], bool], seed: str, budget: int) -> Covered:
    """Return rows that cover every pair that some accepted row can; `take` says whether a row is possible. The same seed, the same rows."""
    open_ = _Open(sizes)
    rows: list[Row] = []
    random = Random(seed)
    if len(sizes) < 2:
        rows = [(x,) for x in range(sizes[0] if sizes else 0) if take((x,))] or ([()] if not sizes and take(()) else [])
        return Covered(rows[:budget], 0, max(0, len(rows) - budget))

    def found(pair: Pair, tries: int, worth: Callable[[int, int, Mapping[int, int]], int]) -> bool:
        for _ in range(tries):
            row = _row(sizes, pair, worth, random)
            if take(row):
                rows.append(row)
                open_.cover(row)
                return True
        return False

    waiting: list[Pair] = []
    for pair in list(open_.each()):
        if open_.has(pair) and len(rows) < budget and not found(pair, _GREEDY, open_.gain):
            open_.suspects.add(pair)
            waiting.append(pair)
    refused = 0
    for pair in waiting:
        if open_.has(pair) and len(rows) < budget and not found(pair, _SAFE, open_.safety):
            open_.close(pair)
            refused += 1
    return Covered(rows, refused, open_.number)


def _row(sizes: Sequence[int], pair: Pair, worth: Callable[[int, int, Mapping[int, int]], int], random: Random) -> Row:
    """Complete a pair to a row; among alternatives that are worth as much one is drawn."""
    a, x, b, y = pair
    fixed = {a: x, b: y}
    rest = [factor for factor in range(len(sizes)) if factor not in fixed]
    random.shuffle(rest)
    for factor in rest:
        if sizes[factor] == 1:
            fixed[factor] = 0
            continue
        worths = [worth(factor, alternative, fixed) for alternative in range(sizes[factor])]
        best = max(worths)
        fixed[factor] = random.choice([alternative for alternative, found in enumerate(worths) if found == best])
    return tuple(fixed[factor] for factor in range(len(sizes)))
