"""Products of integers of 8 bits that are made real by scales: MatMulIntegerToFloat, DynamicQuantizeMatMul, QGemm; and of
16 bits: MatMulInteger16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.base import Call, Operator, Relation, Shape, Undefined
from harness.operators.bounded import Arithmetic, Bounded, arithmetic, maximum, minimum, number
from harness.operators.contrib.qlinear import real, requantised, scale_of, zero_of
from harness.operators.dimensioned import SCALES, Dimensioned
from harness.operators.formulas import decided
from harness.operators.products.products import Products
from harness.operators.quantization.quantising import range_with_zero

# MatMulIntegerToFloat:  Y = (A - a_zero_point) (B - b_zero_point) a_scale b_scale + bias
# DynamicQuantizeMatMul: the same of A quantised as DynamicQuantizeLinear does it
# MatMulInteger16:       Y = A B in 32 bits, beyond which sums wrap; signed where A or B is
# QGemm:                 Y = alpha a_scale b_scale ((A' - a_zero_point) (B' - b_zero_point) + C), quantised where y_scale is given


Multiply = Callable[[Array, Array, Any, Any], Array]
"""Multiplies integers less their zero points, which are numbers or, of the second ones, a vector along the columns."""


def exactly(a: Array, b: Array, a_zero: Any, b_zero: Any) -> Array:
    """Multiply without wrapping."""
    return np.asarray((a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero))


def _finished(y: Bounded, inputs: Mapping[str, Tensor], dtype: str) -> tuple[Expected, ...]:
    bias = inputs.get("bias")
    return ((y if bias is None else y + number(bias, y.arithmetic)).stored(dtype),)


def integer_to_float(
    call: Call, inputs: Mapping[str, Tensor], declared: str, multiply: Multiply = exactly
) -> tuple[Expected, ...]:
    """Multiply by the formula above."""
    worked = arithmetic(declared, call.outputs[0])
    zeros = (zero_of(inputs, "a_zero_point"), zero_of(inputs, "b_zero_point"))
    a, b = (scale_of(inputs, f"{name}_scale", worked) for name in "ab")
    if a.ndim:  # of each column of A, whose products are scaled before they are added
        y = real(inputs, "A", "a_scale", "a_zero_point", worked) @ number(
            inputs["B"].array - zeros[1].astype(float), worked
        )
        return _finished(y * b, inputs, call.outputs[0])
    exact = multiply(inputs["A"].array, inputs["B"].array, *zeros)
    return _finished(number(exact.astype(float), worked) * (a * b), inputs, call.outputs[0])


def dynamic_matmul(
    call: Call, inputs: Mapping[str, Tensor], declared: str, multiply: Multiply = exactly
) -> tuple[Expected, ...]:
    """Multiply by the formula above; an element of A near a tie may be quantised to either integer, which changes the sums
    of another way to multiply by up to twice as much, and so may its zero point, which that way alone sees."""
    worked = arithmetic(declared, "float32")
    q, zero, scale = quantised_anew(inputs, worked)
    b, b_zero = inputs["B"].array, zero_of(inputs, "b_zero_point")
    with np.errstate(all="ignore"):
        y = q @ number((b - b_zero).astype(float), worked)
        if multiply is not exactly:
            zeros = (np.clip(zero.value + by, 0, 255) for by in (0.0, -zero.error, zero.error))
            found = np.array(
                [
                    multiply((q.value + each).astype(np.uint8), b, each.astype(np.int64), b_zero)
                    for each in zeros
                ],
                float,
            )
            y = Bounded(found[0], np.abs(found - found[0]).max(0) + 2 * y.error, worked)
        return _finished(y * (scale * scale_of(inputs, "b_scale", worked)), inputs, "float32")


def quantised_anew(inputs: Mapping[str, Tensor], worked: Arithmetic) -> tuple[Bounded, Bounded, Bounded]:
    """Return A as DynamicQuantizeLinear quantises it, less its zero point, that zero point, and the scale."""
    a = number(inputs["A"], worked)
    if np.isnan(a.value).any():
        raise Undefined("the range of numbers one of which is NaN")
    least, most = range_with_zero(a)
    with np.errstate(all="ignore"):
        scale = (most - least) / 255.0
        zero = _integers(-least / scale)
        return minimum(maximum(_integers(a / scale), -zero), 255.0 - zero), zero, scale


def summed_as_reals(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Multiply numbers that the scales have made real before; sums have the type of the output."""
    worked = arithmetic(declared, call.outputs[0], call.outputs[0])
    with np.errstate(all="ignore"):
        if "a_scale" in inputs:
            a = real(inputs, "A", "a_scale", "a_zero_point", worked)
        else:
            q, _, scale = quantised_anew(inputs, worked)
            a = q * scale
        return _finished(a @ real(inputs, "B", "b_scale", "b_zero_point", worked), inputs, call.outputs[0])


