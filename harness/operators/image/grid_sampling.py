"""GridSample and AffineGrid: elements at places that a tensor holds, and such places made by a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Expected
from harness.model.float_formats import encode
from harness.operators.base import Call, Operator, Relation, Shape, Undefined, ValueKind, value_kinds
from harness.operators.bounded import (
    Arithmetic,
    Bounded,
    arithmetic,
    concatenate,
    einsum,
    moveaxis,
    number,
    stack,
    take,
    where,
)
from harness.operators.computing import Computing
from harness.operators.formulas import bounded
from harness.operators.image import resampling
from harness.operators.image.resampling import exact_where, one_of, spread, taken

Indices = NDArray[np.int64]
ALIASES = {"bilinear": "linear", "bicubic": "cubic"}
"""Version 16's names of modes."""
CUBIC = -0.75
_OUTSIDE = 4.0
"""How far outside of X every tap of a filter is."""
_TOLD, _WHOLE = 0.25, 2.0**24
"""The error up to which a place that is reflected can be told, and the numbers up to which float32 holds all whole ones."""
_FARTHEST = 2.0**62
_BLOCK = 2**16
"""Elements that are weighed at a time: as many as stay in a processor's cache, which is several times faster than
arrays of all points."""

# x = (n + 1) / 2 * (length - 1) with align_corners, ((n + 1) * length - 1) / 2 without; the last axis first
# nearest:       Y[n, c, o] = X[n, c, the x rounded], halves to even since version 20
# linear, cubic: Y[n, c, o] = sum over i of w(x_0 - i_0) w(x_1 - i_1) ... X[n, c, i], cubic with a = -0.75
# Beyond X stand zeros, the elements at its border, or X reflected: at 0 and length - 1 with align_corners, at
# -1/2 and length - 1/2 without


def grid_sample(call: Call, inputs: Mapping[str, Tensor], name: str) -> tuple[Expected, ...]:
    """Sample by the formulas above."""
    x, grid = inputs.values()
    a = arithmetic(name, "float64" if x.dtype == grid.dtype == "float64" else "float32")
    spatial = x.array.shape[2:]
    points = prod(grid.array.shape[1:-1])
    flat = taken(grid, a).reshape(len(grid.array), points, len(spatial))
    placed = [_place(flat[:, :, -1 - n], length, call) for n, length in enumerate(spatial)]
    places, opened = [place for place, _ in placed], np.logical_or.reduce([open_ for _, open_ in placed])
    shape = (*x.array.shape[:2], *grid.array.shape[1:-1])
    mode = str(call.attributes["mode"])
    if opened.any() and (mode == "nearest" or not DTYPES[x.dtype].is_float):
        raise Undefined("where a place lies that is no number, or that is reflected too often to tell")
    if mode == "nearest":
        return (one_of(x.dtype, [each.reshape(shape) for each in _nearest(call, x.array, places)]),)
    found = _weighted(call, taken(x, a), places, ALIASES.get(mode, mode))
    found = Bounded(found.value, np.where(opened[:, None], np.inf, found.error), a).reshape(shape)
    if DTYPES[x.dtype].is_float:
        return (found.stored(x.dtype),)
    ends = [np.trunc(found.value + sign * found.error) for sign in (-1, 0, 1)]
    return (one_of(x.dtype, [each.astype(DTYPES[x.dtype].storage) for each in ends]),)


def _place(n: Bounded, length: int, call: Call) -> tuple[Bounded, NDArray[np.bool_]]:
    """Return x by the formula above, and the places where no document defines it. It has no error where float32 holds
    all its terms. However far outside of X it lies, it has the same zeros or border about it, and is held nearby."""

    def x(n: Any) -> Any:
        if call.attributes["align_corners"]:
            return (n + 1.0) / 2.0 * (length - 1.0)
        return ((n + 1.0) * float(length) - 1.0) / 2.0

    found, narrow = x(n), n.value.astype(np.float32)
    exact = (narrow == n.value) & (x(narrow) == found.value) & (np.abs(n.value) < _WHOLE)
    found = exact_where(found, exact | np.isinf(n.value))
    if call.attributes["padding_mode"] == "reflection":
        opened = ~(np.isfinite(found.value) & (found.error < _TOLD))
    else:
        first, last = -_OUTSIDE, length - 1.0 + _OUTSIDE
        far = (found.value + found.error < first) | (found.value - found.error > last)
        found = Bounded(np.clip(found.value, first, last), np.where(far, 0.0, found.error), found.arithmetic)
        opened = np.isnan(found.value)
    value, error = (np.where(opened, 0.0, part) for part in (found.value, found.error))
    return Bounded(value, error, found.arithmetic), opened


