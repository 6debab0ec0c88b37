"""What DirectML gives of products, quantisations, norms and convolutions."""

from __future__ import annotations

import numpy as np

from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, changed, deviation, moved, settled
from harness.operators.pooling.windows import window
from harness.operators.products.convolving import TRANSPOSED

# MatMul and MatMulInteger by a vector: every element of B is taken for the first.
changed("first_of_vector", {"B": lambda b: np.repeat(b[:1], len(b))})


@deviation
def in_equal_blocks_from_the_last(asked: Deviating) -> tuple[Expected, ...]:
    """QuantizeLinear: scales belong to the last dimensions, each of which is divided into as many equal blocks as
    there are scales."""
    shape = asked.inputs["x"].array.shape

    def spread(values: Array) -> Array:
        found = values.reshape(*(1,) * (len(shape) - values.ndim), *values.shape)
        for axis, extent in enumerate(shape):
            found = np.take(found, np.arange(extent) * found.shape[axis] // extent, axis)
        return found

    spreaded = asked.having(**dict.fromkeys(asked.lacking("x"), spread))
    return asked.formula(inputs=spreaded, axis=0, block_size=1)


@deviation
def batches_for_channels(asked: Deviating) -> tuple[Expected, ...]:
    """LRN of three dimensions: sums along the batches."""
    found = asked.approx(inputs=asked.having(X=lambda x: x.swapaxes(0, 1)))
    return (moved(found, lambda held: held.swapaxes(0, 1)),)


# DequantizeLinear: scales belong to the last axis.
changed("scales_of_the_last_axis", axis=-1)


@deviation
def zeros_for_output_padding(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose: 0, without the bias, in the rows and columns that output_padding adds at the end."""
    found = asked.approx()
    paddings = asked.call.parameter("output_padding")
    if paddings is None:
        raise Undefined("no output_padding")
    added = np.zeros(found.shape, np.bool_)
    for axis, more in enumerate(paddings, 2):
        extent = found.shape[axis]
        added |= (np.arange(extent) >= extent - more).reshape(-1, *(1,) * (len(found.shape) - axis - 1))
    return (settled(found, added, 0.0),)


# total = max(0, (ceil(extent / stride) - 1) * stride + kernel - extent): what Conv of X would need
@deviation
def pads_of_conv(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose with auto_pad SAME: the padding is that of a Conv of X."""
    if asked.call.parameter("auto_pad") not in ("SAME_UPPER", "SAME_LOWER"):
        raise Undefined("no auto_pad SAME")
    return asked.formula(auto_pad="NOTSET", pads=window(asked.call, asked.call.inputs["W"].shape[2:]).pads)


# begin is half of (extent - 1) * stride + kernel - output_shape, without dilations and output_padding
@deviation
def pads_without_dilations(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose with output_shape: half of another padding lies before the first element."""
    shape, extents = asked.call.parameter("output_shape"), asked.call.first.shape[2:]
    if shape is None:
        raise Undefined("no output_shape")
    found = window(asked.call, asked.call.inputs["W"].shape[2:])
    sizes = list(zip(extents, found.kernel, found.strides, shape[-len(extents) :], strict=True))
    totals = [max(0, (n - 1) * stride + size - out) for n, size, stride, out in sizes]
    upper = asked.call.parameter("auto_pad") == "SAME_UPPER"
    begins = [total // 2 if upper else total - total // 2 for total in totals]
    full = TRANSPOSED.full(asked.call, found)
    ends = [size - out - begin for size, (*_, out), begin in zip(full, sizes, begins, strict=True)]
    return asked.formula(without=("output_shape",), auto_pad="NOTSET", pads=(*begins, *ends))
