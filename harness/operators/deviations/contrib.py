"""Deviating results of ONNX Runtime's own operators."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Approx, Exact, Expected
from harness.operators.base import Shape
from harness.operators.bounded import Bounded, converted, sigmoid, take
from harness.operators.contrib.block_quantised import blockwise, decoded, unpacked
from harness.operators.contrib.decoder_masked import decoder_masked
from harness.operators.contrib.experts import group_router
from harness.operators.contrib.fused_norms import skip_rms_norm
from harness.operators.contrib.integer_products import integer_to_float, summed_as_reals
from harness.operators.deviations.base import (
    DEVIATIONS,
    Deviating,
    changed,
    deviation,
    moved,
    register,
    replaced,
)
from harness.operators.deviations.products import products_in_pairs
from harness.operators.formulas import bounded
from harness.operators.pooling.windows import Window


def _with_bias_scaled(asked: Deviating) -> dict[str, Tensor]:
    return asked.having(bias=lambda bias: bias * asked.inputs["b_scale"].array)


# MatMulIntegerToFloat, DynamicQuantizeMatMul: (A B a_scale + bias) b_scale; the same of products in pairs.
changed("bias_scaled", inputs=_with_bias_scaled)
register(
    "bias_scaled_in_pairs",
    lambda asked: products_in_pairs(asked._replace(inputs=_with_bias_scaled(asked))),
)


@deviation
def scaled_as_columns(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulIntegerToFloat: scales of the columns of A multiply those of the product; bias is scaled by a vector b_scale."""
    a, b = asked.inputs["a_scale"], asked.inputs["b_scale"]
    one, both = Tensor(a.dtype, np.ones((), a.array.dtype)), Tensor(b.dtype, a.array * b.array)
    given = _with_bias_scaled(asked) if "bias" in asked.inputs and b.array.ndim else asked.inputs
    return asked.formula(inputs={**given, "a_scale": one, "b_scale": both})


