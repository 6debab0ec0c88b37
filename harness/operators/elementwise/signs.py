"""Abs, Neg, Sign: an element's magnitude, its negative, its sign."""

from __future__ import annotations

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import Either, decided

# Abs:  y = |x|
# Neg:  y = -x
# Sign: 1 for input > 0, -1 for input < 0, 0 for input == 0


def sign(x: Array) -> Array | Either:
    """Take the sign by the formula above; for -0, which equals 0, it may be a zero of either sign."""
    found = np.sign(x)
    return (
        Either(found + found.dtype.type(0), np.where(found == 0, x, found))
        if found.dtype.kind == "f"
        else found
    )


OPERATORS = (
    Operator("Abs", ELEMENTWISE, decided(np.abs)),
    Operator("Neg", ELEMENTWISE, decided(np.negative)),
    Operator("Sign", ELEMENTWISE, decided(sign)),
)
