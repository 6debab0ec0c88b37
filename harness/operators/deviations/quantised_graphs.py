"""What optimised graphs give in place of what their nodes would: a graph's own composition with the parameters,
constants or inputs that the transformer takes for those of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected
from harness.model.float_formats import decode
from harness.operators.bounded.sums import gamma
from harness.operators.deviations.base import Deviating, changed, deviation, moved, register
from harness.operators.deviations.graphs import fused
from harness.operators.deviations.products import products_in_pairs, windows_in_pairs
from harness.operators.elements import displaced
from harness.operators.quantization.quantising import spread

# QLinearConv: the scales of the weights on axis 0, whatever the axis is.
changed("scales_of_output_channels", axis=0)


@deviation
def held_as_bytes(asked: Deviating) -> tuple[Expected, ...]:
    """DequantizeLinear: the numbers held between 0 and 255."""

    def held(x: Array) -> Array:
        return np.clip(x, 0, min(255, np.iinfo(x.dtype).max))

    return asked.formula(inputs=asked.having(x=held))


# QLinearMatMul: the scales of B as those of its columns, whatever their axis is.
changed("scales_of_the_columns_of_b", axis_b=1)


def _scales_of_columns(asked: Deviating, **more: Any) -> tuple[Expected, ...]:
    """QGemm: the scales of B on the axis of the columns of the product, those of C as a_scale * b_scale, no zero point
    of C."""
    of_columns = asked.call.parameter("right") != ("B", "sb", "zb")
    axis, bias = 0 if asked.call.parameter("transB") else 1, ("C", "sc4" if of_columns else "sc")
    return asked.formula(axis=axis, bias=bias, sc=0.03125 * 0.0625, **more)


register("scales_of_columns", _scales_of_columns)


# QGemm: `scales_of_columns`, with alpha * (A B + C) in place of alpha * A B + C.
register(
    "scales_of_columns_times_alpha",
    lambda asked: _scales_of_columns(asked, beta=asked.call.parameter("alpha")),
)


@deviation
def scale_of_a_convolution(asked: Deviating) -> tuple[Expected, ...]:
    """QLinearConv: the scale of B as x_scale * w_scale, no zero point of B."""
    of_channels = asked.call.parameter("weights") != ("F", "sw", "zw")
    return asked.formula(
        bias=("B", "sb3" if of_channels else "sb"), sb=0.03125 * float(asked.call.parameter("sw"))
    )


# QGemm: the scale of C as a_scale * b_scale.
changed("scale_of_the_product", sc=float(np.float32(0.03) * np.float32(0.07)))


@deviation
def quotients_of_a_table(asked: Deviating) -> tuple[Expected, ...]:
    """QLinearSoftmax: y = round(e[x] * floor(1 / y_scale) / sum of e) + y_zero_point in float32, where e[x] = exp((x - max x) *
    x_scale + room) and room leaves the sum below the greatest float32 by a factor of exp(5); what is not finite is the
    least int32."""
    whole = _quotients_of_a_table(asked)
    x = asked.inputs["X"]
    limits = np.iinfo(x.array.dtype)
    return (Exact(Tensor(x.dtype, np.clip(whole, limits.min, limits.max).astype(x.array.dtype))),)


@deviation
def wrapped_quotients_of_a_table(asked: Deviating) -> tuple[Expected, ...]:
    """QLinearSoftmax of int8: as above, but what is above 127 wraps around, and is -1 above 255."""
    whole = _quotients_of_a_table(asked)
    found = np.where(whole > 255, -1, whole).astype(np.int64).astype(np.int8)
    return (Exact(Tensor("int8", found)),)


def _quotients_of_a_table(asked: Deviating) -> Array:
    x, given = asked.inputs["X"], asked.call.parameter
    scale, axis = np.float32(given("sx")), given("axis")
    limits = np.iinfo(x.array.dtype)
    axis = (1 if asked.call.opset < 13 else -1) if axis in (None, "") else axis
    numbers = np.moveaxis(x.array, axis, -1) if asked.call.opset >= 13 else x.array
    rows = numbers.astype(np.int64) if asked.call.opset >= 13 else numbers.reshape(*x.array.shape[:axis], -1)
    room = max(0.0, float(np.log(np.finfo(np.float32).max / np.float32(rows.shape[-1]))) - 5)
    exponents = (rows - rows.max(-1, keepdims=True)) * np.float64(scale) + room
    table = np.exp(exponents).astype(np.float32)
    total = np.cumsum(table, axis=-1, dtype=np.float32)[..., -1:]
    quotients = np.rint(table * np.floor(np.float32(1) / np.float32(given("sy"))) / total)
    whole = np.where(np.isfinite(quotients), quotients, float(-(2**31)))
    unsigned = limits.min == 0
    zero = {"zy": given("zy"), "zy_signed": -3}.get(given("last"), 0)
    whole = np.where(unsigned & (whole < 0), 0, whole) + zero
    found = whole.reshape(numbers.shape)
    return np.ascontiguousarray(np.moveaxis(found, -1, axis) if asked.call.opset >= 13 else found)


# ArgMax of the integers, of which the scale is forgotten.
changed("order_of_integers", s=1.0)


@deviation
def without_activation(asked: Deviating) -> tuple[Expected, ...]:
    """Relu or Clip is taken for redundant before QuantizeLinear."""
    if asked.operator.name == "ClipQuant":
        return asked.formula(limits=("x",))
    if asked.operator.name in {"ReluQuant", "ReluFewBits", "ReluOperand"}:
        return asked.formula(activation="Identity")
    return asked.formula(activation="Identity", limits=("c",))


@deviation
def weights_of_eight_bits(asked: Deviating) -> tuple[Expected, ...]:
    """Weights of floats become int8 of the scale and zero point of those that the graph has, whatever the run gives, and
    the bias int32 of x_scale * w_scale."""
    weights, scale, zero = _of_eight_bits(asked)
    step = np.float32(0.0625) * scale
    rounded = (weights - zero) * scale
    return asked.formula(inputs=asked.having(V=rounded, B=lambda bias: np.rint(bias / step) * step))


def _of_eight_bits(asked: Deviating) -> tuple[Array, np.float32, np.float32]:
    """Return the weights of floats as integers of -128 to 127, their scale and their zero point."""
    given = asked.inputs["V"]
    kept = (displaced(given) if asked.call.parameter("overridable") else given).array
    low, high = min(kept.min(), np.float32(0)), max(kept.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero = np.rint(np.float32(-128) - low / scale)
    return np.clip(np.rint(given.array / scale) + zero, -128, 127), scale, zero


@deviation
def one_pair_of_both_ranges(asked: Deviating) -> tuple[Expected, ...]:
    """Two pairs of QuantizeLinear and DequantizeLinear become one: scale = (max - min) / 255, zero point = round(-min / scale)
    of the numbers that both can hold."""
    limits = np.iinfo(DTYPES[str(asked.call.parameter("Q"))].storage)
    pairs = [
        (np.float32(asked.call.parameter(scale)), asked.call.parameter(zero))
        for scale, zero in (("s", "z"), ("s2", "z2"))
    ]
    low = max(np.float32(limits.min - zero) * scale for scale, zero in pairs)
    high = min(np.float32(limits.max - zero) * scale for scale, zero in pairs)
    made = (high - low) / np.float32(limits.max - limits.min)
    point = np.float32(limits.min) - low / made
    rounded = int(np.copysign(np.floor(np.abs(point) + np.float32(0.5)), point))
    return asked.formula(s=float(made), s2=float(made), z=rounded, z2=rounded)


@deviation
def bias_times_row_scales(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulIntegerToFloat: the bias is added before the product is multiplied by scales of its rows."""
    found = asked.approx()
    bias = np.array([0.5, -1.0, 2.0, 0.0, 100.0])
    factor: Array = np.ones(())
    for name in ("sa", "sb"):
        scale = np.asarray(asked.inputs[name].array, np.float64)
        factor = factor * (scale if scale.ndim == 2 and scale.shape[0] > 1 else 1.0)
    more = bias * (factor - 1)
    bound = found.bound + (np.abs(found.value) + np.abs(more)) * 2.0**-22
    return (Approx(found.dtype, np.asarray(found.value + more), np.asarray(bound)),)


