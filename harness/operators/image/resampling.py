"""Interpolation, shared by operators: the weights of an axis, in float32 with a bound, and the weighted sums of a
tensor.

Coordinates and weights are float32 whatever the elements are, since ONNX's scales are. A coordinate carries
the error of its formula in the declared arithmetic (`bounded`), and from it follows that of its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Exact, Expected, OneOf
from harness.model.float_formats import Float64
from harness.operators.bounded import Arithmetic, Bounded, choose, contracted, maximum, number, where

Filter = Callable[[Bounded], Bounded]
"""Takes distances, which are not negative; returns weights."""
_WIDEST = 2.0
"""The distance from which every filter weighs nothing."""
_FRACTION = 16
"""Coordinates that are multiples of 1 / 16 have weights that float32 computes exactly: cubes of four binary
places, times a coefficient with as many."""


# w(t) = 1 - |t|     for |t| < 1, and 0 elsewhere
def linear(t: Bounded) -> Bounded:
    """Weigh by the formula above. a + (b - a) t, another way to write it, has the larger bound that is
    given."""
    found = maximum(number(0.0, t.arithmetic), 1.0 - t)
    unit = 2 * t.arithmetic.form.unit
    return Bounded(found.value, np.where(t.value - t.error < 1, found.error + unit, 0.0), t.arithmetic)


# w(t) = (a + 2) |t|^3 - (a + 3) |t|^2 + 1            for |t| <= 1
#        a |t|^3 - 5 a |t|^2 + 8 a |t| - 4 a          for 1 < |t| < 2, and 0 elsewhere (Keys, equation 4)
def cubic(a: float) -> Filter:
    """Make the filter above."""

    def weigh(t: Bounded) -> Bounded:
        near = (a + 2.0) * (t * t * t) - (a + 3.0) * (t * t) + 1.0
        far = a * (t * t * t) - 5.0 * a * (t * t) + 8.0 * a * t - 4.0 * a
        outer = choose(t, 2.0, far, number(np.zeros(t.shape), t.arithmetic))
        return choose(t, 1.0, near, outer)

    return weigh


def weights(
    places: Bounded,
    extent: int,
    filter_: Filter,
    reach: int,
    *,
    stretch: Bounded | None = None,
    exclude: bool = False,
    exact: bool = True,
) -> Bounded:
    """Return the weight of each element of an axis for each coordinate: [coordinates, extent].

    The filter reaches so many elements to either side. `stretch` divides distances, and makes the weights sum
    to 1. Elements outside are those at the edge; `exclude` leaves them out, by which the others sum to 1.
    `exact` says that the filter has no coefficient that float32 rounds.
    """
    low = int(min(np.floor(places.value.min(initial=0.0)), 0)) - reach
    high = int(max(np.ceil(places.value.max(initial=0.0)), extent - 1)) + reach
    indices = np.arange(low, high + 1)
    distance = abs(places[:, None] - number(indices[None, :], places.arithmetic))
    fine = (places.error == 0) & fine_fraction(places.value) & (stretch is None)
    if stretch is not None:
        distance = distance / stretch
    distance = exact_where(distance, fine[:, None])
    found = _filtered(distance, filter_)
    if exact:
        found = exact_where(found, fine[:, None])
    within = (indices >= 0) & (indices < extent)
    if exclude:
        found = where(within, found, 0.0)
    if stretch is not None or exclude:
        divided = found / found.sum(axis=1, keepdims=True)
        whole = fine & (found.value.sum(axis=1) == 1) & exact
        found = where(whole[:, None], found, divided)
    held = np.clip(indices, 0, extent - 1)
    folded = np.zeros((2, len(found), extent))
    for column, target in enumerate(held):
        folded[0, :, target] += found.value[:, column]
        folded[1, :, target] += found.error[:, column]
    return Bounded(folded[0], folded[1], found.arithmetic)


def _filtered(distance: Bounded, filter_: Filter) -> Bounded:
    """Weigh distances; those beyond the widest filter, of a large tensor nearly all, have the weight 0 without
    error."""
    near = ~(distance.value - distance.error > _WIDEST)
    found = filter_(distance[near])
    weighed = np.zeros((2, *distance.shape))
    weighed[0, near], weighed[1, near] = found.value, found.error
    return Bounded(weighed[0], weighed[1], distance.arithmetic)


def fine_fraction(values: Any) -> NDArray[np.bool_]:
    """Say which numbers are binary fractions of so few places that their cubes are exact in float32."""
    return np.asarray(np.asarray(values) * _FRACTION == np.rint(np.asarray(values) * _FRACTION))


# y[.., o, ..] = sum over i of w[o, i] x[.., i, ..]
def weighted(x: Bounded, axis: int, w: Bounded, reach: int) -> Bounded:
    """Sum along an axis by the formula above; weights that are binary fractions without error are taken for whole
    numbers, whose sums are exact. The filter reaches `reach` elements to either side."""
    count = int((w.value != 0).sum(axis=1).max(initial=0)) + 1
    factor = 2.0**12
    if not w.error.any() and (w.value * factor == np.rint(w.value * factor)).all():
        scaled = Bounded(w.value * factor, w.error, w.arithmetic)
    else:
        scaled, factor = w, 1.0

    def total(p: Array, q: Array) -> Array:
        return np.moveaxis(np.matmul(np.moveaxis(q, axis, -1), p.T), -1, axis)

    def bounded(x: Bounded) -> Bounded:
        found = contracted(total, scaled, x, count)
        return Bounded(found.value / factor, found.error / factor, found.arithmetic)

    return spread(x, w, bounded, lambda q, p: total(p, q), reach)


def spread(
    x: Bounded,
    w: Bounded,
    total: Callable[[Bounded], Bounded],
    reached: Callable[[Array, Array], Array],
    reach: int,
    taps: int = -1,
) -> Bounded:
    """Sum the elements of x times weights, where an element that is not finite reaches the sums in which it has a weight, and no others.

    `total` sums finite elements; `reached(x, w)` is that sum of plain arrays. `taps` is the axis of the weights along which
    neighbours lie. Where fewer elements have a weight than the filter is wide, an infinity nearby leaves the sum open, and so does
    a NaN that has no weight: a kernel may multiply neighbours by 0, or the element at the edge twice, by weights of both signs.
    """
    known = np.isfinite(x.value) & np.isfinite(x.error)
    found = total(Bounded(np.where(known, x.value, 0.0), np.where(known, x.error, 0.0), x.arithmetic))
    if known.all():
        return found
    some = np.moveaxis((w.value != 0) | (w.error > 0), taps, -1)
    few = some & (some.sum(axis=-1, keepdims=True) < 2 * reach)
    near = few.copy()
    for step in range(1, reach + 1):
        near[..., step:] |= few[..., :-step]
        near[..., :-step] |= few[..., step:]
    sure = np.abs(w.value) > w.error
    unsure = np.moveaxis(near, -1, taps) | ((w.error > 0) & ~sure)

    def reaches(elements: Array, weights: Array) -> Array:
        return np.asarray(reached(elements.astype(np.float64), weights.astype(np.float64)) > 0)

    nan, up, down = np.isnan(x.value), x.value == np.inf, x.value == -np.inf
    claimed = np.isfinite(x.error)
    over, under = sure & (w.value > 0), sure & (w.value < 0)
    above = reaches(up & claimed, over) | reaches(down & claimed, under)
    below = reaches(down & claimed, over) | reaches(up & claimed, under)
    none = reaches(nan & claimed, sure)
    left = (reaches(~known, unsure) | reaches(~claimed, sure)) & ~none
    value = np.where(above, np.inf, np.where(below, -np.inf, found.value))
    value = np.where(none | (above & below), np.nan, value)
    error = np.where(left, np.inf, np.where(none | above | below, 0.0, found.error))
    return Bounded(value, error, x.arithmetic)


def taken(tensor: Tensor, arithmetic: Arithmetic) -> Bounded:
    """Take elements of any number type as numbers of an arithmetic."""
    if DTYPES[tensor.dtype].is_float:
        return number(tensor, arithmetic)
    return number(tensor.array.astype(np.float64), arithmetic)


def given(dtype: str, found: Bounded) -> Expected:
    """Return the expected output: a float within its bound, or an integer next to the computed value, since ONNX does
    not define the rounding."""
    if DTYPES[dtype].is_float:
        return found.stored(dtype)
    kind = DTYPES[dtype].storage
    limits = np.iinfo(kind)
    low, high = found.value - found.error, found.value + found.error
    rounded = [np.floor(low), np.floor(found.value), np.ceil(found.value), np.ceil(high)]
    return one_of(dtype, [np.clip(each, limits.min, limits.max).astype(kind) for each in rounded])


def one_of(dtype: str, choices: Sequence[Array]) -> Expected:
    """Return the candidates, each once; a single one is exact."""
    distinct: dict[Any, Array] = {}
    for each in choices:
        distinct.setdefault(each.tobytes() if dtype != "string" else tuple(each.reshape(-1)), each)
    tensors = tuple(Tensor(dtype, each) for each in distinct.values())
    return Exact(tensors[0]) if len(tensors) == 1 else OneOf(tensors)


def exact_where(places: Bounded, exact: Array) -> Bounded:
    """Return coordinates without error where they are known to have none."""
    return Bounded(places.value, np.where(exact, 0.0, places.error), places.arithmetic)


Rounding = Callable[[Float64], Float64]
# round_prefer_floor: ceil(x - 1/2)    round_prefer_ceil: floor(x + 1/2)
NEAREST: dict[str, Rounding] = {
    "round_prefer_floor": lambda x: np.asarray(np.ceil(x - 0.5)),
    "round_prefer_ceil": lambda x: np.asarray(np.floor(x + 0.5)),
    "floor": lambda x: np.asarray(np.floor(x)),
    "ceil": lambda x: np.asarray(np.ceil(x)),
}
