"""Imports backend tests as specs: cases with their elements and expected outputs written out, one file an
operator, and says how many of the expected outputs agree with the oracle.

A case has at most `LARGEST` elements, and a spec file at most `source.MAX_BYTES` bytes; what goes beyond stays
where it is and is counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.compile.backend_folders import BackendTest
from harness.compile.decompile import case_of
from harness.compile.prepare import with_inputs
from harness.compile.protos import LeftOut
from harness.model.case import Case
from harness.model.caseid import CaseKey
from harness.model.errors import SpecError, UsageError, naming
from harness.operators.base import Undefined
from harness.render.text import one_line
from harness.run.oracle import OracleError, contradiction, oracle
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, own_spec
from harness.specs.reading.source import MAX_BYTES, MAX_VALUES
from harness.specs.reading.write import entry_lines, spec_file

LARGEST = 10_000
"""Elements of a case, inputs and outputs together, that are written out."""
_ROOM = MAX_BYTES - 50_000
_VALUES = MAX_VALUES - 10_000
_LONGEST = 56


class ImportedEntry(NamedTuple):
    """A case that is to be written: the test that it is from, its name in the spec, and its lines there."""

    test: str
    case: Case
    lines: list[str]

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return sum(len(line.encode()) + 1 for line in self.lines)

    @property
    def values(self) -> int:
        """Keys and values that a reader of YAML finds, or a few more."""
        return sum(
            line.count(",") + line.count("[") + line.count(":") + line.count("{") for line in self.lines
        )


@dataclass
class Import:
    """What became of the tests: the specs that were written, which cases agree with the oracle and which
    contradict it, and by reason the tests that are left out."""

    written: dict[Path, int] = field(default_factory=dict)
    agreeing: list[str] = field(default_factory=list)
    contradicting: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def leave_out(self, test: str, error: LeftOut) -> None:
        """Note a test that is left out."""
        self.left_out[error.reason].append(f"{test} ({error.detail})" if error.detail else test)


def entries_of(tests: Iterable[BackendTest], origin: str, done: Import) -> dict[str, list[ImportedEntry]]:
    """Return the entries that tests make, by operator; `origin` is what their source says before the name of
    the test."""
    found: dict[str, list[ImportedEntry]] = defaultdict(list)
    names: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        for number, data in enumerate(test.data_sets):
            several = len(test.data_sets) > 1
            try:
                case = case_of("imported", f"{origin} {one_line(test.name)}", test.model, data)
                _check(case)
            except LeftOut as error:
                done.leave_out(f"{test.name}, data set {number}" if several else test.name, error)
                continue
            name = _name(f"{test.name}_{number}" if several else test.name, names[case.operator])
            names[case.operator].add(name)
            found[case.operator].append(ImportedEntry(test.name, case, entry_lines(case, name)))
    return found


def _check(case: Case) -> None:
    """Raise LeftOut for a case that a spec does not take or that tests nothing."""
    arrays = [array for array in (*(case.literals or ()), *(case.documented or ())) if array is not None]
    number = sum(array.size for array in arrays)
    if number > LARGEST:
        raise LeftOut(f"more than {LARGEST:,} elements", f"{number:,}")
    try:
        expected = oracle(with_inputs(case), "")
    except OracleError as error:
        if isinstance(error.__cause__, Undefined):
            raise LeftOut("a result that ONNX leaves open", str(error.__cause__)) from error
        raise LeftOut("a call for which the formula gives no result", str(error)) from error
    if expected is not None and not any(getattr(each, "claims", True) for each in expected):
        raise LeftOut("a result of which nothing can be claimed")


def _name(test: str, taken: set[str]) -> str:
    """Return a name for an entry: that of the test without `test_`, shortened, and with a number where that
    is taken."""
    plain = re.sub(r"[^a-z0-9]+", "_", test.lower().removeprefix("test_")).strip("_")
    stem = (plain if plain[:1].isalpha() else f"test_{plain}")[:_LONGEST].rstrip("_")
    return next(
        name for n in range(1, len(taken) + 2) if (name := stem if n == 1 else f"{stem}_{n}") not in taken
    )


def write_specs(
    found: dict[str, list[ImportedEntry]], folder: Path, comment: str, done: Import, *, force: bool = False
) -> None:
    """Write one spec per operator and compare its documented outputs with the oracle.

    Raises UsageError where a file is there already, unless `force`, or cannot be written.
    """
    there = [path for operator in sorted(found) if (path := folder / f"{operator}.yaml").exists()]
    if there and not force:
        more = f" and {len(there) - 1:,} others are" if len(there) > 1 else " is"
        raise UsageError(
            f"{there[0]}{more} there already; --force replaces them, -o DIR names another folder"
        )
    for operator, entries in sorted(found.items()):
        with TemporaryDirectory() as place:
            kept = loadable(Path(place), operator, _fitting(entries, done), comment, done)
        if not kept:
            continue
        path = folder / f"{operator}.yaml"
        with naming(path, "written"):
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(_text(operator, kept, comment), encoding="utf-8", newline="\n")
        done.written[path] = len(kept)
        _judge(path, done)


def _fitting(entries: list[ImportedEntry], done: Import) -> list[ImportedEntry]:
    """Return the entries that a file has room for, the smallest first counted."""
    kept: set[int] = set()
    size = values = 0
    for place in sorted(range(len(entries)), key=lambda n: entries[n].size):
        size, values = size + entries[place].size, values + entries[place].values
        if size > _ROOM or values > _VALUES:
            break
        kept.add(place)
    for place, entry in enumerate(entries):
        if place not in kept:
            done.leave_out(entry.test, LeftOut("no room left in the spec file of the operator"))
    return [entry for place, entry in enumerate(entries) if place in kept]


def loadable(
    folder: Path, operator: str, entries: list[ImportedEntry], comment: str, done: Import
) -> list[ImportedEntry]:
    """Return the entries that the loader accepts: all, or all but those that it refuses alone. The entries of the
    last attempt stay in the operator's file of the folder."""
    path = folder / f"{operator}.yaml"
    if _problem(path, operator, entries, comment) is None:
        return entries
    kept = []
    for entry in entries:
        problem = _problem(path, operator, [entry], comment)
        if problem is None:
            kept.append(entry)
        else:
            done.leave_out(entry.test, LeftOut("what a spec cannot write", problem.rpartition(": ")[2]))
    if kept:
        _problem(path, operator, kept, comment)
    else:
        path.unlink()
    return kept


def _problem(path: Path, operator: str, entries: Sequence[ImportedEntry], comment: str) -> str | None:
    path.write_text(_text(operator, entries, comment), encoding="utf-8", newline="\n")
    try:
        expand(load_specs([path]))
    except SpecError as error:
        return error.problems[0]
    return None


def _text(operator: str, entries: Sequence[ImportedEntry], comment: str) -> str:
    own = own_spec(operator)
    claimed = load_specs([own])[0].model.lowers_to if own.exists() else None
    return spec_file(
        operator,
        [entry.case.opset for entry in entries],
        claimed.directml if claimed else (),
        [entry.lines for entry in entries],
        [comment],
    )


def _judge(path: Path, done: Import) -> None:
    """Hold what the written file documents against the oracle."""
    for case in expand(load_specs([path])):
        prepared = with_inputs(case)
        expected = oracle(prepared, "")
        agrees = expected is not None and contradiction(case, prepared.call, expected) is None
        name = f"{case.operator} {CaseKey.of(case.id).origin.partition('=')[2]}"
        (done.agreeing if agrees else done.contradicting).append(name)
