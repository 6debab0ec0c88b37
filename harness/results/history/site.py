"""Gathers the data of a site of many runs: the counts of each operator on each target and release, and the history of
every case that deviates or has deviated.

Counts are those of
`Tables`; of results only those stay in memory that deviate, the newest of each case and target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.facets import Spread, dtype_key, facets
from harness.model.header import Expectation, Header
from harness.model.reference.feature_levels import level_key
from harness.model.result import Result, inexpressible
from harness.model.verdict import NOT_EXECUTED
from harness.results.history.findings import Finding, trace
from harness.results.history.recorded import RecordedRuns
from harness.results.history.runs import Moment, line_of, release_order, timelines
from harness.results.history.summary import History, limits
from harness.results.level_table import status
from harness.results.runfile import RunReader
from harness.results.summary import Summary, summarize
from harness.results.tables import Tables
from harness.results.tally import Tally
from harness.results.unexpected import clipped


class OperatorCounts(NamedTuple):
    """The counts of an operator's cases on a target in one run: of all cases, of the valid ones by the level that
    first allows them and by the element type of the first input, and of the invalid ones."""

    total: Tally
    by_level: dict[str, Tally]
    by_type: dict[str, Tally]
    invalid: Tally

    @property
    def facts(self) -> tuple[object, ...]:
        """The facts that are equal if nothing changed."""
        tallies = (self.total, self.invalid, *self.by_level.values())
        return tuple(self.by_level), *((each.selected, each.outcomes, each.verdicts) for each in tallies)


class CountedRun(NamedTuple):
    """One run: its verdict, the tally of each target, and the counts of each target's operators."""

    header: Header
    summary: Summary
    totals: dict[str, Tally]
    counts: dict[str, dict[str, OperatorCounts]]


class Deviation(NamedTuple):
    """A result that does not conform or is unexpected, with the entry that expects it; `red` is what turns
    its run red."""

    result: Result
    entry: Expectation | None
    red: bool


class CaseStory(NamedTuple):
    """A case on a target: since when it fails, None where it never ran and failed; and its newest
    deviation."""

    target: str
    finding: Finding | None
    newest: Deviation

    @property
    def key(self) -> tuple[object, ...]:
        """The common facts of the cases of one group."""
        result, entry, _ = self.newest
        error = result.error.class_ if result.error else ""
        name = entry.name if entry else ""
        return self.target, self.finding and self.finding.key, result.outcome, error, result.verdict, name

    @property
    def over(self) -> bool:
        """Say whether the case conforms again."""
        return self.finding is not None and self.finding.until is not None


@dataclass
class StoryGroup(Spread):
    """Cases of an operator with the same stories; those of the first one stand for all."""

    stories: tuple[CaseStory, ...]
    cases: list[tuple[str, tuple[CaseStory, ...]]]

    @property
    def over(self) -> bool:
        return all(story.over for story in self.stories)

    @property
    def failing(self) -> bool:
        """Say whether the newest results of these cases turn a run red."""
        return any(story.newest.red and not story.over for story in self.stories)


def deviation(result: Result, header: Header) -> Deviation | None:
    """Return a result that has a place of its own in a site, None for any other."""
    if inexpressible(result):
        return None
    baseline = header.baseline is not None
    red = result.unexpected(baseline=baseline)
    ran = result.outcome not in NOT_EXECUTED
    if not red and (not ran or result.conforms):
        return None
    return Deviation(clipped(result), header.entry(result.expectation), red)


