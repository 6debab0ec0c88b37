"""Covering arrays: few rows in which every pair of alternatives of any two factors occurs together at least
once.

A factor is a number of alternatives, a row one alternative of each, by number. Rows are built greedily (as
AETG does: Cohen, Dalal, Fredman, Patton, "The AETG System", 1997): the next pair to cover is fixed, and every
further factor takes the alternative that covers most uncovered pairs. Impossible combinations are not known
beforehand: a row is offered, and may be refused. A pair whose greedy rows are refused waits until the others
are done; then it is completed with pairs that occur together in accepted rows, so that whatever is impossible
is most likely the pair itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

_GREEDY, _SAFE = 2, 16
"""How many rows of either kind are offered for a pair, until it counts as impossible."""
Row = tuple[int, ...]


class Covered(NamedTuple):
    """The rows that were taken; `refused` pairs were found in no possible row, `left` are uncovered because
    the budget was spent."""

    rows: list[Row]
    refused: int
    left: int


def covering(sizes: Sequence[int], take: Callable[[Row], bool], seed: str, budget: int) -> Covered:
    """Return rows that cover every pair that some accepted row can; `take` says whether a row is possible.
    The same seed, the same rows."""
    if len(sizes) < 2:
        alone: list[Row] = [(x,) for x in range(sizes[0])] if sizes else [()]
        taken = [row for row in alone if take(row)]
        return Covered(taken[:budget], 0, max(0, len(taken) - budget))
    starts = list(accumulate(sizes, initial=0))
    owner = [factor for factor, size in enumerate(sizes) for _ in range(size)]
    everything = (1 << starts[-1]) - 1
    # for each alternative, by its place among all, as bits the alternatives of other factors: those that no
    # row has shown it with yet, those that one has, and those with which rows were refused
    unseen = [everything ^ ((1 << starts[factor + 1]) - (1 << starts[factor])) for factor in owner]
    shown, suspect = [0] * len(owner), [0] * len(owner)
    rows: list[Row] = []
    random = Random(seed)

    def greedy(place: int, fixed: int) -> int:
        return (unseen[place] & fixed).bit_count() - len(sizes) * (suspect[place] & fixed).bit_count()

    def safe(place: int, fixed: int) -> int:
        return (shown[place] & fixed).bit_count()

    def found(first: int, second: int, tries: int, worth: Callable[[int, int], int]) -> bool:
        for _ in range(tries):
            places = _row(starts, {owner[first]: first, owner[second]: second}, worth, random)
            row = tuple(place - start for place, start in zip(places, starts, strict=False))
            if take(row):
                rows.append(row)
                together = sum(1 << place for place in places)
                for place in places:
                    unseen[place] &= ~together
                    shown[place] |= together ^ (1 << place)
                return True
        return False

    waiting: list[tuple[int, int]] = []
    for first, factor in enumerate(owner):
        while (later := (unseen[first] & ~suspect[first]) >> starts[factor + 1]) and len(rows) < budget:
            second = starts[factor + 1] + (later & -later).bit_length() - 1
            if not found(first, second, _GREEDY, greedy):
                suspect[first] |= 1 << second
                suspect[second] |= 1 << first
                waiting.append((first, second))
    refused = 0
    for first, second in waiting:
        if unseen[first] >> second & 1 and len(rows) < budget and not found(first, second, _SAFE, safe):
            refused += 1
            unseen[first] &= ~(1 << second)
            unseen[second] &= ~(1 << first)
    return Covered(rows, refused, sum(bits.bit_count() for bits in unseen) // 2)


def _row(
    starts: Sequence[int], fixed: dict[int, int], worth: Callable[[int, int], int], random: Random
) -> list[int]:
    """Complete a pair of alternatives to a row, all by place; among alternatives that are worth as much one
    is drawn."""
    bits = sum(1 << place for place in fixed.values())
    rest = [factor for factor in range(len(starts) - 1) if factor not in fixed]
    random.shuffle(rest)
    for factor in rest:
        start, end = starts[factor], starts[factor + 1]
        draw, place = random.random(), start
        if end - start > 1:  # most factors of a sweep have one alternative
            worths = [worth(place, bits) for place in range(start, end)]
            best = max(worths)
            among = [start + n for n, each in enumerate(worths) if each == best]
            place = among[int(draw * len(among))]
        fixed[factor] = place
        bits |= 1 << place
    return [fixed[factor] for factor in range(len(starts) - 1)]