@deviation
def scaled_by_rows(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulIntegerToFloat: scales and zero points of the columns of A are those of its rows."""
    names = [name for name in asked.inputs if name.startswith("a_")]
    by_rows = asked.having(**dict.fromkeys(names, lambda held: held[:, None] if held.ndim else held))
    return integer_to_float(asked.call, by_rows, asked.arithmetic)


# MatMulNBits: as without zero points.
changed("default_zero_points", inputs=lambda asked: asked.lacking("zero_points"))


# MatMulBnb4 without transB: the numbers of output j begin at j K, as if they were a row.
def _by_overlapping_rows(
    A: Bounded, B: Array, absmax: Bounded, block_size: int, quant_type: int, K: int, N: int
) -> Bounded:
    w = decoded(B, absmax, block_size, quant_type, N * K)
    return A @ take(w, K * np.arange(K)[:, None] + np.arange(N)).T


replaced("overlapping_rows", bounded(_by_overlapping_rows))


# MatMulIntegerToFloat, DynamicQuantizeMatMul: the scales multiply the operands, not their product.
replaced("products_of_reals", summed_as_reals)


@deviation
def rows_by_a_vector(asked: Deviating) -> tuple[Expected, ...]:
    """FusedMatMul, TransposeMatMul: by a vector the elements of A as they lie in memory, in rows of its length."""
    *stack, k, m = asked.inputs["A"].array.shape
    return asked.formula(inputs=asked.having(A=lambda a: a.reshape(*stack, m, k)), transA=0)


# QLinearSoftmax, and QuantizeLinear that becomes one: quantised by the integer part of 1 / y_scale.
changed(
    "whole_inverse_scale",
    {"y_scale": lambda scale: np.asarray(1 / np.floor(1 / scale.astype(np.float32)), scale.dtype)},
)


# GroupQueryAttention: without rotation, softcap, smooth softmax, head_sink and window.
_PLAIN: dict[str, Any] = {"do_rotary": 0, "softcap": 0.0, "smooth_softmax": -1, "local_window_size": -1}
changed("plain_scores", inputs=lambda asked: asked.lacking("head_sink"), **_PLAIN)


# SkipSimplifiedLayerNormalization: bias is added to the output, as beta of SkipLayerNormalization is.
def _with_bias_behind(
    input: Bounded, skip: Bounded, gamma: Bounded, bias: Bounded, epsilon: float
) -> tuple[Bounded, ...]:
    y, *others = skip_rms_norm(input, skip, gamma, epsilon)
    return y + bias, *others


replaced("bias_behind", bounded(_with_bias_behind))


# QMoE: as with normalize_routing_weights.
changed("always_normalised", normalize_routing_weights=1)


# QMoE: experts whose weight is not greater than 1e-8 are left out.
changed(
    "positive_weights", {"router_weights": lambda given: np.where(given > 1e-8, given, given.dtype.type(0))}
)


@deviation
def quantised_again(asked: Deviating) -> tuple[Expected, ...]:
    """QMoE of 4 bits: weights without zero points are quantised once more, in blocks whose largest weight becomes -8."""
    inputs, blocks = dict(asked.inputs), asked.call.attributes.get("block_size")
    for name in ("fc1", "fc2"):
        scales = inputs[f"{name}_scales"].array
        if f"{name}_zero_points" in inputs:
            continue
        q = unpacked(inputs[f"{name}_experts_weights"].array, 4)
        given = scales.reshape(*q.shape[:2], -1)
        wide = blockwise(given, -(-q.shape[-1] // given.shape[-1]), q.shape[-1])
        block = blocks if given.shape[-1] > 1 else 32
        weights = ((q - 8) * wide.astype(np.float32)).reshape(*q.shape[:2], -1, block)
        largest = np.take_along_axis(weights, np.abs(weights).argmax(-1, keepdims=True), -1)
        scale = largest / np.float32(-8)
        again = np.clip(
            np.floor(np.where(scale, weights / np.where(scale, scale, 1), 0) + 8.5), 0, 15
        ).astype(np.uint8)
        again = again.reshape(q.shape)
        inputs[f"{name}_experts_weights"] = Tensor("uint8", again[..., 0::2] | again[..., 1::2] << 4)
        inputs[f"{name}_scales"] = Tensor("float32", scale[..., 0])
        blocks = block
    return asked.formula(inputs=inputs, block_size=blocks or 32)


@deviation
def untransformed(asked: Deviating) -> tuple[Expected, ...]:
    """LinearRegressor, SVMRegressor and TreeEnsemble: scores as with post_transform NONE."""
    words = isinstance(asked.call.parameter("post_transform"), str)
    return asked.formula(post_transform="NONE" if words else 0)


@deviation
def softmax_for_logistic(asked: Deviating) -> tuple[Expected, ...]:
    """TreeEnsemble of several targets: post_transform 1 as LOGISTIC and 2 as SOFTMAX."""
    return asked.formula(post_transform=3 - asked.call.parameter("post_transform"))


@deviation
def squares_that_wrap(asked: Deviating) -> tuple[Expected, ...]:
    """Normalizer: squares of integers modulo 2**64."""
    x = asked.inputs["X"].array
    return asked.formula(inputs={"X": Tensor("float64", np.sqrt((x * x).astype(np.float64)))})


def _with_tables(asked: Deviating, part: slice) -> tuple[Expected, ...]:
    tables = {name: value for name, value in asked.call.attributes.items() if isinstance(value, tuple)}
    return asked.formula(**{name: value[part] for name, value in tables.items()})


# LabelEncoder: the first of keys that are alike. Imputer: the first imputed value for each column.
register("first_of_keys", partial(_with_tables, part=slice(None, None, -1)))
register("first_imputed_value", partial(_with_tables, part=slice(1)))


@deviation
def as_row(asked: Deviating) -> tuple[Expected, ...]:
    """DictVectorizer: the row of a matrix in place of a tensor of one dimension."""
    found = asked.exact()
    return (Exact(Tensor(found.dtype, found.tensor.array[None])),)


# MoE: as if every element of the first input were 0.
changed("input_of_zeros", {"input": np.zeros_like})


@deviation
def difference_in_32_bits(asked: Deviating) -> tuple[Expected, ...]:
    """DequantizeLinear of int32: x - x_zero_point, which wraps, times x_scale."""
    x, zero = asked.inputs["x"].array, asked.inputs["x_zero_point"].array
    wrapped = x - zero.reshape(_along_axis(asked, zero))
    return asked.formula(inputs=asked.having(x=wrapped, x_zero_point=np.zeros_like(zero)))


def _along_axis(asked: Deviating, values: Array) -> list[int]:
    """Return the shape in which values for the slices of DequantizeLinear's axis are broadcast to x."""
    rank = len(asked.call.first.shape)
    axis = asked.call.parameter("axis", 0) % rank if values.ndim else 0
    return [-1 if n == axis else 1 for n in range(rank)] if values.ndim else []


@deviation
def divided_by_the_kernel(asked: Deviating) -> tuple[Expected, ...]:
    """QLinearAveragePool: zero points stand where a window does not fit, and count."""
    call, zero = asked.call, asked.inputs["x_zero_point"].array.reshape(())
    at = slice(1, -1) if call.parameter("channels_last") else slice(2, None)
    (outputs,) = asked.operator.family.output_shapes(asked.operator, call)
    kernel = tuple(call.parameter("kernel_shape"))
    strides = call.parameter("strides") or (1,) * len(kernel)
    pads = call.parameter("pads") or (0,) * 2 * len(kernel)
    found = Window(kernel, strides, (1,) * len(kernel), pads)
    behind = zip(found.behind(outputs[at], call.first.shape[at]), found.ends, strict=True)
    more = [(0, 0)] * len(outputs)
    more[at] = [(0, max(0, beyond - end)) for beyond, end in behind]
    wide = np.pad(asked.inputs["X"].array, more, constant_values=zero)
    return asked.formula(inputs=asked.having(X=wide), ceil_mode=0)


@deviation
def difference_of_floats(asked: Deviating) -> tuple[Expected, ...]:
    """DequantizeLinear of int32: x and x_zero_point become float32 before they are subtracted."""
    x, zero = (asked.inputs[name].array.astype(np.float32) for name in ("x", "x_zero_point"))
    shape = _along_axis(asked, zero)
    difference = Tensor("float32", x - zero.reshape(shape))

    def scaled(x: Bounded, x_scale: Bounded) -> Bounded:
        scale = converted(x_scale, "float32")
        return converted(x * (scale.reshape(shape) if shape else scale), asked.call.outputs[0])

    taken = {"x": difference, "x_scale": asked.inputs["x_scale"]}
    return bounded(scaled)(asked.call, taken, asked.arithmetic)


# MultiHeadAttention: unidirectional is not seen.
changed("both_directions", unidirectional=0)


# MultiHeadAttention: a shared buffer is a cache of as many keys as it has rows; unidirectional is not seen.
changed("growing_buffer", inputs=lambda asked: asked.lacking("past_sequence_length"), unidirectional=0)


# DecoderMaskedMultiHeadAttention: keys of a shared buffer lie as values do; without a cache bias is added to queries alone.
replaced("keys_in_rows", bounded(partial(decoder_masked, block=0)))
changed(
    "bias_of_queries",
    inputs=lambda asked: asked.having(bias=lambda bias: bias * (np.arange(bias.size) < bias.size // 3)),
)


@deviation
def bias_of_other_beams(asked: Deviating) -> tuple[Expected, ...]:
    """DecoderMaskedMultiHeadAttention with beams: the bias of a batch is that of the batch's number divided by beam_width; keys
    of a shared buffer lie as values do."""
    beams = asked.call.parameter("beam_width")[0]
    inputs = asked.having(attention_bias=lambda bias: bias[np.arange(len(bias)) // beams])
    return DEVIATIONS["keys_in_rows"](asked.again(inputs=inputs))


@deviation
def overflowing_buffer(asked: Deviating) -> tuple[Expected, ...]:
    """MultiHeadAttention: a shared buffer is a cache of as many keys as it has rows; the grown caches of all heads are written
    one behind the other into the buffer, as far as it goes."""
    y, *grown = asked.formula(inputs=asked.lacking("past_sequence_length"))
    shape, size = asked.inputs["past_key"].array.shape, asked.inputs["past_key"].array.size
    return y, *(
        moved(each, lambda held: held.ravel()[:size].reshape(shape))
        for each in grown
        if isinstance(each, Approx)
    )


@deviation
def attention_bias_scaled(asked: Deviating) -> tuple[Expected, ...]:
    """MultiHeadAttention with a mask: (Q K^T + attention_bias) scale."""
    query = asked.inputs["query"].array
    size = query.shape[-1] // (1 if query.ndim == 5 else asked.call.parameter("num_heads"))
    return _with_attention_bias(asked, lambda bias: bias * (asked.call.parameter("scale") or size**-0.5))


@deviation
def attention_bias_masked(asked: Deviating) -> tuple[Expected, ...]:
    """MultiHeadAttention with lengths of keys: mask_filter_value stands in place of attention_bias behind them."""
    lengths = asked.inputs["key_padding_mask"].array[:, None, None, None]
    return _with_attention_bias(asked, lambda bias: bias * (np.arange(bias.shape[-1]) < lengths))


def _with_attention_bias(asked: Deviating, change: Callable[[Array], Array]) -> tuple[Expected, ...]:
    changed = asked.having(attention_bias=lambda bias: change(bias.astype(float)).astype(bias.dtype))
    return asked.formula(inputs=changed)


@deviation
def bytes_as_zero_points(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulNBits: the bytes of zero points that are floats are read as packed integers."""
    rows, blocks = asked.inputs["scales"].array.shape
    width = -(-blocks * asked.call.parameter("bits") // 8)
    held = np.ascontiguousarray(asked.inputs["zero_points"].array).view(np.uint8).reshape(-1)
    packed = Tensor("uint8", held[: rows * width].reshape(rows, width))
    return asked.formula(inputs={**asked.inputs, "zero_points": packed})


@deviation
def filter_with_channels_last(asked: Deviating) -> tuple[Expected, ...]:
    """NhwcConv: W is taken for [M, kH, kW, C / group]; where its kernel then differs, so do the last windows, which
    are padded with zeros."""
    turned = np.ascontiguousarray(asked.inputs["W"].array.transpose(0, 3, 1, 2))
    (shape,) = asked.operator.family.output_shapes(asked.operator, asked.call)
    before, more = tuple(asked.call.parameter("pads", (0, 0, 0, 0))), max(asked.inputs["W"].array.shape) * 4
    found = asked.approx(
        inputs=asked.having(W=turned),
        auto_pad=asked.call.parameter("auto_pad").replace("VALID", "NOTSET"),
        pads=(*before[:2], *(pad + more for pad in before[2:])),
    )
    return (moved(found, lambda held: held[tuple(slice(extent) for extent in shape)]),)


def _coarse_sigmoid(x: Bounded) -> Bounded:
    """Return a sigmoid with an absolute error of 2**-24, which is 0 below -18."""
    y, none = sigmoid(x), x.value < -18
    return Bounded(
        np.where(none, 0.0, y.value), np.where(none, 0.0, np.maximum(y.error, 2.0**-24)), y.arithmetic
    )


# MoEGroupRouter: the logarithms are those of a coarse sigmoid.
replaced("routes_of_coarse_sigmoid", bounded(partial(group_router, rating=_coarse_sigmoid)))


@deviation
def masks_of_other_channels(asked: Deviating) -> tuple[Expected, ...]:
    """MaxpoolWithMask: the mask of plane n begins at element n * (elements of a plane) modulo how many masks there are; of
    two and three axes the first element of a plane is always shown; NaN and -inf are less than the lowest number."""
    x, mask = (each.array for each in asked.inputs.values())
    planes, size = prod(x.shape[:2]), prod(x.shape[2:])
    starts = np.arange(planes) * size % prod(mask.shape[:2])
    masks = mask.reshape(-1)[starts[:, None] + np.arange(size)]
    if x.ndim > 3:
        masks[:, :1] = 1
    raised = np.fmax(x, np.finfo(x.dtype).min)
    return asked.formula(inputs=asked.having(X=raised, M=masks.reshape(x.shape)))


@deviation
def ties_go_left(asked: Deviating) -> tuple[Expected, ...]:
    """DynamicTimeWarping: of three ways to a point the diagonal one or that from above is taken where it is cheaper than both
    others, else that from the left, though both others may be cheaper."""
    costs = asked.inputs["input"].array
    costs = costs.reshape(costs.shape[-2:])
    least = np.full(np.add(costs.shape, 1), np.inf, np.float32)
    least[0, 0] = 0
    before: dict[Shape, Shape] = {}
    for i, j in np.ndindex(costs.shape):
        *others, left = ways = ((i, j), (i, j + 1), (i + 1, j))
        cheapest = [one for one in others if all(least[one] < least[way] for way in ways if way != one)]
        before[i + 1, j + 1] = way = (*cheapest, left)[0]
        least[i + 1, j + 1] = least[way] + costs[i, j]
    path: list[Shape] = []
    at: Shape = costs.shape
    while min(at) > 0:
        path.insert(0, (at[0] - 1, at[1] - 1))
        at = before[at]
    return (Exact(Tensor("int32", np.array(path, np.int32).T)),)
