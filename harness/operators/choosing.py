"""Where and Clip: one of the elements that are given, unchanged."""

from __future__ import annotations

import numpy as np

from harness.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.elementwise import ELEMENTWISE
from harness.operators.formulas import decided, moved

# Where: output[i] = X[i] where condition[i], else Y[i]
# Clip:  output[i] = min(max(input[i], min), max)


def clip(input: Array, min: Array | float | None = None, max: Array | float | None = None) -> Array:
    """Clip by the formula above; the limits are a scalar each, absent ones limit nothing."""
    found = input
    if min is not None:
        found = np.maximum(found, np.asarray(min, found.dtype))
    if max is not None:
        found = np.minimum(found, np.asarray(max, found.dtype))
    return found


def _limits(call: Call) -> dict[str, float]:
    return {"Min": float(call.parameter("min", -np.inf)), "Max": float(call.parameter("max", np.inf))}


OPERATORS = (
    Operator("Where", ELEMENTWISE, moved(np.where)),
    Operator("Clip", ELEMENTWISE, decided(clip), constants={"min": 0, "max": 0}, options=_limits),
)
