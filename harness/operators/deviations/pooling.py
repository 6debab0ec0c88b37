"""Deviating results of pooling, boxes and regions, those of ONNX Runtime's DirectML provider at the end."""

from __future__ import annotations

from functools import partial
from math import ceil, inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import FORMATS
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, candidates_of, changed, deviation, moved, register
from harness.operators.pooling.unpooling import unpooled
from harness.operators.pooling.windows import Window, window

# Pooling: auto_pad VALID stands for pads of 0, with which ceil_mode adds a window that does not fit.
changed("valid_as_pads_of_zero", auto_pad="NOTSET", without=("pads",))


@deviation
def valid_by_the_whole_kernel(asked: Deviating) -> tuple[Expected, ...]:
    """AveragePool: as above, and zeros stand where the window does not fit."""
    call, x = asked.call, asked.inputs["X"]
    extents, kernel = x.array.shape[2:], call.parameter("kernel_shape")
    strides = call.parameter("strides") or (1,) * len(extents)
    more = [(size - extent) % stride for extent, size, stride in zip(extents, kernel, strides, strict=True)]
    wide = np.pad(x.array, [(0, 0), (0, 0), *((0, each) for each in more)])
    return asked.formula(inputs={"X": Tensor(x.dtype, wide)}, ceil_mode=0)


@deviation
def greatest_above_the_lowest(asked: Deviating) -> tuple[Expected, ...]:
    """MaxPool: only what is above the lowest finite number is found. Otherwise Y is this number, and the place in Indices
    is -1 along every axis. Pads of SAME are as below."""
    form = DTYPES[asked.call.first.dtype]
    wide = "float64" if form.name == "float64" else "float32"  # as which float16 is searched
    lowest = -FORMATS[wide].largest if form.is_float else np.iinfo(form.storage).min
    call = asked.call
    narrow = call.parameter("dilations") and call.parameter("auto_pad", "NOTSET").startswith("SAME")
    y, *indices = same_without_dilations(asked) if narrow else asked.formula()
    candidates = candidates_of(y)
    lost = candidates[0].array <= lowest
    found = [Tensor(y.dtype, np.where(lost, lowest, each.array).astype(form.storage)) for each in candidates]
    extents = call.first.shape[2:]
    order = extents if call.parameter("storage_order", 0) else extents[::-1]
    before = sum(prod(order[:n]) for n in range(len(order)))
    return (OneOf(tuple(found)), *(_before(each, lost, before, prod(extents)) for each in indices))


def _before(found: Expected, lost: NDArray[np.bool_], before: int, plane: int) -> Expected:
    assert isinstance(found, OneOf)
    planes = np.arange(lost.shape[0] * lost.shape[1]).reshape(*lost.shape[:2], *(1,) * (lost.ndim - 2))
    places = [np.where(lost, planes * plane - before, each.array) for each in found.candidates]
    return OneOf(tuple(Tensor(found.dtype, each) for each in places))


def _same(asked: Deviating, extents: tuple[int, ...], least: float = -inf) -> tuple[Expected, ...]:
    """Pad by (ceil(extent / stride) - 1) stride + kernel - extent, at least so many."""
    call = asked.call
    strides = call.parameter("strides") or (1,) * len(extents)
    totals = [
        int(max(least, (ceil(extent / stride) - 1) * stride + size - extent))
        for extent, stride, size in zip(extents, strides, call.parameter("kernel_shape"), strict=True)
    ]
    lower = call.parameter("auto_pad") == "SAME_LOWER"
    begins = [int((total + lower) / 2) for total in totals]
    if min(begins) < 0:
        raise Undefined("windows that begin inside")
    ends = [total - begin for total, begin in zip(totals, begins, strict=True)]
    return asked.formula(auto_pad="NOTSET", pads=(*begins, *ends))


@deviation
def same_without_dilations(asked: Deviating) -> tuple[Expected, ...]:
    """Pooling: pads of SAME are those of a kernel without dilations."""
    return _same(asked, asked.call.first.shape[2:])


# NhwcMaxPool: the same with the channels last.
register("same_without_dilations_nhwc", lambda asked: _same(asked, asked.call.first.shape[1:-1]))


# QLinearAveragePool with the channels last: pads of SAME are those of the extents behind the first two axes.
register("same_of_the_last_axes", lambda asked: _same(asked, asked.call.first.shape[2:], 0))


