"""Reductions that compute: sums, products and norms of the elements along axes, and logarithms of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Operator
from harness.operators.bounded import EXACT, Bounded, exp, log, number, sqrt, squeeze, where
from harness.operators.formulas import bounded
from harness.operators.reduction.reducing import REDUCING, ReduceFunction, over_axes

# with x the elements of data along `axes`:
#   ReduceSum: sum x         ReduceMean: sum x / n      ReduceProd: prod x       ReduceL1: sum |x|      ReduceL2: sqrt(sum x x)
#   ReduceSumSquare: sum x x      ReduceLogSum: log(sum x)      ReduceLogSumExp: log(sum exp(x))

Axes = tuple[int, ...]


def _sum(data: Any, axis: Axes, keepdims: bool) -> Any:
    return (
        data.sum(axis, keepdims)
        if isinstance(data, Bounded)
        else data.sum(axis, data.dtype, keepdims=keepdims)
    )


def _prod(data: Any, axis: Axes, keepdims: bool) -> Any:
    return (
        data.prod(axis, keepdims)
        if isinstance(data, Bounded)
        else data.prod(axis, data.dtype, keepdims=keepdims)
    )


def _l1(data: Any, axis: Axes, keepdims: bool) -> Any:
    return _sum(abs(data), axis, keepdims)


def _sum_square(data: Any, axis: Axes, keepdims: bool) -> Any:
    return _sum(data * data, axis, keepdims)


def mean(data: Bounded, axis: Axes, keepdims: bool) -> Bounded:
    return data.mean(axis, keepdims)


def l2(data: Bounded, axis: Axes, keepdims: bool) -> Bounded:
    return sqrt((data * data).sum(axis, keepdims))


def log_sum(data: Bounded, axis: Axes, keepdims: bool) -> Bounded:
    return log(data.sum(axis, keepdims))


# log(sum exp x) = max x + log(sum exp(x - max x))
def log_sum_exp(data: Bounded, axis: Axes, keepdims: bool) -> Bounded:
    """The formula with the maximum, where that is finite: the one without it overflows for arguments whose
    result is finite. The logarithm of no sum at all, 0, is minus infinity."""
    if 0 in [data.shape[each] for each in axis]:
        return log_sum(data, axis, keepdims)
    most = data.max(axis, True)
    most = where(np.isfinite(most.value), most, np.zeros(most.shape))
    y = log(exp(data - most).sum(axis, True)) + most
    return y if keepdims else squeeze(y, axis=axis)


def _real(function: Callable[[Bounded, Axes, bool], Bounded]) -> Callable[..., Any]:
    """Make a function of integers of one whose results are none; what becomes of them ONNX does not say: here
    they are cut off."""

    def formula(data: Any, axis: Axes, keepdims: bool) -> Any:
        if isinstance(data, Bounded):
            return function(data, axis, keepdims)
        found: Array = function(number(data.astype(np.float64), EXACT), axis, keepdims).value
        return np.nan_to_num(found, posinf=0, neginf=0).astype(data.dtype)

    return formula


def _reduction(name: str, function: Callable[..., Any], number: int, *, empty: bool = True) -> Operator:
    return Operator(
        name,
        REDUCING,
        bounded(over_axes(function)),
        constants={"axes": 1},
        options=ReduceFunction(number, empty),
    )


OPERATORS = (
    _reduction("ReduceMean", _real(mean), 2, empty=False),
    _reduction("ReduceL1", _l1, 3),
    _reduction("ReduceL2", _real(l2), 4),
    _reduction("ReduceLogSum", _real(log_sum), 5),
    _reduction("ReduceLogSumExp", _real(log_sum_exp), 6),
    _reduction("ReduceProd", _prod, 9),
    _reduction("ReduceSum", _sum, 10),
    _reduction("ReduceSumSquare", _sum_square, 11),
)
