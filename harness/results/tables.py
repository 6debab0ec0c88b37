"""The tables of a run: counts results as they stream by, and answers what every report asks of the counts.

Every table is a sum over cells (`tally.Cell`), so memory grows with the variety of the cases and not with their
number. Beside the counts the tables keep results that must be read (`unexpected`), the entries that explain known
deviations (`deviations`), and, with more than one target, one small integer per case (`differences`).

`Differences` are cases whose outcome is not the same on every target that ran them, grouped. Finding them costs one
dictionary entry per case, and nothing if a run has a single target.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from harness.model.case import BEYOND, Validity
from harness.model.facets import Facets, dtype_key, facets, telling
from harness.model.header import End, Header
from harness.model.reference.feature_levels import level_key
from harness.model.result import Memory, Result
from harness.model.verdict import NOT_EXECUTED, Outcome, Reading, Verdict
from harness.results.bound_ratios import Nearnesses
from harness.results.cross_check import CrossCheck
from harness.results.known_deviations import Deviations
from harness.results.memory import kind as memory_kind
from harness.results.numbering import Numbering
from harness.results.tally import CaseKind, Cell, State, Tally, shown_kinds, state_of
from harness.results.tensor_support import TensorSupport
from harness.results.unexpected import Unexpected

_CODES = {outcome: number for number, outcome in enumerate(Outcome, start=1)}
_OUTCOMES: dict[int, Outcome] = {number: outcome for outcome, number in _CODES.items()}
_BITS = 4


class Difference(NamedTuple):
    """The cases of an operator on which the targets disagree in one way; `outcomes` is by target, None for
    one that has no such case.

    The tuples name everything that occurs among these cases, sorted.
    """

    operator: str
    validity: Validity
    outcomes: tuple[Outcome | None, ...]
    opsets: tuple[int, ...]
    dtypes: tuple[str, ...]
    types: tuple[str, ...]
    ranks: tuple[int, ...]
    levels: tuple[str, ...]
    number: int
    example: str


class Differences:
    """Collects what each target made of each case."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets
        self.needed = len(targets) > 1
        self._shift = {target: place * _BITS for place, target in enumerate(targets)}
        self._seen: dict[str, int] = {}
        self._kind: dict[str, tuple[Facets, str, Validity]] = {}
        self._kinds: dict[tuple[Facets, str, Validity], tuple[Facets, str, Validity]] = {}

    def add(self, result: Result, read: Facets, level: str) -> None:
        """Note one result; not needed where there is one target."""
        case = result.case
        before = self._seen.get(case, 0)
        self._seen[case] = before | _CODES[result.outcome] << self._shift[result.target]
        if not before:
            kind = (read, level, result.validity)
            self._kind[case] = self._kinds.setdefault(kind, kind)

    def _outcomes(self, packed: int) -> tuple[Outcome | None, ...]:
        return tuple(
            _OUTCOMES.get(packed >> place * _BITS & (1 << _BITS) - 1) for place in range(len(self.targets))
        )

    def groups(self) -> list[Difference]:
        """Group the cases whose outcomes differ between targets that ran them; the largest groups first."""
        unpacked = {packed: self._outcomes(packed) for packed in set(self._seen.values())}
        differing = {
            packed: outcomes
            for packed, outcomes in unpacked.items()
            if len({outcome for outcome in outcomes if outcome is not None and outcome not in NOT_EXECUTED})
            > 1
        }
        found: dict[tuple[str, Validity, tuple[Outcome | None, ...]], dict[tuple[Facets, str], int]] = {}
        examples: dict[tuple[str, Validity, tuple[Outcome | None, ...]], str] = {}
        names = telling(read for read, _, validity in self._kinds if validity is Validity.VALID)
        for case, packed in self._seen.items():
            outcomes = differing.get(packed)
            if outcomes is None:
                continue
            read, level, validity = self._kind[case]
            read = read.shown(names.get(read.operator, ()))
            key = (read.operator, validity, outcomes)
            kinds = found.setdefault(key, {})
            kinds[read, level] = kinds.get((read, level), 0) + 1
            examples[key] = min(examples.get(key, case), case)
        groups = [_group(key, kinds, examples[key]) for key, kinds in found.items()]
        return sorted(groups, key=lambda group: (-group.number, group.operator, group.example))


