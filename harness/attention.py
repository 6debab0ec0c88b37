"""Results that must be read: whatever is not as expected, grouped by what happened, with the first of them kept whole.

The number of groups is bounded like the number of kept results, because an error class is a target's text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from harness.facets import Facets, dtype_key
from harness.records import Error, Outcome, Result, Validity, Verdict

KEEP = 2000
"""Results kept whole, by verdict."""
GROUPS = 2000
MESSAGE_LIMIT = 2000
READ = (Verdict.REGRESSION, Verdict.CHANGED, Verdict.NEW, Verdict.IMPROVEMENT)
"""The verdicts that are collected, worst first."""


class Kind(NamedTuple):
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
class Group:
    """Results of one kind; `example` is the first of them."""

    kind: Kind
    example: Result
    number: int = 0
    opsets: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)

    @property
    def cases(self) -> str:
        """Write which cases, as far as that fits: opsets, element types."""
        return which_cases(self.kind.operator, self.opsets, self.dtypes)


class Attention:
    """Collects results by verdict and by kind."""

    def __init__(self) -> None:
        self.results: dict[Verdict, list[Result]] = {verdict: [] for verdict in READ}
        self.numbers: dict[Verdict, int] = dict.fromkeys(READ, 0)
        self.flaky = 0
        """How many of the results were repeated and did not always do the same."""
        self._groups: dict[Kind, Group] = {}

    def add(self, result: Result, read: Facets) -> None:
        """Take one result that must be read."""
        verdict = result.verdict
        self.numbers[verdict] += 1
        self.flaky += result.flaky
        kept = self.results[verdict]
        if len(kept) < KEEP:
            kept.append(clipped(result))
        error = result.error.class_[:200] if result.error else ""
        kind = Kind(verdict, result.target, result.operator, result.validity, result.outcome, error, result.flaky)
        group = self._groups.get(kind)
        if group is None:
            if len(self._groups) >= GROUPS:
                return
            group = self._groups[kind] = Group(kind, clipped(result))
        group.number += 1
        group.opsets.add(read.opset)
        group.ranks.add(read.rank)
        if read.dtype:
            group.dtypes.add(read.dtype)

    def groups(self) -> list[Group]:
        """Return the groups, worst verdict first, then the largest."""
        order = {verdict: place for place, verdict in enumerate(READ)}
        return sorted(self._groups.values(), key=lambda group: (order[group.kind.verdict], -group.number, group.kind))


def which_cases(operator: str, opsets: Iterable[int], dtypes: Iterable[str]) -> str:
    """Write which cases a group holds: `Round 11, 22, float16, float32`."""
    named = sorted(dtypes, key=dtype_key)
    shown = ", ".join(named) if len(named) <= 6 else f"{len(named)} element types"
    return f"{operator} {', '.join(map(str, sorted(opsets)))}" + (f", {shown}" if shown else "")


def clipped(result: Result) -> Result:
    """Cut an error message to `MESSAGE_LIMIT` characters."""
    if result.error is None or len(result.error.message) <= MESSAGE_LIMIT:
        return result
    message = f"{result.error.message[:MESSAGE_LIMIT]}… [{len(result.error.message):,} characters in the run file]"
    return msgspec.structs.replace(result, error=Error(result.error.class_, message))
