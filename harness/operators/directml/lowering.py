"""Lowers a case to the description of one DirectML operator. Pure: needs no DLL, no device and no array.

Where a case leaves a choice, lowering follows ONNX Runtime's provider: no flags, buffers of the least size
that the API accepts, strides only for a broadcast tensor. Leading 1s pad shapes where tensors must share a
DimensionCount, or to the one that the case names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.case import Case, DirectmlOptions, DirectmlTensor
from harness.model.dtypes import DTYPES
from harness.model.reference.directml import directml_operator
from harness.operators import OPERATORS
from harness.operators.base import Call, CallTensor, DirectmlCall, Shape
from harness.operators.directml.description import BufferTensor, Description, attribute, structure
from harness.operators.directml.layout import LAYOUTS, buffer_bytes
from harness.operators.directml.levels import lowered_to

_UINT = 1 << 32
HELD_AS = {"bool": "uint8", "int64": "uint64", "int32": "uint32"}
"""How DirectML may hold the elements of an output of ONNX: what is not negative has the same bits."""
_PLAIN = DirectmlOptions()


class NotExpressible(Exception):
    """DirectML's API has no way to write a case; the message names the gap."""


def directml_call(case: Case, call: Call) -> DirectmlCall:
    """Return the call that a case asks for, the one that ONNX Runtime's provider makes, or the first that can
    express it."""
    asked = (case.directml or _PLAIN).operator
    operator = OPERATORS[case.operator]
    for candidate in (None, *case.lowers_to) if asked is None else (asked,):
        made = lowered_to(operator, candidate, call)
        if made is not None:
            return made
    raise NotExpressible(
        f"{asked or 'DirectML'} has no call that expresses it"
        if case.lowers_to
        else "DirectML has no such operator"
    )


def lower(case: Case, call: Call) -> Description:
    """Return the description of a case's DirectML call; raise NotExpressible."""
    options = case.directml or _PLAIN
    if case.options.omit is not None:
        raise NotExpressible("an output that a graph leaves out before others")
    for dtype in (*(spec.dtype for spec in case.inputs), *call.outputs):
        if DTYPES[dtype].directml is None:
            raise NotExpressible(f"DML_TENSOR_DATA_TYPE has no {dtype}")
    operator = OPERATORS[case.operator]
    made = directml_call(case, call)
    rank = options.dimension_count or made.dimension_count
    layouts, changed = dict(options.layout), dict(options.tensors)
    tensors: dict[str, BufferTensor | tuple[BufferTensor, ...] | None] = {}
    for name, given in made.tensors.items():
        if isinstance(given, CallTensor):
            tensors[name] = _tensor(given, rank, layouts.get(name, "packed"), changed.get(name))
        elif given is None:
            tensors[name] = None
        else:
            each_changed = [(each, changed.get(f"{name}.{place}")) for place, each in enumerate(given)]
            tensors[name] = tuple(_tensor(each, rank, "packed", other) for each, other in each_changed)
    widest = max(len(tensor.sizes) for _, tensor in made.views())
    members = directml_operator(made.operator).members
    types = {member.name: member.type for member in members}
    attributes = {
        key: _member(key, types[key], _moved(made, key, value, rank - widest))
        for key, value in made.attributes.items()
    }
    for member in members:
        held: dict[str, Any] = tensors if member.is_tensor else attributes
        array = held.setdefault(member.name, None) if member.optional else held.get(member.name)
        if member.count is not None and array is not None:
            attributes[member.count] = len(array)
    attributes |= dict(options.attributes)
    places = {tensor.carries: name for name, tensor in made.views()}
    inputs = tuple(places[spec.name] for spec in case.inputs if spec.name in places)
    outputs = tuple(places[place] for place in range(len(call.outputs)) if place in places)
    in_place = options.in_place or (inputs[0] if case.options.in_place else None)
    shapes = zip(outputs, operator.family.output_shapes(operator, call), strict=False)
    extents = tuple(
        shape if (sizes := changed.get(name, DirectmlTensor()).sizes) is None else sizes
        for name, shape in shapes
    )
    return Description(
        made.operator, *structure(made.operator), tensors, attributes, inputs, outputs, in_place, extents
    )


def _pad(shape: Sequence[int], rank: int, filler: int = 1) -> tuple[int, ...]:
    return (filler,) * (rank - len(shape)) + tuple(shape)


def _moved(call: DirectmlCall, key: str, value: Any, by: int) -> Any:
    """Return a member's value for shapes with a number of further leading dimensions."""
    if value is None or by <= 0:
        return value
    if key in call.per_dimension:
        return _pad(value, len(value) + by, call.per_dimension[key])
    if key not in call.axes:
        return value
    if isinstance(value, tuple):
        return tuple(each + by for each in value)
    return value + by if value >= 0 else value


def _member(name: str, kind: str, value: Any) -> Any:
    """Return a member's value as a description has it; raise NotExpressible where the structure cannot hold
    it."""
    for each in value if isinstance(value, tuple) else (value,):
        if kind in ("uint", "uint_array") and each is not None and not 0 <= each < _UINT:
            raise NotExpressible(f"{name} is a UINT and cannot be {each}")
    if isinstance(value, Mapping):
        return {key: attribute(each) for key, each in value.items()}
    return attribute(value)


def _tensor(given: CallTensor, rank: int, layout: str, changed: DirectmlTensor | None) -> BufferTensor:
    changed = changed or DirectmlTensor()
    dtype = changed.dtype or ("uint8" if given.dtype == "bool" else given.dtype)
    sizes: Shape = changed.sizes if changed.sizes is not None else _pad(given.sizes, rank)
    strides = changed.strides
    if strides is None:
        strides = LAYOUTS[layout](sizes) if given.strides is None else _pad(given.strides, rank, 0)
    if max(sizes, default=0) >= _UINT:
        raise NotExpressible("a size is a UINT")
    usual = strides if strides is None or len(strides) == len(sizes) else None
    size = changed.bytes if changed.bytes is not None else buffer_bytes(dtype, sizes, usual)
    return BufferTensor(dtype, sizes, strides, size, changed.flags or 0, changed.alignment or 0)
