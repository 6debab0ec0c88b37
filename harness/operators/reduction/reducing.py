"""The family of reductions: the elements along some axes become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from harness.operators.base import Call, DirectmlCall, Operator, Shape, one_to_one
from harness.operators.computing import Conditioned
from harness.operators.formulas import Formula


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
        members = {"Function": operator.options.function, "AxisCount": len(axes), "Axes": tuple(sorted(axes))}
        return one_to_one(candidate, members, call, reduced(call.first.shape, axes, True))


REDUCING = Reducing()