def _group(
    key: tuple[str, Validity, tuple[Outcome | None, ...]], kinds: dict[tuple[Facets, str], int], example: str
) -> Difference:
    return Difference(
        *key,
        opsets=tuple(sorted({read.opset for read, _ in kinds})),
        dtypes=tuple(sorted({read.dtype for read, _ in kinds if read.dtype}, key=dtype_key)),
        types=tuple(sorted({read.types for read, _ in kinds if read.types})),
        ranks=tuple(sorted({read.rank for read, _ in kinds if read.rank >= 0})),
        levels=tuple(sorted({level for _, level in kinds}, key=level_key)),
        number=sum(kinds.values()),
        example=example,
    )


_STATE_BITS = 24


class Tables:
    """Counts the results of one run. Feed it with `add`, then ask; `finish` says how the run file ended.

    `across_targets=False` leaves out where targets differ, and what that costs a case; `whole_names=True`
    names targets as the header does.
    """

    def __init__(self, header: Header, *, across_targets: bool = True, whole_names: bool = False) -> None:
        self.names = (
            {target: target for target in header.targets} if whole_names else short_names(header.targets)
        )
        """The targets as everything here names them, by the names in the run file."""
        self._renamed = {target: name for target, name in self.names.items() if target != name}
        self.header = header = renamed(header, self.names) if self._renamed else header
        self.end: End | None = None
        self.truncated = False
        self.unexpected = Unexpected()
        self.deviations = Deviations(header.expectations, tuple(header.targets))
        self.differences = Differences(tuple(header.targets) if across_targets else ())
        self.nearnesses = Nearnesses()
        self.tensor_support = TensorSupport(header)
        self.cross_check = CrossCheck(header) if across_targets else None
        self._kinds: Numbering[tuple[Facets, str, Validity]] = Numbering()
        self._states: Numbering[State] = Numbering()
        self._counts: dict[int, int] = {}
        self.uses: Counter[tuple[str, bool]] = Counter()
        """Nodes of models that make the calls of cases, by target and by whether the call is correct."""
        self.memory: Counter[tuple[str, str]] = Counter()
        """Accepted results of cases that should be refused, by target and by what their elements are over
        other memory (`memory.KINDS`)."""
        self.not_run: Counter[tuple[str, str]] = Counter()
        """Results that were not run though the target's API has words for them, by target and error class
        (empty: none is recorded)."""

    def add(self, result: Result, number: int = 1) -> tuple[int, int]:
        """Count one result, or `number` that are counted alike; return the numbers of its `CaseKind` and of its
        `State`."""
        if name := self._renamed.get(result.target):
            result = msgspec.structs.replace(result, target=name)
        read = facets(result.case)
        level = result.levels.get("directml", BEYOND)
        kind = self._kinds[read, level, result.validity]
        state = state_of(result, baseline=self.header.baseline is not None)
        index = self._states[state]
        key = kind << _STATE_BITS | index
        self._counts[key] = self._counts.get(key, 0) + number
        if result.outcome is Outcome.NOT_RUN and state.reading is not None:
            self.not_run[result.target, result.error.class_ if result.error else ""] += number
        if isinstance(result.memory, Memory) and state.reading is Reading.ACCEPTED:
            self.memory[result.target, memory_kind(result.memory)] += number
        if isinstance(result.uses, int):
            self.uses[result.target, state.reading is Reading.CORRECT] += result.uses * number
        if result.accuracy is not UNSET:
            self.nearnesses.add(result, read, number)
        if result.call is not UNSET:
            self.tensor_support.add(result)
        if isinstance(result.expectation, int):
            self.deviations.add(result.expectation, state, level, result.case, number)
        if self.cross_check is not None and self.cross_check.pair is not None:
            self.cross_check.add(result)
        if self.differences.needed:
            self.differences.add(result, read, level)
        if state.unexpected or result.verdict in (Verdict.IMPROVEMENT, Verdict.CHANGED):
            self.unexpected.add(result, read)
        return kind, index

    @property
    def kinds(self) -> list[CaseKind]:
        """The kinds of cases by number, with the element types of those further inputs that tell
        something."""
        return shown_kinds(self._kinds)

    @property
    def states(self) -> list[State]:
        """The states of results by number."""
        return list(self._states)

    def finish(self, end: End | None, *, truncated: bool = False) -> None:
        """Take the run's last line, or learn that it is missing."""
        self.end = end
        self.truncated = truncated or end is None
        for counted in ("cells", "inexpressible", "_by_target"):
            self.__dict__.pop(counted, None)

    @cached_property
    def cells(self) -> dict[Cell, Tally]:
        """The counts by cell; ask after the last `add`."""
        cells: dict[Cell, Tally] = {}
        kinds, states = self.kinds, self.states
        for key, number in self._counts.items():
            kind, state = kinds[key >> _STATE_BITS], states[key & (1 << _STATE_BITS) - 1]
            if state.reading is not None:
                cell = Cell(*kind.facets, kind.level, kind.validity, state.target)
                cells.setdefault(cell, Tally()).add(state, number)
        return cells

    @cached_property
    def inexpressible(self) -> Counter[str]:
        """Cases that a target's API cannot express, by target: they count in no rate."""
        found: Counter[str] = Counter()
        states = self.states
        for key, number in self._counts.items():
            state = states[key & (1 << _STATE_BITS) - 1]
            if state.reading is None:
                found[state.target] += number
        return found

    def by(self, *fields: str, **where: object) -> dict[tuple[Any, ...], Tally]:
        """Sum the cells whose fields equal `where`, grouped by the named fields of `Cell`."""
        places = [Cell._fields.index(field) for field in fields]
        wanted = [(Cell._fields.index(field), value) for field, value in where.items()]
        sums: dict[tuple[Any, ...], Tally] = {}
        for cell, tally in self.cells.items():
            if all(cell[place] == value for place, value in wanted):
                key = tuple([cell[place] for place in places])
                found = sums.get(key)
                if found is None:
                    found = sums[key] = Tally()
                found.include(tally)
        return sums

    def tally(self, **where: object) -> Tally:
        """Sum all cells whose fields equal `where`; the sums over all cells and over each target are kept."""
        if not where.keys() <= {"target"}:
            return self.by(**where).get((), Tally())
        if "target" in where:
            return self._by_target.get(where["target"], Tally())
        total = Tally()
        for tally in self._by_target.values():
            total.include(tally)
        return total

    @cached_property
    def _by_target(self) -> dict[object, Tally]:
        """The sums over each target, from the states alone: cells are many."""
        numbers: Counter[int] = Counter()
        for key, number in self._counts.items():
            numbers[key & (1 << _STATE_BITS) - 1] += number
        states, sums = self.states, dict[object, Tally]()
        for place, number in numbers.items():
            state = states[place]
            if state.reading is not None:
                sums.setdefault(state.target, Tally()).add(state, number)
        return sums

    @property
    def targets(self) -> list[str]:
        """The targets in the order of the header."""
        return list(self.header.targets)

    @cached_property
    def operators(self) -> list[str]:
        return sorted({cell.operator for cell in self.cells})

    @property
    def selected(self) -> int:
        """Results that the run was to produce; what the file holds where its end is missing."""
        counted = sum(self._counts.values()) - sum(self.inexpressible.values())
        return max(counted, self.end.selected) if self.end else counted

    @property
    def problems(self) -> tuple[str, ...]:
        """Stale, unmatched or expired expectations."""
        return self.end.problems if self.end else ()

    @property
    def left_out(self) -> Mapping[str, int]:
        """Cases that were never selected, by reason."""
        return self.end.left_out if self.end else {}


def tabulate(header: Header, results: Iterable[Result], end: End | None) -> Tables:
    """Count the results of a run that is at hand."""
    tables = Tables(header)
    for result in results:
        tables.add(result)
    tables.finish(end)
    return tables


_FOLDERS = re.compile(r"(?<==)(?:[A-Za-z]:)?[^,=]*[\\/](?=[^,\\/]+(?:,|$))")


def short_names(targets: Collection[str]) -> dict[str, str]:
    """Return `fake,script=…/b.yaml` for `fake,script=/a/b.yaml`, by the whole name; two targets that would
    share a name keep theirs."""
    short = {target: _FOLDERS.sub("…/", target) for target in targets}
    times = Counter(short.values())
    return {target: name if times[name] == 1 else target for target, name in short.items()}


def renamed(header: Header, names: dict[str, str]) -> Header:
    """Return a header whose targets have these names."""
    baseline = header.baseline
    if baseline is not None:
        baseline = msgspec.structs.replace(
            baseline, targets={names.get(now, now): then for now, then in baseline.targets.items()}
        )
    targets = {names[target]: info for target, info in header.targets.items()}
    return msgspec.structs.replace(header, targets=targets, baseline=baseline)
