"""Resize and Upsample: every element of the output is the nearest element of the input, or a weighted average
of those around it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.model.float_formats import encode
from harness.operators.base import Call, Operator, Shape
from harness.operators.bounded import Arithmetic, Bounded, arithmetic, number
from harness.operators.computing import Computing
from harness.operators.image import resampling
from harness.operators.image.resampling import NEAREST, given, one_of, taken, weighted, weights
from harness.operators.image.resize_axes import (
    TF,
    ResizedAxis,
    axes,
    coordinates,
    every_axes,
    every_roi,
    every_scale,
    every_size,
    mode,
    ratios,
)
from harness.operators.image.resize_lowering import lowered
from harness.operators.image.resize_rules import broken

Mask = NDArray[np.bool_]

# nearest:        Y[o] = X[n(x_original)], n by nearest_mode, held within X
# linear, cubic:  Y[o] = sum over i of w(x_original - i) X[i], in each axis; elements beyond X are those at
#                 its edge, or have no weight where exclude_outside is set, by which the others sum to 1
# antialias:      w(min(1, scale) (x_original - i)), by which all sum to 1
# tf_crop_and_resize: extrapolation_value where x_original is outside of [0, length_original - 1] in any axis


def formula(
    call: Call, inputs: Mapping[str, Tensor], name: str, *, rounded: bool = False
) -> tuple[Expected, ...]:
    """Resize by the formulas above; `rounded` says that a scale of sizes is a float32, also where elements are moved."""
    x, a = inputs["X"], arithmetic(name, "float32")
    how = mode(call)
    resized = {n: axis for n, axis in enumerate(axes(call)) if not axis.kept}
    places = {n: coordinates(how, axis, a) for n, axis in resized.items()}
    if call.attributes.get("mode", "nearest") == "nearest":
        if not rounded:
            places = {n: ratios(how, resized[n], each) for n, each in places.items()}
        return (_nearest(call, x, resized, places),)
    return (_averaged(call, x, resized, places, a),)


def _nearest(
    call: Call, x: Tensor, resized: Mapping[int, ResizedAxis], places: Mapping[int, Bounded]
) -> Expected:
    """Move elements; where the error of a coordinate reaches a tie, either neighbour's."""
    filler = _extrapolated(call, x.dtype)
    choices = []
    for picked in product(*(_indices(call, resized[n], places[n]) for n in places)):
        found, outside = x.array, np.zeros((1,) * x.array.ndim, np.bool_)
        for n, indices in zip(places, picked, strict=True):
            found = np.take(found, np.clip(indices, 0, resized[n].original - 1), axis=n)
            outside = outside | _along(indices < 0, n, x.array.ndim)
        choices.append(np.where(outside, filler, found) if outside.any() else found)
    return one_of(x.dtype, choices)


def _indices(call: Call, axis: ResizedAxis, places: Bounded) -> list[NDArray[np.int64]]:
    """Return the index of each element of an axis, as often as an error of its coordinate leaves a choice; -1
    stands for extrapolation."""
    nearest = NEAREST[
        str(call.attributes.get("nearest_mode", "round_prefer_floor" if call.opset > 10 else "floor"))
    ]
    found: list[NDArray[np.int64]] = []
    surely, perhaps = _outside(call, axis, places)
    for value in (places.value - places.error, places.value + places.error):
        index = np.clip(nearest(value), 0, axis.original - 1).astype(np.int64)
        for outside in (surely, perhaps):
            one = np.where(outside, -1, index)
            if not any(np.array_equal(one, other) for other in found):
                found.append(one)
    return found


def _outside(call: Call, axis: ResizedAxis, places: Bounded) -> tuple[Mask, Mask]:
    """Say which coordinates are outside of the input where they are extrapolated, surely and perhaps."""
    if mode(call) != TF:
        return (np.zeros(places.shape, np.bool_),) * 2
    low, high = places.value - places.error, places.value + places.error
    return (high < 0) | (low > axis.original - 1), (low < 0) | (high > axis.original - 1)


def _averaged(
    call: Call, x: Tensor, resized: Mapping[int, ResizedAxis], places: Mapping[int, Bounded], a: Arithmetic
) -> Expected:
    """Weigh along each axis, then extrapolate."""
    found, rank = taken(x, a), x.array.ndim
    surely, perhaps = np.zeros((1,) * rank, np.bool_), np.zeros((1,) * rank, np.bool_)
    for n, axis in resized.items():
        found = weighted(found, n, _weights(call, axis, places[n], a), _reach(call, axis))
        sure, maybe = _outside(call, axis, places[n])
        surely, perhaps = surely | _along(sure, n, rank), perhaps | _along(maybe, n, rank)
    if perhaps.any():
        filler = float(call.attributes["extrapolation_value"])  # type: ignore[arg-type] # a float
        apart = np.abs(found.value - filler)
        error = np.where(perhaps, np.maximum(found.error, apart), found.error)
        found = Bounded(np.where(surely, filler, found.value), np.where(surely, 0.0, error), a)
    return given(x.dtype, found)


def _weights(call: Call, axis: ResizedAxis, places: Bounded, a: Arithmetic) -> Bounded:
    coefficient = float(call.attributes.get("cubic_coeff_a", 0.0))  # type: ignore[arg-type] # a float
    cubic = call.attributes["mode"] == "cubic"
    filter_, reach = resampling.cubic(coefficient) if cubic else resampling.linear, _reach(call, axis)
    exact = not cubic or bool(resampling.fine_fraction(coefficient))
    exclude = bool(call.attributes.get("exclude_outside"))
    if not call.attributes.get("antialias") or axis.scale >= 1:
        return weights(places, axis.original, filter_, reach, exclude=exclude, exact=exact)
    stretch = number(1.0, a) / number(float(axis.scale), a)
    return weights(places, axis.original, filter_, reach, stretch=stretch, exclude=exclude)


def _reach(call: Call, axis: ResizedAxis) -> int:
    """Return how many elements the filter reaches to either side."""
    reach = 2 if call.attributes["mode"] == "cubic" else 1
    return int(reach / axis.scale) + 1 if call.attributes.get("antialias") and axis.scale < 1 else reach


def _along(mask: Mask, n: int, rank: int) -> Mask:
    return mask.reshape([-1 if each == n else 1 for each in range(rank)])


def _extrapolated(call: Call, dtype: str) -> Any:
    value = call.attributes.get("extrapolation_value", 0.0)
    return "" if dtype == "string" else encode(dtype, value)


def outputs(call: Call) -> tuple[Shape, ...]:
    """Return the resized shape."""
    return (tuple(axis.resized for axis in axes(call)),) if broken(call) is None else (call.first.shape,)


OPERATORS = (
    Operator(
        "Resize",
        Computing(),
        formula,
        broken,
        constants={"scales": 1, "sizes": 1, "roi": 1},
        outputs=outputs,
        domains={"scales": every_scale, "sizes": every_size, "axes": every_axes, "roi": every_roi},  # type: ignore[dict-item] # None leaves out
        lower=lowered,
    ),
    Operator(
        "Upsample",
        Computing(),
        formula,
        broken,
        constants={"scales": 1},
        outputs=outputs,
        domains={"scales": every_scale},
        lower=lowered,
    ),
)
