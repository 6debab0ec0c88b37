"""Writes `docs/cpu-findings.md`: what releases of ONNX Runtime's CPU provider get wrong that the newest does not,
and the other way round.

    python -m tools.cpu_findings RUN… > docs/cpu-findings.md

Each RUN has results of one or more CPU targets, such as `harness run -t cpu@ort-1.22.1 --select pairwise`; a release
has the cases of all its runs, and of a case that several have, what the last one says. Cases count that the specs
still have and every release was given; the same runs give the same page.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.caseid import parse
from harness.model.errors import UsageError
from harness.model.result import Result, inexpressible
from harness.model.target_info import CPU, TargetInfo
from harness.model.verdict import Outcome, conforms
from harness.render.markup import code, table
from harness.render.terminal import details
from harness.render.text import line
from harness.results.runfile import RunReader
from harness.specs.expand import expand
from harness.specs.expectation_entry import Entry
from harness.specs.expectations import Expectations, load_expectations
from harness.specs.load import load_specs
from harness.specs.target_expectations import TargetExpectations
from tools.doc_page import print_page
from tools.findings import cell
from tools.sample import without_places

SILENT = frozenset({Outcome.NOT_RUN, Outcome.UNSUPPORTED, Outcome.NOT_PLACED, Outcome.UNAVAILABLE})
"""Outcomes that say nothing of a kernel: there is none, or the release was not asked."""
_MOST_RUNS = 30


class CpuRelease(NamedTuple):
    """A release of ONNX Runtime, and what its CPU provider did, by case; `commands` ran it."""

    version: str
    info: TargetInfo
    commands: list[str]
    results: dict[str, Result]

    def right(self, case: str) -> bool | None:
        """Say whether a release does with a case what ONNX says; None where it says nothing of it."""
        result = self.results[case]
        if result.validity is Validity.UNSPECIFIED or result.outcome in SILENT or inexpressible(result):
            return None
        return conforms(result.validity, result.outcome)


class CpuChange(NamedTuple):
    """Cases of an operator that were wrong (or right) up to the release at `last`, and the other way from that at
    `first` on; `at` is the place of the release whose result is shown, `before` says that an older one than those
    up to `last` was like the newest."""

    operator: str
    validity: Validity
    outcome: Outcome
    at: int
    before: bool
    last: int
    first: int
    cases: tuple[str, ...]

    @property
    def smallest(self) -> str:
        """The case with the fewest elements, though with some."""
        return min(self.cases, key=_size)


def _size(case: str) -> tuple[bool, int, int, str]:
    tensors = [_product(tensor.shape) for tensor in parse(case).tensors.values()]
    return 0 in tensors, sum(tensors), len(case), case


def _product(shape: Iterable[int]) -> int:
    found = 1
    for extent in shape:
        found *= extent
    return found


class CpuReleases:
    """The CPU releases of some runs, oldest first, and the cases that all of them have, of `present` ones where
    these are given. Errors: UsageError where there are not two."""

    def __init__(self, runs: Iterable[Path], present: Collection[str] | None = None) -> None:
        found: dict[str, CpuRelease] = {}
        for path in runs:
            reader = RunReader(path)
            names = {}
            command = without_places(reader.header).command
            for name, info in reader.header.targets.items():
                if info.provider == CPU and info.onnxruntime and not info.unavailable and not info.plugin:
                    new = CpuRelease(info.onnxruntime, info, [], {})
                    names[name] = found.setdefault(info.onnxruntime, new)
                    names[name].commands.append(command)
            for result in reader:
                if result.target in names and (present is None or result.case in present):
                    names[result.target].results[result.case] = result
        self.all = sorted(found.values(), key=lambda each: _numbers(each.version))
        if len(self.all) < 2:
            raise UsageError(
                f"releases are compared, and the runs have {len(self.all)} of the CPU provider: run -t cpu@ort-1.22.1, and others"
            )
        common = set.intersection(*(set(each.results) for each in self.all))
        self.cases = sorted(common)

    def changes(self, *, newest_right: bool) -> list[CpuChange]:
        """Group the cases that the newest release has right (or wrong) and an older one did not; the largest
        groups first."""
        groups: dict[tuple[str, Validity, Outcome, int, bool, int, int], list[str]] = {}
        for case in self.cases:
            told = [each.right(case) for each in self.all]
            if told[-1] is not newest_right or (not newest_right) not in told:
                continue
            last = max(place for place, right in enumerate(told) if right is (not newest_right))
            first = next(place for place in range(last + 1, len(told)) if told[place] is newest_right)
            before = newest_right in told[: told.index(not newest_right)]
            at = last if newest_right else len(told) - 1
            result = self.all[at].results[case]
            key = result.operator, result.validity, result.outcome, at, before, last, first
            groups.setdefault(key, []).append(case)
        changes = [CpuChange(*key, tuple(cases)) for key, cases in groups.items()]
        return sorted(changes, key=lambda each: (-len(each.cases), each.cases[0]))

    def since(self, change: CpuChange) -> str:
        """Say in which releases cases were unlike in the newest, and from which on they are like it."""
        other, like = ("wrong", "right") if self.right(change) else ("right", "wrong")
        begin = min(self._begin(case, change.last) for case in change.cases)
        span = self.all[change.last].version
        if begin < change.last:
            span = f"{self.all[begin].version} to {span}"
        before = f"{like} before, " if change.before else ""
        return f"{before}{other} in {span}, {like} from {self.all[change.first].version}"

    def right(self, change: CpuChange) -> bool:
        """Say whether the newest release has the cases right."""
        return bool(self.all[-1].right(change.cases[0]))

    def _begin(self, case: str, last: int) -> int:
        """Return the place of the first release that did what the one at `last` did."""
        wanted = self.all[last].right(case)
        return next(place for place, each in enumerate(self.all) if each.right(case) is wanted)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def page(releases: CpuReleases, expectations: Expectations) -> Iterator[str]:
    """Yield the lines of the page."""
    versions = [each.version for each in releases.all]
    yield "# What releases of the CPU provider get wrong\n"
    yield "Generated by `python -m tools.cpu_findings`; do not edit. [How releases are run](runtimes.md).\n"
    yield (
        f"{len(releases.cases):,} cases of {len({parse(case).operator for case in releases.cases})} operators, each given to all of "
        f"{', '.join(versions)}. Right is what ONNX's specification says; a release that has no kernel, or is too old for a case, is "
        "neither right nor wrong. Releases between these were not run: `harness bisect` finds the one.\n"
    )
    yield from table(
        ("onnxruntime", "Python", "right", "wrong", "of these crashes", "no kernel", "too old", "run"),
        (_row(each, releases.cases) for each in releases.all),
        right=range(2, 7),
    )
    known = {each.version: expectations.for_target("cpu", each.info) for each in releases.all}
    for title, anchor, newest_right in (
        (f"Wrong in {versions[-1]}, right in an older release", "w", False),
        (f"Right in {versions[-1]}, wrong in an older release", "r", True),
    ):
        changes = releases.changes(newest_right=newest_right)
        yield f"## {title}\n"
        yield from _section(releases, changes, anchor, known)


def _row(release: CpuRelease, cases: Sequence[str]) -> tuple[str, ...]:
    told = Counter(release.right(case) for case in cases)
    outcomes = Counter(release.results[case].outcome for case in cases)
    crashes = sum(
        release.right(case) is False and release.results[case].outcome is Outcome.CRASH for case in cases
    )
    kernels = outcomes[Outcome.UNSUPPORTED] + outcomes[Outcome.NOT_PLACED]
    numbers = told[True], told[False], crashes, kernels, outcomes[Outcome.NOT_RUN]
    counted = (f"{number:,}" for number in numbers)
    return (
        release.version,
        release.info.python or "–",
        *counted,
        "; ".join(code(line(command, 80)) for command in release.commands),
    )


def _section(
    releases: CpuReleases, changes: Sequence[CpuChange], anchor: str, known: Mapping[str, TargetExpectations]
) -> Iterator[str]:
    if not changes:
        yield "None.\n"
        return
    yield f"{sum(len(each.cases) for each in changes):,} cases in {len(changes)} groups.\n"
    yield from table(
        ("", "operator", "cases", "when", "what the wrong one does", "known as"),
        (
            (
                f"[{n}](#{anchor}{n})",
                f"{change.operator} {_opsets(change)}",
                f"{len(change.cases):,} {change.validity.value}",
                releases.since(change),
                change.outcome.value,
                _known(_entry(releases, change, known)),
            )
            for n, change in enumerate(changes, start=1)
        ),
    )
    for n, change in enumerate(changes, start=1):
        release = releases.all[change.at]
        yield f'- <a id="{anchor}{n}"></a>{n}: {code(change.smallest)}'
        told = "; ".join(details(release.results[change.smallest]))
        yield f"  - {release.version}: {cell(line(told, 300)) or change.outcome.value}"
        command = f"harness reduce '{change.smallest}' -t cpu@ort-{release.version}"
        yield f"  - {code(command)}"
    yield ""


def _opsets(change: CpuChange) -> str:
    return ", ".join(map(str, sorted({parse(case).opset for case in change.cases})))


def _entry(releases: CpuReleases, change: CpuChange, known: Mapping[str, TargetExpectations]) -> Entry | None:
    release = releases.all[change.at]
    result = release.results[change.smallest]
    entry = known[release.version].entry(result.case, beyond=result.beyond, outcome=result.outcome)
    return entry if entry is not None and entry.expect is result.outcome else None


def _known(entry: Entry | None) -> str:
    return "" if entry is None or not entry.title else f"[{cell(line(entry.title, 120))}]({entry.link})"


def main(arguments: Sequence[str]) -> int:
    """Print the page for some runs."""
    return print_page(
        arguments,
        "python -m tools.cpu_findings RUN…",
        range(1, _MOST_RUNS),
        lambda *runs: page(
            CpuReleases(runs, {case.id for case in expand(load_specs())}), load_expectations()
        ),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
