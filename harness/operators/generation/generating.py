"""Operators that generate a tensor: Constant, EyeLike, ConstantOfShape, Range, Shape, Size, OneHot."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from typing import Any, ClassVar

import numpy as np

from harness.model.case import TensorValue
from harness.model.dtypes import DTYPES, Array, type_of_number
from harness.model.float_formats import encode
from harness.operators import elements
from harness.operators.base import Call, CallTensor, DirectmlCall, Entropy, Operator, Shape, ValueKind
from harness.operators.binary_floats import decode_bfloat16
from harness.operators.bounded import Bounded
from harness.operators.bounded.sums import prefix_sums
from harness.operators.data_movement.indexing import INDEX_KINDS, Indexing
from harness.operators.data_movement.moving import Moving, rank, wrong_axis
from harness.operators.formulas import bounded, moved

# Constant:        output = value; zeros but for values at indices with sparse_value
# EyeLike:         output[i, j] = 1 where j - i = k, else 0
# ConstantOfShape: output[...] = value
# Range:           output[i] = start + i * delta        i from 0 to ceil((limit - start) / delta) - 1
# Shape:           the extents from start to end;       Size: their product
# OneHot:          output[..., d, ...] = values[1] where indices[...] is d or d - depth, else values[0]


def constant(call: Call) -> Array:
    """The attribute that is given: a tensor, a sparse one with its zeros, one number or text, or a list of them."""
    (value,) = call.attributes.values()
    if isinstance(value, TensorValue):
        return value.tensor.array
    return np.array(value, DTYPES[call.outputs[0]].storage)


def eye_like(input: Array, call: Call, k: int) -> Array:
    """A diagonal of ones; one that lies outside of the matrix is none."""
    rows, columns = input.shape
    return encode(call.outputs[0], np.eye(rows, columns, max(-rows, min(k, columns))))


def constant_of_shape(input: Array, value: TensorValue | None = None) -> Array:
    """One value, float32 0 where none is given."""
    dtype, element = ("float32", 0) if value is None else (value.dtype, value.elements[0])
    return np.full(tuple(map(int, input)), np.array(element, DTYPES[dtype].storage))


def span(start: Any, limit: Any, delta: Any, call: Call) -> Any:
    """Numbers by steps of delta, exact where they are quarters that the type holds; others are within the error of a sum
    of all steps, by which ONNX's function body computes them."""
    if not isinstance(start, Bounded):
        return np.arange(*(int(each) for each in (start, limit, delta)), dtype=start.dtype)
    first, last, step = (float(each.value) for each in (start, limit, delta))
    steps = (last - first) / step
    count = ceil(steps) if steps > 0 else 0
    entry = DTYPES[call.outputs[0]]
    quarters = 4 * max(abs(first), abs(first + count * step))
    if not all((4 * each).is_integer() for each in (first, step)) or quarters > 2.0 ** (
        (entry.mantissa or 0) + 1
    ):
        return prefix_sums(
            Bounded(np.array([first, *[step] * count])[:count], np.zeros(count), start.arithmetic), 0
        )
    storage = "f4" if call.outputs[0] == "bfloat16" else entry.storage
    return np.array([first + n * step for n in range(count)], storage)


def shape(data: Array, start: int = 0, end: int | None = None) -> Array:
    """Extents; places below 0 count from the end, and all are held in the rank."""
    return np.array(data.shape[start:end], np.int64)


def size(data: Array) -> Array:
    """The number of elements."""
    return np.array(prod(data.shape), np.int64)


def one_hot(indices: Array, values: Array, call: Call, axis: int, depth: object = None) -> Array:
    """Compare with every class; an index of no class has none."""
    del depth  # known before a run: the call has it
    count = _depth(call)
    whole = decode_bfloat16(indices) if call.inputs["indices"].dtype == "bfloat16" else indices
    with np.errstate(invalid="ignore"):
        index = np.expand_dims(whole.astype(np.int64), axis)
    classes = np.arange(count).reshape((-1,) + (1,) * (indices.ndim - (axis % (indices.ndim + 1))))
    return np.asarray(np.where((index == classes) | (index == classes - count), values[1], values[0]))


def _depth(call: Call) -> int:
    depth = call.parameter("depth", 1)
    depth = depth[0] if isinstance(depth, tuple) else depth
    return int(depth) if abs(depth) < 2**63 else 0  # of NaN and of what int64 does not hold there is none


class Generating(Moving):
    """Operators whose output type an attribute names, or that have a fixed one."""

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """The element type that `dtype` names, or that of `value`; for EyeLike without it that of the
        input."""
        value = call.attributes.get("value")
        if "value" in operator.options:
            return (value.dtype if isinstance(value, TensorValue) else "float32",)
        named = type_of_number(call.attributes.get("dtype"))
        return (named or call.first.dtype,) if "dtype" in operator.options else (None,)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """No call: what these make is written by the CPU, or filled in without an input."""
        return None


_VALUES = {"value_int": "int64", "value_float": "float32", "value_string": "string"}
"""The element type that an attribute's name tells; a list of them is the same with an s."""