def _held(call: Call, indices: Indices, length: int) -> tuple[Indices, NDArray[np.bool_]]:
    """Return indices within an axis, and which of them stand for zeros."""
    padding = call.attributes["padding_mode"]
    outside = (indices < 0) | (indices >= length)
    if padding == "reflection":
        first, period = (0, length - 1) if call.attributes["align_corners"] else (-1, length)
        folded = np.abs(indices) if first == 0 else np.where(indices < 0, -1 - indices, indices)
        folded = folded % max(2 * period, 1)
        last = 2 * period if first == 0 else 2 * period - 1
        return np.where(folded >= length, last - folded, folded), np.zeros_like(outside)
    return np.clip(indices, 0, length - 1), outside & (padding == "zeros")


def _nearest(call: Call, x: Array, places: list[Bounded]) -> list[Array]:
    """Choose by rounding; where the error of a place reaches a tie, or nothing says how a tie is rounded,
    either neighbour."""
    lower, upper = [], []
    for place, length in zip(places, x.shape[2:], strict=True):
        low, high = (np.clip(place.value + sign * place.error, -_FARTHEST, _FARTHEST) for sign in (-1, 1))
        tied = (call.opset < 20) | (low < 0) | (high > length - 1)
        lower.append(np.where(tied, np.ceil(low - 0.5), np.rint(low)).astype(np.int64))
        upper.append(np.where(tied, np.floor(high + 0.5), np.rint(high)).astype(np.int64))
    found = []
    for number_ in range(2 ** len(places)):
        picked = [(upper if number_ >> n & 1 else lower)[n] for n in range(len(places))]
        held = [_held(call, index, length) for index, length in zip(picked, x.shape[2:], strict=True)]
        chosen = (np.arange(len(x))[:, None], *(index for index, _ in held))
        values = np.moveaxis(x, 1, -1)[chosen]
        zeros = np.logical_or.reduce([zero for _, zero in held])[..., None]
        found.append(np.moveaxis(np.where(zeros, np.zeros(1, x.dtype), values), -1, 1))
    return found


