"""The first table of every report: operator × target, one cell each, and the order in which to read the
operators."""

from __future__ import annotations

from typing import NamedTuple

from harness.model.case import Validity
from harness.model.verdict import DEFECTS
from harness.results.level_table import MARKS, status
from harness.results.tables import Tables
from harness.results.tally import Tally

MANY = 12
"""Operators from which reports fold what stands for each of them."""
_WORST = list(MARKS)


class OverviewRow(NamedTuple):
    """An operator: all its cases on each target, invalid and unspecified ones included, and their sum.

    `kinds` are the element types × ranks of the first input that valid and unspecified cases have: how many ran on
    a target, and how many were selected.
    """

    operator: str
    by_target: dict[str, Tally]
    total: Tally
    kinds: tuple[int, int]

    @property
    def status(self) -> str:
        """The worst state among the targets."""
        return min((status(tally) for tally in self.by_target.values()), key=_WORST.index)


def overview(tables: Tables) -> list[OverviewRow]:
    """Return a row for each operator: those with the most unexpected results first, then the most wrong,
    crashed and accepted ones, then by name."""
    cells = tables.by("operator", "target")
    totals = tables.by("operator")
    kinds: dict[str, dict[tuple[object, ...], bool]] = {}
    for (operator, validity, *kind), tally in tables.by("operator", "validity", "dtype", "rank").items():
        if validity is not Validity.INVALID:
            found = kinds.setdefault(str(operator), {})
            found[tuple(kind)] = found.get(tuple(kind), False) or tally.run > 0
    rows = [
        OverviewRow(
            operator,
            {target: cells.get((operator, target), Tally()) for target in tables.targets},
            totals[(operator,)],
            (sum(kinds.get(operator, {}).values()), len(kinds.get(operator, {}))),
        )
        for operator in tables.operators
    ]
    return sorted(
        rows, key=lambda row: (-row.total.unexpected, *(-row.total[each] for each in DEFECTS), row.operator)
    )


def many(tables: Tables) -> bool:
    """Say whether there are so many operators that what stands for each of them is folded."""
    return len(tables.operators) > MANY
