"""The counted facts of a case and of its result, the cell of the counts that both select, and the tally of
many results.

A result is counted in one cell: operator, opset, element types, rank, variant, level, validity, target. A tally says
how many of some results have which reading, and how many of those are unexpected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple, TypeVar

from harness.model.case import Validity
from harness.model.facets import Facets, telling
from harness.model.result import Result, inexpressible
from harness.model.verdict import DEFECTS, NOT_EXECUTED, Outcome, Reading, Verdict, why_not_judged


class CaseKind(NamedTuple):
    """The counted facts of a case."""

    facets: Facets
    level: str
    validity: Validity


class State(NamedTuple):
    """The counted facts of a result.

    `reading` is None for a case that the target's API cannot express; `reason` says why a result is not judged,
    empty for any other.
    """

    target: str
    outcome: Outcome
    verdict: Verdict
    reading: Reading | None
    reason: str
    unexpected: bool
    function: bool = False
    """The nodes of a function ran in place of the operator."""


def state_of(result: Result, *, baseline: bool) -> State:
    """Return the counted facts of a result; with `baseline`, unexpected results are those that differ from an earlier
    run."""
    found = None if inexpressible(result) else result.reading
    reason = (
        why_not_judged(result.validity, result.outcome, result.apart) if found is Reading.NOT_JUDGED else ""
    )
    red = found is not None and result.unexpected(baseline=baseline)
    return State(result.target, result.outcome, result.verdict, found, reason, red, bool(result.as_function))


def shown_kinds(found: Collection[tuple[Facets, str, Validity]]) -> list[CaseKind]:
    """Keep of the facets of cases the element types that tell something (`facets.telling`), which only all
    cases together show."""
    names = telling(read for read, _, validity in found if validity is Validity.VALID)
    return [
        CaseKind(read.shown(names.get(read.operator, ())), level, validity) for read, level, validity in found
    ]


class Cell(NamedTuple):
    """One cell of the counts."""

    operator: str
    opset: int
    dtype: str
    rank: int
    types: str
    variant: str
    level: str
    validity: Validity
    target: str


_PLACES = {reading: 2 * place for place, reading in enumerate(Reading)}
_Key = TypeVar("_Key")


def _include(mine: Counter[_Key], others: Counter[_Key]) -> None:
    for key, number in others.items():  # Counter.update costs several times as much
        mine[key] += number


class Tally:
    """Counts of some results by reading, outcome and verdict. A rate is never given without `selected`."""

    __slots__ = ("_numbers", "functions", "outcomes", "reasons", "selected", "unexpected", "verdicts")

    def __init__(self) -> None:
        self.selected = 0
        self.unexpected = 0
        """What turns a run red."""
        self._numbers = [0] * (2 * len(_PLACES))
        """For each reading the known results, then the unexpected ones."""
        self.functions = 0
        """Results of a function's nodes, in place of an operator without a kernel."""
        self.reasons: Counter[str] = Counter()
        """The results that are not judged, by reason."""
        self.outcomes: Counter[Outcome] = Counter()
        self.verdicts: Counter[Verdict] = Counter()

    def add(self, state: State, number: int = 1) -> None:
        """Count results with this state; those that a target's API cannot express count nowhere."""
        if state.reading is None:
            return
        self.selected += number
        self.functions += number * state.function
        self.outcomes[state.outcome] += number
        self.verdicts[state.verdict] += number
        self._numbers[_PLACES[state.reading] + state.unexpected] += number
        self.unexpected += number * state.unexpected
        if state.reason:
            self.reasons[state.reason] += number

    def include(self, other: Tally) -> None:
        """Add another tally's counts."""
        self.selected += other.selected
        self.unexpected += other.unexpected
        self.functions += other.functions
        for place, number in enumerate(other._numbers):
            self._numbers[place] += number
        _include(self.outcomes, other.outcomes)
        _include(self.verdicts, other.verdicts)
        _include(self.reasons, other.reasons)

    def __getitem__(self, reading: Reading) -> int:
        """Count the results with a reading."""
        return self.known(reading) + self.red(reading)

    def known(self, reading: Reading) -> int:
        """Count the results with a reading that turn no run red."""
        return self._numbers[_PLACES[reading]]

    def red(self, reading: Reading) -> int:
        """Count the results with a reading that turn a run red."""
        return self._numbers[_PLACES[reading] + 1]

    @property
    def correct(self) -> int:
        return self[Reading.CORRECT]

    @property
    def defects(self) -> int:
        """Count wrong, crashed and accepted results."""
        return sum(self[reading] for reading in DEFECTS)

    @property
    def run(self) -> int:
        """Results of cases that ran on the target."""
        return self.selected - sum(self.outcomes[o] for o in NOT_EXECUTED)

    def others(self) -> list[tuple[Reading, int]]:
        """Every reading but `correct` that occurs."""
        return [
            (reading, self[reading])
            for reading in Reading
            if reading is not Reading.CORRECT and self[reading]
        ]