def _integers(x: Bounded) -> Bounded:
    """Round to integers; the error is 1 where a tie lies within that of x."""
    value, least, most = (np.rint(np.nan_to_num(x.value + by)) for by in (0.0, -x.error, x.error))
    return Bounded(value, np.maximum(most - value, value - least), x.arithmetic)


def qgemm(
    call: Call, inputs: Mapping[str, Tensor], declared: str, multiply: Multiply = exactly
) -> tuple[Expected, ...]:
    """Multiply by the formula above."""
    worked = arithmetic(declared, "float32")
    a, b = (inputs[name].array.T if call.parameter(f"trans{name}") else inputs[name].array for name in "AB")
    exact = multiply(a, b, zero_of(inputs, "a_zero_point"), zero_of(inputs, "b_zero_point"))
    exact = exact + (inputs["C"].array.astype(np.int64) if "C" in inputs else 0)
    factor = (
        scale_of(inputs, "a_scale", worked) * scale_of(inputs, "b_scale", worked) * call.parameter("alpha")
    )
    y = number(exact.astype(float), worked) * factor
    if "y_scale" not in inputs:
        return (y.stored("float32"),)
    factors = [*(inputs[f"{name}_scale"].array for name in "aby"), call.parameter("alpha")]
    return requantised(y, inputs, "y", call.outputs[0], factors)


def matmul_16(A: Array, B: Array, call: Call) -> Array:  # noqa: N803 - as ONNX Runtime calls them
    """Multiply by the formula above."""
    return exactly(A, B, 0, 0).astype(call.outputs[0])


class _Products16(Products):
    """A and B as in `Products`."""

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return int32, or uint32 where both inputs are unsigned."""
        return ("int32" if any(each.dtype == "int16" for each in call.inputs.values()) else "uint32",)


class ScaledProducts(Products):
    """A and B as in `Products`; scales and zero points `scalar`, `one` or `each`, one for each column, as is bias."""

    def __init__(self) -> None:
        self.relations = {**Products.relations, "*": ("scalar", "one", "each", "unlike")}  # type: ignore[misc] # of scales too

    def kinds(self, operator: Operator, name: str) -> Any:
        """Scales beside the usual kinds."""
        return _SCALE.kinds(operator, name) if name.endswith("_scale") else super().kinds(operator, name)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Any) -> Array:
        """Choose scales, or other elements."""
        return _SCALE.generate(operator, kind, name, call, entropy)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning."""
        return _SCALE.applies(operator, kind, name, call)

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of B and of vectors."""
        if name == "B":
            return super().shape(operator, name, relation, call)
        columns = call.shapes[1][-1:]
        if name[0] == "a":
            columns = call.first.shape[-1:]
        word = str(relation) if relation else "each" if name == "bias" else "scalar"
        return {"scalar": (), "one": (1,), "each": columns, "unlike": (*(n + 1 for n in columns),)}[word]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of products, and the lengths of vectors."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        columns = call.shapes[1][-1:] if len(call.shapes[1]) > 1 else (1,)
        for name, each in list(call.inputs.items())[2:]:
            of = call.first.shape[-1:] if name[0] == "a" else columns
            if each.shape not in ((columns,) if name == "bias" else ((), (1,), of)):
                return "scales and zero points are one for all, or one for each column, of B as bias is"
        return None


_SCALE = Dimensioned("A: *", "*", chosen={"a_scale": (SCALES,), "b_scale": (SCALES,)})
SCALED_PRODUCTS = ScaledProducts()
OPERATORS = (
    Operator("com.microsoft.MatMulIntegerToFloat", SCALED_PRODUCTS, integer_to_float),
    Operator("com.microsoft.DynamicQuantizeMatMul", SCALED_PRODUCTS, dynamic_matmul),
    Operator("com.microsoft.MatMulInteger16", _Products16(), decided(matmul_16)),
    Operator(
        "com.microsoft.QGemm",
        Dimensioned(
            "A: P Q; a_scale:  | 1; a_zero_point:  | 1; B: R S; b_scale:  | N; b_zero_point:  | N; "
            "C: M N | N | 1 N | M 1 | 1 |  ; y_scale:  | 1; "
            "y_zero_point:  | 1",
            "M N",
            {
                "M": lambda n: n["Q" if n["transA"] else "P"],
                "K": lambda n: n["P" if n["transA"] else "Q"],
                "N": lambda n: n["R" if n["transB"] else "S"],
                "R": lambda n: n["N" if n["transB"] else "K"],
                "S": lambda n: n["K" if n["transB"] else "N"],
            },
            chosen={"a_scale": (SCALES,), "b_scale": (SCALES,), "y_scale": (SCALES,)},
            types=lambda call: (
                call.inputs["y_zero_point"].dtype if "y_zero_point" in call.inputs else "float32",
            ),
        ),
        qgemm,
    ),
)
