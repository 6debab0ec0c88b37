"""Functions of one number: roots, reciprocals, exponentials and logarithms, the trigonometric and hyperbolic
ones, the error function; its magnitude, its negative, its sign."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Operator, Undefined
from harness.operators.bounded import Bounded, erf
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import Either, bounded, decided

# Each is the function of its name; Reciprocal: y = 1 / x; Log: the natural logarithm.
# Outside of its domain a function is NaN (IEEE 754-2019, 9.2; C17, F.10)


def erf_of_reals(x: Any) -> Bounded:
    """Return the error function of real numbers; ONNX leaves open how its result becomes an integer."""
    if not isinstance(x, Bounded):
        raise Undefined("what becomes of a result that is no integer")
    found: Bounded = erf(x)
    return found


# Abs:  y = |x|
# Neg:  y = -x
# Sign: 1 for input > 0, -1 for input < 0, 0 for input == 0


def sign(x: Array) -> Array | Either:
    """Take the sign by the formula above; for -0, which equals 0, it may be a zero of either sign."""
    found = np.sign(x)
    if found.dtype.kind != "f":
        return found
    return Either(found + found.dtype.type(0), np.where(found == 0, x, found))


OPERATORS = (
    Operator("Sqrt", ELEMENTWISE, bounded(np.sqrt)),
    Operator("Reciprocal", ELEMENTWISE, bounded(np.reciprocal)),
    Operator("Exp", ELEMENTWISE, bounded(np.exp, (0, np.inf))),
    Operator("Log", ELEMENTWISE, bounded(np.log)),
    Operator("Sin", ELEMENTWISE, bounded(np.sin, (-1, 1))),
    Operator("Cos", ELEMENTWISE, bounded(np.cos, (-1, 1))),
    Operator("Tan", ELEMENTWISE, bounded(np.tan)),
    Operator("Asin", ELEMENTWISE, bounded(np.arcsin)),
    Operator("Acos", ELEMENTWISE, bounded(np.arccos, (0, np.inf))),
    Operator("Atan", ELEMENTWISE, bounded(np.arctan)),
    Operator("Sinh", ELEMENTWISE, bounded(np.sinh)),
    Operator("Cosh", ELEMENTWISE, bounded(np.cosh, (1, np.inf))),
    Operator("Tanh", ELEMENTWISE, bounded(np.tanh, (-1, 1))),
    Operator("Asinh", ELEMENTWISE, bounded(np.arcsinh)),
    Operator("Acosh", ELEMENTWISE, bounded(np.arccosh, (0, np.inf))),
    Operator("Atanh", ELEMENTWISE, bounded(np.arctanh)),
    Operator("Erf", ELEMENTWISE, bounded(erf_of_reals, (-1, 1))),
    Operator("Abs", ELEMENTWISE, decided(np.abs)),
    Operator("Neg", ELEMENTWISE, decided(np.negative)),
    Operator("Sign", ELEMENTWISE, decided(sign)),
)
