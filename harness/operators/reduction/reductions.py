"""Reductions: the elements along some axes become one. Sums, products and norms of them, and logarithms of these; the
greatest or least element, and its position."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, Shape, one_to_one
from harness.operators.bounded import EXACT, Bounded, exp, log, number, sqrt, squeeze, where
from harness.operators.computing import AlongAxis, Conditioned
from harness.operators.formulas import Either, Formula, bounded, decided, zeros_of_either_sign


class ReduceFunction(NamedTuple):
    """What differs between reductions: the DML_REDUCE_FUNCTION (DirectML.h), and whether an axis without
    elements has a result."""

    function: int
    empty: bool = True


def axes_of(call: Call) -> tuple[int, ...] | None:
    """Return the axes, counted from the left and each once, that a call reduces; None where one is out of
    range.

    Without axes all are reduced, or none with `noop_with_empty_axes`.
    """
    rank = len(call.first.shape)
    given = call.parameter("axes")
    if not given:
        return () if call.attributes.get("noop_with_empty_axes") else tuple(range(rank))
    counted = tuple(axis + rank if axis < 0 else axis for axis in given)
    return None if any(not 0 <= axis < rank for axis in counted) else tuple(dict.fromkeys(counted))


def reduced(shape: Shape, axes: Iterable[int], keepdims: bool) -> Shape:
    """Return the shape that is left."""
    gone = set(axes)
    return tuple(
        1 if place in gone else extent for place, extent in enumerate(shape) if keepdims or place not in gone
    )


def over_axes(function: Callable[..., Any]) -> Formula:
    """Make a formula of a function of an array, its axes and keepdims."""

    def formula(data: Any, call: Call) -> Any:
        axes = axes_of(call)
        assert axes is not None
        return function(data, axis=axes, keepdims=bool(call.attributes["keepdims"]))

    return formula


class Reducing(Conditioned):
    """One input; `axes` is an attribute, at later opsets an input. `options` is a `ReduceFunction`."""

    lowers, lowers_broken = "DML_OPERATOR_REDUCE", True

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """The first and the last axis from both sides, the two outermost, every second, all, and none
        given."""
        rank = len(call.first.shape)
        if not rank:
            return [()]
        every = tuple(range(rank))
        return dict.fromkeys(
            [(0,), (-1,), (rank - 1,), (-rank,), every[:2], every[-2:], every[::2], every[::-1], every]
        )

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Axes out of range; an empty reduction without a result."""
        axes = axes_of(call)
        if axes is None:
            return "axes in [-r, r-1]"
        shape = call.first.shape
        if (
            not operator.options.empty
            and 0 in [shape[axis] for axis in axes]
            and 0 not in reduced(shape, axes, False)
        ):
            return "a reduction of no elements has no value"
        return None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the reduced shape of data."""
        return (reduced(call.first.shape, axes_of(call) or (), bool(call.attributes.get("keepdims", 1))),)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The reduced dimensions are kept with the size 1."""
        axes = axes_of(call)
        if not axes or operator.options is None:
            return None
        members = {"Function": operator.options.function, "Axes": tuple(sorted(axes))}
        return one_to_one(candidate, members, call, reduced(call.first.shape, axes, True))


REDUCING = Reducing()


# with x the elements of data along `axes`:
#   ReduceSum: sum x         ReduceMean: sum x / n      ReduceProd: prod x       ReduceL1: sum |x|      ReduceL2: sqrt(sum x x)
#   ReduceSumSquare: sum x x      ReduceLogSum: log(sum x)      ReduceLogSumExp: log(sum exp(x))

Axes = tuple[int, ...]


def _in_its_type(function: Callable[..., Any]) -> Callable[[Any, Axes, bool], Any]:
    """Make a function of arrays compute in their own type: integers wrap."""

    def formula(data: Any, axis: Axes, keepdims: bool) -> Any:
        own = {} if isinstance(data, Bounded) else {"dtype": data.dtype}
        return function(data, axis=axis, keepdims=keepdims, **own)

    return formula


_sum, _prod = _in_its_type(np.sum), _in_its_type(np.prod)


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


def _reduction(
    name: str,
    function: Callable[..., Any],
    number: int,
    way: Callable[[Formula], Any] = bounded,
    *,
    empty: bool = True,
) -> Operator:
    return Operator(
        name,
        REDUCING,
        way(over_axes(function)),
        constants={"axes": 1},
        options=ReduceFunction(number, empty),
    )


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


class Locating(AlongAxis):
    """One input, one axis, an output of indices."""

    lowers = ""

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range, or one without elements."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        some = call.first.shape[call.parameter("axis")]
        return None if some else "an axis without elements has no greatest and no least"

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
        members = {"Axes": axes, "AxisDirection": call.parameter("select_last_index", 0)}
        return one_to_one(candidate, members, call, reduced(call.first.shape, axes, True))


LOCATING = Locating()
OPERATORS = (
    _reduction("ReduceMean", _real(mean), 2, empty=False),
    _reduction("ReduceL1", _l1, 3),
    _reduction("ReduceL2", _real(l2), 4),
    _reduction("ReduceLogSum", _real(log_sum), 5),
    _reduction("ReduceLogSumExp", _real(log_sum_exp), 6),
    _reduction("ReduceProd", _prod, 9),
    _reduction("ReduceSum", _sum, 10),
    _reduction("ReduceSumSquare", _sum_square, 11),
    _reduction("ReduceMax", _extreme(np.max, -1), 7, decided),
    _reduction("ReduceMin", _extreme(np.min, 1), 8, decided),
    Operator("ArgMax", LOCATING, decided(_place(np.argmax))),
    Operator("ArgMin", LOCATING, decided(_place(np.argmin))),
)
