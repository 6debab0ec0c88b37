"""The level table: operator × target × the feature level at which a case is first allowed.

Only valid cases have a pass rate; results of invalid and unspecified cases have their own table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.model.case import BEYOND, Validity
from harness.model.reference.feature_levels import level_key, level_order, table_levels
from harness.model.reference.kernels import directml_operators
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


class TargetLevels(NamedTuple):
    """One target: the sums of its rows of the level table."""

    target: str
    by_level: dict[str, Tally]
    total: Tally
    allowed: Tally
    device_level: str | None


def target_levels(rows: Iterable[LevelRow]) -> list[TargetLevels]:
    """Sum the rows of the level table over all operators."""
    found: dict[str, TargetLevels] = {}
    for row in rows:
        sums = found.setdefault(
            row.target,
            TargetLevels(
                row.target, {level: Tally() for level in row.by_level}, Tally(), Tally(), row.device_level
            ),
        )
        sums.total.include(row.total)
        sums.allowed.include(row.allowed)
        for level, tally in row.by_level.items():
            sums.by_level[level].include(tally)
    return list(found.values())


class ValidityRow(NamedTuple):
    """What one target did with an operator's cases of one validity."""

    operator: str
    target: str
    validity: Validity
    tally: Tally


def validity_table(tables: Tables) -> list[ValidityRow]:
    """Return what targets did with invalid and unspecified cases."""
    cells = tables.by("operator", "target", "validity")
    return [
        ValidityRow(operator, target, validity, cells[key])
        for operator in tables.operators
        for target in tables.targets
        for validity in (Validity.INVALID, Validity.UNSPECIFIED)
        if (key := (operator, target, validity)) in cells
    ]


def counts(tally: Tally) -> str:
    """Write every outcome but `pass` that occurred: `rejected 3, crash 1`."""
    said = [f"{outcome.value} {number:,}" for outcome, number in tally.others()]
    return ", ".join([*said, *apart(tally)])


def apart(tally: Tally) -> list[str]:
    """Write how many results count apart, by reason: `no elements 12`."""
    reasons = {"nothing claimed": tally.unclaimed, "no elements": tally.empty, "refused by core": tally.core}
    return [f"{why} {number:,}" for why, number in reasons.items() if number]


def rate(tally: Tally) -> str:
    """Write passed / selected, and a dash where nothing was selected: 100 % of nothing is no rate."""
    return f"{tally.passed:,} / {tally.selected:,}" if tally.selected else "–"


def status(tally: Tally) -> str:
    """Name the state of a cell: `none`, `absent` (nothing ran), `pass`, `failing`, `known`, `partial` or
    `unclaimed`.

    `known` cells hold only expected deviations beside their passes, `partial` ones miss results that did not
    run, and `unclaimed` ones hold results of which nothing is claimed, or no result with an element.
    """
    if not tally.selected:
        return "none"
    if not tally.run:
        return "absent"
    if tally.failing:
        return "failing"
    if tally.known:
        return "known"
    if tally.unclaimed or (tally.empty and not tally.conforming):
        return "unclaimed"
    return "pass" if tally.run == tally.selected else "partial"


def telling_number(tally: Tally) -> int:
    """Count the results that give a cell its state (`status`): what fails, deviates, tests nothing or did not
    run; 0 where all pass and where nothing ran."""
    return {
        "failing": tally.failing,
        "known": tally.known,
        "unclaimed": tally.unclaimed,
        "partial": tally.selected - tally.run,
    }.get(status(tally), 0)


STATUS_WORDS = {
    "none": "no case",
    "absent": "nothing ran",
    "pass": "all pass",
    "failing": "has unexpected results",
    "known": "has known deviations",
    "partial": "not all ran",
    "unclaimed": "some test nothing",
}
