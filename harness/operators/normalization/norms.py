"""LpNormalization, MeanVarianceNormalization, LRN: divide each element by a norm of its neighbours along some
axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.operators.base import Call, DirectmlCall, Operator, one_to_one
from harness.operators.bounded import Bounded, pad, power, sliding_window_view, sqrt, where
from harness.operators.computing import Conditioned
from harness.operators.formulas import bounded
from harness.operators.normalization.softmaxes import NORMALISING

# LpNormalization:           output = input / sum |input| (p = 1), input / sqrt(sum input input) (p = 2), along `axis`; 0 where all are 0
# MeanVarianceNormalization: Y = (X - EX) / sqrt(E(X - EX)^2), over `axes`
# LRN:                       Y[n, c] = X[n, c] / (bias + alpha / size * sum X[n, i] X[n, i]) ^ beta,
#                            i from max(0, c - floor((size - 1) / 2)) to min(C - 1, c + ceil((size - 1) / 2))


def lp_norm(x: Bounded, axis: int, p: int) -> Bounded:
    """Normalise by the formula above."""
    norm = abs(x).sum(axis, keepdims=True) if p == 1 else sqrt((x * x).sum(axis, keepdims=True))
    nothing = (x.value == 0).all(axis, keepdims=True)
    return x / where(nothing, np.ones(norm.shape), norm)


def mean_variance(x: Bounded, axes: tuple[int, ...]) -> Bounded:
    """Normalise by the formula above; an axis counts once."""
    axes = tuple({axis % x.ndim for axis in axes})
    d = x - x.mean(axes, keepdims=True)
    return d / sqrt((d * d).mean(axes, keepdims=True))


def local_response(x: Bounded, size: int, alpha: float, beta: float, bias: float) -> Bounded:
    """Normalise by the formula above; without channels there is nothing to normalise."""
    if not x.shape[1]:
        return x
    reach = [(0, 0)] * x.ndim
    reach[1] = ((size - 1) // 2, size // 2)
    squares = sliding_window_view(pad(x * x, reach), size, 1).sum(-1)
    return x / power(squares * (alpha / size) + bias, beta)


class MeanVariance(Conditioned):
    """One input, some axes, an output of its shape."""

    lowers = ""

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """One axis from either side, the first and the last two, all, and every one but the second."""
        every = tuple(range(len(call.first.shape)))
        return dict.fromkeys(
            [every[:1], (-1,), every[:2], every[-2:], every, tuple(each for each in every if each != 1)]
        )

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Axes out of range."""
        rank = len(call.first.shape)
        return None if all(-rank <= axis < rank for axis in call.parameter("axes")) else "axes in [-r, r-1]"

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1 without scale and bias; ONNX has no epsilon."""
        axes = tuple(sorted(axis % len(call.first.shape) for axis in call.parameter("axes")))
        return one_to_one(candidate, {"Axes": axes, "NormalizeVariance": 1, "Epsilon": 0.0}, call)


class LocalResponse(Conditioned):
    """X [N, C, ...] and a number of channels."""

    lowers, lowers_broken = "", True

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The rank of X and the number of channels."""
        if len(call.first.shape) < 3:
            return "X has a batch, channels and further axes"
        return None if call.parameter("size") >= 1 else "size is positive"

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION takes 4 dimensions."""
        if len(call.first.shape) != 4:
            return None
        members = {name: call.parameter(name.lower()) for name in ("Alpha", "Beta", "Bias")}
        return one_to_one(
            candidate, {"CrossChannel": 1, "LocalSize": call.parameter("size"), **members}, call
        )


def _lp(candidate: str | None, call: Call) -> DirectmlCall | None:
    if candidate is None:
        return None
    axis = call.parameter("axis") % len(call.first.shape)
    return one_to_one(candidate, {"Axis": axis, "Epsilon": 0.0, "P": call.parameter("p")}, call)


def _order(call: Call) -> str | None:
    return None if call.parameter("p") in (1, 2) else "p is 1 or 2"


OPERATORS = (
    Operator("LpNormalization", NORMALISING, bounded(lp_norm), rule=_order, lower=_lp),
    Operator("MeanVarianceNormalization", MeanVariance(), bounded(mean_variance)),
    Operator("LRN", LocalResponse(), bounded(local_response)),
)