class SiteRuns:
    """Counts runs in any order."""

    def __init__(self) -> None:
        self.runs: dict[str, CountedRun] = {}
        self._deviations: dict[tuple[str, str], tuple[tuple[object, ...], Deviation]] = {}

    def count(self, path: Path) -> None:
        """Take the counts of a whole run, and its deviations by case and target with their place in time. Errors:
        UsageError."""
        run = RunReader(path)
        header = run.header
        tables = Tables(header, across_targets=False, whole_names=True)
        order = {target: release_order(header, target) for target in header.targets}
        for result in run:
            tables.add(result)
            if what := deviation(result, header):
                key = result.case, line_of(result.target)
                found = order[result.target], what
                if key not in self._deviations or self._deviations[key][0] <= found[0]:
                    self._deviations[key] = found
        tables.finish(run.end, truncated=run.truncated)
        totals = {target: tables.tally(target=target) for target in tables.targets}
        self.runs[header.run_id] = CountedRun(header, summarize(tables), totals, _counts(tables))

    def site(self, recorded: RecordedRuns) -> Site:
        """Return what the site shows, of runs that are all in the recorded."""
        lines = timelines(recorded.points(), by_release=True)
        return Site(History(lines, tuple(limits(lines))), self.runs, self._groups(recorded, lines))

    def _groups(self, recorded: RecordedRuns, lines: dict[str, list[Moment]]) -> dict[str, list[StoryGroup]]:
        """Group the cases that deviate, by operator: what turns a run red first, then the largest groups, and
        last what conforms again."""
        found: dict[str, dict[tuple[object, ...], StoryGroup]] = {}
        cases = {case for case, _ in self._deviations}
        for name, by_run in recorded.results(cases.__contains__):
            stories = tuple(
                CaseStory(line, trace(moments, by_run), self._deviations[name, line][1])
                for line, moments in lines.items()
                if (name, line) in self._deviations
            )
            read = facets(name)
            groups = found.setdefault(read.operator, {})
            key = tuple(story.key for story in stories)
            group = groups.setdefault(key, StoryGroup(stories, []))
            group.cases.append((name, stories))
            group.count(read)
        for groups in found.values():
            for group in groups.values():
                group.cases.sort(key=lambda case: case[0])
        return {operator: sorted(groups.values(), key=_order) for operator, groups in found.items()}


def _order(group: StoryGroup) -> tuple[bool, bool, int, str]:
    return not group.failing, group.over, -group.number, group.cases[0][0]


def _counts(tables: Tables) -> dict[str, dict[str, OperatorCounts]]:
    """Return the counts of every operator of each target."""
    found: dict[str, dict[str, OperatorCounts]] = {target: {} for target in tables.targets}
    invalid = tables.by("operator", "target", validity=Validity.INVALID)
    for (operator, target), tally in tables.by("operator", "target").items():
        of = OperatorCounts(tally, {}, {}, invalid.get((operator, target), Tally()))
        found[target][operator] = of
    by_level = tables.by("operator", "target", "level", validity=Validity.VALID)
    for (operator, target, level), tally in by_level.items():
        found[target][operator].by_level[level] = tally
    by_type = tables.by("operator", "target", "dtype", validity=Validity.VALID, variant="")
    for (operator, target, dtype), tally in by_type.items():
        found[target][operator].by_type[dtype] = tally
    return found


class ReleaseColumn(NamedTuple):
    """A target in a release, `moments` in the order of its runs."""

    target: str
    version: str
    moments: tuple[Moment, ...]


class SiteCell(NamedTuple):
    """The counts of an operator in a release; `partial` names the part of its cases that was run, empty for all."""

    tally: Tally
    partial: str


class OperatorRow(NamedTuple):
    """Neighbouring moments in which an operator had the same results on a target; `first` and `last` are the ends of
    `runs` of them."""

    first: Moment
    last: Moment
    runs: int
    counts: OperatorCounts


