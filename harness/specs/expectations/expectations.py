"""Expectations: reviewed entries that declare an outcome known, with a reason and a link; loaded from their files.

An entry applies to a target if every condition of its `when` holds there.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness.model.case import Case
from harness.model.errors import SpecError
from harness.model.header import Expectation
from harness.model.query import Query
from harness.model.target_info import TargetInfo
from harness.specs.expectations.expectation_entry import Entry
from harness.specs.expectations.target_expectations import Located, TargetExpectations
from harness.specs.reading import source
from harness.specs.reading.load import checked, default_folder, yaml_files
from harness.specs.reading.problems import validation_problems
from harness.specs.reading.schema_types import json_schema
from harness.specs.reading.source import shown

_FILE = TypeAdapter(tuple[Entry, ...], config=ConfigDict(defer_build=True))


def expectations_json_schema() -> str:
    """Return the JSON Schema of an expectations file, for editors, as the text of
    `docs/expectations.schema.json`."""
    return json_schema(_FILE.json_schema(), "Expectations")


@dataclass(frozen=True)
class Expectations:
    """All entries, in the order of the files."""

    entries: tuple[Located, ...] = ()

    def for_target(self, target: str, info: TargetInfo) -> TargetExpectations:
        """Return the entries that apply to one target of a run."""
        found = [
            (number, located)
            for number, located in enumerate(self.entries)
            if located.entry.when.holds(target, info)
        ]
        return TargetExpectations(
            target, tuple(e for _, e in found), info, tuple(number for number, _ in found)
        )

    def stated(self, targets: Mapping[str, TargetInfo], operators: Collection[str]) -> dict[int, Expectation]:
        """Return for a run's header, by number, the entries that apply to one of its targets and speak of one
        of its operators."""
        return {
            number: located.stated()
            for number, located in enumerate(self.entries)
            if located.speaks_of(operators)
            and any(located.entry.when.holds(name, info) for name, info in targets.items())
        }

    def defects(
        self, name: str, info: TargetInfo, cases: Collection[Case], correct: Container[str] = ()
    ) -> Iterator[tuple[Expectation, int, bool]]:
        """Yield the entries of a provider's defects that speak of a case, those of other releases as well, with the number
        of cases and whether the target's release has the defect: none of a case that is correct on it, by its id."""
        operators = {case.operator for case in cases}
        for located in self.entries:
            anywhere = located.entry.when.model_copy(update={"onnxruntime": None, "directml": None})
            if located.general or not anywhere.holds(name, info) or not located.speaks_of(operators):
                continue
            holds = located.entry.when.holds(name, info)
            spoken_of = (case.id for case in cases if not (holds and case.id in correct))
            if number := sum(map(located.matches, spoken_of)):
                yield located.stated(), number, holds


def load_expectations(paths: Sequence[Path] = ()) -> Expectations:
    """Load expectation files, or the `*.yaml` in folders; without any, the harness's own. Raise SpecError
    with every problem."""
    problems: list[str] = []
    entries: list[Located] = []
    default = default_folder() / "expectations"
    for path in yaml_files(paths or ([default] if default.is_dir() else []), problems, empty=True):
        try:
            entries.extend(_parsed(path, source.label_of(path), source.contents(path)))
        except SpecError as error:
            problems.extend(error.problems)
    if problems:
        raise SpecError(problems)
    return Expectations(tuple(entries))


@lru_cache(maxsize=16)
def _parsed(path: Path, label: str, data: bytes) -> Sequence[Located]:
    """Parse the bytes of a file, once in a process: entries do not change, and parsing takes longer than a
    small run."""
    file, entries = checked(path, label, data, _checked)
    return tuple(
        Located(e, tuple(map(Query.parse, e.match)), file, i, tuple(map(Query.parse, e.unless or ())))
        for i, e in enumerate(entries)
    )


def _checked(file: source.Source) -> tuple[Entry, ...]:
    """Return the entries of a file. Errors: SpecError with every problem."""
    if not isinstance(file.tree, tuple):
        raise SpecError(
            [file.problem((), f"an expectations file should be a list of entries, not {shown(file.tree)}")]
        )
    try:
        return _FILE.validate_python(file.tree)
    except ValidationError as error:
        raise SpecError(file.by_line(validation_problems(file, error, Entry))) from error


if __name__ == "__main__":
    print(expectations_json_schema(), end="")
