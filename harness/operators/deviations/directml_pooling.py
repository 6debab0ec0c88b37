"""What ONNX Runtime's DirectML provider gives of pooling and of regions."""

from __future__ import annotations

from math import ceil

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.expected import Expected, OneOf, nearest
from harness.model.float_formats import FORMATS
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.windows import window


@deviation
def rounds_windows_up(asked: Deviating) -> tuple[Expected, ...]:
    """Pooling with ceil_mode: padded at the end until every window fits that begins before the padded end, and
    averages count all of it."""
    call = asked.call
    given = window(call, tuple(call.parameter("kernel_shape")))
    spatial = call.first.shape[2:]
    count = len(spatial)
    ends = []
    for n, extent in enumerate(spatial):
        room = extent + given.pads[n] + given.pads[n + count] - given.reach[n]
        ends.append(given.pads[n + count] + ceil(room / given.strides[n]) * given.strides[n] - room)
    padded: dict[str, Value] = {"auto_pad": "NOTSET", "ceil_mode": 0, "pads": (*given.pads[:count], *ends)}
    again = asked._replace(call=call._replace(attributes={**call.attributes, **padded}))
    return from_the_least(again) if asked.operator.name == "MaxPool" else again.formula()


@deviation
def from_the_least(asked: Deviating) -> tuple[Expected, ...]:
    """MaxPool and GlobalMaxPool: the greatest of the elements and the least finite number, which also stands for a
    window without elements; its place is 0."""
    x = asked.inputs["X"]
    least = -FORMATS[x.dtype].largest if x.dtype in FORMATS else np.iinfo(x.array.dtype).min
    found = asked.formula(inputs={"X": _at_least(x, least)})
    return tuple(
        OneOf(tuple(_at_least(each, 0 if n else least) for each in candidates_of(one)))
        for n, one in enumerate(found)
    )


def candidates_of(found: Expected) -> tuple[Tensor, ...]:
    """Return what an output that is chosen may be."""
    return found.candidates if isinstance(found, OneOf) else (nearest(found),)


def _at_least(tensor: Tensor, least: float) -> Tensor:
    return Tensor(tensor.dtype, np.maximum(tensor.array, tensor.array.dtype.type(least)))


@deviation
def half_pixel(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign: shifted by half a pixel."""
    return asked.formula(coordinate_transformation_mode="half_pixel")
