"""What many runs say over time: since when a case fails, which cases flip, how many pass by version and level.

A target's moments are put in order and only what ran counts. Cases are matched by their ids; where specs, oracle, seed or versions differ
between two runs, the answer says so.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from harness import packed
from harness.errors import NothingRan, UsageError
from harness.facets import facets
from harness.history_db import INVALID, Did, HistoryDatabase, Point, Rate
from harness.records import Validity, conforms
from harness.runfile import run_file
from harness.spread import Spread
from harness.tables import NOT_EXECUTED

GROUPS = 2000
FLIPS = 2000
"""Flips kept, those with the most changes."""
_NAMES = frozenset(f"run.jsonl{suffix}" for suffix in packed.SUFFIXES)
_RELEASE = re.compile(r"@ort-[^@,]+")
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ")


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Return the run files that paths name, and those in folders at any depth; no link is followed. Errors: UsageError, NothingRan."""
    found: dict[Path, Path] = {}
    asked = list(paths)
    for path in asked:
        if not path.exists():
            raise UsageError(f"{path}: does not exist; name run files or folders with run.jsonl, run.jsonl.xz or run.jsonl.gz")
        for file in _in_folder(path) if path.is_dir() else [path]:
            found.setdefault(file.resolve(), file)
    if not found:
        raise NothingRan(f"{', '.join(map(str, asked))}: no run.jsonl, run.jsonl.xz or run.jsonl.gz in it")
    return list(found.values())


def _in_folder(folder: Path) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        raise UsageError(f"{error.filename}: cannot be searched: {error.strerror}") from error

    for name, folders, files in os.walk(folder, onerror=unreadable):
        folders.sort()
        if not _NAMES.isdisjoint(files):
            yield run_file(Path(name))


class Moment(NamedTuple):
    """A point of a target's history; `target` lacks the release where histories are joined by release."""

    target: str
    point: Point

    @property
    def run_id(self) -> str:
        return self.point.header.run_id

    @property
    def when(self) -> str:
        """Write the time that the run id begins with, in UTC; the id itself where it has none."""
        time = _TIME.match(self.run_id)
        return "{}-{}-{} {}:{}".format(*time.groups()) if time else self.run_id

    @property
    def version(self) -> str:
        """Write the releases: `1.24.2`, or `1.24.4 / 1.15.4` with DirectML's."""
        info = self.point.info
        return " / ".join(filter(None, (info.onnxruntime, info.directml))) or "unknown"

    @property
    def facts(self) -> dict[str, str]:
        """What may explain another result, by name."""
        header, info = self.point.header, self.point.info
        hashes = {name: header.hashes.get(name, "") for name in ("specs", "oracle", "graphs")}
        own = {"onnxruntime": info.onnxruntime, "DirectML": info.directml, "DirectML.dll": info.directml_sha256, "runtime": info.runtime}
        machine = {"adapter": info.adapter, "driver": info.driver, "NumPy": info.numpy, "Python": info.python, "platform": info.platform}
        return {name: value or "" for name, value in (own | machine | hashes | {"seed": str(header.seed)}).items()}


def timelines(points: Sequence[Point], *, by_release: bool = False) -> dict[str, list[Moment]]:
    """Return each target's moments in the order of runs; `by_release` joins `cpu@ort-1.24.2` with `cpu` and orders by release, then run."""
    found: dict[str, list[Moment]] = {}
    for point in points:
        name = _RELEASE.sub("", point.target) if by_release else point.target
        found.setdefault(name, []).append(Moment(name, point))
    if by_release:
        for moments in found.values():
            moments.sort(key=_release)
    return dict(sorted(found.items()))


def _release(moment: Moment) -> tuple[Version, Version, str]:
    info = moment.point.info
    return _version(info.onnxruntime), _version(info.directml), moment.run_id


def _version(text: str | None) -> Version:
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")


def differing(before: Moment, after: Moment) -> tuple[str, ...]:
    """Name the facts that differ between two moments."""
    then = before.facts
    return tuple(name for name, value in after.facts.items() if value != then[name])


class Row(NamedTuple):
    """Neighbouring moments of a target that have the same version and counts; `first` and `last` are the ends of `runs` of them."""

    first: Moment
    last: Moment
    runs: int

    @property
    def rates(self) -> dict[str, Rate]:
        return self.last.point.rates

    @property
    def total(self) -> Rate:
        """Sum the levels, which are of valid cases."""
        valid = [rate for level, rate in self.rates.items() if level != INVALID]
        return Rate(sum(rate.passed for rate in valid), sum(rate.ran for rate in valid))


def rows(moments: Iterable[Moment]) -> list[Row]:
    """Fold equal neighbours."""
    found: list[Row] = []
    for moment in moments:
        if found and found[-1].rates == moment.point.rates and found[-1].last.version == moment.version:
            found[-1] = Row(found[-1].first, moment, found[-1].runs + 1)
        else:
            found.append(Row(moment, moment, 1))
    return found