@deviation
def blocks_of_all_that_dilations_span(asked: Deviating) -> tuple[Expected, ...]:
    """Col2Im: the channels of the input are divided as if a block had (block - 1) * dilation + 1 elements along each axis."""
    call, x = asked.call, asked.inputs["input"]
    block, dilations = call.parameter("block_shape"), call.parameter("dilations")
    count = len(block)
    pads = call.parameter("pads") or (0,) * 2 * count
    wide = [(size - 1) * step + 1 for size, step in zip(block, dilations, strict=True)]
    ends = [
        end + step * (size - narrow)
        for end, step, size, narrow in zip(pads[count:], dilations, wide, block, strict=True)
    ]
    channels = ceil(x.array.shape[1] / prod(wide))
    filled = np.pad(x.array, [(0, 0), (0, channels * prod(wide) - x.array.shape[1]), (0, 0)])
    taken = {**asked.having(block_shape=np.array(wide)), "input": Tensor(x.dtype, filled)}
    found = asked.approx(inputs=taken, pads=(*pads[:count], *ends))
    rest = [(0, 0), (0, x.array.shape[1] // prod(block) - channels), *[(0, 0)] * count]
    return (moved(found, lambda held: np.pad(held, rest)),)


@deviation
def rows_up_to_the_padding_on_the_left(asked: Deviating) -> tuple[Expected, ...]:
    """AveragePool of two axes that counts padding: a window has rows up to the height and the padding on the left, which is
    taken for that below."""
    found = asked.approx()
    shape = window(asked.call, asked.call.parameter("kernel_shape"))
    if len(shape.kernel) != 2 or not asked.call.parameter("count_include_pad"):
        return (found,)
    return (up_to_the_padding_on_the_left(found, asked.call.first.shape[2], shape),)


def up_to_the_padding_on_the_left(found: Approx, height: int, shape: Window) -> Approx:
    """Return means as of windows whose rows end at the height and the padding on the left."""
    top, left, below, _ = shape.pads
    starts = np.arange(found.value.shape[2]) * shape.strides[0] - top
    right, counted = (np.minimum(starts + shape.kernel[0], height + more) - starts for more in (below, left))
    factor = (right / counted)[:, None]
    return moved(found, lambda held: held * factor)


def _with_windows_behind(asked: Deviating, mean: float) -> tuple[Expected, ...]:
    call, found = asked.call, asked.approx()
    wanted = window(call, call.parameter("kernel_shape")).as_written(call.first.shape[2:])
    more = [(0, each - given) for each, given in zip(wanted, found.value.shape[2:], strict=True)]
    spread = [(0, 0), (0, 0), *more]
    value = np.pad(found.value, spread, constant_values=mean)
    return (Approx(found.dtype, value, np.pad(found.bound, spread)),)


# AveragePool with ceil_mode: a window that begins in the padding behind is not left out, and its mean is 0, or 0 / 0.
register("zeros_of_windows_behind_the_padding", partial(_with_windows_behind, mean=0.0))
register("nans_of_windows_behind_the_padding", partial(_with_windows_behind, mean=np.nan))


# NonMaxSuppression: a box is selected where score > score_threshold, which is at least the next float32.
changed(
    "scores_above_the_threshold", {"score_threshold": lambda least: np.nextafter(least, np.float32(np.inf))}
)


# NonMaxSuppression: no box overlaps another too much.
_ALL = {"iou_threshold": Tensor("float32", np.ones(1, np.float32))}
changed("none_overlaps", inputs=lambda asked: {**asked.inputs, **_ALL})


@deviation
def regions_of_32_bits(asked: Deviating) -> tuple[Expected, ...]:
    """MaxRoiPool: a corner that int32 does not hold is its least number."""
    rois = asked.inputs["rois"].array
    held = np.where(np.abs(rois) < 2.0**31, rois, np.float32(-(2.0**31)))
    return asked.formula(inputs=asked.having(rois=held.astype(rois.dtype)))


# RoiAlign: mode without regard to case.
changed("mode_in_lower_case", mode=lambda asked: str(asked.call.parameter("mode")).lower())


# RoiAlign: any coordinate_transformation_mode but half_pixel is output_half_pixel.
changed("output_half_pixel", coordinate_transformation_mode="output_half_pixel")


@deviation
def rounds_windows_up(asked: Deviating) -> tuple[Expected, ...]:
    """Pooling with ceil_mode: padded at the end until every window fits that begins before the padded end, and
    averages count all of it."""
    call = asked.call
    given = window(call, tuple(call.parameter("kernel_shape")))
    axes = zip(given.ends, given.rooms(call.first.shape[2:]), given.strides, strict=True)
    ends = [end + ceil(room / stride) * stride - room for end, room, stride in axes]
    again = asked.again(auto_pad="NOTSET", ceil_mode=0, pads=(*given.begins, *ends))
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
    x, pads = asked.inputs["X"].array, asked.call.parameter("pads")
    begins, ends = np.split(np.array((0, 0, *pads[: len(pads) // 2], 0, 0, *pads[len(pads) // 2 :])), 2)
    kept = tuple(
        slice(max(0, -begin), extent + min(0, end))
        for begin, end, extent in zip(begins, ends, x.shape, strict=True)
    )
    return asked.formula(inputs=asked.having(X=x[kept]), pads=tuple(max(0, pad) for pad in pads))


@deviation
def last_batch_for_others(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign and MaxRoiPool: a batch that is not there is taken for the last."""
    last = len(asked.inputs["X"].array) - 1
    if asked.operator.name == "MaxRoiPool":
        rois = asked.inputs["rois"].array.copy()
        rois[:, 0] = _batches(rois[:, 0], last)
        return asked.formula(inputs=asked.having(rois=rois))
    inputs = asked.having(batch_indices=lambda given: _batches(given, last))
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
