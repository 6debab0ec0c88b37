"""Deviating results of products, convolutions and quantised operators; of 8-bit integers on processors that add two
products in 16 bits."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Exact, Expected
from harness.operators import OPERATORS
from harness.operators.base import Call, Undefined
from harness.operators.contrib.attentions import qattention
from harness.operators.contrib.integer_products import dynamic_matmul, integer_to_float, qgemm
from harness.operators.contrib.qlinear import nhwc_conv
from harness.operators.deviations.base import Deviating, changed, deviation, moved, settled
from harness.operators.formulas import decided
from harness.operators.pooling.windows import window
from harness.operators.products.convolutions import windows
from harness.operators.products.convolving import TRANSPOSED
from harness.operators.products.einsum import einsum
from harness.operators.quantization.quantised import COLUMNS, ROWS, requantized
from harness.operators.quantization.quantising import spread


@deviation
def products_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulInteger, QLinearMatMul and ONNX Runtime's own products: sums over k of A[.., k] B[k, ..] with two neighbours added
    in 16 bits."""
    if asked.operator.name in _CONTRIBUTED:
        return _CONTRIBUTED[asked.operator.name](asked.call, asked.inputs, asked.arithmetic, _products)
    if asked.operator.name == "MatMulInteger":
        return decided(_products)(asked.call, asked.inputs, asked.arithmetic)
    held = {name: each.array for name, each in asked.inputs.items()}
    found = _products(held["a"], held["b"], held["a_zero_point"], held["b_zero_point"])
    return requantized(asked.call, asked.inputs, found, asked.arithmetic, {"a": ROWS, "b": COLUMNS})


def _products(A: Array, B: Array, a_zero_point: Any = 0, b_zero_point: Any = 0) -> Array:
    a, b = np.atleast_2d(A), B if B.ndim > 1 else B[:, None]
    one, other = (np.asarray(zero, np.int64) for zero in (a_zero_point, b_zero_point))
    one = one[:, None] if one.ndim == 1 and one.size > 1 else one
    found = _less_zero_points(_in_pairs(a, b), a, b, one, other)
    found = found if A.ndim > 1 else found[..., 0, :]
    return np.asarray(found if B.ndim > 1 else found[..., 0]).astype(np.int32)


_CONTRIBUTED = {
    "com.microsoft.MatMulIntegerToFloat": integer_to_float,
    "com.microsoft.DynamicQuantizeMatMul": dynamic_matmul,
    "com.microsoft.QGemm": qgemm,
    "com.microsoft.QAttention": qattention,
}


# MatMul and products like it: the first matrix of B's stack alone.
changed("first_of_the_stack", {"B": lambda b: b[:1]})


@deviation
def sums_in_float64(asked: Deviating) -> tuple[Expected, ...]:
    """Einsum of one operand of int64: sums in float64, held at the limits of the type."""
    (x,) = (each.array.astype(np.float64) for each in asked.inputs.values())
    total = einsum([x], str(asked.call.parameter("equation")))
    lowest, beyond = -(2.0**63), 2.0**63
    held = np.clip(total, lowest, np.nextafter(beyond, 0)).astype(np.int64)
    return (Exact(Tensor("int64", np.where(total < beyond, held, np.iinfo(np.int64).max))),)