def _weighted(call: Call, x: Bounded, places: list[Bounded], mode: str) -> Bounded:
    """Weigh the elements about every place [N, points], one axis after the other: [N, C, points]."""
    filter_, reach = (resampling.linear, 1) if mode == "linear" else (resampling.cubic(CUBIC), 2)
    offsets = np.arange(-reach, reach + 2)[:, None]
    taps, weights = [], []
    for place, length in zip(places, x.shape[2:], strict=True):
        indices = np.floor(place.value).astype(np.int64)[:, None] + offsets
        away = abs(place[:, None] - number(indices, x.arithmetic))
        exact = ((place.error == 0) & resampling.fine_fraction(place.value))[:, None]
        weight = exact_where(filter_(exact_where(away, exact)), exact)
        held, zero = _held(call, indices, length)
        taps.append(held)
        weights.append(where(zero, 0.0, weight))
    points = max(1, _BLOCK // max(1, prod(x.shape[:2]) * len(offsets) ** len(places)))
    parts = [slice(first, first + points) for first in range(0, places[0].shape[1], points)]
    sums = [
        _summed(x, [tap[..., part] for tap in taps], [w[..., part] for w in weights], reach) for part in parts
    ]
    return concatenate(sums, axis=2) if sums else number(np.zeros((*x.shape[:2], 0)), x.arithmetic)


def _summed(x: Bounded, taps: list[Indices], weights: list[Bounded], reach: int) -> Bounded:
    """Sum the elements of x [N, C, spatial] at the taps [N, taps, points] of each axis, times their weights."""
    at = np.arange(len(x))[:, None]
    for tap, length in zip(taps, x.shape[2:], strict=True):
        at = at[..., None, :] * length + tap.reshape(len(x), *[1] * (at.ndim - 2), *tap.shape[1:])
    found = take(
        moveaxis(x, 1, 0).reshape(x.shape[1], len(x) * prod(x.shape[2:])), at, axis=1
    )  # [C, N, taps of each axis, points]

    def total(x: Any, w: Any) -> Any:
        return (x * w).sum(axis=-2)

    for axis, weight in reversed(list(enumerate(weights))):
        w = weight.reshape(len(x), *[1] * axis, *weight.shape[1:])
        found = spread(found, w, partial(total, w=w), total, reach, -2)
    return moveaxis(found, 0, 1)


class GridSampling(Computing):
    """X and the places; a place is made of as many numbers as X has spatial axes."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {
        "grid": value_kinds("inside", "beyond", "halves", "far")
    }
    """Places within X; beyond it; on elements and halfway between them; powers of 2 up to near the largest of the type,
    of both signs."""
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"grid": ("points",)}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """A place for each of the points."""
        assert isinstance(relation, Mapping)
        points, x = relation["points"], call.first.shape
        return (x[0], *points, len(points)) if len(points) == len(x) - 2 else None

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose places by kind."""
        dtype = call.inputs[name].dtype
        if kind == "far":
            first, step, count = (8, 1, 8) if dtype == "float16" else (26, 5, 20)
            return encode(dtype, np.where(raw >> 16 & 1, -1.0, 1.0) * 2.0 ** (first + step * (raw % count)))
        if kind != "halves":
            step = 128 if kind == "inside" else 32
            return encode(dtype, (raw % 257 - 128) / step)
        lengths = np.array(call.first.shape[:1:-1])
        x = raw % (2 * lengths + 3) / 2 - 1
        corners = call.attributes.get("align_corners")
        return encode(dtype, 2 * x / np.maximum(lengths - 1, 1) - 1 if corners else (2 * x + 1) / lengths - 1)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, extents, and the names of modes."""
        (x, grid), attributes = call.shapes, call.attributes
        if len(x) < 3 or (call.opset < 20 and len(x) != 4):
            return "X has a batch, channels, and spatial axes, before version 20 two"
        if len(grid) != len(x) or grid[-1] != len(x) - 2 or grid[0] != x[0]:
            return "grid holds a place for each point of each batch"
        names = ("linear", "nearest", "cubic") if call.opset >= 20 else ("bilinear", "nearest", "bicubic")
        if attributes["mode"] not in names:
            return "mode is one of those of the version"
        if attributes["padding_mode"] not in ("zeros", "border", "reflection"):
            return "padding_mode is zeros, border or reflection"
        if attributes["mode"] != "nearest" and DTYPES[call.first.dtype].storage[0] in "Obc":
            return "what the average of elements that are no real numbers is"
        if 0 in x[2:] and 0 not in grid:
            return "what is sampled of a tensor without elements"
        return None

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, C, points]."""
        return ((*call.first.shape[:2], *call.shapes[1][1:-1]),)


# grid[n, h, w] = theta[n] (x_w, y_h, 1)
# x_i = -1 + 2 i / (length - 1) with align_corners, (2 i + 1) / length - 1 without
def affine_grid(theta: Bounded, call: Call, align_corners: int) -> Bounded:
    """Make places by the formula above, in three dimensions (x_w, y_h, z_d, 1)."""
    spatial = tuple(map(int, call.parameter("size")[2:]))
    axes = [_spread(length, bool(align_corners), theta.arithmetic) for length in spatial]
    grids = []
    for n, axis in enumerate(axes):
        wide = axis.reshape([-1 if each == n else 1 for each in range(len(spatial))])
        grids.append(wide + np.zeros(spatial))
    grids = [*reversed(grids), number(np.ones(spatial), theta.arithmetic)]
    places = stack([each.reshape(-1) for each in grids], axis=0)
    found = einsum("nij,jp->npi", theta, places)
    return found.reshape(len(theta), *spatial, len(spatial))


def _spread(length: int, align_corners: bool, a: Arithmetic) -> Bounded:
    i = number(np.arange(float(length)), a)
    return 2.0 * i / (length - 1.0) - 1.0 if align_corners else (2.0 * i + 1.0) / float(length) - 1.0


def _cannot_spread(call: Call) -> str | None:
    theta, size = call.first.shape, call.parameter("size")
    if len(theta) != 3 or theta[1:] not in ((2, 3), (3, 4)):
        return "theta is (N, 2, 3) or (N, 3, 4)"
    if not isinstance(size, tuple) or len(size) != theta[1] + 2:
        return "size is (N, C, H, W) or (N, C, D, H, W)"
    if size[0] != theta[0]:
        return "size has the batch of theta"
    if min(size[2:]) < 1:
        return "sizes are positive"
    if call.attributes["align_corners"] and min(size[2:]) == 1:
        return "where the only element of an axis lies with align_corners"
    return None


def _spread_shape(call: Call) -> tuple[Shape, ...]:
    size = call.parameter("size")
    if _cannot_spread(call) is not None:
        return (call.first.shape,)
    return ((call.first.shape[0], *map(int, size[2:]), len(size) - 2),)


OPERATORS = (
    Operator("GridSample", GridSampling(), grid_sample),
    Operator(
        "AffineGrid",
        Computing(),
        bounded(affine_grid),
        _cannot_spread,
        constants={"size": 1},
        outputs=_spread_shape,
    ),
)