class Constants(Generating):
    """A tensor that is an attribute."""

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """The element type of the tensor, or the one that the attribute's name tells."""
        given = [
            value.dtype if isinstance(value, TensorValue) else _VALUES[name.removesuffix("s")]
            for name, value in call.attributes.items()
        ]
        return (given[0] if given else "float32",)

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of the tensor, () of one number or text, and the length of a list."""
        given = [
            value.shape if isinstance(value, TensorValue) else np.shape(value)
            for value in call.attributes.values()
        ]
        return (given[0] if given else (),)


def _no_constant(call: Call) -> str | None:
    if len(call.attributes) != 1:
        return "exactly one attribute is given"
    (value,) = call.attributes.values()
    if not isinstance(value, TensorValue) or value.indices is None:
        return None
    places = value.indices.tensor.array
    if places.shape[0] != len(value.elements) or places.shape[1:] not in ((), (len(value.shape),)):
        return "there is an index for each value"
    ends = value.shape if places.ndim > 1 else (prod(value.shape),)
    rows = places.reshape(len(places), len(ends))
    if (rows < 0).any() or (rows >= ends).any():
        return "indices lie within the shape"
    return None if rows.tolist() == np.unique(rows, axis=0).tolist() else "indices ascend"


def _no_matrix(call: Call) -> str | None:
    if rank(call) != 2:
        return "the input has 2 dimensions"
    number = call.attributes.get("dtype")
    return None if number is None or type_of_number(number) else "dtype is one of TensorProto's"


def _no_shape(call: Call) -> str | None:
    extents, value = call.parameter("input"), call.attributes.get("value")
    if not isinstance(extents, tuple):
        return "the input has one dimension"
    if any(extent < 0 for extent in extents):
        return "all extents are 0 or more"
    return "value has one element" if isinstance(value, TensorValue) and len(value.elements) != 1 else None


def _no_range(call: Call) -> str | None:
    if any(each.shape for each in call.inputs.values()):
        return "start, limit and delta are scalars"
    return "delta is not 0" if call.parameter("delta", 1) == 0 else without_end(call)


def without_end(call: Call) -> str | None:
    """Say whether (limit - start) / delta is infinite or NaN."""
    given = {name: call.parameter(name) for name in call.inputs}
    first, last, step = (
        float(np.asarray(given.get(name, 1.0), np.float64).reshape(-1)[0])
        for name in ("start", "limit", "delta")
    )
    with np.errstate(all="ignore"):
        count = np.divide(last - first, step)
    return None if count < np.inf else "the number of elements is finite"


class OneHot(Indexing):
    """Indices of classes, and the two values that stand for no and yes."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def sizes(self, call: Call) -> int:
        """The number of classes."""
        return max(1, _depth(call))

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Indices, of which those of no class are no mistake."""
        if name == "indices":
            return tuple(each._replace(breaks=None) for each in INDEX_KINDS)
        return elements.ELEMENT_KINDS if name == "values" else ()

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Floats hold small indices alone; integers those that fit."""
        dtype, _ = call.inputs[name]
        if name != "indices":
            return name != "values" or elements.applies(kind, dtype)
        entry = DTYPES[dtype]
        narrow = entry.is_float or entry.itemsize < 4
        if (
            entry.storage[0] == "u"
            and not entry.is_float
            and kind not in ("in_range", "first", "last", "repeated", "above")
        ):
            return False
        return not (narrow and kind.startswith(("far", "wraps"))) and super().applies(
            operator, kind, name, call
        )

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose indices, as numbers of their type, or values."""
        dtype, shape_ = call.inputs[name]
        if name != "indices":
            return elements.choose(kind, dtype, shape_, entropy)
        if DTYPES[dtype].is_float:
            whole = call._replace(inputs={**call.inputs, name: call.inputs[name]._replace(dtype="int64")})
            return encode(dtype, super().generate(operator, kind, name, whole, entropy).astype(np.float64))
        return super().generate(operator, kind, name, call, entropy)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules on axis, depth and values."""
        axis = call.parameter("axis", -1)
        if call.inputs["values"].shape != (2,):
            return "values are off and on"
        if call.inputs["depth"].shape not in ((), (1,)) or "depth" not in call.constants:
            return "depth is one number"
        if not call.first.shape:
            return "indices have a dimension"
        return "there is a class" if _depth(call) < 1 else wrong_axis(call, axis, rank(call) + 1, since=9)

    def broken_by_values(self, operator: Operator, call: Call, inputs: Any) -> str | None:
        """Any index has a meaning."""
        return None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of indices with the classes put in at the axis."""
        found, axis = list(call.first.shape), call.parameter("axis", -1)
        found.insert(axis % (len(found) + 1), max(0, _depth(call)))
        return (tuple(found),)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """ONE_HOT: indices with a dimension of 1 at the axis."""
        if self.broken_rule(operator, call) is not None:
            return None
        (output,), axis = self.output_shapes(operator, call), call.parameter("axis", -1)
        place, (dtype, given), values = axis % len(output), call.first, call.inputs["values"]
        indices = (*given[:place], 1, *given[place:])
        tensors = {
            "IndicesTensor": CallTensor("indices", dtype, indices),
            "ValuesTensor": CallTensor("values", *values),
            "OutputTensor": CallTensor(0, values.dtype, output),
        }
        return DirectmlCall("DML_OPERATOR_ONE_HOT", tensors, len(output), {"Axis": place}, ("Axis",))


GENERATING = Generating()
OPERATORS = (
    Operator("Constant", Constants(), moved(constant), _no_constant),
    Operator("EyeLike", GENERATING, moved(eye_like), _no_matrix, options=("dtype",)),
    Operator(
        "ConstantOfShape",
        GENERATING,
        moved(constant_of_shape),
        _no_shape,
        constants={"input": 1},
        options=("value",),
    ),
    Operator(
        "Range",
        GENERATING,
        bounded(span),
        _no_range,
        constants={"start": 0, "limit": 0, "delta": 0},
        options=(),
    ),
    Operator("Shape", GENERATING, moved(shape), options=()),
    Operator("Size", GENERATING, moved(size), options=()),
    Operator("OneHot", OneHot(), moved(one_hot), constants={"depth": 0}),
)