@deviation
def shape_of_the_product(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulIntegerToFloat: the dimensions and columns of A times B, though a scale or the bias has more."""
    rank, columns = len(asked.call.first.shape), asked.call.inputs["B"].shape[-1]
    return (moved(asked.approx(), lambda found: found.reshape(found.shape[-rank:])[..., :columns]),)


@deviation
def shape_of_the_product_of_reals(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulIntegerToFloat of DirectML: as above, within 16 times the bound of a sum of integers."""
    (found,) = shape_of_the_product(asked)
    assert isinstance(found, Approx)
    return (Approx(found.dtype, found.value, 16 * found.bound),)


# y = sum over blocks of sa s (sum of qa q) + sum over blocks of (sa sum of qa) (-s z), where qa and sa are the integers and the
# scale of A in the block, q >= 0 and z those of the weights: the two sums cancel, so that the roundings are of |A| (q + z) |s|.
# (onnxruntime/core/mlas/lib/sqnbitgemm_kernel_avx512.cpp: QuantizeARow_CompInt8_avx512, AScaledBlkSum)
@deviation
def activations_of_eight_bits(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulNBits at accuracy level 4: A in blocks of K, each round(a * 127 / max |a|) * max |a| / 127."""
    graph = _Quantised(asked)
    name, weights, *_ = next(each.inputs for each in graph.nodes if each.operator in ("MatMul", "Gemm"))
    made = next((each for each in graph.nodes if weights in each.outputs), None)
    block = (made.attributes.get("block_size") if made else None) or 32
    given = asked.inputs[name]
    numbers = given.array.astype(np.float32)
    shape = numbers.shape
    parts = numbers.reshape(-1, min(block, shape[-1]))
    most = np.max(np.abs(parts), axis=1, keepdims=True, initial=0).astype(np.float32)
    held = np.where(most > 0, np.rint(parts * (np.float32(127) / most)) * (most / np.float32(127)), 0)
    held = held.reshape(shape)
    y, *others = asked.formula(inputs=asked.having(**{name: held.astype(given.array.dtype)}))
    if made is None or made.inputs[0] not in graph.tensors or not isinstance(y, Approx):
        return (y, *others)
    # of a term: the integer, two scales, blocks, up to four halvings of lanes, the two sums, the bias
    roundings = gamma(-(-shape[-1] // block) + 9, 2.0**-24)
    more = roundings * (np.abs(held.astype(np.float64)) @ graph.sizes(asked, made))
    return (
        Approx(y.dtype, y.value, y.bound + np.where(np.isfinite(more), more, 0.0).reshape(y.shape)),
        *others,
    )


# LayerNormalization whatever the exponent of Pow is, and whichever of X and its mean is subtracted.
changed("variance_of_squares", two=2.0, square=("d", "two"), power="Pow", centred=("X", "mean"))


# LayerNormalization, whichever of its quotient is divided.
changed("divided_by_deviation", ratio=("d", "deviation"))


# LayerNormalization between casts, whichever of X and its mean is subtracted.
changed("variance_between_casts", centred=("x", "mean"))


# LayerNormalization and its simplified form, whether the means keep their axis or not.
changed("means_with_their_axis", keepdims=1, keepdims2=1)
changed("mean_of_squares_with_its_axis", keepdims=1)


# Reshape of the shape, in place of X, to what is asked for.
changed("shape_for_its_data", operands=("asked", "target"))


# Attention with batches and tokens of the data in place of those that Reshape makes, and with the scale of heads of 4 elements.
changed("tokens_before_they_are_reshaped", heads=(2, 3, 3, 2, 4))
changed("scale_of_the_default", scale=0.5)


# LayerNormalization of the last dimension, whatever its axis is.
changed("normalised_along_the_last_dimension", axis=-1)


# Gelu of constants that are near to its own.
changed("exact_gelu", root=1.4142135623730951, inverse=0.7071067811865476, one=1.0, half=0.5)


# FastGelu of constants that are near to its own.
changed("exact_fast_gelu", root=0.7978845834732056, cubic=0.044714998453855515)


@deviation
def shape_of_x(asked: Deviating) -> tuple[Expected, ...]:
    """Return what an activation gives in the shape of X, though a constant with more dimensions is among its operands."""
    shape = asked.inputs["X"].array.shape
    return (moved(asked.approx(), lambda each: each.reshape(shape)),)


# Attention: a mask of floats is truncated to integers, of which those above 0 keep an element.
changed("mask_of_zeros", {"mask": lambda mask: (np.trunc(mask) > 0).astype(mask.dtype)})


@deviation
def product_times_infinity(asked: Deviating) -> tuple[Expected, ...]:
    """FusedMatMul: the product times 1 / 0 in place of the product of an operand that is divided by 0."""
    found = asked.approx(before="Mul", first=1.0)
    return (Approx(found.dtype, found.value * np.inf, np.zeros(found.value.shape)),)


# QGemm: alpha * (A B + C) in place of alpha * A B + C.
changed(
    "bias_times_alpha",
    sc=lambda asked: float(asked.call.parameter("sc")) * float(asked.call.parameter("alpha")),
)


@deviation
def convolved_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """QLinearConv: two neighbours added in 16 bits (`windows_in_pairs`); a bias of floats is rounded to integers."""
    graph = _Quantised(asked)
    return _convolved_in_pairs(asked, graph, graph.dequantized("w", graph.node("Conv").inputs[1]))


@deviation
def weights_of_eight_bits_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """The same of weights of floats that became int8 (`weights_of_eight_bits`)."""
    weights, scale, zero = _of_eight_bits(asked)
    held = {"w": Tensor("int8", weights.astype(np.int8)), "w_scale": Tensor("float32", np.asarray(scale))}
    held["w_zero_point"] = Tensor("int8", np.asarray(zero, np.int8))
    return _convolved_in_pairs(asked, _Quantised(asked), held)


def _convolved_in_pairs(
    asked: Deviating, graph: _Quantised, weights: dict[str, Tensor]
) -> tuple[Expected, ...]:
    conv, last = graph.node("Conv"), graph.node("QuantizeLinear")
    x, _, *bias = conv.inputs
    inputs = {
        **graph.dequantized("x", x),
        **weights,
        **graph.named("y", last.inputs[1:], asked.call.outputs[0]),
    }
    if bias:
        scale = inputs["x_scale"].array * inputs["w_scale"].array
        held = graph.tensors.get(bias[0])
        numbers = graph.dequantized("b", bias[0])["b"].array if held is None else np.rint(held.array / scale)
        inputs["B"] = Tensor("int32", np.asarray(numbers, np.int32))
    attributes = {"auto_pad": "NOTSET", "group": 1, "pads": (0,) * 4, **conv.attributes}
    return (*windows_in_pairs(fused(asked, "QLinearConv", inputs, attributes)), *asked.formula()[1:])


@deviation
def scaled_products_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulIntegerToFloat: two neighbours added in 16 bits (`products_in_pairs`)."""
    graph = _Quantised(asked)
    inputs = graph.factors(graph.node("MatMul"))
    (y,) = products_in_pairs(fused(asked, "com.microsoft.MatMulIntegerToFloat", inputs, {}))
    if asked.call.parameter("reused") != "Y" or not isinstance(y, Approx):
        return (y, *asked.formula()[1:])
    return (y, Approx(y.dtype, np.abs(y.value), y.bound))  # what consumes Y beside is Abs


@deviation
def gemm_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """QGemm: two neighbours added in 16 bits (`products_in_pairs`)."""
    graph = _Quantised(asked)
    gemm, last = graph.node("Gemm"), graph.node("QuantizeLinear")
    inputs = graph.factors(gemm)
    if gemm.inputs[2:]:
        inputs["C"] = graph.dequantized("c", gemm.inputs[2])["c"]
    inputs |= graph.named("y", last.inputs[1:], asked.call.outputs[0])
    attributes = {name: each for name, each in gemm.attributes.items() if name != "beta"}
    return products_in_pairs(fused(asked, "com.microsoft.QGemm", inputs, attributes))


class _Quantised:
    """The nodes and tensors of a graph of quantised numbers: its inputs and constants."""

    def __init__(self, asked: Deviating) -> None:
        call = asked.call
        dtypes = tuple((name, each.dtype) for name, each in call.inputs.items())
        graph = asked.operator.options.filled(call.opset, dtypes, tuple(sorted(call.attributes.items())))
        self.nodes, self.tensors = graph.nodes, {**graph.constants, **asked.inputs}

    def node(self, operator: str) -> Any:
        """Return the node of an operator."""
        return next(each for each in self.nodes if each.operator == operator)

    def dequantized(self, name: str, operand: str) -> dict[str, Tensor]:
        """Return what an operand is made of: `name`, `name_scale`, and `name_zero_point`, 0 where there is none."""
        node = next(each for each in self.nodes if operand in each.outputs)
        held = self.tensors[node.inputs[0]]
        return {name: held, **self.named(name, node.inputs[1:], held.dtype)}

    def sizes(self, asked: Deviating, node: Any) -> Array:
        """Return (q + z) * |scale| for each weight that DequantizeLinear makes, float64 of their shape.

        q >= 0 and z >= 0 are integer and zero point of a weight, of which signed types have half their range added.
        """
        parts = dict(
            zip(("x", "x_scale", "x_zero_point"), (self.tensors[n] for n in node.inputs if n), strict=False)
        )
        call = fused(asked, "DequantizeLinear", parts, dict(node.attributes)).call
        (dtype, x), scale, *zero = parts.values()
        least = int(DTYPES[dtype].limits.min)
        q, z = (decode(dtype, each) - least for each in (x, zero[0].array if zero else np.zeros((), x.dtype)))
        return np.asarray((q + spread(z, x.shape, call)) * np.abs(spread(decode(*scale), x.shape, call)))

    def factors(self, node: Any) -> dict[str, Tensor]:
        """Return A and B, the first operands of a node, and what they are made of."""
        found: dict[str, Tensor] = {}
        for name, operand in zip("ab", node.inputs, strict=False):
            held = self.dequantized(name, operand)
            found |= {name.upper(): held.pop(name), **held}
        return found

    def named(self, name: str, parts: Sequence[str], dtype: str) -> dict[str, Tensor]:
        """Return a scale and a zero point by the names that fused nodes have for them."""
        scale, *zero = (self.tensors[part] for part in parts if part)
        return {
            f"{name}_scale": scale,
            f"{name}_zero_point": zero[0] if zero else Tensor(dtype, np.zeros((), dtype)),
        }


@deviation
def integers_taken_for_floats(asked: Deviating) -> tuple[Expected, ...]:
    """QGemm of no products whose output is float32: the integers of C that were to be scaled."""
    shape = asked.inputs["A"].array.shape[0], asked.inputs["B"].array.shape[1]
    return (
        Exact(Tensor("float32", np.broadcast_to(asked.inputs["C"].array, shape).copy().view(np.float32))),
    )
