"""A tally: how many of some results had which outcome and verdict."""

from __future__ import annotations

from collections import Counter

from harness.model.case import Validity
from harness.model.result import Apart
from harness.model.verdict import NOT_EXECUTED, Outcome, Verdict, conforms, fails, unexpected


class Tally:
    """Counts of some results by outcome and verdict. A rate is never given without `selected`."""

    __slots__ = (
        "conforming",
        "core",
        "empty",
        "failing",
        "functions",
        "known",
        "outcomes",
        "selected",
        "unclaimed",
        "unexpected",
        "verdicts",
    )

    def __init__(self) -> None:
        self.selected = 0
        self.conforming = 0
        """Valid cases that passed, invalid ones that were rejected, and unspecified ones that ran."""
        self.known = 0
        """Results that ran, do not conform, and are expected."""
        self.failing = 0
        """Regressions, changed results, and new ones that do not conform."""
        self.unexpected = 0
        """What turns a run red: the failing ones, and improvements on what was expected."""
        self.unclaimed = 0
        """Results that ran and of whose outputs nothing is claimed: they test nothing, and neither pass nor
        conform."""
        self.empty = 0
        """The same of results whose outputs have no element."""
        self.core = 0
        """Invalid cases that ONNX Runtime's core rejected: the provider was not asked, and does not
        conform."""
        self.functions = 0
        """Results of a function's nodes, in place of an operator without a kernel."""
        self.outcomes: Counter[Outcome] = Counter()
        self.verdicts: Counter[Verdict] = Counter()

    def add(
        self,
        validity: Validity,
        outcome: Outcome,
        verdict: Verdict,
        number: int,
        *,
        baseline: bool,
        apart: Apart = "",
        function: bool = False,
    ) -> None:
        self.selected += number
        self.functions += number * function
        self.outcomes[outcome] += number
        self.verdicts[verdict] += number
        if fails(validity, outcome, verdict):
            self.failing += number
        if unexpected(validity, outcome, verdict, baseline=baseline):
            self.unexpected += number
        if outcome in NOT_EXECUTED:
            return
        if apart:
            setattr(self, apart, getattr(self, apart) + number)
        elif conforms(validity, outcome):
            self.conforming += number
        elif verdict is Verdict.EXPECTED:
            self.known += number

    def include(self, other: Tally) -> None:
        """Add another tally's counts."""
        self.selected += other.selected
        self.conforming += other.conforming
        self.known += other.known
        self.failing += other.failing
        self.unexpected += other.unexpected
        self.unclaimed += other.unclaimed
        self.empty += other.empty
        self.core += other.core
        self.functions += other.functions
        for outcome, number in other.outcomes.items():  # Counter.update costs several times as much
            self.outcomes[outcome] += number
        for verdict, number in other.verdicts.items():
            self.verdicts[verdict] += number

    @property
    def passed(self) -> int:
        """Valid cases with the right result, as far as it has elements and something was claimed of them."""
        return self.outcomes[Outcome.PASS] - self.nothing

    @property
    def nothing(self) -> int:
        """Results that test nothing: no element was compared, or none with a claim."""
        return self.unclaimed + self.empty

    @property
    def run(self) -> int:
        """Results whose target did something."""
        return self.selected - sum(self.outcomes[o] for o in NOT_EXECUTED)

    def others(self) -> list[tuple[Outcome, int]]:
        """Every outcome but `pass` that occurred, in the order of the outcomes."""
        return [(o, self.outcomes[o]) for o in Outcome if o is not Outcome.PASS and self.outcomes[o]]
