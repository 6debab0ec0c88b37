"""QLinearMatMul and QLinearConv: products and convolutions of quantised numbers, quantised again."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.base import (
    Call,
    CallTensor,
    DirectmlCall,
    Entropy,
    Operator,
    Relation,
    Shape,
    ValueKind,
)
from harness.operators.bounded import arithmetic, number
from harness.operators.pooling.windows import members, window
from harness.operators.products.convolutions import integral
from harness.operators.products.convolving import OUTPUT, Convolving, weights
from harness.operators.products.products import Products, multiplied
from harness.operators.quantization.quantising import SCALE, rounded, scales, settled

# y = saturate(round(A * a_scale * b_scale / y_scale) + y_zero_point), where A is the product, or the
# convolution, of the integers (a - a_zero_point) and (b - b_zero_point), exact, to which QLinearConv adds B

ROWS, COLUMNS = (-1, 1), (1, -1)
"""Shapes of scales and zero points of which each stands for a row of a or y, or a column of b."""


def requantized(
    call: Call, inputs: Mapping[str, Tensor], exact: Array, declared: str, shapes: Mapping[str, Shape]
) -> tuple[Expected, ...]:
    """Multiply integers by scales and round them; `shapes` has, by input, the shape of scales that are several."""
    scales = {name: inputs[f"{name}_scale"] for name in (*shapes, "y")}
    worked = arithmetic(declared, next(iter(scales.values())).dtype)
    one, other, last = (
        number(tensor, worked).reshape(_placed(tensor.array, shapes.get(name, ROWS)))
        for name, tensor in scales.items()
    )
    zero = inputs["y_zero_point"].array.astype(np.int64)
    scaled = number(exact.astype(np.float64), worked) * (one * other / last)
    scaled = settled(scaled, one.value, other.value, last.value)
    return (rounded(scaled, zero.reshape(_placed(zero, ROWS)), call.outputs[0]),)


def _placed(each: Array, shape: Shape) -> Shape:
    """Return the shape in which scales or zero points are broadcast: of several in a vector the given one."""
    return () if each.size == 1 else shape if each.ndim == 1 else each.shape


def centred(inputs: Mapping[str, Tensor], name: str, shape: Shape = ()) -> Array:
    """Return integers less their zero point."""
    zero = inputs[f"{name}_zero_point"].array.astype(np.int64)
    return np.asarray(inputs[name].array.astype(np.int64) - zero.reshape(_placed(zero, shape)))


def qlinear_matmul(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Multiply by the formula above."""
    exact = np.matmul(centred(inputs, "a", ROWS), centred(inputs, "b", COLUMNS))
    return requantized(call, inputs, exact, declared, {"a": ROWS, "b": COLUMNS})


