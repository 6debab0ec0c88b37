"""The family of operators that move, repeat or omit elements of their first input and compute nothing.

The formula defines the operator: the shapes of its outputs are those that the formula returns for inputs of
zeros, so that nothing is stated twice. `options` lowers the operator to DirectML: a function of the call and
the shapes of its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.operators.base import Call, DirectmlCall, Family, Operator, Shape, one_to_one

IDENTITY = "DML_OPERATOR_ELEMENT_WISE_IDENTITY"
NEGATIVE_AXES = 11
"""The opset since which most operators take axes that count from the end."""


class Moving(Family):
    """Data that takes any bits; everything else is an attribute, or an input whose elements are known before
    a run."""

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shapes that the formula gives."""
        return shapes_by_formula(operator, call)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """The call that `options` makes of one that breaks no rule."""
        if operator.options is None or operator.broken_rule(call) is not None:
            return None
        made: DirectmlCall | None = operator.options(call, self.output_shapes(operator, call))
        return made if made is None or candidate in (None, made.operator) else None


def shapes_by_formula(operator: Operator, call: Call) -> tuple[Shape, ...]:
    """Return the shapes of what the formula makes of zeros, and of those elements that are known."""
    zeros = {
        name: Tensor(
            given.dtype,
            call.constants.get(name, np.broadcast_to(np.zeros((), DTYPES[given.dtype].storage), given.shape)),
        )
        for name, given in call.inputs.items()
    }
    return tuple(found.shape for found in operator.oracle(call, zeros, "opencl"))


def rank(call: Call) -> int:
    """Return the rank of the first input."""
    return len(call.first.shape)


def axis_of(call: Call) -> int:
    """Return the axis that a call names, 0 by default."""
    return int(call.parameter("axis", 0))


def least_axis(call: Call, dimensions: int, since: int = NEGATIVE_AXES) -> int:
    """Return the least axis of a number of dimensions: axes below 0 exist since an opset."""
    return -dimensions if call.opset >= since else 0


def every_axis(call: Call) -> Iterable[int]:
    """Return all axes of the first input: from the opset on that allows it, -r to r-1."""
    return range(least_axis(call, rank(call)), rank(call))


def wrong_axis(call: Call, axis: int, dimensions: int, since: int = NEGATIVE_AXES) -> str | None:
    """Return the rule that an axis breaks, or None."""
    if least_axis(call, dimensions, since) <= axis < dimensions:
        return None
    return "axis in [-r, r-1]" if call.opset >= since else "axis in [0, r-1]: negative axes came later"


def wrong_axes(call: Call, axes: tuple[int, ...], dimensions: int) -> str | None:
    """Return the rule that a list of axes breaks, or None."""
    for axis in axes:
        if wrong := wrong_axis(call, axis, dimensions):
            return wrong
    return None if len({axis % dimensions for axis in axes}) == len(axes) else "axes are distinct"


def sampled_axes(call: Call, dimensions: int | None = None) -> list[tuple[int, ...]]:
    """Return lists of axes worth trying: the first, the last, a middle one, several, out of order, all, and
    negative ones."""
    count = rank(call) if dimensions is None else dimensions
    low = least_axis(call, count)
    last = -1 if low else count - 1
    tried = [
        (0,),
        (count - 1,),
        (low,),
        (last,),
        (count // 2,),
        (count - 1, 0),
        (0, last),
        tuple(range(count)),
    ]
    return [axes for axes in dict.fromkeys(tried) if wrong_axes(call, axes, count) is None]


def all_or_some_axes(call: Call) -> Iterable[tuple[int, ...] | None]:
    """Return None, which means all, and lists of axes."""
    return [None, *sampled_axes(call)]


def reinterpreted(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    """Copy: the input's elements are read as if they had the output's shape already."""
    return one_to_one(IDENTITY, {}, call, outputs[0], outputs[0])
