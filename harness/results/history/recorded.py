"""Many runs as one table of columns: the result of each case on each target of each run, and counts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from harness.model.case import BEYOND, Validity
from harness.model.header import Header
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome, Reading
from harness.results.columns import ASKED, Dataset, key, rows_of, sql_text
from harness.results.runfile import RunReader, miscounted
from harness.results.summary import missing

INVALID = "invalid"
"""Stands in place of a level for the cases that the specification forbids."""
UNSPECIFIED = "unspecified"
"""The same for those that it leaves open."""
_LEVEL = f"CASE validity WHEN 'valid' THEN coalesce(levels['directml'], '{BEYOND}') ELSE validity END"


class RecordedResult(NamedTuple):
    """The result of a case on a target in one run."""

    validity: Validity
    outcome: Outcome
    error: str
    """The error's class, or empty."""


class Rate(NamedTuple):
    """Results that are correct, of those that are judged."""

    correct: int
    judged: int


def rate_of(readings: Mapping[Reading, int]) -> Rate:
    """Return which part of these results is correct."""
    judged = sum(number for reading, number in readings.items() if reading is not Reading.NOT_JUDGED)
    return Rate(readings.get(Reading.CORRECT, 0), judged)


class Point(NamedTuple):
    """One target of one run; `whole` is False for a run that was cut off, or merged without a shard. `counts` are by level and reading, of
    valid cases and of those that are `INVALID` or `UNSPECIFIED`."""

    number: int
    header: Header
    whole: bool
    target: str
    counts: dict[str, Counter[Reading]]
    seconds: float = 0
    """How long the whole run took."""

    @property
    def rates(self) -> dict[str, Rate]:
        """The rates by level, and of `INVALID` cases."""
        return {level: rate_of(of) for level, of in self.counts.items() if level != UNSPECIFIED}

    @property
    def readings(self) -> Counter[Reading]:
        """How many results have each reading."""
        total: Counter[Reading] = Counter()
        for of in self.counts.values():
            total.update(of)
        return total

    @property
    def info(self) -> TargetInfo:
        return self.header.targets[self.target]


class RecordedRuns:
    """Runs and their results."""

    def __init__(self) -> None:
        self._data = Dataset("history", scanned=True)
        self._points: list[Point] = []
        self._operators: dict[str, dict[int, Counter[Reading]]] = {}

    def __enter__(self) -> RecordedRuns:
        self._data.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._data.__exit__(*error)

    def add(self, run: RunReader) -> None:
        """Add a run whole or not at all. Errors: UsageError for a damaged run, or a case that is in it twice."""
        with self._data.part(run) as part:
            groups = part.rows(
                f"operator, target, {_LEVEL}, validity, outcome, verdict, reading, placed_on, {ASKED}, count(*)",
                "GROUP BY ALL ORDER BY ALL",
            )
            case = key("target", '"case"')
            ((doubled,),) = part.rows(f"count(*) - count(DISTINCT {case})")
            if doubled:
                _find_twice(run)
            found: Counter[str] = Counter()
            points = {
                target: Point(len(self._points) + number, run.header, True, target, {})
                for number, target in enumerate(run.header.targets)
            }
            operators = []
            for operator, target, level, *words, asked, number in groups:
                validity, outcome, verdict, reading, placed_on = words
                found.update({outcome: number, verdict: number})
                provider = points[target].info.provider
                if outcome == Outcome.PASS.value and placed_on != provider:
                    raise ValueError(f"pass on {placed_on}, but {target} is {provider}")
                if asked:
                    Validity(validity), Outcome(outcome)
                    point = points[target]
                    point.counts.setdefault(level, Counter())[Reading(reading)] += number
                    operators.append((operator, point.number, Reading(reading), number))
            if part.end is not None and (why := miscounted(part.end, found)):
                raise ValueError(why)
        held = sum(point.readings.total() for point in points.values())
        whole = not missing(run.header, part.end, held)
        self._points += [
            point._replace(whole=whole, seconds=part.end.seconds if part.end else 0)
            for point in points.values()
        ]
        for operator, at, reading, number in operators:
            self._operators.setdefault(operator, {}).setdefault(at, Counter())[reading] += number

    def points(self) -> list[Point]:
        """Return every target of every run, in the order of the run ids: they begin with the time in UTC."""
        return sorted(self._points, key=lambda point: point.header.run_id)

    def results(
        self, wanted: Callable[[str], bool], case: str | None = None
    ) -> Iterator[tuple[str, dict[int, RecordedResult]]]:
        """Yield each wanted case, by id, with its results by the number of the point; `case` names the only one."""
        points = ", ".join(
            f"({sql_text(point.header.run_id)}, {sql_text(point.target)}, {point.number})"
            for point in self._points
        )

        @cache
        def state(validity: str, outcome: str, error: str) -> RecordedResult:
            return RecordedResult(Validity(validity), Outcome(outcome), error)

        one = "" if case is None else f'AND "case" = {sql_text(case)}'
        rows = rows_of(
            self._data.sql,
            f"""
            SELECT "case", number, validity, outcome, left(coalesce(error.class, ''), 200)
            FROM results JOIN (VALUES {points}) AS points(run, target, number) USING (run, target)
            WHERE {ASKED} {one} ORDER BY "case", number
            """,
        )
        for name, found in groupby(rows, key=lambda row: row[0]):
            if wanted(name):
                yield name, {number: state(*columns) for _, number, *columns in found}

    def operators(self) -> dict[str, dict[int, Rate]]:
        """Return for each operator, by the numbers of points, how many of its results are correct, and judged."""
        return {
            operator: {point: rate for point, readings in of.items() if (rate := rate_of(readings)).judged}
            for operator, of in sorted(self._operators.items())
        }


def _find_twice(run: RunReader) -> None:
    met: set[tuple[str, str]] = set()
    for number, result in enumerate(RunReader(run.path), start=2):
        if (result.case, result.target) in met:
            raise run.twice(number, result)
        met.add((result.case, result.target))
