"""The first tables of every report.

The overview is operator × target, one cell each, in the order in which to read the operators. The level table is
operator × target × the feature level at which a case is first allowed: only valid cases have a pass rate; results of
invalid and unspecified cases have their own table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.model.case import BEYOND, Validity
from harness.model.reference.feature_levels import level_key, level_order, table_levels
from harness.model.reference.kernels import directml_operators
from harness.model.verdict import DEFECTS, Reading
from harness.results.tables import Tables
from harness.results.tally import Tally


class LevelRow(NamedTuple):
    """One operator on one target: a tally for each of the table's levels, and their sum.

    `allowed` sums the levels up to `device_level`, the one that the target's device reports; all published
    levels where it reports none.
    """

    operator: str
    target: str
    by_level: dict[str, Tally]
    total: Tally
    allowed: Tally
    device_level: str | None


def levels(tables: Tables) -> list[str]:
    """Return the columns: the levels at which the tables of the run's operators change, any other that
    occurs, and `beyond`."""
    lowered = {name for operator in tables.operators for name in directml_operators(operator)}
    return sorted({*table_levels(lowered), *(cell.level for cell in tables.cells)}, key=level_key)


def level_table(tables: Tables) -> list[LevelRow]:
    """Return a row for each operator and target, zero cells included."""
    cells = tables.by("operator", "target", "level", validity=Validity.VALID)
    totals = tables.by("operator", "target", validity=Validity.VALID)
    columns = levels(tables)
    rows = []
    for operator in tables.operators:
        for target in tables.targets:
            by_level = {level: cells.get((operator, target, level), Tally()) for level in columns}
            reported = tables.header.targets[target].max_feature_level
            device = reported if reported in level_order() else None
            allowed = Tally()
            for level, tally in by_level.items():
                if level != BEYOND and (device is None or level_key(level) <= level_key(device)):
                    allowed.include(tally)
            rows.append(
                LevelRow(operator, target, by_level, totals.get((operator, target), Tally()), allowed, device)
            )
    return rows


def target_levels(rows: Iterable[LevelRow]) -> list[LevelRow]:
    """Sum the rows of the level table over all operators, for each target; their operator is empty."""
    found: dict[str, LevelRow] = {}
    for row in rows:
        sums = found.setdefault(
            row.target,
            LevelRow(
                "", row.target, {level: Tally() for level in row.by_level}, Tally(), Tally(), row.device_level
            ),
        )
        sums.total.include(row.total)
        sums.allowed.include(row.allowed)
        for level, tally in row.by_level.items():
            sums.by_level[level].include(tally)
    return list(found.values())


class ValidityRow(NamedTuple):
    """The results of one target for an operator's cases of one validity."""

    operator: str
    target: str
    validity: Validity
    tally: Tally


def validity_table(tables: Tables) -> list[ValidityRow]:
    """Return the results of targets for invalid and unspecified cases."""
    cells = tables.by("operator", "target", "validity")
    return [
        ValidityRow(operator, target, validity, cells[key])
        for operator in tables.operators
        for target in tables.targets
        for validity in (Validity.INVALID, Validity.UNSPECIFIED)
        if (key := (operator, target, validity)) in cells
    ]


def counts(tally: Tally) -> str:
    """Write every reading but `correct` that occurs: `wrong 3, crashed 1`."""
    return ", ".join(f"{reading.value} {number:,}" for reading, number in tally.others())


def rate(tally: Tally) -> str:
    """Write correct / selected, and a dash where nothing was selected: 100 % of nothing is no rate."""
    return f"{tally.correct:,} / {tally.selected:,}" if tally.selected else "–"


MARKS = {
    "failing": "✗",
    "known": "~",
    "partial": "!",
    "absent": "⊘",
    "unjudged": "?",
    "pass": "✓",
    "none": "–",
}
"""The sign of each state of a cell, the worst first; the same in every report."""
STATUS_WORDS = {
    "failing": "unexpected results",
    "known": "known defects",
    "partial": "not all supported",
    "absent": "not supported",
    "unjudged": "not all judged",
    "pass": "all correct",
    "none": "no case",
}


def status(tally: Tally) -> str:
    """Name the state of a cell, by the worst that is in it: a key of `MARKS`."""
    if not tally.selected:
        return "none"
    if tally.unexpected:
        return "failing"
    if tally.defects:
        return "known"
    if tally[Reading.NOT_SUPPORTED]:
        return "partial" if tally.correct else "absent"
    return "unjudged" if tally[Reading.NOT_JUDGED] else "pass"


def telling_number(tally: Tally) -> int:
    """Count the results that give a cell its state."""
    return {
        "failing": tally.unexpected,
        "known": tally.defects,
        "partial": tally[Reading.NOT_SUPPORTED],
        "absent": tally[Reading.NOT_SUPPORTED],
        "unjudged": tally[Reading.NOT_JUDGED],
    }.get(status(tally), 0)


def legend(tallies: Iterable[Tally]) -> str:
    """Explain the signs of these cells: `~ known defects · ✓ all correct`."""
    found = {status(tally) for tally in tallies}
    return " · ".join(f"{MARKS[state]} {words}" for state, words in STATUS_WORDS.items() if state in found)


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
            found = kinds.setdefault(operator, {})
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
    """Say whether there are too many operators to show a row for each unfolded."""
    return len(tables.operators) > MANY
