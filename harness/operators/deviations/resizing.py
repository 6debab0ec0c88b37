"""What is given in place of resized tensors."""

from __future__ import annotations

from itertools import product

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.resize_axes import axes, chosen, numbers

_FIXED = 2.0**-12
"""More than the error of an average of bytes whose weights have 22 binary places."""


@deviation
def kept_extents_copied(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: extents are floor(extent * scale), whatever part roi names; of an axis with the scale 1 all is taken, and
    X itself where all extents stay."""
    call, among = asked.call, chosen(asked.call)
    inputs, count = dict(asked.inputs), len(chosen(asked.call))
    scales, roi = numbers(call, "scales"), numbers(call, "roi")
    if roi is not None:
        parts = np.array(roi).reshape(2, count)
        given = scales if scales is not None else [axes(call)[axis].scale for axis in among]
        parts[:, [scale == 1 for scale in given]] = [[0.0], [1.0]]
        inputs["roi"] = Tensor("float32", parts.reshape(-1).astype(np.float32))
        if scales is not None:
            inputs["scales"] = Tensor("float32", (np.array(scales) / (parts[1] - parts[0])).astype(np.float32))
    if scales is not None and np.floor(np.array(scales) * [call.first.shape[axis] for axis in among]).tolist() != [
        axes(call)[axis].original for axis in among
    ] or scales is None and any(axis.resized != axis.original for axis in axes(call)):
        return asked.formula(inputs=inputs)
    return (Exact(asked.inputs["X"]),)


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
            (averaged,) = asked.formula(inputs=inputs, outputs=("float32",))
            assert isinstance(averaged, Approx)
            found = np.maximum(np.floor(averaged.value + 0.5 + error), 0).astype(np.float32)
        choices.append(Tensor("int8", found.astype(np.int8)))
    return (OneOf(tuple(choices)),)


@deviation
def not_resized(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: X itself."""
    return (Exact(asked.inputs["X"]),)


@deviation
def keys_cubic(asked: Deviating) -> tuple[Expected, ...]:
    """Upsample: cubic as Resize has it, with the coefficient -0.75."""
    return asked.formula(cubic_coeff_a=-0.75)
