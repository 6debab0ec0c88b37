"""BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift: integers as rows of bits."""

from __future__ import annotations

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE, decides
from harness.operators.formulas import decided

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
    Operator("BitwiseAnd", ELEMENTWISE, decided(np.bitwise_and)),
    Operator("BitwiseOr", ELEMENTWISE, decided(np.bitwise_or)),
    Operator("BitwiseXor", ELEMENTWISE, decided(np.bitwise_xor)),
    Operator("BitwiseNot", ELEMENTWISE, decided(np.invert)),
    Operator("BitShift", ELEMENTWISE, decided(bit_shift), rule=_direction, lower=decides(_shift)),
)
