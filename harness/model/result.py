"""The result of a case on a target, one line of a run file: outcome, verdict, and measurements of its
outputs."""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.model.case import BEYOND, Validity
from harness.model.limits import CaseId, Count, Magnitude, Seconds
from harness.model.verdict import Apart, Outcome, Reading, Verdict, conforms, fails, reading, unexpected

Stage = Literal["load", "run", "compare"]
"""The last stage a case reached: session creation, `session.run`, or the comparison with the oracle."""


class Error(msgspec.Struct, frozen=True):
    """A target's error: the class is compared between releases, the message is only shown."""

    class_: str = msgspec.field(name="class")
    message: str = ""
    by: Literal["core"] | msgspec.UnsetType = msgspec.UNSET
    """Who refused, where that was not the target's provider: ONNX Runtime's core, which did not load the
    model."""


def rounded(seconds: float) -> float:
    """Return a duration to the microsecond, as a run file has it."""
    return int(seconds * 1e6 + 0.5) / 1e6


class Diff(msgspec.Struct, frozen=True):
    """How an output differs from the oracle's.

    `max_ulp` is the largest distance between finite values of a float tensor in units of the last place, None
    where that has no meaning; `expected` and `actual` are the two elements at `first_index` (or the two
    shapes or dtypes), written out. Where the expected result has a bound, `error` and `bound` are those at
    `first_index`, and `largest_error` is the largest of all wrong elements; an error is None where only one
    side is NaN or infinite.
    """

    max_ulp: Count | None
    differing: Count
    total: Count
    first_index: tuple[Count, ...] | None
    expected: str
    actual: str
    error: Magnitude | msgspec.UnsetType | None = msgspec.UNSET
    bound: Magnitude | msgspec.UnsetType = msgspec.UNSET
    output: Count | msgspec.UnsetType = msgspec.UNSET
    """The position of the output that differs; absent for the first."""
    largest_error: Magnitude | msgspec.UnsetType | None = msgspec.UNSET


class Accuracy(msgspec.Struct, frozen=True):
    """How near an output with a bound came to it, whether it kept to it or not.

    `ratio` is the largest error divided by its bound and `ulp` the largest error in units of the last place
    of the output's type, both over the elements where value and output are finite and something is claimed.
    Of `compared` elements, nothing is claimed of `unclaimed`.
    """

    ratio: Magnitude
    ulp: Magnitude
    unclaimed: Count
    compared: Count

    @property
    def claims(self) -> bool:
        """Say whether the comparison tested anything: there was an element with a claim, or no element at
        all."""
        return not self.compared or self.unclaimed < self.compared


class NanBits(msgspec.Struct, frozen=True):
    """Counts of NaNs by their bits, in outputs that are compared to the bit: those with the formula's bits, those
    with the quiet bit set in addition, those with another payload or sign. No verdict depends on them."""

    dtype: str
    kept: Count
    quieted: Count
    changed: Count


class Memory(msgspec.Struct, frozen=True):
    """What became of outputs that are not the oracle's over memory that held one pattern, then another: of
    `total` elements, `unwritten` kept the pattern of the output's buffer, `outside` took the pattern that lay
    around the inputs, and `unstable` others differed from run to run.

    What is none of these was written, and does not depend on what memory held before.
    """

    unwritten: Count
    outside: Count
    unstable: Count
    total: Count


class Repeats(msgspec.Struct, frozen=True):
    """How often an unexpected result recurred when its case was repeated: `runs` repeats, `failed` of them
    wrong, and counts by outcome.

    The run that selected the case counts in none of them, since it failed by choice of the case; older files
    count it too.
    """

    runs: Count
    failed: Count
    outcomes: dict[str, Count]


