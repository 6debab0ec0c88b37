"""The operators as tables of their fields, and descriptions in memory made from JSON.

A further operator is one more row. Types and fields: DirectML.h, in the order in which its structures declare them.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import addressof, c_int32, c_uint32, c_void_p
from typing import Any, NamedTuple

from ..device import FEATURE_LEVELS, TENSOR_DATA_TYPES, level_text
from .layouts import BufferTensorDesc, TypedDesc

BUFFER = 1
"""DML_TENSOR_TYPE_BUFFER and DML_BINDING_TYPE_BUFFER."""
OWNED_BY_DML = 1
"""DML_TENSOR_FLAG_OWNED_BY_DML."""
LEVELS = {level_text(value): value for value in FEATURE_LEVELS}
ITEMSIZES = {
    "float32": 4, "float16": 2, "uint32": 4, "uint16": 2, "uint8": 1, "int32": 4, "int16": 2, "int8": 1, "float64": 8, "uint64": 8,
    "int64": 8,
}  # fmt: skip
"""Bytes an element; the types of four bits have no case here."""
_UINT32, _UINT64 = 1 << 32, 1 << 64


class Operator(NamedTuple):
    """An operator's number in DML_OPERATOR_TYPE and the fields of its description: tensors, then numbers."""

    number: int
    tensors: Sequence[str]
    numbers: Sequence[str]


OPERATORS = {
    "DML_OPERATOR_ELEMENT_WISE_ROUND": Operator(99, ("InputTensor", "OutputTensor"), ("RoundingMode",)),
    "DML_OPERATOR_GATHER_ELEMENTS": Operator(107, ("InputTensor", "IndicesTensor", "OutputTensor"), ("Axis",)),
    "DML_OPERATOR_GATHER_ND": Operator(
        108, ("InputTensor", "IndicesTensor", "OutputTensor"), ("InputDimensionCount", "IndicesDimensionCount")
    ),
    "DML_OPERATOR_GATHER_ND1": Operator(
        140, ("InputTensor", "IndicesTensor", "OutputTensor"), ("InputDimensionCount", "IndicesDimensionCount", "BatchDimensionCount")
    ),
}


def _layout(name: str, operator: Operator) -> Any:
    """Return the structure of an operator's description."""
    fields: list[tuple[str, Any]] = [(tensor, c_void_p) for tensor in operator.tensors]
    return type(name, (ctypes.Structure,), {"_fields_": [*fields, *((number, c_uint32) for number in operator.numbers)]})


_LAYOUTS = {name: _layout(name, operator) for name, operator in OPERATORS.items()}


class DescriptionError(ValueError):
    """A description that cannot be put into DirectML's structures at all: DirectML was never asked."""

    label = "CannotFeedError"


class TensorView(NamedTuple):
    """How DirectML is told to see a buffer: element type, sizes, strides in elements (None: packed), bytes, alignment and flags."""

    dtype: str
    sizes: Sequence[int]
    strides: Sequence[int] | None
    bytes: int
    alignment: int
    flags: int

    def needed_bytes(self) -> int:
        """Return how many bytes the elements span, 0 for none."""
        if 0 in self.sizes:
            return 0
        if self.strides is None:
            return math.prod(self.sizes) * ITEMSIZES[self.dtype]
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides))
        return (last + 1) * ITEMSIZES[self.dtype]


class Description:
    """One operator's description: its tensors as `TensorView`, and the structures of DirectML.h that say the same."""

    def __init__(self, given: Any) -> None:
        """Take the JSON object of a unit apart; raise DescriptionError for what no structure could hold."""
        self.name = str(given.get("operator"))
        operator = OPERATORS.get(self.name)
        if operator is None:
            raise DescriptionError(f"unknown operator {self.name!r}; known: {', '.join(OPERATORS)}")
        tensors, numbers = given.get("tensors", {}), given.get("attributes", {})
        _require_same("tensors", tensors, operator.tensors)
        _require_same("attributes", numbers, operator.numbers)
        self.tensors = {name: None if tensors[name] is None else _view(name, tensors[name]) for name in operator.tensors}
        self.inputs: list[str] = given["inputs"]
        self.output: str = given["output"]
        self.in_place: str | None = given.get("in_place")
        for name in (*self.inputs, self.output, *([self.in_place] if self.in_place else [])):
            if self.tensors.get(name) is None:
                raise DescriptionError(f"{name!r} is bound and not described")
        self.output_shape = tuple(_number("output_shape", size, _UINT32) for size in given["output_shape"])
        self.flags = _number("flags", given.get("flags", 0), _UINT32)
        level = given.get("minimum_feature_level", "1_0")
        if level not in LEVELS:
            raise DescriptionError(f"unknown feature level {level!r}; known: {', '.join(LEVELS)}")
        self.level = LEVELS[level]
        for name in operator.numbers:
            _number(name, numbers[name], _UINT32)
        self._kept: list[Any] = []
        desc = _LAYOUTS[self.name](
            *(self._tensor(self.tensors[name]) for name in operator.tensors),
            *(numbers[name] for name in operator.numbers),
        )
        self._kept.append(desc)
        self.desc = TypedDesc(operator.number, addressof(desc))
        """DML_OPERATOR_DESC."""

    def _tensor(self, view: TensorView | None) -> int | None:
        if view is None:
            return None
        count = len(view.sizes)
        sizes = (c_uint32 * max(1, count))(*view.sizes)
        strides = None if view.strides is None else (c_uint32 * max(1, count))(*view.strides)
        buffer = BufferTensorDesc(
            TENSOR_DATA_TYPES[view.dtype],
            c_int32(view.flags).value,
            count,
            addressof(sizes),
            None if strides is None else addressof(strides),
            view.bytes,
            view.alignment,
        )
        desc = TypedDesc(BUFFER, addressof(buffer))
        self._kept += [sizes, strides, buffer, desc]
        return addressof(desc)


def _view(name: str, given: Any) -> TensorView:
    if given["dtype"] not in ITEMSIZES:
        raise DescriptionError(f"{name}: DirectML has no element type {given['dtype']!r}; it has {', '.join(ITEMSIZES)}")
    sizes, strides = given["sizes"], given.get("strides")
    _check_each(name, "sizes", sizes)
    if strides is not None:
        if len(strides) != len(sizes):
            raise DescriptionError(f"{name}: {len(strides)} strides for {len(sizes)} sizes")
        _check_each(name, "strides", strides)
    return TensorView(
        given["dtype"],
        sizes,
        strides,
        _number(f"{name}.bytes", given["bytes"], _UINT64),
        _number(f"{name}.alignment", given.get("alignment", 0), _UINT32),
        _number(f"{name}.flags", given.get("flags", 0), _UINT32),
    )


def _check_each(name: str, what: str, values: Sequence[Any]) -> None:
    for value in values:
        if type(value) is not int or not 0 <= value < _UINT32:
            _number(f"{name}.{what}", value, _UINT32)


def _number(name: str, value: Any, limit: int) -> int:
    """Return a value that fits the unsigned field; ctypes would cut it off without a word."""
    if type(value) is not int or not 0 <= value < limit:
        raise DescriptionError(f"{name}: {value!r} does not fit an unsigned integer of {limit.bit_length() - 1} bits")
    return value


def _require_same(what: str, given: Any, wanted: Sequence[str]) -> None:
    if set(given) != set(wanted):
        raise DescriptionError(f"{what} are {', '.join(sorted(given)) or 'none'} where the operator has {', '.join(wanted)}")
