"""Results that must be read: every unexpected one, grouped by what happened, with the first of each group
kept whole.

The number of groups is bounded like the number of kept results, because the target supplies the text of an
error class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from harness.model.case import Validity
from harness.model.caseid import elements
from harness.model.facets import Facets, Spread
from harness.model.result import Error, Result
from harness.model.verdict import Outcome, Verdict

KEEP = 2000
"""Results kept whole, by verdict."""
GROUPS = 2000
MESSAGE_LIMIT = 2000
READ = (Verdict.REGRESSION, Verdict.CHANGED, Verdict.NEW, Verdict.IMPROVEMENT)
"""The verdicts that are collected, worst first."""


class UnexpectedKind(NamedTuple):
    """What the results of a group have in common."""

    verdict: Verdict
    target: str
    operator: str
    validity: Validity
    outcome: Outcome
    error: str
    """The class of the error, empty where there is none."""
    flaky: bool


@dataclass
class UnexpectedGroup(Spread):
    """Results of one kind; `example` is the one with the fewest elements."""

    kind: UnexpectedKind
    example: Result

    @property
    def cases(self) -> str:
        """Write which cases, as far as that fits: opsets, element types."""
        return self.which(self.kind.operator)


class Unexpected:
    """Collects results by verdict and by kind."""

    def __init__(self) -> None:
        self.results: dict[Verdict, list[Result]] = {verdict: [] for verdict in READ}
        self.numbers: dict[Verdict, int] = dict.fromkeys(READ, 0)
        self.flaky = 0
        """How many of the results were repeated and did not always do the same."""
        self._groups: dict[UnexpectedKind, UnexpectedGroup] = {}

    def add(self, result: Result, read: Facets) -> None:
        """Take one result that must be read."""
        verdict = result.verdict
        self.numbers[verdict] += 1
        self.flaky += result.flaky
        kept = self.results[verdict]
        if len(kept) < KEEP:
            kept.append(clipped(result))
        error = result.error.class_[:200] if result.error else ""
        kind = UnexpectedKind(
            verdict, result.target, result.operator, result.validity, result.outcome, error, result.flaky
        )
        group = self._groups.get(kind)
        if group is None:
            if len(self._groups) >= GROUPS:
                return
            group = self._groups[kind] = UnexpectedGroup(kind, clipped(result))
        elif _size(result) < _size(group.example):
            group.example = clipped(result)
        group.count(read)

    def groups(self) -> list[UnexpectedGroup]:
        """Return the groups, worst verdict first, then the largest."""
        order = {verdict: place for place, verdict in enumerate(READ)}
        return sorted(
            self._groups.values(), key=lambda group: (order[group.kind.verdict], -group.number, group.kind)
        )


def _size(result: Result) -> tuple[int, str]:
    return elements(result.case), result.case


def clipped(result: Result) -> Result:
    """Cut an error message to `MESSAGE_LIMIT` characters."""
    if result.error is None or len(result.error.message) <= MESSAGE_LIMIT:
        return result
    message = (
        f"{result.error.message[:MESSAGE_LIMIT]}… [{len(result.error.message):,} characters in the run file]"
    )
    return msgspec.structs.replace(result, error=Error(result.error.class_, message))
