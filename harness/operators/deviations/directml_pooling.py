"""What ONNX Runtime's DirectML provider gives of pooling and of regions."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Exact, Expected, OneOf
from harness.model.float_formats import FORMATS
from harness.operators.deviations.base import Deviating, candidates_of, changed, deviation
from harness.operators.pooling.unpooling import unpooled
from harness.operators.pooling.windows import window


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
    again = asked.again(auto_pad="NOTSET", ceil_mode=0, pads=(*given.pads[:count], *ends))
    return from_the_least(again) if asked.operator.name == "MaxPool" else again.formula()


@deviation
def from_the_least(asked: Deviating) -> tuple[Expected, ...]:
    """MaxPool and GlobalMaxPool: the greatest of the elements and the least finite number, which also stands for a
    window without elements, whose place is 0, or with NaN alone."""
    x = asked.inputs["X"]
    least = -FORMATS[x.dtype].largest if x.dtype in FORMATS else np.iinfo(x.array.dtype).min
    found = asked.formula(inputs={"X": _at_least(x, least)})
    return tuple(
        OneOf(tuple(_at_least(each, 0 if n else least) for each in candidates_of(one)))
        for n, one in enumerate(found)
    )


def _at_least(tensor: Tensor, least: float) -> Tensor:
    return Tensor(tensor.dtype, np.fmax(tensor.array, tensor.array.dtype.type(least)))


_HALF_PIXEL: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel"}

# RoiAlign: shifted by half a pixel.
changed("half_pixel", **_HALF_PIXEL)


@deviation
def negative_pads_cut_off(asked: Deviating) -> tuple[Expected, ...]:
    """Pooling: a pad below 0 cuts elements off."""
    x, pads = asked.inputs["X"], asked.call.parameter("pads")
    begins, ends = np.split(np.array((0, 0, *pads[: len(pads) // 2], 0, 0, *pads[len(pads) // 2 :])), 2)
    kept = tuple(
        slice(max(0, -begin), extent + min(0, end))
        for begin, end, extent in zip(begins, ends, x.array.shape, strict=True)
    )
    return asked.formula(
        inputs={"X": Tensor(x.dtype, x.array[kept])}, pads=tuple(max(0, pad) for pad in pads)
    )


@deviation
def last_batch_for_others(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign and MaxRoiPool: a batch that is not there is taken for the last."""
    last = len(asked.inputs["X"].array) - 1
    inputs = dict(asked.inputs)
    if asked.operator.name == "MaxRoiPool":
        rois = inputs["rois"].array.copy()
        rois[:, 0] = _batches(rois[:, 0], last)
        return asked.formula(inputs={**inputs, "rois": Tensor(inputs["rois"].dtype, rois)})
    inputs["batch_indices"] = Tensor("int64", _batches(inputs["batch_indices"].array, last))
    return asked.formula(inputs=inputs, **(_HALF_PIXEL if asked.call.opset < 16 else {}))


def _batches(given: Array, last: int) -> Array:
    return np.where((given < 0) | (given > last), given.dtype.type(last), given)


@deviation
def places_beyond_left_out(asked: Deviating) -> tuple[Expected, ...]:
    """MaxUnpool: an element whose place, in its lower 32 bits, is not in the output is left out."""
    x = asked.inputs["X"].array.copy()
    places = asked.inputs["I"].array.astype(np.int32).astype(np.int64)
    there = (places >= 0) & (places < prod(unpooled(asked.call)))
    x[~there] = x[there][0] if there.any() else 0
    places[~there] = places[there][0] if there.any() else 0
    return asked.formula(inputs=asked.having(X=x, I=places))


@deviation
def image_of_no_channels(asked: Deviating) -> tuple[Expected, ...]:
    """Col2Im: rows that make no block make an image without channels."""
    given = asked.inputs["input"]
    shape = (len(given.array), 0, *asked.call.parameter("image_shape"))
    return (Exact(Tensor(given.dtype, np.zeros(shape, given.array.dtype))),)
