"""Pytest nodes: spec files, and in each one item per case and target,
`specs/Round.yaml::cpu[Round@22:case=documented_onnx;…]`."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Protocol

import pytest

from harness.commands.pytest_plugin.settings import Settings
from harness.model.case import Case
from harness.model.errors import HarnessError
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.origins import entry_lines, entry_of
from harness.targets.target import Target

MARK = "harness"


class Collector(Protocol):
    """What collects cases for the items: `conformance.Conformance`."""

    settings: Settings

    def cases(self, path: Path) -> tuple[LoadedSpec, list[Case]]:
        """Return a spec and its selected cases. Errors: HarnessError for an invalid spec."""

    def refuse(self, file: SpecFile, problem: str) -> None:
        """End the run, or the collection of a file, with one line."""


class SpecFile(pytest.File):
    """A spec."""

    conformance: Collector

    def collect(self) -> Iterator[CaseItem]:
        """Yield one item per target and case. An invalid spec ends the run before any test."""
        try:
            spec, cases = self.conformance.cases(self.path)
        except HarnessError as error:
            self.conformance.refuse(self, str(error))
            return
        lines = entry_lines(spec)
        for target in self.conformance.settings.targets:
            marks: dict[str, list[pytest.Mark]] = {}
            for case in cases:
                key = f"{case.opset} {case.validity.value} {case.levels}"
                if key not in marks:
                    marks[key] = _marks(case, target.name)
                name = f"{target.name}[{case.id}]"
                item = CaseItem.from_parent(
                    self, name=name, nodeid=f"{self.nodeid}::{name}"
                )  # from 9.2 on pytest reads it only so
                item.case, item.target, item.line = case, target, lines.get(entry_of(case.id), 1)
                item.own_markers.extend(marks[key])
                yield item


def _marks(case: Case, target: str) -> list[pytest.Mark]:
    """Return one mark, or one for each level of a case that lowers to several DirectML operators."""
    said = {"operator": case.operator, "opset": case.opset, "target": target, "validity": case.validity.value}
    mark = getattr(pytest.mark, MARK)
    return [mark(**said, level=level).mark for level in sorted(set(case.levels.values()))] or [
        mark(**said).mark
    ]


class CaseItem(pytest.Item):
    """A case on a target; the parametrization in its name is the case's id, as reports have it."""

    case: Case
    target: Target
    line: int
    """Where the spec says it, counted from 1."""

    def runtest(self) -> None:
        """Take no part in pytest's own protocol: `conformance` makes the reports, of results that come by the
        batch."""
        raise AssertionError

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """Return the spec, the line counted from 0, and what stands above a failure."""
        return self.path, self.line - 1, self.name