def qlinear_conv(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Convolve by the formula above."""
    group = call.parameter("group")
    count = len(call.first.shape) - 2
    exact = integral(centred(inputs, "x"), centred(inputs, "w", (-1, *(1,) * (count + 1))), group, call)
    channels = (-1, *(1,) * count)
    if "B" in inputs:
        exact = exact + inputs["B"].array.astype(np.int64).reshape(channels)
    return requantized(call, inputs, exact, declared, {"x": channels, "w": channels})


class _Scales:
    """Beside the usual kinds of values one for scales."""

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """The usual ones, and that of scales."""
        return (SCALE,) if name.endswith("_scale") else super().kinds(operator, name)  # type: ignore[misc] # of the family beside it

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Scales are chosen as such."""
        return kind == SCALE.name or super().applies(operator, kind, name, call)  # type: ignore[misc] # of the family beside it

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose scales; those of the output 256 times as large."""
        if kind != SCALE.name:
            return super().generate(operator, kind, name, call, entropy)  # type: ignore[misc,no-any-return] # as above
        found = scales(call, name, entropy)
        return found * found.dtype.type(256) if name == "y_scale" and found.dtype.kind == "f" else found

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return the type of the zero point."""
        return (call.inputs["y_zero_point"].dtype if "y_zero_point" in call.inputs else None,)


class QuantisedProducts(_Scales, Products):
    """a and b with their scales and zero points: one for a whole tensor or, by `each`, one for each row of a and of
    the output and each column of b."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "b": Products.relations["B"],
        "*": ("scalar", "one", "each"),
    }
    lowers = "DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    lowers_broken = False

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of b, and those of scales and zero points."""
        if name == "b":
            return super().shape(operator, name, relation, call)
        return _lines(call, name) if relation == "each" else (1,) if relation == "one" else ()

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Name the rule of products that is broken, or that of the shapes of scales."""
        for name, each in call.inputs.items():
            shapes = ((), (1,), _lines(call, name), _stacked(call, name))
            if name not in ("a", "b") and each.shape not in shapes:
                return (
                    "one scale and zero point for the whole tensor, each row of a and y, or each column of b"
                )
        if any(
            call.inputs[f"{name}_scale"].shape != call.inputs[f"{name}_zero_point"].shape for name in "aby"
        ):
            return "scale and zero point have the same shape"
        return super().broken_rule(operator, factors(call))

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shape of the product."""
        return super().output_shapes(operator, factors(call))

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The factors and the product as MatMul has them, with their scales and zero points."""
        a, b, y = multiplied(factors(call))
        count = max(len(each.sizes) for each in (a, b, y))
        tensors = {"ATensor": a, "BTensor": b, "OutputTensor": y}
        for member, name in (("A", "a"), ("B", "b"), ("Output", "y")):
            for kind in ("Scale", "ZeroPoint"):
                given = f"{name}_{'scale' if kind == 'Scale' else 'zero_point'}"
                shape = call.inputs[given].shape
                last = shape if len(shape) > 1 else (1, prod(shape)) if name == "b" else (prod(shape), 1)
                sizes = (*(1,) * (count - len(last)), *last)
                tensors[f"{member}{kind}Tensor"] = CallTensor(given, call.inputs[given].dtype, sizes)
        return DirectmlCall(candidate, tensors, 2, {})


def _lines(call: Call, name: str) -> Shape | None:
    """Return the shape of scales of each row of a or y, or each column of b; of a vector there are none."""
    shape = call.inputs["b" if name[0] == "b" else "a"].shape
    return (shape[-1 if name[0] == "b" else -2],) if len(shape) > 1 else None


def _stacked(call: Call, name: str) -> Shape | None:
    """Return the shape of scales of each row of a stack of a, or each column of one of b (ONNX: [D1, D2, M, 1] and
    [D1, D2, 1, K])."""
    shape = call.inputs[name[0]].shape if name[0] != "y" else ()
    if len(shape) < 3:
        return None
    return (*shape[:-1], 1) if name[0] == "a" else (*shape[:-2], 1, shape[-1])


def factors(call: Call) -> Call:
    """Return the call with the two matrices alone, as MatMul takes them."""
    return call._replace(inputs={name: call.inputs[name] for name in ("a", "b") if name in call.inputs})


class QuantisedConvolving(_Scales, Convolving):
    """x, w and the output with their scales and zero points; those of w may be one for each output."""

    lowers: ClassVar[str | None] = "DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION"

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Name the rule of convolutions that is broken, or that of the shapes of scales."""
        for name, each in call.inputs.items():
            if name.endswith(("_scale", "_zero_point")) and name[0] != "w" and each.shape not in ((), (1,)):
                return "one scale and zero point for the whole tensor"
            if name in ("w_scale", "w_zero_point") and each.shape not in ((), (1,), (weights(call)[0],)):
                return "one scale and zero point of w, or one for each output"
        return super().broken_rule(operator, call)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The tensors of convolutions, each with its scale and zero point."""
        held = members(window(call, self.kernel(call))) | {"GroupCount": call.attributes["group"]}
        named = {"InputTensor": "x", "FilterTensor": "w", "BiasTensor": "B", "OutputTensor": OUTPUT}
        for member, name in (("Input", "x"), ("Filter", "w"), ("Output", "y")):
            named |= {
                f"{member}ScaleTensor": f"{name}_scale",
                f"{member}ZeroPointTensor": f"{name}_zero_point",
            }
        return DirectmlCall(candidate, self.tensors(call, named), 1, held)


OPERATORS = (
    Operator("QLinearMatMul", QuantisedProducts(), qlinear_matmul),
    Operator("QLinearConv", QuantisedConvolving(), qlinear_conv),
)
