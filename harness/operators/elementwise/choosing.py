"""Where, Clip, Max, Min, Relu, ThresholdedRelu: return one of the given elements unchanged, or a constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import FORMATS
from harness.operators.base import DATA_TYPES, Call, DirectmlCall, Operator
from harness.operators.elementwise.elementwise_family import (
    ELEMENTWISE,
    alike_before_8,
    broadcast_call,
    of_two,
)
from harness.operators.formulas import Either, decided, moved, zeros_of_either_sign

# Where: output[i] = X[i] where condition[i], else Y[i]
# Clip:  output[i] = min(max(input[i], min), max); absent limits are the least and the greatest number of the type
# Max:   max[i] = the greatest of data_0[i], data_1[i], ...      Min: the least of them
# Relu:  Y = max(0, X)
# ThresholdedRelu: Y = X for X > alpha, else 0
#
# Of two zeros with unlike signs, which are equal, either is the greater and the lesser.


def clip(
    input: Array, call: Call, min: Array | float | None = None, max: Array | float | None = None
) -> Array | Either:
    """Clip by the formula above; the limits are a scalar each."""
    least_of_all, greatest_of_all = limits(call.first.dtype)
    low = np.asarray(least_of_all if min is None else min, input.dtype)
    high = np.asarray(greatest_of_all if max is None else max, input.dtype)
    return _either_zero(np.minimum(np.maximum(input, low), high), (input, low, high))


def greatest(data_0: Sequence[Array]) -> Array | Either:
    """Choose the greatest by the formula above."""
    return _extreme(np.maximum, data_0)


def least(data_0: Sequence[Array]) -> Array | Either:
    """Choose the least by the formula above."""
    return _extreme(np.minimum, data_0)


def relu(x: Array) -> Array | Either:
    """Choose the greater of 0 and x."""
    return _extreme(np.maximum, (x, np.zeros((), x.dtype)))


def thresholded_relu(x: Array, alpha: float) -> Array:
    """Keep the elements above alpha."""
    return np.where(x > alpha, x, x.dtype.type(0))


def limits(dtype: str) -> tuple[float, float]:
    """Return the least and the greatest number of an element type."""
    if dtype in FORMATS:
        return -FORMATS[dtype].largest, FORMATS[dtype].largest
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _extreme(choose: Callable[[Array, Array], Array], arrays: Sequence[Array]) -> Array | Either:
    return _either_zero(reduce(choose, arrays), arrays)


def _either_zero(found: Array, candidates: Sequence[Array]) -> Array | Either:
    """Let a zero that was found have the sign of any candidate that is a zero."""
    return zeros_of_either_sign(np.asarray(found), np.stack(np.broadcast_arrays(*candidates)), (0,))


def _clipped(candidate: str | None, call: Call) -> DirectmlCall | None:
    """Lower to CLIP, whose limits are FLOAT, or to CLIP1, whose limits are of the tensors' type."""
    dtype = call.first.dtype
    if candidate is None or dtype not in DATA_TYPES:
        return None
    ends = limits(dtype)
    given = call.parameter("min", ends[0]), call.parameter("max", ends[1])
    found = {
        name: min(max(value, ends[0]), ends[1]) if np.isfinite(value) else value
        for name, value in zip(("Min", "Max"), given, strict=True)
    }
    if candidate == "DML_OPERATOR_ELEMENT_WISE_CLIP":
        attributes: dict[str, Any] = {name: float(value) for name, value in found.items()}
    else:
        number = float if dtype.startswith("float") else int
        attributes = {
            "MinMaxDataType": DATA_TYPES.index(dtype) + 1,
            **{name: {dtype: number(value)} for name, value in found.items()},
        }
    return broadcast_call(candidate, call, attributes, constants=("min", "max"))


OPERATORS = (
    Operator("Where", ELEMENTWISE, moved(np.where)),
    Operator("Clip", ELEMENTWISE, decided(clip), constants={"min": 0, "max": 0}, lower=_clipped),
    Operator(
        "Max",
        ELEMENTWISE,
        decided(greatest),
        rule=alike_before_8,
        lower=of_two("DML_OPERATOR_ELEMENT_WISE_MAX"),
    ),
    Operator(
        "Min", ELEMENTWISE, decided(least), rule=alike_before_8, lower=of_two("DML_OPERATOR_ELEMENT_WISE_MIN")
    ),
    Operator("Relu", ELEMENTWISE, decided(relu)),
    Operator(
        "ThresholdedRelu",
        ELEMENTWISE,
        decided(thresholded_relu),
        options=lambda call: {"Alpha": call.attributes["alpha"]},
    ),
)
