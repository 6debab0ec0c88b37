"""The signature of a result: the properties that two equal failures share, among them the kind of the first
wrong element."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.model.result import Diff, Error, Result
from harness.model.verdict import Outcome

NEAR_ULP = 4
"""Up to this distance a wrong finite float is an error of rounding (`ulp`), beyond it another number
(`value`)."""
VALUES = frozenset({"NaN", "infinity", "sign", "ulp", "bound", "value", "element"})
"""Kinds that one defect can show on different inputs."""

_FLOAT = re.compile(r"(?P<value>\S+) \(0x(?P<bits>[0-9a-f]+)\)\Z")


def difference(diff: Diff) -> str:
    """Name the kind of a difference by its first wrong element.

    dtype, shape; for floats NaN (on one side), infinity, sign of zero, sign, ulp (at most `NEAR_ULP` apart)
    or value; else element. Where the expected result has a bound: NaN, infinity, sign, bound (an error of at
    most `NEAR_ULP` bounds) or value.
    """
    if diff.first_index is None:
        return "dtype" if diff.expected.partition("[")[0] != diff.actual.partition("[")[0] else "shape"
    if isinstance(diff.bound, float):
        return _beside(diff, diff.bound)
    expected, actual = _FLOAT.match(diff.expected), _FLOAT.match(diff.actual)
    if expected is None or actual is None:
        return "element"
    try:
        a, b = float(expected["value"]), float(actual["value"])
    except ValueError:
        return "element"
    if a != a or b != b:
        return "NaN"
    if abs(a) == float("inf") or abs(b) == float("inf"):
        return "sign" if a == -b else "infinity"
    if a == -b:
        return "sign of zero" if a == 0 else "sign"
    width = len(expected["bits"]) * 4
    distance = abs(_ordered(int(expected["bits"], 16), width) - _ordered(int(actual["bits"], 16), width))
    return "ulp" if distance <= NEAR_ULP else "value"


def place(diff: Diff) -> str:
    """Name where a difference is, as far as that stays when a case becomes smaller: the output, the side that is
    NaN or infinite, and whether a shape has another rank or another extent."""
    kind = difference(diff)
    output = f"output {diff.output}" if isinstance(diff.output, int) else ""
    if kind == "shape":
        ranks = [text.count(",") + ("[]" not in text) for text in (diff.expected, diff.actual)]
        return f"{output} {'extent' if ranks[0] == ranks[1] else 'rank'}".strip()
    if kind in ("NaN", "infinity"):
        word = "nan" if kind == "NaN" else "inf"
        sides = [name for name in ("expected", "actual") if word in getattr(diff, name).partition(" ")[0]]
        return f"{output} {' and '.join(sides)}".strip()
    return output


def _beside(diff: Diff, bound: float) -> str:
    """Name the kind of a difference from a value with a bound."""
    try:
        a, b = float(diff.expected.partition(" ")[0]), float(diff.actual.partition(" ")[0])
    except ValueError:
        return "element"
    if a != a or b != b:
        return "NaN"
    if abs(a) == float("inf") or abs(b) == float("inf"):
        return "infinity"
    if isinstance(diff.error, float) and diff.error <= NEAR_ULP * bound:
        return "bound"
    return "sign" if a * b < 0 else "value"


def _ordered(bits: int, width: int) -> int:
    """Map a float's bits to an integer in the order of the values."""
    sign = 1 << (width - 1)
    return bits ^ ((1 << width) - 1) if bits & sign else bits | sign


_ERROR = 200


class Signature(NamedTuple):
    """The properties of a failure: `stage` is load, run or compare, `error` the class of the error,
    `difference` the kind of the first wrong element of a mismatch; each is empty if it does not apply."""

    outcome: Outcome
    stage: str = ""
    error: str = ""
    difference: str = ""

    @property
    def pooled(self) -> Signature:
        """The signature without what one defect can show differently on different inputs."""
        return self._replace(difference="any") if self.difference in VALUES else self

    def __str__(self) -> str:
        """Write it for people: `mismatch (sign of zero)`, `crash at load (SIGFPE)`."""
        detail = self.difference or self.error
        at = f" at {self.stage}" if self.error and self.stage else ""
        return f"{self.outcome.value}{at}" + (f" ({detail})" if detail else "")


def signature_of(outcome: Outcome, stage: str | None, error: Error | None, diff: Diff | None) -> Signature:
    """Return the signature of an outcome; the class of an error is cut off after 200 characters."""
    return Signature(
        outcome,
        stage or "",
        error.class_[:_ERROR] if error is not None else "",
        difference(diff) if diff is not None else "",
    )


def recorded_signature(result: Result) -> Signature:
    """Return the signature of a result of a run file."""
    return signature_of(result.outcome, result.stage, result.error, result.diff)
