"""ReduceMax and ReduceMin, ArgMax and ArgMin: the greatest or least element along axes, and its position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, Shape, all_axes, one_to_one
from harness.operators.computing import Conditioned
from harness.operators.formulas import Either, decided, zeros_of_either_sign
from harness.operators.reduction.reducing import REDUCING, ReduceFunction, over_axes, reduced

# ReduceMax: reduced[o] = max of data over `axes`; of no elements minus infinity, or the least number of the type; False < True
# ReduceMin: reduced[o] = min of data over `axes`; of no elements infinity, or the greatest number of the type
# ArgMax:    reduced[o] = the first i with data[i] = max of data along `axis`; select_last_index: the last
# ArgMin:    reduced[o] = the first i with data[i] = min of data along `axis`; select_last_index: the last
#
# Of two zeros with unlike signs, which are equal, either is the greater and the lesser.


def _extreme(choose: Callable[..., Any], sign: int) -> Callable[..., Array | Either]:
    def formula(data: Array, axis: tuple[int, ...], keepdims: bool) -> Array | Either:
        found = np.asarray(choose(data, axis=axis, keepdims=keepdims, initial=_last(data.dtype, sign)))
        return zeros_of_either_sign(found, data, axis, keepdims)

    return formula


def _last(dtype: np.dtype[Any], sign: int) -> Any:
    """Return what every number of a type is at least as far from in one direction."""
    if dtype.kind == "f":
        return dtype.type(sign * np.inf)
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _place(choose: Callable[..., Any]) -> Callable[..., Array]:
    def formula(data: Array, axis: int, keepdims: int, select_last_index: int = 0) -> Array:
        if not select_last_index:
            return np.asarray(choose(data, axis=axis, keepdims=bool(keepdims)), np.int64)
        found = choose(np.flip(data, axis), axis=axis, keepdims=bool(keepdims))
        return np.asarray(data.shape[axis] - 1 - found, np.int64)

    return formula


class Locating(Conditioned):
    """One input, one axis, an output of indices."""

    domain = all_axes
    lowers = ""

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range, or one without elements."""
        shape, axis = call.first.shape, call.parameter("axis")
        if not -len(shape) <= axis < len(shape):
            return "axis in [-r, r-1]"
        return None if shape[axis] else "an axis without elements has no greatest and no least"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the reduced shape of data."""
        shape = call.first.shape
        return (
            reduced(shape, (call.parameter("axis") % max(1, len(shape)),), bool(call.parameter("keepdims"))),
        )

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The dimension of the axis is kept with the size 1; of several the one with the lowest or the
        highest index."""
        axes = (call.parameter("axis") % len(call.first.shape),)
        members = {"AxisCount": 1, "Axes": axes, "AxisDirection": call.parameter("select_last_index", 0)}
        return one_to_one(candidate, members, call, reduced(call.first.shape, axes, True))


LOCATING = Locating()
OPERATORS = (
    Operator(
        "ReduceMax",
        REDUCING,
        decided(over_axes(_extreme(np.max, -1))),
        constants={"axes": 1},
        options=ReduceFunction(7),
    ),
    Operator(
        "ReduceMin",
        REDUCING,
        decided(over_axes(_extreme(np.min, 1))),
        constants={"axes": 1},
        options=ReduceFunction(8),
    ),
    Operator("ArgMax", LOCATING, decided(_place(np.argmax))),
    Operator("ArgMin", LOCATING, decided(_place(np.argmin))),
)