class Finding(NamedTuple):
    """Since when cases fail on a target, or when they last did.

    `last_good` is None where no earlier run has the case conforming; `until` is the first conforming moment after the failures, None while
    it fails. `turn` are the moments before and after the newest of these changes, None where there is no moment before.
    """

    target: str
    validity: Validity
    since: Moment
    last_good: Moment | None
    until: Moment | None
    before: Did | None
    after: Did
    turn: tuple[Moment, Moment] | None

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal for cases of one group."""
        moments = (moment and moment.point.number for moment in (self.since, self.last_good, self.until))
        return self.target, self.validity, *moments, self.before, self.after


@dataclass
class Group(Spread):
    """Cases with the same finding; `example` is the first of them by id."""

    finding: Finding
    operator: str
    example: str

    @property
    def cases(self) -> str:
        return self.which(self.operator)


def trace(moments: Sequence[Moment], did: dict[int, Did]) -> Finding | None:
    """Find the last stretch of failures: the first failing moment after the last conforming one. None if it never failed."""
    ran = _ran(moments, did)
    good = [conforms(what.validity, what.outcome) for _, what in ran]
    if all(good):
        return None
    last = max(place for place, each in enumerate(good) if not each)
    first = max((place for place in range(last) if good[place]), default=-1) + 1
    since, after = ran[first]
    before = ran[first - 1] if first else None
    until = ran[last + 1][0] if last + 1 < len(ran) else None
    turn = (ran[last][0], until) if until else (before[0], since) if before else None
    return Finding(since.target, after.validity, since, before and before[0], until, before and before[1], after, turn)


def _ran(moments: Iterable[Moment], did: dict[int, Did]) -> list[tuple[Moment, Did]]:
    found = ((moment, did.get(moment.point.number)) for moment in moments)
    return [(moment, what) for moment, what in found if what is not None and what.outcome not in NOT_EXECUTED]


def changes(moments: Sequence[Moment], did: dict[int, Did]) -> list[tuple[Moment, Did]]:
    """Return what ran of a case where it is not the same as before, the first one included."""
    ran = _ran(moments, did)
    return ran[:1] + [later for earlier, later in pairwise(ran) if earlier[1] != later[1]]


class Flip(NamedTuple):
    """A case that came back to what it did before, on one target with nothing else changed. `seen` counts by (outcome, error class)."""

    target: str
    case: str
    version: str
    changes: int
    runs: int
    seen: tuple[tuple[Did, int], ...]
    last: Moment


def alike(moments: Iterable[Moment]) -> list[list[Moment]]:
    """Put together the moments that have the same versions, machine, specs, oracle and seed."""
    found: dict[tuple[str, ...], list[Moment]] = {}
    for moment in moments:
        found.setdefault(tuple(moment.facts.values()), []).append(moment)
    return [together for together in found.values() if len(together) > 2]


def flips_of(case: str, kinds: Iterable[Sequence[Moment]], did: dict[int, Did]) -> Iterator[Flip]:
    """Yield the flips of a case within each of the lists that `alike` makes."""
    for moments in kinds:
        found = _ran(moments, did)
        turned = sum(earlier[1] != later[1] for earlier, later in pairwise(found))
        if turned >= len({what for _, what in found}):
            last = found[-1][0]
            seen = Counter(what for _, what in found)
            yield Flip(last.target, case, last.version, turned, len(found), tuple(seen.most_common()), last)


def all_flips(
    database: HistoryDatabase, lines: dict[str, list[Moment]], wanted: Callable[[str], bool], case: str | None = None
) -> tuple[list[Flip], int]:
    """Return the flips of all wanted cases, most changes first, as many as are kept, and their number."""
    kept: list[Flip] = []
    number = 0
    kinds = [together for moments in lines.values() for together in alike(moments)]
    for name, did in database.results(wanted, case):
        if len(set(did.values())) == 1:
            continue
        for flip in flips_of(name, kinds, did):
            number += 1
            kept.append(flip)
            if len(kept) >= 2 * FLIPS:
                kept = sorted(kept, key=_most)[:FLIPS]
    return sorted(kept, key=_most)[:FLIPS], number


def _most(flip: Flip) -> tuple[int, str, str, str]:
    return -flip.changes, flip.case, flip.target, flip.last.run_id


def groups_of(
    database: HistoryDatabase, lines: dict[str, list[Moment]], wanted: Callable[[str], bool], case: str | None = None
) -> tuple[list[Group], Counter[str]]:
    """Group the findings of all wanted cases, failing ones first; and count cases by how they stand on a target."""
    groups: dict[tuple[object, ...], Group] = {}
    stand: Counter[str] = Counter()
    for name, did in database.results(wanted, case):
        for moments in lines.values():
            if not any(moment.point.number in did for moment in moments):
                continue
            finding = trace(moments, did)
            stand["never failed" if finding is None else "failing" if finding.until is None else "conform again"] += 1
            if finding is None:
                continue
            group = groups.get(key := (facets(name).operator, *finding.key))
            if group is None:
                if len(groups) >= GROUPS:
                    continue
                group = groups[key] = Group(finding, facets(name).operator, name)
            group.example = min(group.example, name)
            group.count(facets(name))
    order = sorted(groups.values(), key=lambda group: (group.operator, group.example))
    order.sort(key=lambda group: (group.finding.until is not None, -group.number))
    return order, stand
