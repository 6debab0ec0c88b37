"""ReduceSum and CumSum: sums along axes, of all elements or of those up to each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.operators.base import Call, CallTensor, DirectmlCall, Operator
from harness.operators.computing import Computing
from harness.operators.formulas import bounded
from harness.operators.reducing import REDUCING, Reduction, over_axes

# ReduceSum: reduced[o] = sum of data over `axes`
# CumSum:    y[i] = x[0] + ... + x[i] along `axis`; exclusive: without x[i]; reverse: from the end

SUM = 9
"""DML_REDUCE_FUNCTION_SUM (DirectML.h)."""


def _sum(data: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return np.sum(data, axis=axis, keepdims=keepdims, **({"dtype": data.dtype} if isinstance(data, np.ndarray) else {}))


def cumsum(x: Any, axis: Any, exclusive: int, reverse: int) -> Any:
    """Sum by the formula above."""
    axis = int(np.asarray(axis).reshape(())) % x.ndim
    flip = (slice(None),) * axis + (slice(None, None, -1),)
    found = x[flip] if reverse else x
    if exclusive:
        first = (slice(None),) * axis + (slice(0, 1),)
        rest = (slice(None),) * axis + (slice(0, -1),)
        found = np.concatenate([found[first] * 0, found[rest]], axis=axis)
    found = np.cumsum(found, axis=axis, **({"dtype": x.dtype} if isinstance(x, np.ndarray) else {}))
    return found[flip] if reverse else found


class Cumulative(Computing):
    """One input, one axis, an output of its shape."""

    name = "cumulative"

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[int]:
        """All axes of rank r: -r to r-1."""
        rank = len(call.first.shape)
        return range(-rank, rank)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range."""
        rank, axis = len(call.first.shape), call.parameter("axis", 0)
        axis = axis[0] if isinstance(axis, tuple) else axis
        return None if -rank <= axis < rank else "axis in [-r, r-1]"


def _cumulative(candidate: str | None, call: Call) -> DirectmlCall | None:
    if candidate != "DML_OPERATOR_CUMULATIVE_SUMMATION" or "axis" not in call.constants:
        return None
    x = call.first
    axis = int(call.constants["axis"].reshape(()))
    members = {
        "Axis": axis + len(x.shape) if axis < 0 else axis,
        "AxisDirection": int(call.attributes["reverse"]),  # type: ignore[arg-type] # an INT
        "HasExclusiveSum": int(call.attributes["exclusive"]),  # type: ignore[arg-type] # an INT
    }
    tensors = {"InputTensor": CallTensor("x", *x), "OutputTensor": CallTensor(0, *x)}
    return DirectmlCall(candidate, tensors, 1, members, axes=("Axis",))


OPERATORS = (
    Operator("ReduceSum", REDUCING, bounded(over_axes(_sum)), constants={"axes": 1}, options=Reduction(SUM)),
    Operator("CumSum", Cumulative(), bounded(cumsum), constants={"axis": 0}, lower=_cumulative),
)
