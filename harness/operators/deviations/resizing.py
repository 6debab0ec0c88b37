"""Deviating results of resizing and grid sampling."""

from __future__ import annotations

from itertools import product

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.operators.deviations.base import Deviating, candidates_of, changed, deviation, register, settled
from harness.operators.formulas import values
from harness.operators.image.resize_axes import axes, chosen, numbers

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
def kept_axes_copied(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: an axis whose extent stays has the scale 1."""
    scales = asked.inputs["scales"].array
    stays = np.array([axis.resized == axis.original for axis in axes(asked.call)])
    return asked.formula(inputs=asked.having(scales=np.where(stays, np.float32(1), scales)))


@deviation
def held_from_0(asked: Deviating) -> tuple[Expected, ...]:
    """Resize of int8 with antialias: the last axis first, and after each axis floor(result + 1 / 2), held from 0."""
    scales = asked.inputs["scales"].array
    places = [place for place in reversed(range(len(scales))) if scales[place] != 1]
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
    grid, call = asked.inputs["grid"], asked.call
    per_unit = (np.array(call.first.shape[:1:-1]) - call.parameter("align_corners")) / 2
    place = np.abs(values(grid) + 1.0) * per_unit
    beyond = place > 2.0**62
    moved = np.where(beyond, np.array(-1, grid.array.dtype), grid.array)
    (found,) = asked.formula(inputs=asked.having(grid=moved))
    if not isinstance(found, Approx) or "cubic" in str(call.parameter("mode")):
        return (found,)
    alike = place >= (2.0**53 if grid.dtype == "float64" else 2.0**24)
    lost = (alike & ~beyond).any(-1)[:, None]
    return (settled(found, lost, 0.0),)
