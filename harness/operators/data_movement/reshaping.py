"""Operators that keep the order of elements and change only the shape: Reshape, Squeeze, Unsqueeze, Flatten,
Identity."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.data_movement.moving import Moving, rank, reinterpreted, sampled_axes, wrong_axes
from harness.operators.formulas import moved

# all of them: the elements of the output in row-major order are those of the input in row-major order

MOVING = Moving()


def reshape(data: Array, shape: Array, allowzero: int = 0) -> Array:
    """Reshape: 0 keeps the dimension of the input, or with allowzero is 0; -1 is the rest."""
    wanted = [
        data.shape[n] if extent == 0 and not allowzero else int(extent) for n, extent in enumerate(shape)
    ]
    rest = prod(extent for extent in wanted if extent != -1)
    return data.reshape([data.size // max(rest, 1) if extent == -1 else extent for extent in wanted])


def squeeze(data: Array, axes: Array | tuple[int, ...] | None = None) -> Array:
    """Squeeze: the dimensions of 1 that are named, or all of them, are left out."""
    return np.squeeze(data, None if axes is None else tuple(map(int, axes)))


def unsqueeze(data: Array, axes: Array | tuple[int, ...]) -> Array:
    """Unsqueeze: dimensions of 1 are put in, at their places in the output."""
    return np.expand_dims(data, tuple(map(int, axes)))


def flatten(input: Array, axis: int) -> Array:
    """Flatten: two dimensions, that of those before the axis and that of the others."""
    axis = axis + input.ndim if axis < 0 else axis
    return input.reshape(prod(input.shape[:axis]), prod(input.shape[axis:]))


def identity(input: Array) -> Array:
    """Identity."""
    return input


def _cannot_reshape(call: Call) -> str | None:
    data, wanted, zeros = call.first.shape, call.parameter("shape"), bool(call.attributes.get("allowzero"))
    if not isinstance(wanted, tuple):
        return "shape has one dimension"
    if any(extent < -1 for extent in wanted) or wanted.count(-1) > 1:
        return "at most one dimension is -1, none is below"
    if zeros and 0 in wanted and -1 in wanted:
        return "with allowzero, 0 and -1 do not stand together"
    if not zeros and any(extent == 0 and place >= len(data) for place, extent in enumerate(wanted)):
        return "a 0 stands where the input has a dimension"
    given = [data[place] if extent == 0 and not zeros else extent for place, extent in enumerate(wanted)]
    rest = prod(extent for extent in given if extent != -1)
    if -1 in wanted:
        if rest == 0:
            return "what -1 stands for is determined"
        return "the number of elements stays the same" if prod(data) % rest else None
    return None if rest == prod(data) else "the number of elements stays the same"


def _sampled_shapes(call: Call) -> Iterable[tuple[int, ...]]:
    """One dimension, itself, turned round, 0s that keep, a dimension more, halves, as many as there may
    be."""
    data = call.first.shape
    size = prod(data)
    tried: list[tuple[int, ...]] = [
        (-1,),
        data[::-1],
        (size,),
        (0,) * len(data),
        (1, *data),
        (*data[:1], -1),
        (-1, 1),
        (0, 1, -1) if data else (1, 1),
    ]
    tried.append((2, size // 2) if size % 2 == 0 else (1, -1, 1))
    known = call._replace(attributes={"allowzero": 0})
    found = []
    for shape in dict.fromkeys(tried):
        if _cannot_reshape(known._replace(constants={"shape": np.array(shape, np.int64)})) is None:
            found.append(shape)
    return found


def _cannot_squeeze(call: Call) -> str | None:
    data, axes = call.first.shape, call.parameter("axes")
    if axes is None:
        return None
    if not isinstance(axes, tuple):
        return "axes has one dimension"
    if wrong := wrong_axes(call, axes, len(data)):
        return wrong
    return None if all(data[axis] == 1 for axis in axes) else "only dimensions of 1 are squeezed"


def _ones(call: Call) -> Iterable[tuple[int, ...] | None]:
    """None where all are meant; all dimensions of 1, the first, the last, and these from the end."""
    ones = tuple(axis for axis, extent in enumerate(call.first.shape) if extent == 1)
    ending = tuple(axis - rank(call) for axis in ones)
    tried = [None, ones, ones[:1], ones[-1:], ones[::-1], ending, ending[-1:], ending[:1] + ones[1:]]
    return [
        axes
        for axes in dict.fromkeys(tried)
        if axes != () and (axes is None or wrong_axes(call, axes, rank(call)) is None)
    ]


def _cannot_unsqueeze(call: Call) -> str | None:
    axes = call.parameter("axes")
    if not isinstance(axes, tuple):
        return "axes has one dimension"
    return wrong_axes(call, axes, rank(call) + len(axes))


def _places(call: Call) -> Iterable[tuple[int, ...]]:
    """Lists of one and of two axes of the output, that of no axis, and three in disorder."""
    two, one = sampled_axes(call, rank(call) + 2), sampled_axes(call, rank(call) + 1)
    singles, pairs = [axes for axes in one if len(axes) == 1], [axes for axes in two if len(axes) == 2]
    tried = [*singles[:3], *pairs[:3], (2, 0, 1)]
    return [axes for axes in dict.fromkeys(tried) if wrong_axes(call, axes, rank(call) + len(axes)) is None]


def _cannot_flatten(call: Call) -> str | None:
    axis, low = call.parameter("axis", 1), -rank(call) if call.opset >= 11 else 0
    return None if low <= axis <= rank(call) else "axis in [-r, r]"


def _cuts(call: Call) -> Iterable[int]:
    """All places between dimensions, and the two ends."""
    return range(-rank(call) if call.opset >= 11 else 0, rank(call) + 1)


def moving(name: str, *rest: object, **more: object) -> Operator:
    """Make an operator of this family that DirectML copies."""
    return Operator(name, MOVING, *rest, **{"options": reinterpreted, **more})  # type: ignore[arg-type] # the fields of Operator


OPERATORS = (
    moving(
        "Reshape", moved(reshape), _cannot_reshape, constants={"shape": 1}, domains={"shape": _sampled_shapes}
    ),
    moving("Squeeze", moved(squeeze), _cannot_squeeze, constants={"axes": 1}, domains={"axes": _ones}),
    moving(
        "Unsqueeze", moved(unsqueeze), _cannot_unsqueeze, constants={"axes": 1}, domains={"axes": _places}
    ),
    moving("Flatten", moved(flatten), _cannot_flatten, domains={"axis": _cuts}),
    moving("Identity", moved(identity)),
)
