"""CumSum and CumProd: the sum or product of the elements up to each, along one axis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from harness.operators.base import Call, DirectmlCall, Operator, one_to_one
from harness.operators.bounded import Bounded, concatenate
from harness.operators.computing import AlongAxis
from harness.operators.formulas import Formula, bounded

# CumSum:  y[i] = x[0] + ... + x[i] along `axis`; exclusive: without x[i]; reverse: from the end
# CumProd: y[i] = x[0] ... x[i], in the same ways


def running(cumulate: Callable[[Any, int], Any], neutral: int) -> Formula:
    """Make the formula of a running sum or product; `neutral` is that of no elements."""

    def formula(x: Any, axis: Any, exclusive: int, reverse: int) -> Any:
        axis = int(np.asarray(axis).reshape(())) % x.ndim
        found = _part(x, axis, slice(None, None, -1)) if reverse else x
        if exclusive:
            first = np.full(_part(found, axis, slice(0, 1)).shape, neutral, getattr(x, "dtype", np.float64))
            found = np.concatenate([first, _part(found, axis, slice(0, -1))], axis=axis)
        found = cumulate(found, axis)
        return _part(found, axis, slice(None, None, -1)) if reverse else found

    return formula


def _part(x: Any, axis: int, chosen: slice) -> Any:
    return x[tuple([slice(None)] * axis + [chosen])]


def _sums(x: Any, axis: int) -> Any:
    return x.cumsum(axis) if isinstance(x, Bounded) else np.cumsum(x, axis, x.dtype)


def _products(x: Any, axis: int) -> Any:
    if not isinstance(x, Bounded):
        return np.cumprod(x, axis, x.dtype)
    parts = [_part(x, axis, slice(n, n + 1)) for n in range(x.shape[axis])]
    return concatenate(list(accumulate(parts, mul)), axis) if parts else x


cumulative_sum = running(_sums, 0)


class Cumulative(AlongAxis):
    """A running result along one axis."""

    lowers, lowers_broken = "", True

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """An axis that is known, counted from the left."""
        if "axis" not in call.constants:
            return None
        axis = int(call.constants["axis"].reshape(()))
        exclusive = "HasExclusiveSum" if candidate.endswith("SUMMATION") else "HasExclusiveProduct"
        members = {
            "Axis": axis + len(call.first.shape) if axis < 0 else axis,
            "AxisDirection": call.parameter("reverse"),
            exclusive: call.parameter("exclusive"),
        }
        return one_to_one(candidate, members, call)


CUMULATIVE = Cumulative()
OPERATORS = (
    Operator("CumSum", CUMULATIVE, bounded(cumulative_sum), constants={"axis": 0}),
    Operator("CumProd", CUMULATIVE, bounded(running(_products, 1)), constants={"axis": 0}),
)
