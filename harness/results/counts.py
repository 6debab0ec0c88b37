"""Counts the results of a run as it proceeds, and derives the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import UNSET

from harness.model.case import Validity
from harness.model.header import ClusterNode, End
from harness.model.result import Result, inexpressible
from harness.model.verdict import NOT_EXECUTED, Outcome, Verdict, unexpected


class _Kind(NamedTuple):
    """What counts alike."""

    validity: Validity
    outcome: Outcome
    verdict: Verdict
    inexpressible: bool
    outside: bool

    def unexpected(self, *, baseline: bool) -> bool:
        return unexpected(self.validity, self.outcome, self.verdict, baseline=baseline, outside=self.outside)


class Counts:
    """What the end record counts: results by what decides of them, and `lost`, how often a target went away."""

    def __init__(self) -> None:
        self._kinds: Counter[_Kind] = Counter()
        self.lost = 0

    def __len__(self) -> int:
        return self._kinds.total()

    def add(self, result: Result) -> None:
        kind = _Kind(result.validity, result.outcome, result.verdict, inexpressible(result), result.outside)
        self._kinds[kind] += 1

    def merge(self, other: Counts) -> None:
        """Add what another part of the run counted."""
        self._kinds += other._kinds
        self.lost += other.lost

    @property
    def outcomes(self) -> Counter[str]:
        """How many results have each outcome."""
        found = Counter[str]()
        for kind, number in self._kinds.items():
            found[kind.outcome.value] += number
        return found

    @property
    def verdicts(self) -> Counter[str]:
        """How many results have each verdict."""
        found = Counter[str]()
        for kind, number in self._kinds.items():
            found[kind.verdict.value] += number
        return found

    @property
    def inexpressible(self) -> int:
        """How many cases a target's API has no words for."""
        return sum(number for kind, number in self._kinds.items() if kind.inexpressible)

    def end(
        self,
        selected: int,
        left_out: Mapping[str, int],
        problems: Iterable[str],
        seconds: float,
        nodes: tuple[ClusterNode, ...] = (),
    ) -> End:
        """Return the last line of a run with these results."""
        outcomes = self.outcomes
        return End(
            selected=selected,
            run=len(self) - sum(outcomes[outcome.value] for outcome in NOT_EXECUTED),
            left_out=dict(sorted(left_out.items())),
            outcomes=dict(sorted(outcomes.items())),
            verdicts=dict(sorted(self.verdicts.items())),
            problems=tuple(dict.fromkeys(problems)),
            seconds=seconds,
            nodes=nodes or UNSET,
        )

    def exit_code(self, problems: tuple[str, ...], *, baseline: bool) -> int:
        """1 for unexpected results, 3 if all that is unexpected is missing targets or unproven placement, 4
        if no target could be asked."""
        kinds = list(self._kinds)
        failing = any(kind.unexpected(baseline=baseline) for kind in kinds)
        only_placement = all(
            kind.outcome is Outcome.NOT_PLACED for kind in kinds if kind.unexpected(baseline=False)
        )
        if (problems and not self.lost) or (failing and not only_placement):
            return 1
        if failing or self.lost or any(kind.verdict is Verdict.MISSING for kind in kinds):
            return 3
        return 4 if all(kind.outcome is Outcome.NOT_RUN for kind in kinds) else 0
