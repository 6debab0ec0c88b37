"""Deviating results of resizing and grid sampling, those of DirectML at the end, by its own API and by ONNX Runtime's provider."""

from __future__ import annotations

from itertools import product

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import FORMATS, Float64, decode
from harness.operators.base import Undefined
from harness.operators.bounded import Bounded, arithmetic
from harness.operators.deviations.base import Deviating, candidates_of, changed, deviation, register, settled
from harness.operators.formulas import values
from harness.operators.image.resampling import NEAREST, given, taken, weighted
from harness.operators.image.resize import formula
from harness.operators.image.resize_axes import TF, ResizedAxis, axes, chosen, coordinates, mode, numbers

_FIXED = 2.0**-12
"""More than the error of an average of bytes whose weights have 22 binary places."""


@deviation
def kept_extents_copied(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: extents are floor(extent * scale), whatever part roi names; of an axis with the scale 1 all is taken, and
    X itself where all extents stay."""
    call, inputs = asked.call, dict(asked.inputs)
    among, found = chosen(call), axes(call)
    originals, resized = (
        np.array([getattr(found[n], name) for n in among]) for name in ("original", "resized")
    )
    given, roi = numbers(call, "scales"), numbers(call, "roi")
    scales = np.array([float(found[n].scale) for n in among] if given is None else given)
    if given is not None:
        resized = np.floor(originals * scales)
    if (resized == originals).all():
        return (Exact(inputs["X"]),)
    if roi is not None:
        parts = np.where(scales == 1, [[0.0], [1.0]], np.array(roi).reshape(2, -1))
        inputs["roi"] = Tensor("float32", parts.reshape(-1).astype(np.float32))
        if given is not None:
            inputs["scales"] = Tensor("float32", (scales / (parts[1] - parts[0])).astype(np.float32))
    return asked.formula(inputs=inputs)


@deviation
def placed_by_rounded_scales(asked: Deviating) -> tuple[Expected, ...]:
    """Resize to sizes by nearest: the scale is rounded to float32, so that where a coordinate is a tie, or an element's own,
    either neighbour is taken."""
    return formula(asked.call, asked.inputs, asked.arithmetic, rounded=True)


@deviation
def kept_axes_copied(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: an axis whose extent stays has the scale 1."""
    scales = asked.inputs["scales"].array
    stays = np.array([axis.resized == axis.original for axis in axes(asked.call)])
    return asked.formula(inputs=asked.having(scales=np.where(stays, np.float32(1), scales)))


@deviation
def held_from_0(asked: Deviating) -> tuple[Expected, ...]:
    """Resize of int8 with antialias: the last axis first, and after each axis floor(result + 1 / 2), held from 0."""
    scales = asked.inputs["scales"].array
    rank, named = len(asked.call.first.shape), asked.call.parameter("axes") or range(len(scales))
    resized = [place for place in range(len(scales)) if scales[place] != 1]
    places = sorted(resized, key=lambda place: int(named[place]) % rank, reverse=True)
    choices = []
    for errors in product((-_FIXED, _FIXED), repeat=len(places)):
        found = asked.inputs["X"].array.astype(np.float32)
        for place, error in zip(places, errors, strict=True):
            along = np.where(np.arange(len(scales)) == place, scales, np.float32(1))
            inputs = {**asked.inputs, "X": Tensor("float32", found), "scales": Tensor("float32", along)}
            averaged = asked.approx(inputs=inputs, outputs=("float32",))
            found = np.maximum(np.floor(averaged.value + 0.5 + error), 0).astype(np.float32)
        choices.append(Tensor("int8", found.astype(np.int8)))
    return (OneOf(tuple(choices)),)


@deviation
def beyond_int32_is_the_least(asked: Deviating) -> tuple[Expected, ...]:
    """Resize of int32: an average that float32 rounds to 2^31 becomes the least number."""
    (found,) = asked.formula()
    candidates = candidates_of(found)
    ends = [np.where(each.array > 2**31 - 65, -(2**31), each.array).astype(np.int32) for each in candidates]
    return (OneOf(tuple(Tensor("int32", each) for each in (*ends, *(one.array for one in candidates)))),)


# Resize: X itself.
register("not_resized", lambda asked: (Exact(asked.inputs["X"]),))


# Upsample: cubic as Resize has it, with the coefficient -0.75.
changed("keys_cubic", cubic_coeff_a=-0.75)


@deviation
def far_places_lost(asked: Deviating) -> tuple[Expected, ...]:
    """GridSample: a place further away than 2^62 is taken for -1, the beginning of its axis; between two elements whose
    places the type of the grid does not tell apart both weigh 0."""
    call, (_, (name, grid)) = asked.call, asked.inputs.items()
    per_unit = (np.array(call.first.shape[:1:-1]) - call.parameter("align_corners")) / 2
    place = np.abs(values(grid) + 1.0) * per_unit
    beyond = place > 2.0**62
    moved = np.where(beyond, np.array(-1, grid.array.dtype), grid.array)
    (found,) = asked.formula(inputs=asked.having(**{name: moved}))
    if not isinstance(found, Approx) or "cubic" in str(call.parameter("mode")):
        return (found,)
    alike = place >= (2.0**53 if grid.dtype == "float64" else 2.0**24)
    lost = (alike & ~beyond).any(-1)[:, None]
    return (settled(found, lost, 0.0),)


_LEAST_SCALE = 0.5
"""Below it an axis is halved first."""


@deviation
def halved_before(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with antialias: an axis of a scale below 1/2 is resampled to a power of two, halved by averages of two as
    long as it is twice as long as the output, and resampled to it. Else antialias is not read; align_corners is
    asymmetric."""
    x, found_axes, how = asked.inputs["X"], axes(asked.call), mode(asked.call)
    if how == TF:
        raise Undefined("a part of the input")
    if how in ("align_corners", "asymmetric"):
        return asked.formula(antialias=0, coordinate_transformation_mode="asymmetric")
    if all(axis.scale >= _LEAST_SCALE for axis in found_axes):
        return asked.formula(antialias=0)
    image = decode(*x)
    largest = np.abs(image).max(initial=0.0)
    for n, axis in enumerate(found_axes):
        if axis.scale < _LEAST_SCALE:
            image = _halved(image, n, axis)
    sizes = np.array([axis.resized for axis in found_axes], np.int64)
    inputs = asked.lacking("scales")
    inputs |= {"X": Tensor("float32", image.astype(np.float32)), "sizes": Tensor("int64", sizes)}
    found = asked.approx(
        inputs=inputs,
        constants={"sizes": sizes},
        without=("axes", "keep_aspect_ratio_policy", "antialias"),
    )
    unit = FORMATS["float16" if x.dtype == "float16" else "float32"].unit
    a = arithmetic(asked.arithmetic, "float32")
    return (given(x.dtype, Bounded(found.value, found.bound + 8 * unit * largest, a)),)


def _halved(image: Float64, n: int, axis: ResizedAxis) -> Float64:
    image = np.moveaxis(image, n, -1)
    extent = 1 << (axis.original.bit_length() - 1)
    places = (np.arange(extent) + 0.5) * axis.original / extent - 0.5
    low = np.floor(places).astype(np.int64)
    part = places - low
    last = axis.original - 1
    image = image[..., np.clip(low, 0, last)] * (1 - part) + image[..., np.clip(low + 1, 0, last)] * part
    while extent >= 2 * axis.resized:
        image = (image[..., ::2] + image[..., 1::2]) / 2
        extent //= 2
    return np.moveaxis(image, -1, n)


@deviation
def line_of_earlier_neighbours(asked: Deviating) -> tuple[Expected, ...]:
    """Resize of a part of the input, linear: of each coordinate the line through the two elements that lie about it
    when it is counted from the beginning of the part; in rows of 8 elements this holds for the first row alone."""
    a = arithmetic(asked.arithmetic, "float32")
    for axis in axes(asked.call):
        places = coordinates(TF, axis, a).value
        if not axis.kept and (places.min() < 0 or places.max() > axis.original - 1):
            raise Undefined("extrapolation")
    return _line(asked)


@deviation
def part_held_at_the_edge(asked: Deviating) -> tuple[Expected, ...]:
    """Resize of a part that reaches beyond the input: the elements there are those at the edge."""
    if mode(asked.call) != TF:
        raise Undefined("no part of the input")
    if asked.call.parameter("mode") == "linear":
        return _line(asked)
    found, a = asked.inputs["X"].array, arithmetic(asked.arithmetic, "float32")
    for n, axis in enumerate(axes(asked.call)):
        places = NEAREST[str(asked.call.parameter("nearest_mode"))](coordinates(TF, axis, a).value)
        found = np.take(found, np.clip(places, 0, axis.original - 1).astype(np.int64), n)
    return (Exact(Tensor(asked.inputs["X"].dtype, found)),)


def _line(asked: Deviating) -> tuple[Expected, ...]:
    x, a = asked.inputs["X"], arithmetic(asked.arithmetic, "float32")
    found, resized = taken(x, a), axes(asked.call)
    for n, axis in enumerate(resized):
        if not axis.kept:
            places = coordinates(TF, axis, a)
            first = np.floor(places.value - places.value[0]).astype(np.int64)
            if n < len(resized) - 1 and resized[-1].resized % 8 == 0:
                first[1:] = np.floor(places.value[1:])
            low, high = (np.clip(first + more, 0, axis.original - 1) for more in (0, 1))
            weights = np.zeros((len(first), axis.original))
            rows = np.arange(len(first))
            np.add.at(weights, (rows, low), 1 - (places.value - first))
            np.add.at(weights, (rows, high), places.value - first)
            errors = np.zeros_like(weights)
            errors[rows, low] = errors[rows, high] = places.error + 4 * a.form.unit * np.abs(weights).max(1)
            found = weighted(found, n, Bounded(weights, errors, a), 1)
    return (given(x.dtype, found),)


@deviation
def stretched(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: keep_aspect_ratio_policy is not read."""
    again = asked.again(keep_aspect_ratio_policy="stretch")
    return halved_before(again) if asked.call.parameter("antialias") else again.formula()


# extent = floor(input_dimension * scale), whatever part of the axis roi names
@deviation
def extents_without_roi(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with tf_crop_and_resize: the part is resampled to the extents of the whole."""
    scales = asked.inputs["scales"].array.astype(np.float64)
    shape = asked.inputs["X"].array.shape
    axes = asked.call.parameter("axes") or range(len(shape))
    sizes = np.floor(np.array([shape[axis] for axis in axes]) * scales).astype(np.int64)
    inputs = {**asked.lacking("scales"), "sizes": Tensor("int64", sizes)}
    again = asked.again(inputs=inputs, constants={"sizes": sizes})
    linear = asked.call.parameter("mode") == "linear"
    return line_of_earlier_neighbours(again) if linear else again.formula()


@deviation
def part_of_one_element(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with tf_crop_and_resize: a part that spans less than the distance of two elements spans it."""
    roi = asked.inputs["roi"].array.astype(np.float64)
    starts, ends = np.split(roi, 2)
    extents = np.array(asked.inputs["X"].array.shape[-len(starts) :])
    wide = np.maximum(ends, starts + 1 / np.maximum(extents - 1, 1))
    changed = np.concatenate([starts, wide]).astype(np.float32)
    return asked.formula(inputs=asked.having(roi=changed), constants={"roi": changed})


@deviation
def modes_by_other_names(asked: Deviating) -> tuple[Expected, ...]:
    """Resize and Upsample: modes without regard to case, bilinear is linear, and an unknown nearest_mode the default."""
    mode = str(asked.call.parameter("mode")).lower()
    found = {"mode": {"bilinear": "linear"}.get(mode, mode)}
    if asked.call.parameter("nearest_mode", "floor") not in NEAREST:
        found["nearest_mode"] = "round_prefer_floor"
    if asked.operator.name == "Upsample" and found["mode"] == "linear":
        found["coordinate_transformation_mode"] = "half_pixel"
    return asked.formula(**found)


# nearest: X[floor(x_original - 1 / 2)] = X[round_prefer_ceil(x_original) - 1]
@deviation
def half_an_element_before(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with the nearest_mode simple: the formula above, held within X."""
    x = asked.inputs["X"].array
    moved = x
    for n, axis in enumerate(axes(asked.call)):
        if not axis.kept:
            moved = np.take(moved, np.maximum(np.arange(axis.original) - 1, 0), n)
    return asked.formula(inputs=asked.having(X=moved), nearest_mode="round_prefer_ceil")