@deviation
def windows_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """ConvInteger, QLinearConv: sums over kernel and channels with two neighbours added in 16 bits, those of the kernel
    in ConvInteger, of the channels in QLinearConv."""
    if asked.operator.name == "com.microsoft.QLinearConv":
        first = OPERATORS["QLinearConv"]
        return nhwc_conv(*asked[1:], lambda *given: windows_in_pairs(Deviating(first, *given)))
    call, held = asked.call, {name: each.array for name, each in asked.inputs.items()}
    x, w = held["x"], held["w"]
    zero, others = held.get("x_zero_point", np.uint8(0)).reshape(()), held.get("w_zero_point", np.int8(0))
    rows = w.reshape(*w.shape[:2], -1)
    columns = _columns(x, w, zero, call)
    if asked.operator.name == "QLinearConv":
        rows, columns = rows.swapaxes(1, 2), columns.swapaxes(2, 3)
    rows = rows.reshape(len(w), -1)
    columns = columns.reshape(*columns.shape[:2], -1, columns.shape[-1])
    row_zeros = np.broadcast_to(others.reshape(-1, 1).astype(np.int64), (len(w), 1))
    of_groups = zip(np.split(rows, columns.shape[1]), np.split(row_zeros, columns.shape[1]), strict=True)
    found = [
        _less_zero_points(_in_pairs(part, columns[:, n]), part, columns[:, n], zeros, zero.astype(np.int64))
        for n, (part, zeros) in enumerate(of_groups)
    ]
    (shape,) = asked.operator.family.output_shapes(asked.operator, call)
    sums = np.concatenate(found, axis=1).reshape(shape)
    if asked.operator.name == "ConvInteger":
        return (Exact(Tensor("int32", sums.astype(np.int32))),)
    each = (-1, *(1,) * (x.ndim - 2))
    sums = (sums + held["B"].astype(np.int64).reshape(each)).astype(np.int32) if "B" in held else sums
    return requantized(call, asked.inputs, sums, asked.arithmetic, {"x": each, "w": each})


@deviation
def quotients_cut_off(asked: Deviating) -> tuple[Expected, ...]:
    """QuantizeLinear of float16: the quotient in float32 is cut off, not rounded."""
    if asked.inputs["x"].dtype != "float16":
        return asked.formula()
    x, scale = (asked.inputs[name].array.astype(np.float32) for name in ("x", "y_scale"))
    whole = np.trunc(x / spread(scale, x.shape, asked.call))
    plain = {"x": Tensor("float32", whole), "y_scale": Tensor("float32", np.ones((), np.float32))}
    return asked.formula(inputs={**asked.inputs, **plain})


def _columns(x: Array, w: Array, zero: Array, call: Call) -> Array:
    """Return the elements of every window by group: [N, groups, C / groups, kernel, outputs]."""
    found = window(call, w.shape[2:])
    count = len(found.kernel)
    padded = np.pad(x, found.widths, constant_values=zero)
    view = windows(padded, found.kernel, found.strides, found.dilations)
    turned = np.moveaxis(view, range(2, 2 + count), range(-count, 0))
    return np.asarray(
        turned.reshape(len(x), -1, w.shape[1], prod(found.kernel), prod(turned.shape[2 + count :]))
    )


def _in_pairs(a: Array, b: Array) -> Array:
    """Multiply [.., m, k] of uint8 by [.., k, n] of int8: two neighbours are added in 16 bits that saturate."""
    more = a.shape[-1] % 2
    a = np.pad(a.astype(np.int64), [(0, 0)] * (a.ndim - 1) + [(0, more)])
    b = np.pad(b.astype(np.int64), [(0, 0)] * (b.ndim - 2) + [(0, more), (0, 0)])
    pairs = [a[..., n::2, None] * b[..., None, n::2, :] for n in (0, 1)]
    return np.asarray(np.clip(pairs[0] + pairs[1], -(2**15), 2**15 - 1).sum(-2))


# sum of (a - za) (b - zb) = sum of a b - za (sum of b) - zb (sum of a) + K za zb
def _less_zero_points(products: Array, a: Array, b: Array, za: Array, zb: Array) -> Array:
    a, b = (each.astype(np.int64) for each in (a, b))
    corrected = products - za * b.sum(-2, keepdims=True) - zb * a.sum(-1, keepdims=True)
    return np.asarray(corrected + a.shape[-1] * za * zb)


# QuantizeLinear: as if no zero point were given.
changed("without_zero_point", inputs=lambda asked: asked.lacking("y_zero_point"))


@deviation
def scales_of_the_third(asked: Deviating) -> tuple[Expected, ...]:
    """QuantizeLinear to 2 bits along the last axis: the first two elements of a byte take scale and zero point of the
    third, or of the last where there is no third."""
    x = asked.inputs["x"].array
    places = np.arange(x.size)
    taken = np.where(places % 4 < 2, np.minimum(places // 4 * 4 + 2, places.size - 1), places)

    def spread_out(values: Array) -> Array:
        return np.asarray(values[taken % values.size]).reshape(x.shape)

    inputs = asked.having(**dict.fromkeys(asked.lacking("x"), spread_out))
    return asked.formula(inputs=inputs, axis=-1, block_size=1)


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