class Result(msgspec.Struct, frozen=True, tag_field="type", tag="result"):
    """One line of a run file: the result of one case on one target. A pass without a proven provider cannot
    be constructed.

    `repeats` stands only in a result that was repeated; outcome, error and difference are always those of the
    first run.
    """

    case: CaseId
    operator: str
    target: str
    validity: Validity
    levels: dict[str, str]
    outcome: Outcome
    verdict: Verdict
    stage: Stage | None = None
    placed_on: str | None = None
    error: Error | None = None
    diff: Diff | None = None
    seconds: Seconds = 0.0
    repeats: Repeats | msgspec.UnsetType = msgspec.UNSET
    call: str | msgspec.UnsetType = msgspec.UNSET
    """What a case was lowered to, on `directml` alone: the operator, and each tensor's data type and
    DimensionCount."""
    output: str | msgspec.UnsetType = msgspec.UNSET
    """A hash of outputs that are not the oracle's, by which targets are compared bit for bit; 16 hexadecimal
    digits."""

    accuracy: Accuracy | msgspec.UnsetType = msgspec.UNSET
    """How near the outputs came to their bounds, where results have one."""

    empty: bool | msgspec.UnsetType = msgspec.UNSET
    """A pass whose outputs have no element, so that element types and shapes alone were compared."""

    memory: Memory | msgspec.UnsetType = msgspec.UNSET
    """What its elements are over other memory, of a mismatch or an invalid case that was accepted."""

    nans: NanBits | msgspec.UnsetType = msgspec.UNSET
    """The bits of NaNs, where the output and what is expected have one at the same place."""

    function_nodes: Count | msgspec.UnsetType = msgspec.UNSET
    """The number of nodes that ran in the operator's place: the provider has no kernel for it, and ONNX Runtime
    expanded the body that ONNX gives it. Absent where the operator itself ran."""

    sampled: tuple[Count, Count] | msgspec.UnsetType = msgspec.UNSET
    """How many elements of the output were judged of how many, of a call too large to judge all; a place in `diff` is
    one among them."""

    uses: Count | msgspec.UnsetType = msgspec.UNSET
    """How many nodes of models make the call, where the spec says it."""

    transformers: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The transformers of ONNX Runtime's optimizer that changed a graph of several operators, in the order in which
    they did; absent where none did."""

    graph_nodes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The operators of the nodes that these made of the graph."""

    culprit: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The transformer, or the two, without which an optimised graph does what it should."""

    expectation: Count | msgspec.UnsetType = msgspec.UNSET
    """The number, in the header's `expectations`, of the entry that it was judged by; absent for a valid or
    invalid case that conforms."""

    @property
    def as_function(self) -> str:
        """Write how many nodes ran in the operator's place; empty where it ran itself."""
        number = self.function_nodes
        return f"as a function of {number} node{'s' * (number != 1)}" if isinstance(number, int) else ""

    @property
    def beyond(self) -> bool:
        """Say whether no published level allows the lowered call."""
        return BEYOND in self.levels.values()

    @property
    def flaky(self) -> bool:
        """Say whether the case was repeated and gave unequal results."""
        return isinstance(self.repeats, Repeats) and bool(self.repeats.outcomes.keys() - {self.outcome.value})

    @property
    def apart(self) -> Apart:
        """Say why it counts apart, as no pass and no refusal of the provider's; empty for most results."""
        if self.outcome is Outcome.PASS:
            if self.empty is True:
                return "empty"
            claims = not isinstance(self.accuracy, Accuracy) or self.accuracy.claims
            return "" if claims else "unclaimed"
        invalid = self.validity is Validity.INVALID and self.outcome is Outcome.REJECTED
        return "core" if invalid and self.error is not None and self.error.by == "core" else ""

    @property
    def outside(self) -> bool:
        """Say whether its outputs hold memory from outside of its inputs."""
        return isinstance(self.memory, Memory) and self.memory.outside > 0

    @property
    def reading(self) -> Reading:
        """Return the meaning of the result."""
        culprit = isinstance(self.culprit, tuple) and bool(self.culprit)
        return reading(self.validity, self.outcome, self.apart, outside=self.outside, transformed=culprit)

    @property
    def conforms(self) -> bool:
        """Say whether it is what the ONNX operator specification asks for."""
        return conforms(self.validity, self.outcome, outside=self.outside)

    @property
    def fails(self) -> bool:
        """Say whether it deviates and nothing expects that."""
        return fails(self.validity, self.outcome, self.verdict, outside=self.outside)

    def unexpected(self, *, baseline: bool) -> bool:
        """Say whether it turns its run red; `baseline` says that an earlier run judges."""
        return unexpected(self.validity, self.outcome, self.verdict, baseline=baseline, outside=self.outside)

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASS and (
            not self.placed_on or self.diff is not None or self.error is not None
        ):
            raise ValueError("a pass needs a proven provider and has neither diff nor error")


CANNOT_BE_ASKED = {
    "UnknownVersionError": "opset or IR version newer than the release",
    "CannotFeedError": "element type that its Python cannot pass",
}
"""Errors of the worker itself, by class: why the target's release has no way to be asked."""
NOT_EXPRESSIBLE = "NotExpressible"
"""The error class of a case that a target's API has no words for."""


def inexpressible(result: Result) -> bool:
    """Say whether a target's API cannot express a case: it was not run, that is expected, and it counts in no
    rate.

    What only this release cannot be asked (an opset that it does not load) is not run as well, but selected,
    and its rate says so.
    """
    return (
        result.outcome is Outcome.NOT_RUN
        and result.error is not None
        and result.error.class_ == NOT_EXPRESSIBLE
    )


ORACLE_ERROR = "OracleError"
"""The error class of a case whose formula failed, or gave what the case cannot have."""
DECLARED_SHAPE = "DeclaredShape"
"""The error class of right outputs, one of which has another shape than its session declares."""
