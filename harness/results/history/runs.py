"""Reads many runs in order: finds them, each target's moments, the number of correct results by version and level, and
its results, defects and time over runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, cast

from packaging.version import InvalidVersion, Version

from harness.model.errors import NothingRan, UsageError
from harness.model.header import Header
from harness.model.header import moment as time_of
from harness.model.verdict import DEFECTS
from harness.results.columns import SUFFIX, public
from harness.results.history.recorded import INVALID, Point, Rate, RecordedRuns
from harness.results.runfile import NAMES, RunReader, run_file

_NAMED = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"
_RELEASE = re.compile(r"@ort-[^@,]+")


def find_runs(paths: Iterable[Path | str]) -> list[Path]:
    """Return the run files that paths name, and those in folders at any depth; no link is followed. A text is a URL: what
    it finds, `Stored`, takes the place of a Path. Errors: UsageError, NothingRan."""
    found: dict[Path, Path] = {}
    asked = list(paths)
    if urls := [path for path in asked if isinstance(path, str)]:
        from harness.results.store import Store

        store = Store()
        found |= {cast(Path, file.url): cast(Path, file) for url in urls for file in store.below(url)}
    for path in asked:
        if isinstance(path, str):
            continue
        if not path.exists():
            raise UsageError(f"{path}: does not exist; name run files or folders with {_NAMED}")
        for file in _in_folder(path) if path.is_dir() else [path]:
            found.setdefault(file.resolve(), file)
    if not found:
        named = f"*{SUFFIX}" if urls == asked else _NAMED
        raise NothingRan(f"{', '.join(public(str(path)) for path in asked)}: no {named} in it")
    return list(found.values())


def _in_folder(folder: Path) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        raise UsageError(f"{error.filename}: cannot be searched: {error.strerror}") from error

    for name, folders, files in os.walk(folder, onerror=unreadable):
        folders.sort()
        if not set(NAMES).isdisjoint(files):
            yield run_file(Path(name))


def collect(
    recorded: RecordedRuns, files: list[Path], count: Callable[[Path], None] = lambda _: None
) -> list[UsageError]:
    """Add runs; return an error for each run that is left out because it cannot be read to its end.

    `count` takes the path of a run that was added. The same run id in two files is an error.
    """
    met: dict[str, Path] = {}
    left_out: list[UsageError] = []
    for path in files:
        try:
            run_id = RunReader(path).header.run_id
        except UsageError as error:
            left_out.append(error)
            continue
        other = met.setdefault(run_id, path)
        if other is not path:
            raise UsageError(f"{path}: run {run_id} is also {other}: move one of them away")
    for path in met.values():
        try:
            recorded.add(RunReader(path))
            count(path)
        except UsageError as error:
            left_out.append(error)
    return left_out


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
        return time_of(self.run_id) or self.run_id

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
        own = {
            "onnxruntime": info.onnxruntime,
            "DirectML": info.directml,
            "DirectML.dll": info.directml_sha256,
            "runtime": info.runtime,
        }
        machine = {
            "adapter": info.adapter,
            "driver": info.driver,
            "NumPy": info.numpy,
            "Python": info.python,
            "platform": info.platform,
        }
        return {
            name: value or "" for name, value in (own | machine | hashes | {"seed": str(header.seed)}).items()
        }


def timelines(points: Sequence[Point], *, by_release: bool = False) -> dict[str, list[Moment]]:
    """Return each target's moments in the order of runs; `by_release` joins `cpu@ort-1.24.2` with `cpu` and
    orders by release, then run."""
    found: dict[str, list[Moment]] = {}
    for point in points:
        name = line_of(point.target) if by_release else point.target
        found.setdefault(name, []).append(Moment(name, point))
    if by_release:
        for moments in found.values():
            moments.sort(key=lambda moment: release_order(moment.point.header, moment.point.target))
    return dict(sorted(found.items()))


def line_of(target: str) -> str:
    """Name a target without its release: `cpu` for `cpu@ort-1.24.2`."""
    return _RELEASE.sub("", target)


def release_order(header: Header, target: str) -> tuple[Version, Version, str]:
    """Return what the moments of joined releases are ordered by: the releases of a run's target, then the
    run."""
    info = header.targets[target]
    return _version(info.onnxruntime), _version(info.directml), header.run_id


def _version(text: str | None) -> Version:
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")


def differing(before: Moment, after: Moment) -> tuple[str, ...]:
    """Name the facts that differ between two moments."""
    then = before.facts
    return tuple(name for name, value in after.facts.items() if value != then[name])


class HistoryRow(NamedTuple):
    """Neighbouring moments of a target that have the same version and counts; `first` and `last` are the ends
    of `runs` of them."""

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
        return Rate(sum(rate.correct for rate in valid), sum(rate.judged for rate in valid))


def rows(moments: Iterable[Moment]) -> list[HistoryRow]:
    """Fold equal neighbours."""
    folded = groupby(moments, key=lambda moment: (moment.version, moment.point.counts))
    alike = [list(of) for _, of in folded]
    return [HistoryRow(of[0], of[-1], len(of)) for of in alike]


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
