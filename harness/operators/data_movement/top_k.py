"""TopK: the k greatest or least elements along an axis, and their positions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Shape, all_axes
from harness.operators.computing import AlongAxis
from harness.operators.formulas import decided

# Indices[..., j, ...] = where the j-th greatest (with largest = 0: least) element of X along `axis` stands,
# of equal ones the one with the lower index first; Values[..., j, ...] = X there


def top_k(X: Array, call: Call, axis: int, largest: int = 1) -> tuple[Array, Array]:  # noqa: N803 # as ONNX names it
    """Choose by the formula above: a stable order, for the greatest read from its end."""
    if largest:
        order = np.flip(X.shape[axis] - 1 - np.argsort(np.flip(X, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(X, axis, kind="stable")
    kept = np.take(order, np.arange(wanted(call)), axis).astype(np.int64)
    return np.take_along_axis(X, kept, axis), kept


def wanted(call: Call) -> int:
    """Return how many elements are wanted: an attribute, at later opsets an input."""
    given = call.parameter("K", call.parameter("k", 0))
    return int(given[0] if isinstance(given, tuple) else given)


class Ranking(AlongAxis):
    """One input, one axis and a number; an output of values and one of indices."""

    count = 2
    lowers = "DML_OPERATOR_TOP_K1"

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[int | tuple[int, ...]]:
        """All axes of rank r: -r to r-1; 1, 2, half, all but one and all elements of the last axis."""
        if attribute == "axis":
            return all_axes(self, operator, attribute, call)
        last = (0, *call.first.shape)[-1]
        numbers = [n for n in dict.fromkeys((1, 2, last // 2, last - 1, last)) if 0 < n <= last]
        return numbers if attribute == "k" else [(n,) for n in numbers]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range, a number that is no number of its elements."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        if len(call.parameter("K", (0,))) != 1:
            return "K holds a single value"
        if wanted(call) < 1:
            return "K is positive"
        extent = call.first.shape[call.parameter("axis")]
        return None if wanted(call) <= extent else "K is at most the extent of the axis"

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of X with k along the axis."""
        shape = list(call.first.shape)
        shape[call.parameter("axis")] = wanted(call)
        return (tuple(shape),) * 2

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The indices are unsigned."""
        if not call.parameter("sorted", 1):
            return None
        x = call.first
        (kept, _) = self.output_shapes(operator, call)
        tensors = {
            "InputTensor": CallTensor("X", *x),
            "OutputValueTensor": CallTensor(0, x.dtype, kept),
            "OutputIndexTensor": CallTensor(1, "uint64", kept),
        }
        members = {
            "Axis": call.parameter("axis") % len(x.shape),
            "K": wanted(call),
            "AxisDirection": call.parameter("largest", 1),
        }
        return DirectmlCall(candidate, tensors, 1, members, axes=("Axis",))


OPERATOR = Operator("TopK", Ranking(), decided(top_k), constants={"K": 1})