class Site:
    """What the pages show, of `runs` by their ids; `groups` are of the cases that deviate, by operator."""

    def __init__(
        self, history: History, runs: Mapping[str, CountedRun], groups: Mapping[str, Sequence[StoryGroup]]
    ) -> None:
        self.history = history
        self.runs = dict(sorted(runs.items()))
        self.groups = groups

    @property
    def targets(self) -> list[str]:
        """The targets without their releases."""
        return list(self.history.lines)

    @cached_property
    def operators(self) -> list[str]:
        return sorted({name for run in self.runs.values() for of in run.counts.values() for name in of})

    @cached_property
    def levels(self) -> list[str]:
        """The feature levels that occur."""
        counts = (of for run in self.runs.values() for named in run.counts.values() for of in named.values())
        return sorted({level for each in counts for level in each.by_level}, key=level_key)

    @cached_property
    def columns(self) -> list[ReleaseColumn]:
        """The releases of each target, oldest first; one that never was available has one column."""
        found = []
        for target, moments in self.history.lines.items():
            here = [moment for moment in moments if not moment.point.info.unavailable]
            for version, of in groupby(here or moments[-1:], key=lambda moment: moment.version):
                found.append(ReleaseColumn(target, version, tuple(of)))
        return found

    def of(self, moment: Moment) -> Mapping[str, OperatorCounts]:
        """Return the counts of every operator that a run has on a target."""
        return self.runs[moment.run_id].counts[moment.point.target]

    def total(self, moment: Moment) -> Tally:
        """Return the counts of a target in a run."""
        return self.runs[moment.run_id].totals[moment.point.target]

    def cell(self, operator: str, column: ReleaseColumn) -> SiteCell:
        """Count an operator in the run of a column that has most of its results, the newest of several; a run in
        which cases of it were executed is preferred."""
        found = self._most(operator, column)
        if found is None:
            return SiteCell(Tally(), "")
        moment, tally = found
        most = max(of.selected for _, of in self._held(operator, self.history.lines[column.target]))
        if tally.selected < most:
            return SiteCell(tally, f"part: {tally.selected:,} of {most:,}")
        return SiteCell(tally, "" if moment.point.whole else "part")

    def _held(self, operator: str, moments: Sequence[Moment]) -> list[tuple[Moment, Tally]]:
        """Return the counts of an operator in each of these that has it, the newest first."""
        return [
            (moment, found.total) for moment in reversed(moments) if (found := self.of(moment).get(operator))
        ]

    def _most(self, operator: str, column: ReleaseColumn) -> tuple[Moment, Tally] | None:
        """Return the run of a column that has most of an operator's results, and their counts."""
        found = self._held(operator, column.moments)
        return max(found, key=lambda each: (each[1].run > 0, each[1].selected), default=None)

    def type_cell(self, operator: str, column: ReleaseColumn, dtype: str) -> SiteCell:
        """Count the valid cases of an operator with an element type, in the run that `cell` takes."""
        found = self._most(operator, column)
        return SiteCell((self.of(found[0])[operator].by_type if found else {}).get(dtype, Tally()), "")

    @cached_property
    def types(self) -> dict[str, list[str]]:
        """The element types of each operator's valid cases."""
        found: dict[str, set[str]] = {operator: set() for operator in self.operators}
        for run in self.runs.values():
            for of in run.counts.values():
                for operator, counts in of.items():
                    found[operator].update(counts.by_type.keys() - {""})
        return {operator: sorted(of, key=dtype_key) for operator, of in found.items()}

    @cached_property
    def newest(self) -> list[ReleaseColumn]:
        """The newest release of each target."""
        return list({column.target: column for column in self.columns}.values())

    def rows(self, operator: str, target: str) -> list[OperatorRow]:
        """Return an operator's history on a target, oldest first, equal neighbours folded."""
        lines = self.history.lines[target]
        held = [(moment, counts) for moment in lines if (counts := self.of(moment).get(operator)) is not None]
        folded = groupby(held, key=lambda each: (each[0].version, each[1].facts))
        alike = [list(of) for _, of in folded]
        return [OperatorRow(of[0][0], of[-1][0], len(of), of[0][1]) for of in alike]


def worst_first(site: Site, columns: Iterable[ReleaseColumn]) -> list[str]:
    """Order operators: those with unexpected results in the newest release of a target first, each part by
    name."""
    newest = {column.target: column for column in columns}.values()
    failing = {
        name
        for name in site.operators
        if any(status(site.cell(name, column).tally) == "failing" for column in newest)
    }
    return sorted(site.operators, key=lambda name: (name not in failing, name))
