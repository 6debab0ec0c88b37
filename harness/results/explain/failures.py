"""Groups the failing results of a run by outcome and signature, with the results that they are compared with,
as rows of one feature table."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from harness.model.case import BEYOND, Validity
from harness.model.query import Query
from harness.model.result import Result
from harness.model.result_key import result_key
from harness.model.verdict import NOT_EXECUTED
from harness.results.compare.comparison import Change, ComparedResult
from harness.results.cross_check import Agreement
from harness.results.result_signature import ResultSignature
from harness.results.rules.feature_table import FeatureTable, Rows
from harness.results.rules.separation import Separation, none
from harness.results.rules.terms import Term
from harness.results.runfile import RunReader
from harness.results.runfile import lines as run_lines
from harness.results.unexpected import clipped


class FailureKind(NamedTuple):
    """The common facts of a group of results. `change` and `before` belong to a comparison; `culprit` are the
    transformers without which an optimised graph conforms."""

    target: str
    known: bool
    signature: ResultSignature
    change: Change | None = None
    before: ComparedResult | None = None
    culprit: tuple[str, ...] = ()

    @property
    def scope(self) -> FailureScope:
        """What the group is held against."""
        return FailureScope(self.target, self.signature.validity, self.before)


class FailureScope(NamedTuple):
    """The results of a target with one validity; in a comparison those that were the same in BASE."""

    target: str
    validity: Validity
    before: ComparedResult | None = None


@dataclass
class FailureGroup:
    """Failing results of one kind and what separates them from the others.

    `signatures` counts kinds of difference that one defect can show on different inputs, with an example of
    each. `otherwise` counts the results that fail in another way although a rule of this group holds for
    them; `apart` are terms that hold for the group and not for these. `missed` and `wrong` are the ids of the
    first exceptions: failing although no rule holds, and passing although one does.
    """

    kind: FailureKind
    example: Result
    rows: array[int] = field(default_factory=lambda: array("i"))
    kinds: array[int] = field(default_factory=lambda: array("B"))
    signatures: Counter[ResultSignature] = field(default_factory=Counter)
    examples: dict[ResultSignature, Result] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    separation: Separation = field(default_factory=none)
    population: int = 0
    """How many results the group is held against."""
    all_changed: bool = False
    """In a comparison: whatever did the same in BASE changed, so the group is held against all results that
    did not change."""
    otherwise: int = 0
    apart: tuple[Term, ...] = ()
    cross_check: str = ""
    """The target that calls the same DirectML.dll in another way, where the run has one."""
    agreements: Counter[Agreement] = field(default_factory=Counter)
    """What the two say together, of the cases that both express."""
    missed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """How many results fail in this way."""
        return len(self.rows)

    def add(self, row: int, result: Result, exactly: ResultSignature) -> None:
        """Take one result."""
        if exactly not in self.examples:
            self.examples[exactly] = clipped(result)
        self.signatures[exactly] += 1
        self.rows.append(row)
        self.kinds.append(min(list(self.signatures).index(exactly), 255))
        self.operators[result.operator] += 1

    def by_signature(self) -> list[Rows]:
        """Part the rows by the kind of difference."""
        rows, kinds = np.array(self.rows, np.intp), np.array(self.kinds)
        return [rows[kinds == number] for number in range(len(self.signatures))]


class Failures:
    """The results of a run that can be explained, row by row."""

    def __init__(self) -> None:
        self.table = FeatureTable()
        self.groups: dict[FailureKind, FailureGroup] = {}
        self.passing: dict[FailureScope, array[int]] = defaultdict(lambda: array("i"))
        self._lines = array("I")
        self._seen: set[bytes] = set()

    def fail(self, line: int, result: Result, kind: FailureKind) -> None:
        """Take a failing result, which stands on a line of the run file."""
        culprit = result.culprit if isinstance(result.culprit, tuple) else ()
        pooled = kind._replace(signature=kind.signature.pooled, culprit=culprit)
        group = self.groups.get(pooled)
        if group is None:
            group = self.groups[pooled] = FailureGroup(pooled, clipped(result))
        group.add(self._row(line, result), result, kind.signature)

    def hold(self, line: int, result: Result, scope: FailureScope) -> None:
        """Take a result that failures are held against."""
        self.passing[scope].append(self._row(line, result))

    def once(self, run: RunReader, line: int, result: Result, place: int) -> None:
        """Refuse a result that is in the run twice. Errors: UsageError."""
        key = result_key(result.case, place)
        if key in self._seen:
            raise run.twice(line, result)
        self._seen.add(key)

    def _row(self, line: int, result: Result) -> int:
        self._lines.append(line)
        self.table.add(result.case, result.levels.get("directml", BEYOND))
        return len(self._lines) - 1

    def lines(self, rows: Rows) -> list[int]:
        """Return on which lines of the run file rows stand."""
        return [self._lines[row] for row in rows.tolist()]


def selected(result: Result, queries: Sequence[Query]) -> bool:
    """Say whether a result can be explained: it ran, the specification defines the right result (or it is a
    crash), and a query selects it."""
    if result.outcome in NOT_EXECUTED or (result.validity is Validity.UNSPECIFIED and result.conforms):
        return False
    return not queries or any(query.matches(result.case) for query in queries)


def cases_at(run: RunReader, lines: set[int]) -> dict[int, str]:
    """Read the ids that stand on some lines of a run file."""
    found: dict[int, str] = {}
    for number, text in enumerate(run_lines(run.path), start=1):
        if number in lines:
            found[number] = msgspec.json.decode(text, type=Result).case
            if len(found) == len(lines):
                break
    return found
