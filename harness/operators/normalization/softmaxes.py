"""Softmax, LogSoftmax and Hardmax: along an axis (before version 13: along all from an axis on) exponentials
divided by their sum, or 1 at the first maximum."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, all_axes, one_to_one
from harness.operators.bounded import Bounded, exp, log
from harness.operators.computing import Conditioned
from harness.operators.formulas import Formula, bounded, decided

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


class Normalising(Conditioned):
    """One input, one axis, an output of its shape."""

    domain = all_axes

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range."""
        rank, axis = len(call.first.shape), call.parameter("axis")
        return None if -rank <= axis < rank else "axis in [-r, r-1]"


def _lowered(candidate: str | None, call: Call) -> DirectmlCall | None:
    """Lower to an operator with axes; the flattening versions normalise over all from the axis on."""
    rank, axis = len(call.first.shape), call.parameter("axis")
    if candidate is None or not candidate.endswith("1") or not -rank <= axis < rank:
        return None
    first = axis + rank if axis < 0 else axis
    axes = (first,) if call.opset >= FLATTENING else tuple(range(first, rank))
    return one_to_one(candidate, {"Axes": axes}, call)


NORMALISING = Normalising()
OPERATORS = (
    Operator("Softmax", NORMALISING, bounded(along(softmax), (0, 1)), lower=_lowered),
    Operator("LogSoftmax", NORMALISING, bounded(along(log_softmax), (-np.inf, 0)), lower=_lowered),
    Operator("Hardmax", NORMALISING, decided(along(_hardmax)), lower=_lowered),
)
