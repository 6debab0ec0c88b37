"""What failures have in common before any rule: outcome, stage, error class, and how the output differs."""

from __future__ import annotations

import re
from math import isinf, isnan
from typing import NamedTuple

from harness.records import Diff, Outcome, Result, Validity

SMALL_ULP = 4
_ERROR = 200
_TENSOR = re.compile(r"[a-z]+\d*\[[\d,]*\]\Z")
_FLOAT = re.compile(r"(?P<value>\S+) \(0x[0-9a-f]+\)\Z")


class Signature(NamedTuple):
    """How results failed. `difference` is of a mismatch: see `difference`."""

    validity: Validity
    outcome: Outcome
    stage: str
    error: str
    difference: str = ""

    @property
    def words(self) -> str:
        """The signature in a few words."""
        parts = [self.outcome.value, self.error, f"at {self.stage}" if self.error and self.stage else "", self.difference]
        return ", ".join(part for part in parts if part)


def signature(result: Result) -> Signature:
    """Return the signature of a result."""
    error = result.error.class_[:_ERROR] if result.error else ""
    differs = difference(result.diff) if result.diff else ""
    return Signature(result.validity, result.outcome, result.stage or "", error, differs)


def difference(diff: Diff) -> str:
    """Name the kind of a difference: dtype, shape; by the first differing element NaN, infinity, sign of zero; ULP; or elements."""
    if diff.first_index is None:
        expected, actual = diff.expected.partition("["), diff.actual.partition("[")
        if _TENSOR.match(diff.expected) and _TENSOR.match(diff.actual):
            return "another dtype" if expected[0] != actual[0] else "another shape"
        return "another dtype or shape"
    wanted, got = _float(diff.expected), _float(diff.actual)
    if wanted is None or got is None:
        return "other elements"
    if isnan(wanted) or isnan(got):
        return "NaN"
    if wanted == got == 0 and (diff.max_ulp or 0) <= 1:
        return "sign of zero"
    if isinf(wanted) or isinf(got):
        return "infinity"
    return f"up to {SMALL_ULP} ULP" if diff.max_ulp is not None and diff.max_ulp <= SMALL_ULP else f"more than {SMALL_ULP} ULP"


def _float(element: str) -> float | None:
    """Read an element as `diff.write_element` writes floats; None for any other text."""
    found = _FLOAT.match(element)
    try:
        return float(found["value"]) if found else None
    except ValueError:
        return None


VALUES = frozenset({"NaN", "infinity", f"up to {SMALL_ULP} ULP", f"more than {SMALL_ULP} ULP", "other elements"})
"""Kinds of difference that one defect can show on different inputs: they are told apart only where no one rule holds for all of them."""
