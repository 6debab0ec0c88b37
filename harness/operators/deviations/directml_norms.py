"""What ONNX Runtime's DirectML provider gives of norms."""

from __future__ import annotations

import numpy as np

from harness.model.expected import Approx, Expected
from harness.model.float_formats import FORMATS, decode
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation

_EPSILON = 1e-5


# LpNormalization: x / (sum |x|**2 + 1e-5)**(1/2) or x / ((sum |x|)**2 + 1e-5)**(1/2)
# MeanVarianceNormalization: (x - mean) / (variance + 1e-5)**(1/2)
@deviation
def epsilon_within_the_norm(asked: Deviating) -> tuple[Expected, ...]:
    """LpNormalization and MeanVarianceNormalization: 1e-5 is added before the root."""
    (own,) = asked.formula()
    if not isinstance(own, Approx):
        raise Undefined("no value with a bound")
    tensor = next(iter(asked.inputs.values()))
    x = decode(tensor.dtype, tensor.array)
    with np.errstate(all="ignore"):
        if asked.operator.name == "LpNormalization":
            axis, p = asked.call.parameter("axis", -1), asked.call.parameter("p", 2)
            sums = (np.abs(x) ** p).sum(axis, keepdims=True)
            value = x / np.sqrt((sums if p == 2 else sums**2) + _EPSILON)
        else:
            axes = tuple(asked.call.parameter("axes", (0, 2, 3)))
            centred = x - x.mean(axes, keepdims=True)
            value = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + _EPSILON)
    rounding = FORMATS[own.dtype].ulp(np.where(np.isfinite(value), value, 0.0))
    return (Approx(own.dtype, value, 2 * own.bound + 2 * rounding),)


# X / (bias + alpha / (2**32 - 1) * sum) ** beta, which alpha makes no part of
@deviation
def over_2_to_the_32_channels(asked: Deviating) -> tuple[Expected, ...]:
    """LRN: the size is one of 32 bits without a sign, by which the sum is divided to nothing."""
    return asked.formula(size=1, alpha=0.0)
