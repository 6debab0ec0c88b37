"""Covering arrays: few rows in which every pair of alternatives of any two factors stands together at least once.

A factor is a number of alternatives, a row one alternative of each, by number. Rows are built greedily (as AETG does: Cohen, Dalal,
Fredman, Patton, "The AETG System", 1997): the pair that is to be covered next is fixed, every further factor takes the alternative that
covers most pairs still open. What cannot stand together is not told beforehand: a row is offered, and may be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

_TRIES = 5
"""How many rows are offered for a pair, until it counts as impossible."""
Row = tuple[int, ...]


class Covered(NamedTuple):
    """The rows that were taken; `refused` pairs were found in no possible row, `left` are uncovered because the budget was spent."""

    rows: list[Row]
    refused: int
    left: int


class _Open:
    """The pairs that no row covers yet, by factor, alternative and other factor."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.pairs = [
            [{other: set(range(sizes[other])) for other in range(len(sizes)) if other != factor} for _ in range(size)]
            for factor, size in enumerate(sizes)
        ]
        self.number = (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2

    def close(self, a: int, x: int, b: int, y: int) -> None:
        """Take one pair out."""
        there = self.pairs[a][x][b]
        if y in there:
            there.discard(y)
            self.pairs[b][y][a].discard(x)
            self.number -= 1

    def gain(self, factor: int, alternative: int, fixed: dict[int, int]) -> int:
        """Count the open pairs of an alternative with those that are fixed."""
        there = self.pairs[factor][alternative]
        return sum(fixed[other] in there[other] for other in fixed)

    def each(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the open pairs, each once."""
        for a, alternatives in enumerate(self.pairs):
            for x, others in enumerate(alternatives):
                for b, there in others.items():
                    if b > a:
                        for y in sorted(there):
                            yield a, x, b, y


def covering(sizes: Sequence[int], take: Callable[[Row], bool], seed: str, budget: int) -> Covered:
    """Return rows that cover every pair that some accepted row can; `take` says whether a row is possible. The same seed, the same rows."""
    open_ = _Open(sizes)
    rows: list[Row] = []
    random = Random(seed)
    refused = 0
    if len(sizes) < 2:
        rows = [(x,) for x in range(sizes[0] if sizes else 0) if take((x,))] or ([()] if not sizes and take(()) else [])
        return Covered(rows[:budget], 0, max(0, len(rows) - budget))
    for a, x, b, y in list(open_.each()):
        if y not in open_.pairs[a][x][b]:
            continue
        if len(rows) >= budget:
            break
        for _ in range(_TRIES):
            row = _row(open_, {a: x, b: y}, random)
            if take(row):
                rows.append(row)
                for i, p in enumerate(row):
                    for j in range(i + 1, len(row)):
                        open_.close(i, p, j, row[j])
                break
        else:
            refused += 1
            open_.close(a, x, b, y)
    return Covered(rows, refused, open_.number)


def _row(open_: _Open, fixed: dict[int, int], random: Random) -> Row:
    """Complete a pair to a row; among alternatives that cover as many open pairs one is drawn."""
    rest = [factor for factor in range(len(open_.sizes)) if factor not in fixed]
    random.shuffle(rest)
    for factor in rest:
        size = open_.sizes[factor]
        if size == 1:
            fixed[factor] = 0
            continue
        gains = [open_.gain(factor, alternative, fixed) for alternative in range(size)]
        best = max(gains)
        fixed[factor] = random.choice([alternative for alternative, gain in enumerate(gains) if gain == best])
    return tuple(fixed[factor] for factor in range(len(open_.sizes)))
