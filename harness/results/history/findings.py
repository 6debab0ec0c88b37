"""Finds changes over time: since when cases fail, and which flip.

Only cases that ran count. Cases are matched by their ids; other differences between two runs are listed
beside the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.facets import Spread, facets
from harness.model.verdict import NOT_EXECUTED, conforms
from harness.results.history.recorded import RecordedResult, RecordedRuns
from harness.results.history.runs import Moment

GROUPS = 2000
FLIPS = 2000
"""Flips kept, those with the most changes."""


class Finding(NamedTuple):
    """The moment since which cases fail on a target, or at which they last failed.

    `last_good` is None where no earlier run has the case conforming; `until` is the first conforming moment
    after the failures, None while it fails. `turn` are the moments before and after the newest of these
    changes, None where there is no moment before.
    """

    target: str
    validity: Validity
    since: Moment
    last_good: Moment | None
    until: Moment | None
    before: RecordedResult | None
    after: RecordedResult
    turn: tuple[Moment, Moment] | None

    @property
    def key(self) -> tuple[object, ...]:
        """The common facts of the cases of one group."""
        moments = (moment and moment.point.number for moment in (self.since, self.last_good, self.until))
        return self.target, self.validity, *moments, self.before, self.after


@dataclass
class FindingGroup(Spread):
    """Cases with the same finding; `example` is the first of them by id."""

    finding: Finding
    operator: str
    example: str

    @property
    def cases(self) -> str:
        return self.which(self.operator)


def trace(moments: Sequence[Moment], by_run: dict[int, RecordedResult]) -> Finding | None:
    """Find the last stretch of failures: the first failing moment after the last conforming one. None if it
    never failed."""
    ran = _ran(moments, by_run)
    good = [conforms(what.validity, what.outcome) for _, what in ran]
    if all(good):
        return None
    last = max(place for place, each in enumerate(good) if not each)
    first = max((place for place in range(last) if good[place]), default=-1) + 1
    since, after = ran[first]
    before = ran[first - 1] if first else None
    until = ran[last + 1][0] if last + 1 < len(ran) else None
    turn = (ran[last][0], until) if until else (before[0], since) if before else None
    return Finding(
        since.target, after.validity, since, before and before[0], until, before and before[1], after, turn
    )


def _ran(moments: Iterable[Moment], by_run: dict[int, RecordedResult]) -> list[tuple[Moment, RecordedResult]]:
    found = ((moment, by_run.get(moment.point.number)) for moment in moments)
    return [(moment, what) for moment, what in found if what is not None and what.outcome not in NOT_EXECUTED]


def changes(
    moments: Sequence[Moment], by_run: dict[int, RecordedResult]
) -> list[tuple[Moment, RecordedResult]]:
    """Return what ran of a case where it is not the same as before, the first one included."""
    ran = _ran(moments, by_run)
    return ran[:1] + [later for earlier, later in pairwise(ran) if earlier[1] != later[1]]


class Flip(NamedTuple):
    """A case that returned to an earlier outcome on one target with nothing else changed. `seen` counts by (outcome,
    error class)."""

    target: str
    case: str
    version: str
    changes: int
    runs: int
    seen: tuple[tuple[RecordedResult, int], ...]
    last: Moment


def alike(moments: Iterable[Moment]) -> list[list[Moment]]:
    """Put together the moments that have the same versions, machine, specs, oracle and seed."""
    found: dict[tuple[str, ...], list[Moment]] = {}
    for moment in moments:
        found.setdefault(tuple(moment.facts.values()), []).append(moment)
    return [together for together in found.values() if len(together) > 2]


def flips_of(
    case: str, kinds: Iterable[Sequence[Moment]], by_run: dict[int, RecordedResult]
) -> Iterator[Flip]:
    """Yield the flips of a case within each of the lists that `alike` makes."""
    for moments in kinds:
        found = _ran(moments, by_run)
        turned = sum(earlier[1] != later[1] for earlier, later in pairwise(found))
        if found and turned >= len({what for _, what in found}):
            last = found[-1][0]
            seen = Counter(what for _, what in found)
            yield Flip(last.target, case, last.version, turned, len(found), tuple(seen.most_common()), last)


def all_flips(
    recorded: RecordedRuns,
    lines: dict[str, list[Moment]],
    wanted: Callable[[str], bool],
    case: str | None = None,
) -> tuple[list[Flip], int]:
    """Return the flips of all wanted cases, most changes first, as many as are kept, and their number."""
    kept: list[Flip] = []
    number = 0
    kinds = [together for moments in lines.values() for together in alike(moments)]
    for name, by_run in recorded.results(wanted, case):
        if len(set(by_run.values())) == 1:
            continue
        for flip in flips_of(name, kinds, by_run):
            number += 1
            kept.append(flip)
            if len(kept) >= 2 * FLIPS:
                kept = sorted(kept, key=_most)[:FLIPS]
    return sorted(kept, key=_most)[:FLIPS], number


def _most(flip: Flip) -> tuple[int, str, str, str]:
    return -flip.changes, flip.case, flip.target, flip.last.run_id


def groups_of(
    recorded: RecordedRuns,
    lines: dict[str, list[Moment]],
    wanted: Callable[[str], bool],
    case: str | None = None,
) -> tuple[list[FindingGroup], Counter[str]]:
    """Group the findings of all wanted cases, failing ones first; and count cases by how they stand on a
    target."""
    groups: dict[tuple[object, ...], FindingGroup] = {}
    stand: Counter[str] = Counter()
    for name, by_run in recorded.results(wanted, case):
        for moments in lines.values():
            if not any(moment.point.number in by_run for moment in moments):
                continue
            finding = trace(moments, by_run)
            stand[
                "never failed" if finding is None else "failing" if finding.until is None else "correct again"
            ] += 1
            if finding is None:
                continue
            group = groups.get(key := (facets(name).operator, *finding.key))
            if group is None:
                if len(groups) >= GROUPS:
                    continue
                group = groups[key] = FindingGroup(finding, facets(name).operator, name)
            group.example = min(group.example, name)
            group.count(facets(name))
    order = sorted(groups.values(), key=lambda group: (group.operator, group.example))
    order.sort(key=lambda group: (group.finding.until is not None, -group.number))
    return order, stand
