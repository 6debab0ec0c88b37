"""Numbers of a target over runs: results, defects, time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.model.verdict import DEFECTS
from harness.results.history.runs import Moment


class Trend(NamedTuple):
    """One number of a target, in the order of its runs or releases."""

    target: str
    what: str
    """`results`, `correct in percent`, `defects` or `seconds`."""
    points: tuple[tuple[str, float], ...]
    """What each value is of, a time or a release, and the value."""


def trends(target: str, moments: Iterable[Moment], *, by_release: bool = False) -> list[Trend]:
    """Return the trends of a target; none of fewer than two whole runs, since a run that was cut off has fewer of everything.

    `by_release` takes the run of each release that has most results, and leaves out the time, which other machines may have taken.
    """
    whole = [moment for moment in moments if moment.point.whole and moment.point.readings.total()]
    if by_release:
        most: dict[str, Moment] = {}
        for moment in whole:
            other = most.get(moment.version)
            if other is None or other.point.readings.total() <= moment.point.readings.total():
                most[moment.version] = moment
        whole = list(most.values())
    if len(whole) < 2:
        return []
    values: dict[str, list[float]] = {}
    for moment in whole:
        readings, point = moment.point.readings, moment.point
        judged = sum(rate.judged for rate in point.rates.values())
        values.setdefault("results", []).append(readings.total())
        values.setdefault("correct in percent", []).append(
            round(100 * sum(rate.correct for rate in point.rates.values()) / judged, 1) if judged else 0
        )
        values.setdefault("defects", []).append(sum(readings[reading] for reading in DEFECTS))
        if not by_release:
            values.setdefault("seconds", []).append(point.seconds)
    names = [moment.version if by_release else moment.when for moment in whole]
    return [Trend(target, what, tuple(zip(names, found, strict=True))) for what, found in values.items()]
