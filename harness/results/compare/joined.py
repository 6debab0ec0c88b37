"""Compares two runs: reads both into some numbers a result, joins these by case and target, and reads again only the
results that differ.

Memory grows with what differs, not with the runs.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.errors import UsageError
from harness.model.result import Result, inexpressible
from harness.model.verdict import NOT_EXECUTED
from harness.results.compare.comparison import (
    Change,
    Changed,
    ComparedResult,
    Comparison,
    classify,
    compared_result,
    twice,
)
from harness.results.compare.keyed import JoinedPart, KeyedResults, join, kinds
from harness.results.numbering import Numbering
from harness.results.runfile import RunReader
from harness.results.tables import Tables

_MOST_ULP = (1 << 64) - 1


class ComparedStates:
    """What targets did, as small integers, with whether there is a ULP distance beside it."""

    def __init__(self) -> None:
        self._numbers: Numbering[tuple[ComparedResult, bool, bool]] = Numbering()
        self._known: list[tuple[ComparedResult, bool, bool]] = []

    def number(self, result: Result, provider: str) -> int:
        """Return the number of what a target did with a case, without the ULP distance."""
        did = compared_result(result, provider)
        found = did, inexpressible(result), result.diff is not None and result.diff.max_ulp is not None
        number = self._numbers[found]
        if number == len(self._known):
            self._known.append(found)
        return number

    def did(self, number: int) -> ComparedResult:
        return self._known[number][0]

    def inexpressible(self, number: int) -> bool:
        """Say whether the target's API had no words for the case."""
        return self._known[number][1]

    def measured(self) -> NDArray[np.bool_]:
        """Say of each number whether there is a ULP distance."""
        return np.array([measured for _, _, measured in self._known], dtype=bool)

    def ulp(self, did: tuple[int, int]) -> int | None:
        """Return the ULP distance of a number and the distance beside it."""
        return did[1] if self._known[did[0]][2] else None


class _Difference(NamedTuple):
    """A result that is not the same: the change, and what both runs have of it as numbers."""

    change: Change
    why: tuple[str, ...]
    place: int
    before: tuple[int, int] | None
    after: tuple[int, int] | None


def compare_runs(base: RunReader, head: RunReader) -> Comparison:
    """Compare two runs, as far as they go. Errors: UsageError for a damaged run, a case that occurs twice, or
    no target in common."""
    comparison = Comparison(base.header, head.header)
    states = ComparedStates()
    pairs = comparison.pairs
    differing: dict[int, _Difference] = {}
    missing: dict[int, _Difference] = {}
    with closing(KeyedResults()) as before, closing(KeyedResults()) as after:
        _read(base, comparison.base, {pair.base: place for place, pair in enumerate(pairs)}, states, before)
        _read(head, comparison.head, {pair.head: place for place, pair in enumerate(pairs)}, states, after)
        repeated: dict[str, list[int]] = {"base": [], "head": []}
        for part in join(before, after):
            if isinstance(part, JoinedPart):
                _changes(part, comparison, states, differing)
                _one_sided(part, states, differing, missing)
            else:
                repeated[part[0]].append(part[1])
    for name, run in (("base", base), ("head", head)):
        if repeated[name]:
            raise _twice(run, min(repeated[name]))
    _add(head, differing, comparison, states)
    _add(base, missing, comparison, states)
    return comparison


def _read(
    run: RunReader, tables: Tables, places: dict[str, int], states: ComparedStates, found: KeyedResults
) -> None:
    providers = {name: target.provider for name, target in run.header.targets.items()}
    for line, result in enumerate(run, start=2):
        tables.add(result)
        place = places.get(result.target)
        if place is None:
            continue
        ulp = 0 if result.diff is None or result.diff.max_ulp is None else result.diff.max_ulp
        number = states.number(result, providers[result.target])
        found.add(result.case, place, number, min(ulp, _MOST_ULP), line)
    tables.finish(run.end, truncated=run.truncated)


def _changes(
    part: JoinedPart, comparison: Comparison, states: ComparedStates, differing: dict[int, _Difference]
) -> None:
    """Count the results that are the same, and note the others by HEAD's line."""
    first, second = part.both
    measured = states.measured()
    grew = second["ulp"] > first["ulp"]
    if len(grew):
        grew &= measured[first["state"]] & measured[second["state"]]
    for (was, now, larger, place), rows in kinds(first["state"], second["state"], grew, first["place"]):
        change, why = classify(states.did(was), states.did(now), ulp_grew=bool(larger))
        counts = comparison.counts[comparison.pairs[place]]
        if change is not None:
            for row in rows:
                ulps = int(first["ulp"][row]), int(second["ulp"][row])
                differing[int(second["line"][row])] = _Difference(
                    change, why, place, (was, ulps[0]), (now, ulps[1])
                )
        elif states.did(now).outcome in NOT_EXECUTED:
            counts.neither += 0 if states.inexpressible(now) else len(rows)
        else:
            counts.equal += len(rows)


def _one_sided(
    part: JoinedPart,
    states: ComparedStates,
    differing: dict[int, _Difference],
    missing: dict[int, _Difference],
) -> None:
    """Note what ran in one of the runs alone."""
    for row in part.only_head:
        did = int(row["state"]), int(row["ulp"])
        if states.did(did[0]).outcome not in NOT_EXECUTED:
            differing[int(row["line"])] = _Difference(Change.NEW, (), int(row["place"]), None, did)
    for row in part.only_base:
        did = int(row["state"]), int(row["ulp"])
        if states.did(did[0]).outcome not in NOT_EXECUTED:
            missing[int(row["line"])] = _Difference(Change.MISSING, (), int(row["place"]), did, None)


def _add(
    run: RunReader, found: dict[int, _Difference], comparison: Comparison, states: ComparedStates
) -> None:
    """Read the results that differ again, and count, group and keep them in the order of the file."""
    for line, result in run.again(found):
        change, why, place, before, after = found[line]
        comparison.add(
            Changed(
                change,
                comparison.pairs[place],
                result,
                None if before is None else states.did(before[0]),
                None if after is None else states.did(after[0]),
                None if before is None else states.ulp(before),
                None if after is None else states.ulp(after),
                why,
            )
        )


def _twice(run: RunReader, line: int) -> UsageError:
    ((_, result),) = run.again({line})
    return twice(run, line, result)
