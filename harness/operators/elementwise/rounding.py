"""Ceil and Floor: to the next integer above or below. Round: nearest integer, halves to even (ONNX Round, versions 11 and
22), and DirectML's two other rounding modes as variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.operators.base import Call, Composition, DirectmlCall, Node, Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE, Rounded, broadcast_call
from harness.operators.formulas import decided

TOWARD_ZERO = "toward_zero"
HALVES_AWAY = "halves_away_from_zero"

# Ceil:  Y = the least integer that is not below X
# Floor: Y = the greatest integer that is not above X
# Round:
# Y = the integer nearest to X, of two equally near ones the even one          (no variant; DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN)
# Y = X without its fraction                                                    (toward_zero; DML_ROUNDING_MODE_TOWARD_ZERO)
# Y = the integer nearest to X, of two equally near ones the one farther from 0 (halves_away_from_zero; DML_ROUNDING_MODE_TOWARD_INFINITY)
#
# X itself where X is integral, 0, -0, NaN or infinite. A result 0 keeps the sign of X, as IEEE 754's
# roundToIntegral operations do.


def formula(X: Array, call: Call) -> Array:  # noqa: N803 - as ONNX calls its input
    """Round by the formula above."""
    if call.variant is None:
        return np.asarray(np.rint(X))
    whole = np.trunc(X)
    if call.variant == TOWARD_ZERO:
        return np.asarray(whole)
    one = np.copysign(np.ones((), X.dtype), X)
    return np.where(np.abs(X - whole) >= 0.5, whole + one, whole)  # X - whole is exact


ROUNDING_MODES = {None: 0, TOWARD_ZERO: 1, HALVES_AWAY: 2}
"""DML_ROUNDING_MODE by variant (DirectML.h)."""


def _lowered(candidate: str | None, call: Call) -> DirectmlCall | None:
    """Lower to DML_OPERATOR_ELEMENT_WISE_ROUND, whose RoundingMode is the variant."""
    mode = {"RoundingMode": ROUNDING_MODES[call.variant]}
    return broadcast_call(candidate or "DML_OPERATOR_ELEMENT_WISE_ROUND", call, mode)


def _toward_zero(x: str, y: str, dtype: str) -> list[Node]:
    """Y = sign(X) * Floor(|X|), with a sign that is -0 for -0."""
    return [*_sign_and_floor(x, dtype), Node("Mul", ("sign", "floor"), y)]


def _halves_away(x: str, y: str, dtype: str) -> list[Node]:
    """Y = sign(X) * (Floor(|X|) + 1) where |X| - Floor(|X|) is not below 0.5, sign(X) * Floor(|X|) elsewhere.

    The difference is exact, and one is added only where |X| has a fraction and is therefore small; for NaN
    and infinity the difference is NaN, which is not below 0.5, and adding one changes neither.
    """
    return [
        *_sign_and_floor(x, dtype),
        _constant("half", 0.5, dtype),
        Node("Sub", ("magnitude", "floor"), "fraction"),
        Node("Less", ("fraction", "half"), "near"),
        Node("Not", ("near",), "far"),
        Node("Cast", ("far",), "step", {"to": DTYPES[dtype].onnx}),
        Node("Add", ("floor", "step"), "rounded"),
        Node("Mul", ("sign", "rounded"), y),
    ]


def _sign_and_floor(x: str, dtype: str) -> list[Node]:
    """Make `sign` (-1, 1, and X itself for a zero), `magnitude` |X| and `floor` of it.

    `sign` is Z / |Z| for X clipped to Z in [-1, 1], which keeps infinity from becoming NaN, with 1 for |Z|
    where Z is zero. Where would be shorter, but ONNX Runtime's CPU kernel of it turns -0 into 0.
    """
    return [
        _constant("zero", 0.0, dtype),
        _constant("one", 1.0, dtype),
        _constant("minus_one", -1.0, dtype),
        Node("Min", (x, "one"), "at_most_one"),
        Node("Max", ("at_most_one", "minus_one"), "clipped"),
        Node("Abs", ("clipped",), "clipped_magnitude"),
        Node("Equal", ("clipped", "zero"), "is_zero"),
        Node("Cast", ("is_zero",), "one_for_zero", {"to": DTYPES[dtype].onnx}),
        Node("Add", ("clipped_magnitude", "one_for_zero"), "divisor"),
        Node("Div", ("clipped", "divisor"), "sign"),
        Node("Abs", (x,), "magnitude"),
        Node("Floor", ("magnitude",), "floor"),
    ]


def _through_float32(compose: Composition) -> Composition:
    """Compose on float32 where the type is narrower: both casts are exact, and few providers have all the
    operators in 16 bits."""

    def composed(x: str, y: str, dtype: str) -> Sequence[Node]:
        if dtype not in ("float16", "bfloat16"):
            return compose(x, y, dtype)
        return [
            Node("Cast", (x,), "wide", {"to": DTYPES["float32"].onnx}),
            *compose("wide", "wide_result", "float32"),
            Node("Cast", ("wide_result",), y, {"to": DTYPES[dtype].onnx}),
        ]

    return composed


def _constant(name: str, value: float, dtype: str) -> Node:
    return Node("Constant", (), name, value=Tensor(dtype, np.array(value, DTYPES[dtype].storage)))


OPERATORS = (
    Operator("Ceil", ELEMENTWISE, decided(np.ceil)),
    Operator("Floor", ELEMENTWISE, decided(np.floor)),
    Operator(
        "Round",
        Rounded(),
        decided(formula),
        lower=_lowered,
        variants={TOWARD_ZERO: _through_float32(_toward_zero), HALVES_AWAY: _through_float32(_halves_away)},
    ),
)
