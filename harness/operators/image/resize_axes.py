"""What Resize and Upsample do with each axis: its length, its scale, and where its elements lie in the
original one; and the scales, sizes, axes and parts that `all` stands
for in a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import numpy as np

from harness.operators.base import Call, Shape
from harness.operators.bounded import Arithmetic, Bounded, number
from harness.operators.image.resampling import exact_where

TF, HALF_FOR_NEAREST = "tf_crop_and_resize", "tf_half_pixel_for_nn"
MODES = {
    "half_pixel": range(11, 100),
    "half_pixel_symmetric": range(19, 100),
    "pytorch_half_pixel": range(11, 100),
    "align_corners": range(11, 100),
    "asymmetric": range(11, 100),
    HALF_FOR_NEAREST: range(11, 13),
    TF: range(11, 100),
}
"""The opsets that have a value of coordinate_transformation_mode."""
_DIVIDE = ("ieee", "opencl")
"""Arithmetics of processors that divide as IEEE 754 does: a quotient that float32 holds is exact. Of a GPU
that multiplies by a reciprocal, only division by a power of two is."""


class ResizedAxis(NamedTuple):
    """One axis: its extents, the scale, and the part [start, end] of it that is resized.

    `length` is the extent that the scale leaves, a fraction where that is none.
    """

    original: int
    resized: int
    scale: Fraction
    start: float = 0.0
    end: float = 1.0

    @property
    def kept(self) -> bool:
        """Say whether the axis stays as it is: its scale is 1, and all of it is taken."""
        return self.scale == 1 and self.resized == self.original and (self.start, self.end) == (0.0, 1.0)

    @property
    def length(self) -> Fraction:
        return self.scale * self.original


def mode(call: Call) -> str:
    """Return how coordinates are transformed; before version 11 one is left out."""
    return str(
        call.attributes.get(
            "coordinate_transformation_mode", "half_pixel" if call.opset > 10 else "asymmetric"
        )
    )


def chosen(call: Call) -> Shape:
    """Return the axes that scales, sizes and roi refer to."""
    rank = len(call.first.shape)
    return tuple(axis % max(rank, 1) for axis in call.parameter("axes") or range(rank))


def numbers(call: Call, name: str) -> tuple[float, ...] | None:
    """Return scales, sizes or roi as float32 holds them; None where an input is left out or has no element."""
    given = call.parameter(name)
    if given is None or given == ():
        return None
    return tuple(float(np.float32(each)) for each in given) if name != "sizes" else tuple(map(int, given))


# scales: output_dimension = floor(input_dimension * (roi_end - roi_start) * scale), where roi only takes
#         effect in tf_crop_and_resize
# sizes:  stretch: out_size = size; not_larger: scale = Min(size / in_size), not_smaller: scale =
#         Max(size / in_size), out_size = round_int(scale * in_size), halfway cases up
def axes(call: Call) -> tuple[ResizedAxis, ...]:
    """Return every axis of the input by the formulas above."""
    shape, among = call.first.shape, chosen(call)
    scales, sizes, roi = (numbers(call, name) for name in ("scales", "sizes", "roi"))
    parts = [(0.0, 1.0)] * len(shape)
    if roi is not None and mode(call) == TF:
        for place, axis in enumerate(among):
            parts[axis] = roi[place], roi[place + len(among)]
    found = [
        ResizedAxis(extent, extent, Fraction(1), *part) for extent, part in zip(shape, parts, strict=True)
    ]
    if scales is not None:
        for axis, scale in zip(among, scales, strict=True):
            start, end = (Fraction(each) for each in parts[axis])
            found[axis] = found[axis]._replace(
                resized=floor(shape[axis] * (end - start) * Fraction(scale)), scale=Fraction(scale)
            )
        return tuple(found)
    assert sizes is not None
    wanted = {axis: Fraction(int(size), shape[axis]) for axis, size in zip(among, sizes, strict=True)}
    policy = call.attributes.get("keep_aspect_ratio_policy", "stretch")
    for axis, size in zip(among, sizes, strict=True):
        if policy == "stretch":
            found[axis] = found[axis]._replace(resized=int(size), scale=wanted[axis])
            continue
        alike = (min if policy == "not_larger" else max)(wanted.values())
        found[axis] = found[axis]._replace(resized=floor(alike * shape[axis] + Fraction(1, 2)), scale=alike)
    return tuple(found)


def coordinates(how: str, axis: ResizedAxis, a: Arithmetic) -> Bounded:
    """Return x_original for every x_resized.

    It has no error where the formula, evaluated in float32, gives the number that it has in real arithmetic.
    """
    x = np.arange(axis.resized, dtype=np.float32)
    scale = number(np.array([float(axis.scale)]), a)
    with np.errstate(all="ignore"):
        found = _original(how, axis, number(x, a), scale)
        narrow = _original(how, axis, x, np.array([float(axis.scale)], np.float32))
    found = found if found.shape == x.shape else found + np.zeros(len(x))
    divisor = axis.scale if how not in ("align_corners", TF) else Fraction(max(axis.resized - 1, 1))
    halved = (
        divisor.numerator & (divisor.numerator - 1) == 0
        and divisor.denominator & (divisor.denominator - 1) == 0
    )
    # the width that half_pixel_symmetric divides by is rounded, where the scale or it is no float32
    held = how != "half_pixel_symmetric" or all(
        Fraction(float(np.float32(each))) == each for each in (axis.scale, axis.scale * axis.original)
    )
    return exact_where(found, (narrow == found.value) & (halved or (held and a.name in _DIVIDE)))


def ratios(how: str, axis: ResizedAxis, places: Bounded) -> Bounded:
    """Return coordinates without error where they are ties or elements' own: halves of whole numbers.

    A scale that float32 does not hold is a ratio of extents, by ONNX Resize, sizes, and twice a coordinate a whole
    number divided by its numerator.
    """
    held = Fraction(float(np.float32(float(axis.scale)))) == axis.scale
    if held or how in ("align_corners", TF) or places.arithmetic.name not in _DIVIDE:
        return places
    value, halves = places.value, np.round(2 * places.value) / 2
    whole = np.abs(value - halves) * axis.scale.numerator < 0.25
    return exact_where(Bounded(np.where(whole, halves, value), places.error, places.arithmetic), whole)


# half_pixel            (x_resized + 0.5) / scale - 0.5
# half_pixel_symmetric  input_width / 2 * (1 - output_width_int / output_width)
#                       + (x_resized + 0.5) / scale - 0.5
# pytorch_half_pixel    length_resized > 1 ? (x_resized + 0.5) / scale - 0.5 : 0
# align_corners         x_resized * (length_original - 1) / (length_resized - 1)
# asymmetric            x_resized / scale
# tf_half_pixel_for_nn  (x_resized + 0.5) / scale
# tf_crop_and_resize    length_resized > 1
#                       ? start_x * (length_original - 1)
#                         + x_resized * (end_x - start_x) * (length_original - 1) / (length_resized - 1)
#                       : 0.5 * (start_x + end_x) * (length_original - 1)
def _original(how: str, axis: ResizedAxis, x: Any, scale: Any) -> Any:
    """Evaluate the formulas above, in float32 or in numbers with a bound."""
    last = float(axis.original - 1)
    if how == "align_corners":
        return x * last / max(axis.resized - 1.0, 1.0)
    if how == "asymmetric":
        return x / scale
    if how == HALF_FOR_NEAREST:
        return (x + 0.5) / scale
    if how == "pytorch_half_pixel" and axis.resized <= 1:
        return x * 0.0
    if how == TF:
        start, end = (scale * 0.0 + each for each in (axis.start, axis.end))
        if axis.resized <= 1:
            return x * 0.0 + 0.5 * (start + end) * last
        return start * last + x * (end - start) * last / (axis.resized - 1.0)
    found = (x + 0.5) / scale - 0.5
    if how == "half_pixel_symmetric":
        width = scale * float(axis.original)
        return (1.0 - float(axis.resized) / width) * (axis.original / 2.0) + found
    return found


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
_WHOLE_SCALES = ((2.0,), (3.0,), (1.0, 2.0), (4.0, 1.0, 3.0), (1.0,))


def every_scale(call: Call) -> Iterable[tuple[float, ...]]:
    """2; 1/2; others for each axis, larger, smaller and mixed; 1."""
    tried = _SCALES if call.opset > 10 else _WHOLE_SCALES
    return list(dict.fromkeys(_every(call, each) for each in tried))


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
