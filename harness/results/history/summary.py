"""Summarises a history for every rendering: which runs there are, what limits the answer, and each answer in
a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from harness.model.reference.feature_levels import level_key
from harness.results.history.findings import Finding, FindingGroup, Flip
from harness.results.history.recorded import INVALID, UNSPECIFIED, Rate, RecordedResult
from harness.results.history.runs import HistoryRow, Moment, differing, rows
from harness.results.summary import count, some

_INPUTS = ("specs", "oracle", "seed")


class Course(NamedTuple):
    """An operator's rates in the order of runs, by target."""

    operator: str
    by_target: dict[str, list[Rate]]

    @property
    def changed(self) -> bool:
        """Say whether a rate differs from the one before."""
        return any(len(set(rates)) > 1 for rates in self.by_target.values())


class History(NamedTuple):
    """The answer. `since` and `stand` are None where it was not asked since when cases fail, `flips` where
    not which cases flip.

    `asked` is the case or the queries; `story` is a single case's changes on each target.
    """

    lines: dict[str, list[Moment]]
    remarks: tuple[str, ...]
    asked: str = ""
    since: list[FindingGroup] | None = None
    stand: Counter[str] | None = None
    story: dict[str, list[tuple[Moment, RecordedResult]]] | None = None
    flips: list[Flip] | None = None
    flips_number: int = 0
    operators: Mapping[str, dict[int, Rate]] = MappingProxyType({})
    """For each operator, by the numbers of points, how many results are correct."""

    def courses(self) -> list[Course]:
        """Return each operator's rates on each target that has several runs, those that changed first."""
        found = []
        for operator, rates in self.operators.items():
            by_target = {}
            for target, moments in self.lines.items():
                course = [rate for moment in moments if (rate := rates.get(moment.point.number)) is not None]
                if len(course) > 1:
                    by_target[target] = course
            if by_target:
                found.append(Course(operator, by_target))
        return sorted(found, key=lambda course: (not course.changed, course.operator))

    @property
    def moments(self) -> list[Moment]:
        """Every moment, target by target."""
        return [moment for moments in self.lines.values() for moment in moments]

    @property
    def levels(self) -> list[str]:
        """The columns of the counts: the levels that occur."""
        return sorted(
            {level for moment in self.moments for level in moment.point.counts} - {INVALID, UNSPECIFIED},
            key=level_key,
        )

    @property
    def has_invalid(self) -> bool:
        """Say whether a column for invalid cases is needed."""
        return any(INVALID in moment.point.counts for moment in self.moments)

    @property
    def rows(self) -> dict[str, list[HistoryRow]]:
        """Pass counts of each target, equal neighbours folded."""
        return {target: rows(moments) for target, moments in self.lines.items()}


def limits(lines: dict[str, list[Moment]]) -> list[str]:
    """Name the runs that are cut off, the targets that were not run, and the runs whose inputs differ."""
    moments = sorted(
        (moment for found in lines.values() for moment in found), key=lambda moment: moment.run_id
    )
    runs = {moment.run_id: moment for moment in moments}
    found = [
        f"{name} is incomplete: only what is in it is counted."
        for name, moment in runs.items()
        if not moment.point.whole
    ]
    absent = [moment for moment in moments if moment.point.info.unavailable]
    found += [f"{moment.target} was not available in {moment.run_id}." for moment in absent[:3]]
    if len(absent) > 3:
        found.append(f"and {count(len(absent) - 3, 'more run')} without a target that it names.")
    for name in _INPUTS:
        turns = [
            later.run_id for earlier, later in pairwise(runs.values()) if name in differing(earlier, later)
        ]
        if turns:
            verb = "differs" if name in ("oracle", "seed") else "differ"
            found.append(
                f"The {name} {verb} from the run before in {some(turns, 3)}: only cases with the same id are compared."
            )
    return found


def headline(history: History) -> str:
    """Count the runs and name their time span."""
    ids = sorted({moment.run_id: moment.when for moment in history.moments}.items())
    first, last = ids[0][1], ids[-1][1]
    span = f"{first} UTC" if first == last else f"{first} to {last} UTC"
    return f"{count(len(ids), 'run')} of {count(len(history.lines), 'target')}, {span}"


def result_text(what: RecordedResult | None) -> str:
    """Write an outcome: `rejected (InvalidArgument)`."""
    if what is None:
        return ""
    return what.outcome.value + (f" ({what.error})" if what.error else "")


def at(moment: Moment) -> str:
    """Write with which releases and when: `1.24.2 (2026-11-21 01:13)`."""
    return f"{moment.version} ({moment.when})"


def sentence(finding: Finding) -> str:
    """Say since when cases with this finding fail, or failed."""
    since, until = finding.since, finding.until
    failing = f"failed from {at(since)}, correct since {at(until)}" if until else f"fails since {at(since)}"
    earlier = f"last correct on {at(finding.last_good)}" if finding.last_good else "never correct before"
    return f"{failing}; {earlier}"


def explained(finding: Finding) -> str:
    """Name what differs between the two runs of the newest change, with the values that are short enough to
    read."""
    if finding.turn is None:
        return ""
    before, after = finding.turn
    names = differing(before, after)
    if not names:
        return "nothing that the run files record differs between the two runs"
    then, now = before.facts, after.facts
    shown = [
        f"{name} {then[name] or 'none'} → {now[name] or 'none'}" if len(then[name] + now[name]) < 60 else name
        for name in names
    ]
    return f"what differs: {', '.join(shown)}"


def standing(history: History) -> str:
    """Count how the asked cases stand, over all targets."""
    stand = history.stand or Counter()
    words = [
        f"{stand[name]:,} {name}" for name in ("failing", "correct again", "never failed") if stand[name]
    ]
    return f"{count(stand.total(), 'case × target', 'cases × targets')}: {', '.join(words)}"


def flipping(history: History) -> str:
    """Say how many cases flip."""
    if not history.flips_number:
        return "No case flips: none comes back to an earlier outcome while versions, machine, specs, oracle and seed stay the same."
    number = count(history.flips_number, "case flips", "cases flip")
    return (
        f"{number}: back to an earlier outcome while versions, machine, specs, oracle and seed stay the same."
    )


def seen(flip: Flip) -> str:
    """Write how often each outcome was seen."""
    return ", ".join(f"{result_text(what)} {number}" for what, number in flip.seen)
