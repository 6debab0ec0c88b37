"""Comparisons of two elements, and tests for the kind of a float: truth values; logic on these; and integers as rows of
bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE, decides
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


# BitwiseAnd, BitwiseOr, BitwiseXor: each bit of C is A's and B's, A's or B's, one of them alone; BitwiseNot:
# each bit of Y is not X's BitShift: Z = X << Y (LEFT) or X >> Y (RIGHT), the sign of X moving in; for Y < 0
# or Y >= bits of T all bits of X are moved out


def bit_shift(x: Array, y: Array, direction: str) -> Array:
    """Shift by the formula above, which version 28 writes out."""
    bits = np.iinfo(x.dtype).bits
    out = (y < 0) | (y >= bits)
    by = np.where(out, 0, y).astype(x.dtype)
    if direction == "LEFT":
        return np.where(out, np.zeros((), x.dtype), np.left_shift(x, by))
    return np.where(out, np.where(x < 0, -1, 0).astype(x.dtype), np.right_shift(x, by))


def _shift(call: Call) -> str:
    direction = call.attributes.get("direction", "LEFT")
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"DirectML shifts LEFT and RIGHT, not {direction}")
    return f"DML_OPERATOR_ELEMENT_WISE_BIT_SHIFT_{direction}"


def _direction(call: Call) -> str | None:
    return None if call.attributes.get("direction") in ("LEFT", "RIGHT") else "direction is LEFT or RIGHT"


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
    Operator("BitwiseAnd", ELEMENTWISE, decided(np.bitwise_and)),
    Operator("BitwiseOr", ELEMENTWISE, decided(np.bitwise_or)),
    Operator("BitwiseXor", ELEMENTWISE, decided(np.bitwise_xor)),
    Operator("BitwiseNot", ELEMENTWISE, decided(np.invert)),
    Operator("BitShift", ELEMENTWISE, decided(bit_shift), rule=_direction, lower=decides(_shift)),
)
