"""LpNormalization, MeanVarianceNormalization, LRN: divide each element by a norm of its neighbours along some axes.
Softmax, LogSoftmax and Hardmax: along an axis (before version 13: along all from an axis on) exponentials divided by
their sum, or 1 at the first maximum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, one_to_one
from harness.operators.bounded import Bounded, exp, log, pad, power, sliding_window_view, sqrt, where
from harness.operators.computing import ALONG_AXIS, Conditioned
from harness.operators.formulas import Formula, bounded, decided

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


# Hardmax: 1 if the element is the first maximum along `axis`, 0 otherwise

FLATTENING = 13
"""The version before which the input is taken for a matrix, its rows from `axis` on."""


# S(x, axis) = exp(x - max(x)) / sum(exp(x - max(x)))              (Softmax, version 13: along one axis)
def softmax(x: Bounded, axis: int) -> Bounded:
    e = exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# log(S(x, axis)) = x - max(x) - log(sum(exp(x - max(x))))          (LogSoftmax, version 13)
def log_softmax(x: Bounded, axis: int) -> Bounded:
    d = x - x.max(axis, keepdims=True)
    return d - log(exp(d).sum(axis, keepdims=True))


def _hardmax(x: Array, axis: int) -> Array:
    found = np.zeros_like(x)
    np.put_along_axis(found, np.argmax(x, axis, keepdims=True), 1, axis)
    return found


def along(function: Callable[[Any, int], Any]) -> Formula:
    """Make a formula of a function along one axis; an older one flattens its input first."""

    def formula(input: Any, axis: int, call: Call) -> Any:
        if not input.size:
            return input
        if call.opset >= FLATTENING:
            return function(input, axis)
        place = axis + input.ndim if axis < 0 else axis
        rows = input.reshape(prod(input.shape[:place]), prod(input.shape[place:]))
        return function(rows, 1).reshape(input.shape)

    return formula


def _lowered(candidate: str | None, call: Call) -> DirectmlCall | None:
    """Lower to an operator with axes; the flattening versions normalise over all from the axis on."""
    rank, axis = len(call.first.shape), call.parameter("axis")
    if candidate is None or not candidate.endswith("1") or not -rank <= axis < rank:
        return None
    first = axis + rank if axis < 0 else axis
    axes = (first,) if call.opset >= FLATTENING else tuple(range(first, rank))
    return one_to_one(candidate, {"Axes": axes}, call)


OPERATORS = (
    Operator("LpNormalization", ALONG_AXIS, bounded(lp_norm), rule=_order, lower=_lp),
    Operator("MeanVarianceNormalization", MeanVariance(), bounded(mean_variance)),
    Operator("LRN", LocalResponse(), bounded(local_response)),
    Operator("Softmax", ALONG_AXIS, bounded(along(softmax), (0, 1)), lower=_lowered),
    Operator("LogSoftmax", ALONG_AXIS, bounded(along(log_softmax), (-np.inf, 0)), lower=_lowered),
    Operator("Hardmax", ALONG_AXIS, decided(along(_hardmax)), lower=_lowered),
)
