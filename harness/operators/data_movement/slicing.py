"""Slice: elements of a range with a step, along some axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, Shape, one_to_one
from harness.operators.data_movement.moving import all_or_some_axes, rank, wrong_axes
from harness.operators.data_movement.reshaping import MOVING
from harness.operators.formulas import moved

# output[.., i, ..] = data[.., start + i * step, ..]      as long as start + i * step lies before end
#
# A start or end below 0 counts from the end of the dimension d. Then start is held in [0, d] for a positive
# step, in [0, d-1] for a negative one, and end in [0, d] or [-1, d-1]. So says version 13; NumPy takes a
# start before the first element for one behind nothing when the step is negative, and versions 10 and 11 say
# nothing of it.

LEAST, MOST = -(2**63), 2**63 - 1
INT_MAX = (2**31 - 1, MOST)
"""INT_MAX, which stands for the end of a dimension of any size."""


def formula(
    data: Array,
    call: Call,
    starts: object = None,
    ends: object = None,
    axes: object = None,
    steps: object = None,
) -> Array:
    """Cut each axis by the formula above."""
    del starts, ends, axes, steps  # elements that are known before a run: the call has them
    for axis, places in _ranges(call).items():
        data = np.take(data, np.array(places, np.int64), axis)
    return data


def _held(start: int, end: int, step: int, extent: int) -> range:
    start, end = (each + extent if each < 0 else each for each in (start, end))
    if step > 0:
        return range(min(max(start, 0), extent), min(max(end, 0), extent), step)
    return range(min(max(start, 0), extent - 1), min(max(end, -1), extent - 1), step)


def _list(call: Call, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
    found = call.parameter(name)
    return found if isinstance(found, tuple) else default


def _lists(call: Call) -> tuple[tuple[int, ...], ...]:
    """Return starts, ends, axes and steps."""
    starts, ends = _list(call, "starts"), _list(call, "ends")
    axes, steps = _list(call, "axes", tuple(range(len(starts)))), _list(call, "steps", (1,) * len(starts))
    return starts, ends, axes, steps


def _parts(call: Call) -> list[tuple[int, int, int, int]]:
    """Return (axis, start, end, step) as they are given."""
    lists = zip(*_lists(call), strict=True)
    return [(axis % rank(call), start, end, step) for start, end, axis, step in lists]


def _ranges(call: Call) -> dict[int, range]:
    return {axis: _held(start, end, step, call.first.shape[axis]) for axis, start, end, step in _parts(call)}


def _cannot_slice(call: Call) -> str | None:
    starts, ends, axes, steps = _lists(call)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        return "starts, ends, axes and steps have one length"
    if not rank(call):
        return "what is cut of a scalar, which has no axis"
    if len(starts) > rank(call):
        return "at most as many axes as dimensions"
    if wrong := wrong_axes(call, axes, rank(call)):
        return wrong
    if 0 in steps:
        return "no step is 0"
    for axis, start, end, step in _parts(call):
        if step < 0 and call.opset < 13 and start < -call.first.shape[axis]:
            return "what a start before the first element means backwards, version 13 says first"
        if step < 0 and call.opset < 11 and end in INT_MAX:
            return "what INT_MAX means backwards, version 11 says first"
    return None


def _count(call: Call) -> int:
    return len(_list(call, "axes", tuple(range(rank(call)))))


def _places(pick: Callable[[int], tuple[int, ...]]) -> Callable[[Call], Iterable[tuple[int, ...]]]:
    """Make lists of a place in each dimension, from those of a dimension."""

    def places(call: Call) -> Iterable[tuple[int, ...]]:
        shape = call.first.shape
        axes = _list(call, "axes", tuple(range(len(shape))))
        return list(dict.fromkeys(zip(*(pick(shape[axis]) for axis in axes), strict=True))) or [()]

    return places


_STARTS = _places(lambda d: (0, 1, d - 1, d, d // 2, -1, -d - 3, d + 3))
"""The first, the second, the last, one behind it, one of the middle, the last from the end, far below, far above."""
_ENDS = _places(lambda d: (d, 2**31 - 1, -1, 0, 2, -d - 1, LEAST, MOST))
"""The end, far behind it, before the last, the first, its place from the end, before everything, as far as integers
go."""


def _steps(call: Call) -> Iterable[tuple[int, ...] | None]:
    """None, which means 1; forwards and backwards by one, two and more than there is."""
    return [None, *((step,) * _count(call) for step in (1, -1, 2, -2, 7, -7, 2**31 - 1))]


def _window(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall | None:
    """SLICE1: a window, and the way through it; a negative stride begins at the window's end."""
    shape, ranges = call.first.shape, _ranges(call)
    if 0 in outputs[0] or not shape:
        return None
    found = [ranges.get(axis, range(extent)) for axis, extent in enumerate(shape)]
    members = {
        "InputWindowOffsets": tuple(min(each[0], each[-1]) for each in found),
        "InputWindowSizes": tuple(abs(each[-1] - each[0]) + 1 for each in found),
        "InputWindowStrides": tuple(each.step for each in found),
    }
    made = one_to_one("DML_OPERATOR_SLICE1", members, call, outputs[0])
    return made._replace(
        per_dimension={"InputWindowOffsets": 0, "InputWindowSizes": 1, "InputWindowStrides": 1}
    )


OPERATOR = Operator(
    "Slice",
    MOVING,
    moved(formula),
    _cannot_slice,
    constants={"starts": 1, "ends": 1, "axes": 1, "steps": 1},
    domains={"axes": all_or_some_axes, "starts": _STARTS, "ends": _ENDS, "steps": _steps},  # type: ignore[dict-item] # None leaves out
    options=_window,
)
