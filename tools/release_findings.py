"""Writes `docs/directml-releases.md`: what older DirectML releases do with the same cases, and where they
differ.

    python -m tools.release_findings RUN > docs/directml-releases.md

RUN is one of several DirectML targets, such as `harness run -t dml@levels`; the same run gives the same page.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.errors import UsageError
from harness.model.result import (
    CANNOT_BE_ASKED,
    Error,
    Result,
    inexpressible,
)
from harness.model.target_info import DML, TargetInfo
from harness.model.verdict import Outcome, conforms
from harness.render.markup import table
from harness.render.text import gist, line
from harness.results.runfile import RunReader
from harness.specs.expectations import Expectations, load_expectations
from tools.doc_page import print_page
from tools.findings import cell
from tools.sample import without_places


class Told(NamedTuple):
    """What one release did with a case: its outcome, and why where the case does not conform."""

    outcome: Outcome
    why: str


class Group(NamedTuple):
    """Cases with which each release did the same; `told` has one entry a target, in the order of the run."""

    told: tuple[Told, ...]
    cases: tuple[str, ...]
    validity: Validity
    error: Error | None


class Releases:
    """The DirectML targets of a run and, by case, what each did with it. Errors: UsageError where there are
    not two."""

    def __init__(self, path: Path, expectations: Expectations) -> None:
        reader = RunReader(path)
        self.targets = {
            name: info
            for name, info in reader.header.targets.items()
            if info.provider == DML and not info.unavailable
        }
        if len(self.targets) < 2:
            raise UsageError(
                f"{reader.path}: releases are compared, and the run has {len(self.targets)} DirectML targets: run -t dml@levels"
            )
        self.command = without_places(reader.header).command
        self.by_case: dict[str, dict[str, Told]] = {}
        self.outcomes: dict[str, Counter[Outcome]] = {name: Counter() for name in self.targets}
        self._validity: dict[str, Validity] = {}
        self._errors: dict[str, Error] = {}
        known = {name: expectations.for_target(name, info) for name, info in self.targets.items()}
        for result in reader:
            if result.target in self.targets and not inexpressible(result):
                entry = (
                    None
                    if conforms(result.validity, result.outcome)
                    else known[result.target].entry(result.case, beyond=result.beyond, outcome=result.outcome)
                )
                self._add(result, "" if entry is None else entry.title or entry.reason)

    def _add(self, result: Result, title: str) -> None:
        if result.outcome is Outcome.NOT_RUN and result.error is not None:
            title = CANNOT_BE_ASKED.get(result.error.class_, "")
        self.by_case.setdefault(result.case, {})[result.target] = Told(result.outcome, title)
        self._validity[result.case] = result.validity
        if result.validity is Validity.VALID:
            self.outcomes[result.target][result.outcome] += 1
        if result.error is not None and title:
            self._errors.setdefault(result.case, result.error)

    def all_told(self, by_target: Mapping[str, Told]) -> bool:
        """Say whether every release has a result of a case."""
        return len(by_target) == len(self.targets)

    def groups(self) -> list[Group]:
        """Group the cases that releases end differently; the largest groups first."""
        found: dict[tuple[tuple[Told, ...], Validity], list[str]] = {}
        for case, by_target in sorted(self.by_case.items()):
            if self.all_told(by_target) and len(_outcomes(by_target)) > 1:
                key = tuple(by_target[target] for target in self.targets), self._validity[case]
                found.setdefault(key, []).append(case)
        groups = [
            Group(told, tuple(cases), validity, self._errors.get(cases[0]))
            for (told, validity), cases in found.items()
        ]
        return sorted(groups, key=lambda group: (-len(group.cases), group.cases[0]))

    def spans(self, told: Sequence[Told]) -> str:
        """Write what each release did, neighbours that did the same together: `5_0 to 5_2 crash, 6_1 to 6_4
        pass`."""
        parts = []
        for outcome, run in groupby(zip(self.targets, told, strict=True), key=lambda pair: pair[1].outcome):
            names = [target.rpartition("-")[2] for target, _ in run]
            parts.append(f"{names[0]}{f' to {names[-1]}' if len(names) > 1 else ''}: `{outcome.value}`")
        return ", ".join(parts)


def page(releases: Releases) -> Iterator[str]:
    """Yield the lines of the page."""
    groups = releases.groups()
    alike = sum(
        releases.all_told(by_target) and len(_outcomes(by_target)) == 1
        for by_target in releases.by_case.values()
    )
    yield "# What older DirectML releases do with the same cases\n"
    yield "Generated by `python -m tools.release_findings`; do not edit. What all do alike: [findings](directml-findings.md).\n"
    yield f"Of `{line(releases.command, 400)}`: {alike:,} of {len(releases.by_case):,} cases end alike on all releases.\n"
    yield from table(
        (
            "target",
            "onnxruntime",
            "DirectML",
            "feature level that it answers",
            "valid cases passed",
            "not asked",
        ),
        _rows(releases),
    )
    yield "A release is not asked what it cannot know: a later opset, an element type that its Python binding cannot pass.\n"
    yield "## Where they differ\n"
    yield from table(
        ("", "operators", "cases", "releases", "why"),
        (
            (
                f"[{n}](#{n})",
                _operators(group),
                f"{len(group.cases):,} {group.validity.value}",
                releases.spans(group.told),
                _why(group),
            )
            for n, group in enumerate(groups, start=1)
        ),
    )
    for n, group in enumerate(groups, start=1):
        yield f'- <a id="{n}"></a>{n}: for example `{min(group.cases, key=lambda case: (len(case), case))}`'
        if group.error is not None:
            yield f"  - `{group.error.class_}`: {cell(gist(group.error.message))}"


def _rows(releases: Releases) -> Iterator[tuple[str, ...]]:
    for target, info in releases.targets.items():
        counted = releases.outcomes[target]
        asked = counted.total() - counted[Outcome.NOT_RUN]
        yield (
            target,
            *_versions(info),
            f"{counted[Outcome.PASS]:,} of {asked:,}",
            f"{counted[Outcome.NOT_RUN]:,}",
        )


def _versions(info: TargetInfo) -> tuple[str, str, str]:
    return info.onnxruntime or "–", info.directml or "–", info.max_feature_level or "–"


def _outcomes(by_target: Mapping[str, Told]) -> set[Outcome]:
    return {told.outcome for told in by_target.values()}


def _operators(group: Group) -> str:
    return ", ".join(sorted({case.partition(":")[0].replace("@", " ") for case in group.cases}))


def _why(group: Group) -> str:
    return (
        "; ".join(dict.fromkeys(cell(line(told.why, 160)) for told in group.told if told.why))
        or "not explained by any expectation"
    )


def main(arguments: Sequence[str]) -> int:
    """Print the page for a run."""
    return print_page(
        arguments,
        "python -m tools.release_findings RUN",
        (1,),
        lambda run: page(Releases(run, load_expectations())),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
