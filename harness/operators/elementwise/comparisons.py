"""Comparisons of two elements, and tests for the kind of a float: truth values; and logic on these."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import decided

# Equal: C = (A == B)      Greater: C = (A > B)      Less: C = (A < B)      GreaterOrEqual: C = (A >= B)      LessOrEqual: C = (A <= B)
# Not: Y = not X      And: C = A and B      Or: C = A or B      Xor: C = A or B, not both
# IsNaN: Y = (X is NaN)
# IsInf: Y = (X is +inf and detect_positive, or -inf and detect_negative)


def equal(a: Array, b: Array) -> Array:
    """Compare by the formula above; texts element by element."""
    return np.asarray(a == b, np.bool_)


def is_inf(x: Array, detect_negative: int, detect_positive: int) -> Array:
    """Find infinities by the formula above."""
    return np.asarray((np.isposinf(x) & bool(detect_positive)) | (np.isneginf(x) & bool(detect_negative)))


def _infinity_mode(call: Call) -> dict[str, Any]:
    """DML_IS_INFINITY_MODE: either, positive, negative; there is none for neither."""
    asked = bool(call.attributes["detect_negative"]), bool(call.attributes["detect_positive"])
    return {"InfinityMode": {(True, True): 0, (False, True): 1, (True, False): 2}.get(asked, 0)}


OPERATORS = (
    Operator("Equal", ELEMENTWISE, decided(equal)),
    Operator("Greater", ELEMENTWISE, decided(np.greater)),
    Operator("GreaterOrEqual", ELEMENTWISE, decided(np.greater_equal)),
    Operator("Less", ELEMENTWISE, decided(np.less)),
    Operator("LessOrEqual", ELEMENTWISE, decided(np.less_equal)),
    Operator("IsNaN", ELEMENTWISE, decided(np.isnan)),
    Operator("IsInf", ELEMENTWISE, decided(is_inf), options=_infinity_mode),
    Operator("Not", ELEMENTWISE, decided(np.logical_not)),
    Operator("And", ELEMENTWISE, decided(np.logical_and)),
    Operator("Or", ELEMENTWISE, decided(np.logical_or)),
    Operator("Xor", ELEMENTWISE, decided(np.logical_xor)),
)
