"""What is counted of a case and of its result, and the cell of the counts that both make.

A result is counted in one cell: operator, opset, element types, rank, variant, level, validity, target.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.facets import Facets, telling
from harness.model.result import Result, inexpressible
from harness.model.verdict import Outcome, Reading, Verdict, why_not_judged


class CaseKind(NamedTuple):
    """What is counted of a case."""

    facets: Facets
    level: str
    validity: Validity


class State(NamedTuple):
    """What is counted of what a target did with it.

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
    """Return what is counted of a result; `baseline` says that an earlier run judges."""
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
