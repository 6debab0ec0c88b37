"""QuantizeLinear: real numbers to integers by a scale and a zero point, for the whole tensor, for each slice of an axis, or in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from harness.dtypes import DTYPES, Array
from harness.expected import Expected, OneOf
from harness.float_formats import decode
from harness.operators.base import Call, CallTensor, Choice, DirectmlCall, Operator, Shape
from harness.operators.computing import Computing
from harness.records import Tensor

# y = saturate(round(x / y_scale) + y_zero_point), halves to even


def spread(values: Any, shape: Shape, call: Call) -> Any:
    """Return a scale or zero point for every element of a tensor: one for all, one for each slice of the axis, or one for each block."""
    if values.ndim == 0 or (values.shape == (1,) and len(shape) != 1):
        return values.reshape(())
    axis = call.parameter("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if values.ndim == 1:
        return values.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    block = call.parameter("block_size") or 0
    return np.repeat(values, block, axis=axis)[tuple(slice(0, extent) for extent in shape)]


def quantize(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
    """Quantise by the formula above; where the quotient lies so near to a tie that its rounding decides, both integers are admissible.

    The quotient is one division in the type of x, whose rounding moves it by at most half a unit in the last place: 2 ** -p of it. Where
    it is a tie exactly, that is no matter: the even one of the two is the only one.
    """
    del arithmetic
    x, scale = inputs["x"], inputs["y_scale"]
    dtype = call.outputs[0]
    limits = np.iinfo(DTYPES[dtype].storage)
    zero = inputs.get("y_zero_point")
    shape = x.array.shape
    offset = 0 if zero is None else spread(zero.array.astype(np.int64), shape, call)
    numbers = decode(x.dtype, x.array) if DTYPES[x.dtype].is_float else x.array.astype(np.float64)
    mantissa = DTYPES[scale.dtype].mantissa
    assert mantissa is not None
    with np.errstate(all="ignore"):
        quotient = numbers / spread(decode(scale.dtype, scale.array), shape, call)
        slack = np.abs(quotient) * 2.0 ** -(mantissa + 1)
        exact = np.abs(quotient) * 2 == np.abs(np.rint(quotient * 2))
        low, high = (np.rint(np.where(exact, quotient, quotient + by)) for by in (-slack, slack))
    candidates = [Tensor(dtype, _saturated(each, offset, limits, dtype)) for each in (np.rint(quotient), low, high)]
    return (OneOf(tuple(candidates)),)


def _saturated(rounded: Any, offset: Any, limits: Any, dtype: str) -> Array:
    held = np.clip(rounded, -(2.0**40), 2.0**40)
    return np.asarray(np.clip(np.nan_to_num(held).astype(np.int64) + offset, limits.min, limits.max).astype(DTYPES[dtype].storage))


class Quantising(Computing):
    """A tensor, scales and zero points: `scalar`, `axis` (one for each slice of the axis), `one` (a vector of one), `unlike`."""

    name = "quantising"
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"*": ("same", "scalar", "axis", "one", "unlike", "blocks")}

    def shape(self, operator: Operator, name: str, relation: Mapping[str, Choice] | str, call: Call) -> Shape | None:
        """Derive the shape of scales; zero points have that of the scales."""
        shape = call.first.shape
        if len(call.inputs) > 1 and relation in ("same", "scalar", {}):
            return call.shapes[1]
        axis = call.parameter("axis", 1)
        if not -len(shape) <= axis < len(shape) and relation != "scalar":
            return None
        if relation == "blocks":
            block = call.parameter("block_size") or 0
            return tuple(-(-n // block) if place == axis % len(shape) else n for place, n in enumerate(shape)) if block else None
        return {"scalar": (), "one": (1,), "axis": shape[axis : axis + 1] if axis >= 0 else (shape[axis],)}.get(
            str(relation), (shape[axis] + 1,) if relation == "unlike" else None
        )

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """All axes of rank r: -r to r-1."""
        rank = len(call.first.shape)
        return range(-rank, rank)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Shapes of scales and zero points."""
        shape, scale = call.shapes[:2]
        if len(call.shapes) > 2 and call.shapes[2] != scale:
            return "zero points have the shape of the scales"
        if not scale:
            return None
        axis = call.parameter("axis", 1)
        if not -len(shape) <= axis < len(shape):
            return None if scale == (1,) else "axis in [-r, r-1]"
        if len(scale) == 1:
            return None if scale in ((1,), (shape[axis],)) else "one scale for each slice of the axis"
        return None

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """That of the zero point, else uint8."""
        zero = list(call.inputs.values())[2:]
        return (zero[0].dtype if zero else "uint8",)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Scale and zero point are broadcast by strides of 0."""
        if self.broken_rule(operator, call) is not None:
            return None
        if candidate != "DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR" or len(call.inputs) < 3 or len(call.shapes[1]) > 1:
            return None
        shape = call.first.shape
        axis = call.parameter("axis", 1)
        names = list(call.inputs)
        along = len(call.shapes[1]) == 1 and call.shapes[1] != (1,)
        if along and not -len(shape) <= axis < len(shape):
            return None
        steps = tuple(1 if along and place == axis % len(shape) else 0 for place in range(len(shape)))
        tensors = {
            "InputTensor": CallTensor(names[0], *call.first),
            "ScaleTensor": CallTensor(names[1], call.inputs[names[1]].dtype, shape, steps),
            "ZeroPointTensor": CallTensor(names[2], call.inputs[names[2]].dtype, shape, steps),
            "OutputTensor": CallTensor(0, call.outputs[0], shape),
        }
        return DirectmlCall(candidate, tensors, 1, {})


OPERATORS = (Operator("QuantizeLinear", Quantising(), quantize),)
