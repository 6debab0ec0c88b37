"""Counts the results of a run as it proceeds, and derives the exit code."""

from __future__ import annotations

from collections import Counter

from harness.model.case import Validity
from harness.model.verdict import Outcome, Verdict, unexpected


class Counts:
    """What the end record counts."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.failing = 0
        self.improved = 0
        self.lost = 0
        self.inexpressible = 0
        self.only_placement = True

    def add(
        self, validity: Validity, outcome: Outcome, verdict: Verdict, *, inexpressible: bool = False
    ) -> None:
        self.outcomes[outcome.value] += 1
        self.verdicts[verdict.value] += 1
        self.inexpressible += inexpressible
        if not unexpected(validity, outcome, verdict, baseline=False):
            return
        self.failing += 1
        self.improved += not unexpected(validity, outcome, verdict, baseline=True)
        self.only_placement &= outcome is Outcome.NOT_PLACED

    def merge(self, other: Counts) -> None:
        """Add what another part of the run counted."""
        self.outcomes += other.outcomes
        self.verdicts += other.verdicts
        self.failing += other.failing
        self.improved += other.improved
        self.lost += other.lost
        self.inexpressible += other.inexpressible
        self.only_placement &= other.only_placement

    def exit_code(self, problems: tuple[str, ...], *, baseline: bool) -> int:
        """1 for unexpected results, 3 if all that is unexpected is missing targets or unproven placement, 4
        if no target could be asked."""
        failing = self.failing - (self.improved if baseline else 0)
        if (problems and not self.lost) or (failing and not self.only_placement):
            return 1
        if failing or self.lost or self.verdicts[Verdict.MISSING.value]:
            return 3
        return 4 if self.outcomes[Outcome.NOT_RUN.value] == self.outcomes.total() else 0
