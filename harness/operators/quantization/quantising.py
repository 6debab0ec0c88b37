"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: real numbers to integers by a scale and a zero
point, and back; for the whole tensor, for each slice of an axis, or in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array, type_of_number
from harness.model.expected import Expected, OneOf
from harness.model.float_formats import FORMATS, MINIFLOATS, decode, encode, encode_minifloat
from harness.operators.base import (
    Call,
    CallTensor,
    DirectmlCall,
    Entropy,
    Operator,
    Relation,
    Shape,
    Undefined,
    ValueKind,
    all_axes,
)
from harness.operators.bounded import Bounded, arithmetic, concatenate, number
from harness.operators.computing import Computing

# QuantizeLinear:        y = saturate(round(x / y_scale) + y_zero_point), halves to even
#                        to a float of at most 8 bits: y = x / y_scale + y_zero_point, rounded as Cast rounds by `saturate`
# DequantizeLinear:      y = (x - x_zero_point) * x_scale
# DynamicQuantizeLinear: y_scale = (max(x, 0) - min(x, 0)) / 255; y_zero_point = saturate(round(-min(x, 0) / y_scale)); y as above


def spread(values: Any, shape: Shape, call: Call) -> Any:
    """Return a scale or zero point for every element of a tensor: one for all, one for each slice of the
    axis, or one for each block."""
    if values.ndim == 0 or (values.shape == (1,) and len(shape) != 1):
        return values.reshape(())
    axis = call.parameter("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    block = call.parameter("block_size") or 0
    if values.ndim == 1 and not block:
        return values.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return np.repeat(values, block, axis=axis)[tuple(slice(0, extent) for extent in shape)]


def quantize(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Quantise by the formula above; where the quotient lies so near to a tie that its rounding decides, both
    integers are admissible.

    The quotient is one division in the type of x, whose rounding moves it by at most half a unit in the last
    place: 2 ** -p of it. Where it is a tie exactly, that is no matter: the even one of the two is the only
    one. ONNX does not say what becomes of NaN: 0, the zero point, the least or the greatest integer.
    """
    del declared
    x, scale = inputs["x"], inputs["y_scale"]
    dtype = call.outputs[0]
    zero = inputs.get("y_zero_point")
    shape = x.array.shape
    offset = 0 if zero is None else spread(decode(*zero), shape, call)
    numbers, scales = (decode(each.dtype, each.array) for each in (x, scale))
    precision = BY_ONNX_NUMBER[call.parameter("precision") or DTYPES[scale.dtype].onnx]
    mantissa = precision.mantissa  # None for an int32, by which version 19 may divide
    with np.errstate(all="ignore"):
        quotient = numbers / spread(scales, shape, call)
        slack = np.abs(quotient) * (0.0 if mantissa is None else 2.0 ** -(mantissa + 1))
        if dtype in MINIFLOATS:
            if precision.is_float:  # a quotient that the type holds is not rounded
                slack = np.where(FORMATS[precision.name].rounded(quotient) == quotient, 0.0, slack)
            saturate = bool(call.parameter("saturate"))
            unmoved = np.where(
                offset == 0, quotient, quotient + offset
            )  # -0 + 0 is 0, and -0 where nothing is added
            sums = (unmoved, *(quotient + by + offset for by in (0.0, -slack, slack)))
            return (OneOf(tuple(Tensor(dtype, encode_minifloat(dtype, each, saturate)) for each in sums)),)
        exact = np.abs(quotient) * 2 == np.abs(np.rint(quotient * 2))
        low, high = (np.rint(np.where(exact, quotient, quotient + by)) for by in (-slack, slack))
        low, high = (
            np.where(np.isnan(quotient), end, each) for each, end in ((low, -np.inf), (high, np.inf))
        )
    integers = (np.rint(quotient), low, high, np.where(np.isnan(quotient), -offset, low))
    candidates = [Tensor(dtype, _saturated(each, offset, dtype)) for each in integers]
    return (OneOf(tuple(candidates)),)


def _saturated(rounded: Any, offset: Any, dtype: str) -> Array:
    clipped = np.clip(rounded, -(2.0**40), 2.0**40)
    held = np.where(np.isnan(clipped), 0.0, clipped)
    limits = DTYPES[dtype].limits
    return np.asarray(np.clip(held + offset, limits.min, limits.max).astype(DTYPES[dtype].storage))


def settled(value: Bounded, *factors: Any) -> Bounded:
    """Return numbers that integers make by sums, and by products and quotients with `factors`: where these are powers of two and
    the type holds a number, no order of the operations rounds it, and a tie is one."""
    form = value.arithmetic.form
    most = -np.log2(form.smallest_normal) / 4  # four of them neither overflow nor become subnormal
    parts = [np.frexp(np.asarray(factor, np.float64)) for factor in factors]
    powers = all(((mantissa == 0.5) & (np.abs(exponent - 1) <= most)).all() for mantissa, exponent in parts)
    held = powers & (form.rounded(value.value) == value.value)
    return Bounded(value.value, np.where(held, 0.0, value.error), value.arithmetic)


def rounded(value: Bounded, zero: Any, dtype: str) -> OneOf:
    """Return what may come of rounding numbers with a bound, adding a zero point and saturating: every
    integer within the bound; of NaN, and of infinity where the bound admits both signs, 0, the zero point, the least or the
    greatest integer."""
    limits = DTYPES[dtype].limits
    low = limits.min - np.max(zero, initial=limits.min)
    high = limits.max - np.min(zero, initial=limits.max)
    least, most = (np.clip(np.rint(value.value + by), low, high) for by in (-value.error, value.error))
    unknown = np.isnan(least) | np.isnan(most)
    steps = int(np.max(most - least, initial=0, where=~unknown))
    numbers = [
        np.clip(np.rint(value.value), low, high),
        *(np.minimum(least + step, most) for step in range(steps + 1)),
        *(
            np.where(unknown, end, least)
            for end in (low, high, -np.asarray(zero, np.float64))
            if unknown.any()
        ),
    ]
    return OneOf(tuple(Tensor(dtype, _saturated(each, zero, dtype)) for each in numbers))


def dequantize(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Dequantise by the formula above: the difference is one of integers, the product is rounded in the type
    of the scale."""
    x, scale = inputs["x"], inputs["x_scale"]
    zero = inputs.get("x_zero_point")
    shape = x.array.shape
    offset = 0 if zero is None else spread(decode(*zero), shape, call)
    worked = arithmetic(declared, scale.dtype if DTYPES[scale.dtype].is_float else call.outputs[0])
    difference = number(decode(*x) - offset, worked)
    scales = spread(decode(scale.dtype, scale.array), shape, call)
    return ((difference * number(scales, worked)).stored(call.outputs[0]),)


def range_with_zero(x: Bounded) -> tuple[Bounded, Bounded]:
    """Return the least and the greatest of the elements and 0, the range that DynamicQuantizeLinear quantises."""
    numbers = concatenate([x.reshape(-1), number(np.zeros(1), x.arithmetic)])
    return numbers.min(), numbers.max()


def dynamically(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Quantise by the formula above; where an integer is near a tie both are admissible."""
    x = number(inputs["x"], arithmetic(declared, "float32"))
    least, most = range_with_zero(x)
    with np.errstate(all="ignore"):
        if most.value == least.value:
            raise Undefined("a scale of 0, by which zeros are divided")
        scale = (most - least) / 255.0
        zero = rounded(settled(-least / scale, scale.value), 0, "uint8")
        quotient = settled(x / scale, scale.value)
        found = [
            each
            for point in zero.candidates
            for each in rounded(quotient, point.array.astype(np.int64), "uint8").candidates
        ]
    return (OneOf(tuple(found)), scale.stored("float32"), zero)[: len(call.outputs)]


SCALE = ValueKind("scale")
"""Multiples of 1/64 above 0, to 1/4: what quantised numbers are usually multiplied by."""


class Quantising(Computing):
    """A tensor, scales and zero points: `scalar`, `axis` (one for each slice of the axis), `one` (a vector of
    one), `unlike`."""

    domain = all_axes
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "*": ("same", "scalar", "axis", "one", "unlike", "blocks")
    }
    lowers = ""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of scales; zero points have that of the scales."""
        shape = call.first.shape
        if len(call.inputs) > 1 and relation in ("same", "scalar", {}):
            return call.shapes[1]
        axis = call.parameter("axis", 1)
        if not -len(shape) <= axis < len(shape) and relation != "scalar":
            return None
        if relation == "blocks":
            block = call.parameter("block_size") or 0
            if not block:
                return None
            return tuple(-(-n // block) if place == axis % len(shape) else n for place, n in enumerate(shape))
        return {
            "scalar": (),
            "one": (1,),
            "axis": shape[axis : axis + 1] if axis >= 0 else (shape[axis],),
        }.get(str(relation), (shape[axis] + 1,) if relation == "unlike" else None)

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """The usual ones, and one for scales."""
        return (*super().kinds(operator, name), SCALE)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input's type."""
        if kind == SCALE.name:
            return DTYPES[call.inputs[name].dtype].is_float
        return super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind."""
        if DTYPES[call.inputs[name].dtype].is_minifloat and name.endswith("_zero_point"):
            return np.zeros(call.inputs[name].shape, np.uint8)  # as ONNX has it, though any number is allowed
        if kind == SCALE.name:
            return scales(call, name, entropy)
        return super().generate(operator, kind, name, call, entropy)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Shapes of scales and zero points."""
        for name, floats in (("precision", True), ("output_dtype", False)):
            asked = BY_ONNX_NUMBER.get(call.parameter(name) or 1)
            if asked is None or (floats and not asked.is_float):
                return f"{name} is a type of {'floats' if floats else 'the output'}"
        if (call.parameter("block_size") or 0) < 0:
            return "block_size is not negative"
        zero, wanted = call.inputs.get("y_zero_point"), call.parameter("output_dtype")
        if zero is not None and wanted and BY_ONNX_NUMBER[wanted].name != zero.dtype:
            return "output_dtype is the type of the zero point"
        shape, scale = call.shapes[:2]
        one = {(), (1,)}  # which ONNX's own cases have beside each other
        if len(call.shapes) > 2 and call.shapes[2] != scale and not {scale, call.shapes[2]} <= one:
            return "zero points have the shape of the scales"
        if not scale:
            return None
        axis, block = call.parameter("axis", 1), call.parameter("block_size") or 0
        if not -len(shape) <= axis < len(shape):
            return None if scale == (1,) else "axis in [-r, r-1]"
        if block:
            blocks = tuple(
                -(-n // block) if place == axis % len(shape) else n for place, n in enumerate(shape)
            )
            return None if block > 0 and scale == blocks else "one scale for each block"
        if len(scale) > 1:
            return "scales of more than one dimension belong to blocks"
        if len(scale) == 1:
            return None if scale in ((1,), (shape[axis],)) else "one scale for each slice of the axis"
        return None

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return `output_dtype`, or the type of the zero point, or uint8; of DequantizeLinear the type of the scale."""
        asked = call.parameter("output_dtype")
        if asked:
            return (type_of_number(asked),)
        if operator.options is not None:
            return (call.inputs["x_scale"].dtype,) if "x_scale" in call.inputs else ()
        zero = call.inputs.get("y_zero_point")
        return (zero.dtype if zero else "uint8",)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Scale and zero point are broadcast by strides of 0, which repeat no block."""
        name = operator.options or "DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR"
        lacking = operator.options is None and len(call.inputs) < 3
        if call.parameter("block_size") or candidate != name or lacking or len(call.shapes[1]) > 1:
            return None
        shape = call.first.shape
        axis = call.parameter("axis", 1)
        names = list(call.inputs)
        along = len(call.shapes[1]) == 1 and call.shapes[1] != (1,)
        if along and not -len(shape) <= axis < len(shape):
            return None
        steps = tuple(1 if along and place == axis % len(shape) else 0 for place in range(len(shape)))
        scale, *zero = (CallTensor(name, call.inputs[name].dtype, shape, steps) for name in names[1:])
        tensors = {
            "InputTensor": CallTensor(names[0], *call.first),
            "ScaleTensor": scale,
            "ZeroPointTensor": zero[0] if zero else None,
            "OutputTensor": CallTensor(0, call.outputs[0], shape),
        }
        return DirectmlCall(candidate, tensors, 1, {})


def scales(call: Call, name: str, entropy: Entropy) -> Array:
    """Choose scales."""
    dtype, shape = call.inputs[name]
    return encode(dtype, (np.frombuffer(entropy, "<u4", prod(shape)) % 16 + 1) / 64.0).reshape(shape)


class Dynamic(Computing):
    """One input; an output of integers, a scale and a zero point."""

    count = 3
    dtypes = ("uint8", "float32", "uint8")
    lowers = "DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of x, and two scalars."""
        return (call.first.shape, (), ())

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """At least one element."""
        return None if prod(call.first.shape) else "x has elements"

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Scalars have as many dimensions as x, of size 1."""
        one = (1,) * max(1, len(call.first.shape))
        tensors = {
            "InputTensor": CallTensor("x", *call.first),
            "OutputTensor": CallTensor(0, "uint8", call.first.shape),
            "OutputScaleTensor": CallTensor(1, "float32", one),
            "OutputZeroPointTensor": CallTensor(2, "uint8", one),
        }
        return DirectmlCall(candidate, tensors, 1, {})


QUANTISING = Quantising()
OPERATORS = (
    Operator("QuantizeLinear", QUANTISING, quantize),
    Operator(
        "DequantizeLinear", QUANTISING, dequantize, options="DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR"
    ),
    Operator("DynamicQuantizeLinear", Dynamic(), dynamically),
)
