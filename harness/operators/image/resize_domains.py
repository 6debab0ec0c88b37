"""The scales, sizes, axes and parts that `all` stands for in a sweep of Resize or Upsample."""

from __future__ import annotations

from collections.abc import Iterable

from harness.operators.base import Call
from harness.operators.image.resize_axes import chosen


def _spatial(call: Call) -> int:
    """Return how many of the last axes are resized by `all`: those after the first two of four or more."""
    rank = len(call.first.shape)
    return rank if rank < 4 else rank - 2


def _every(call: Call, values: tuple[float, ...]) -> tuple[float, ...]:
    """Return values, repeated, for the resized ones of all axes or of those that are named."""
    count, among = _spatial(call), chosen(call)
    first = len(call.first.shape) - count
    return tuple(values[(axis - first) % len(values)] if axis >= first else 1.0 for axis in among)


_SCALES = ((2.0,), (0.5,), (1.5, 2.0), (1.0, 3.0), (0.6, 0.8), (2.5, 1.2), (0.5, 1.75, 2.0), (1.0,))


def every_scale(call: Call) -> Iterable[tuple[float, ...]]:
    """2; 1/2; others for each axis, larger, smaller and mixed; 1."""
    if call.opset < 11:
        return list(
            dict.fromkeys(
                _every(call, each) for each in ((2.0,), (3.0,), (1.0, 2.0), (4.0, 1.0, 3.0), (1.0,))
            )
        )
    return list(dict.fromkeys(_every(call, each) for each in _SCALES))


def every_size(call: Call) -> Iterable[tuple[int, ...]]:
    """Twice, half, one more, seven and five, one, as they are."""
    tried = [
        tuple(
            max(1, pick(call.first.shape[axis], place))
            if axis >= len(call.first.shape) - _spatial(call)
            else call.first.shape[axis]
            for place, axis in enumerate(chosen(call))
        )
        for pick in (
            lambda d, _: 2 * d,
            lambda d, _: d // 2,
            lambda d, n: d + 1 + n,
            lambda _, n: 7 - 2 * (n % 3),
            lambda d, n: 3 * d if n % 2 else d - 1,
            lambda *_: 1,
            lambda d, _: d,
        )
    ]
    return list(dict.fromkeys(tried))


def every_axes(call: Call) -> Iterable[tuple[int, ...] | None]:
    """None, which means all; the resized ones, from the end, in reverse, the last, the first, all."""
    rank, count = len(call.first.shape), _spatial(call)
    last = tuple(range(rank - count, rank))
    tried = [None, last, tuple(axis - rank for axis in last), last[::-1], (-1,), (0,), tuple(range(rank))]
    return [each for each in dict.fromkeys(tried) if rank or each is None]


_PARTS = ((0.0, 1.0), (0.25, 0.75), (-0.25, 1.25), (0.1, 0.8), (0.5, 1.5), (1.0, 0.0))


def every_roi(call: Call) -> Iterable[tuple[float, ...]]:
    """All; the middle; more than there is; parts that float32 rounds; half beside it; backwards."""
    found = []
    for start, end in _PARTS:
        resized = _every(call, (2.0,))
        starts = tuple(start if each == 2.0 else 0.0 for each in resized)
        found.append(starts + tuple(end if each == 2.0 else 1.0 for each in resized))
    return found
