"""What ONNX Runtime's DirectML provider gives of reductions and normalisations."""

from __future__ import annotations

import numpy as np

from harness.model.expected import Approx, Expected
from harness.model.float_formats import FORMATS, decode
from harness.operators.bounded import Bounded, converted, exp, log, sqrt
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.formulas import bounded
from harness.operators.reducing import over_axes

EPSILON = 1e-5
"""What the provider adds to squares before it takes a root."""


@deviation
def sums_exponentials_as_they_are(asked: Deviating) -> tuple[Expected, ...]:
    """ReduceLogSumExp: log(sum(exp(x))), in float32."""

    def reduced(data: Bounded, axis: tuple[int, ...], keepdims: bool) -> Bounded:
        return log(exp(converted(data, "float32")).sum(axis, keepdims))

    return bounded(over_axes(reduced))(asked.call, asked.inputs, asked.arithmetic)


# LpNormalization: input / sqrt(norm norm + epsilon);  MeanVarianceNormalization: (X - EX) / sqrt(E(X - EX)^2 + epsilon)
@deviation
def adds_epsilon(asked: Deviating) -> tuple[Expected, ...]:
    """Normalise by the formulas above."""
    formula = _lp_norm if asked.operator.name == "LpNormalization" else _mean_variance
    return bounded(formula)(asked.call, asked.inputs, asked.arithmetic)


def _lp_norm(x: Bounded, axis: int, p: int) -> Bounded:
    norm = abs(x).sum(axis, keepdims=True) if p == 1 else None
    square = (x * x).sum(axis, keepdims=True) if norm is None else norm * norm
    return x / sqrt(square + EPSILON)


def _mean_variance(x: Bounded, axes: tuple[int, ...]) -> Bounded:
    d = x - x.mean(axes, keepdims=True)
    return d / sqrt((d * d).mean(axes, keepdims=True) + EPSILON)


@deviation
def mean_in_float16(asked: Deviating) -> tuple[Expected, ...]:
    """LayerNormalization: the mean is that of float16, within one unit in the last place of the greatest element."""
    y, *statistics = asked.formula()
    assert isinstance(y, Approx)
    x, scale = (decode(asked.inputs[name].dtype, asked.inputs[name].array) for name in ("X", "Scale"))
    over = tuple(range(asked.call.parameter("axis") % x.ndim, x.ndim))
    d = x - x.mean(over, keepdims=True)
    root = np.sqrt((d * d).mean(over, keepdims=True) + asked.call.parameter("epsilon"))
    moved = FORMATS["float16"].ulp(np.abs(x).max(over, keepdims=True)) / root
    bound = y.bound + moved * np.abs(scale) * (1 + np.abs(d / root))
    return Approx(y.dtype, y.value, bound), *statistics
