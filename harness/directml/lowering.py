"""Lowers a case to the description of one DirectML operator. Pure: no DLL, no device, no array is needed for it.

What a case does not say is chosen as ONNX Runtime's provider chooses it: no strides, no flags, buffers of the least size that the API
takes. Shapes are padded with leading 1s where tensors must share a DimensionCount, or to the one that the case names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from harness.directml.description import BufferTensor, Description, decode
from harness.directml.layout import LAYOUTS, buffer_bytes, lay_out
from harness.dtypes import DTYPES
from harness.execution import Graph, Prepared
from harness.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, DirectmlCall, Shape
from harness.records import Case, DirectmlOptions, DirectmlTensor, Tensor

_UINT = 1 << 32
_PLAIN = DirectmlOptions()


class NotExpressible(Exception):
    """DirectML's API has no way to write a case; the message says what it lacks."""


def lower(case: Case, call: Call) -> Description:
    """Return the DirectML call of a case and its call; raise NotExpressible."""
    options = case.directml or _PLAIN
    for spec in case.inputs:
        if DTYPES[spec.dtype].directml is None:
            raise NotExpressible(f"DML_TENSOR_DATA_TYPE has no {spec.dtype}")
    operator = OPERATORS[case.operator]
    made = operator.family.directml(operator, options.operator, call)
    if made is None:
        raise NotExpressible(f"{options.operator or 'DirectML'} has no call for it")
    rank = options.dimension_count or made.dimension_count
    layouts, changed = dict(options.layout), dict(options.tensors)
    tensors = {
        name: _tensor(_stored(tensor.dtype), _pad(tensor.sizes, rank), layouts.get(name, "packed"), changed.get(name))
        for name, tensor in made.each()
    }
    attributes = {key: _uint(key, _moved(made, key, value, rank)) for key, value in made.attributes.items()}
    attributes |= {key: value for key, value in options.attributes if isinstance(value, int)}
    carried = {tensor.carries: name for name, tensor in made.each()}
    inputs = tuple(carried[spec.name] for spec in case.inputs if spec.name in carried)
    in_place = options.in_place or (inputs[0] if case.options.in_place else None)
    output = changed.get(carried[0])
    (shape,) = operator.family.output_shapes(operator, call) if output is None or output.sizes is None else (output.sizes,)
    return Description(made.operator, tensors, attributes, inputs, carried[0], in_place, shape)


def _stored(dtype: str) -> str:
    """Return the element type under which DirectML holds one: a bool is a UINT8."""
    return "uint8" if dtype == "bool" else dtype


def lowered(case: Case, call: Call, description: Description) -> Graph:
    """Return what the worker is sent of a case; equal descriptions are one graph."""
    output = description.tensors[description.output].dtype
    is_bool = call.outputs[0] == "bool" and output == "uint8"
    inputs = tuple((spec.name, spec.dtype) for spec in case.inputs)
    name = operator_schema(case.operator, case.opset).output_name(0)
    return _graph(description.encode(), inputs, (name, "bool" if is_bool else output))


@lru_cache(maxsize=4096)
def _graph(model: bytes, inputs: tuple[tuple[str, str], ...], output: tuple[str, str]) -> Graph:
    description = decode(model)
    return Graph(
        model=model,
        digest=sha256(model).hexdigest(),
        fed=tuple(range(len(inputs))),
        inputs=tuple((name, DTYPES[dtype].onnx) for name, dtype in inputs),
        outputs=((output[0], DTYPES[output[1]].onnx),),
        tested=(description.operator,),
        in_place=description.in_place is not None,
    )


def prepared(case: Case, call: Call, inputs: tuple[Tensor, ...], description: Description) -> Prepared:
    """Return the case with its inputs and, where a tensor has strides, with its buffers."""
    tensors = [description.tensors[name] for name in description.inputs]
    if all(tensor.strides is None for tensor in tensors):
        return Prepared(case, call, inputs)
    laid = [_laid(tensor, given) for tensor, given in zip(tensors, inputs, strict=True)]
    return Prepared(case, call, tuple(held for held, _ in laid), tuple(buffer for _, buffer in laid))


def _laid(tensor: BufferTensor, given: Tensor) -> tuple[Tensor, Tensor]:
    count = given.array.size
    if tensor.strides is None or len(tensor.strides) != len(tensor.sizes) or _count(tensor.sizes) != count:
        return given, given  # a description that contradicts the case: what its buffer holds is no matter
    return lay_out(given, tensor.sizes, tensor.strides)


def _count(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _pad(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _moved(call: DirectmlCall, key: str, value: int, rank: int) -> int:
    own = max(len(tensor.sizes) for _, tensor in call.each())
    return value + max(0, rank - own) if key in call.axes and value >= 0 else value


def _uint(name: str, value: int) -> int:
    if not 0 <= value < _UINT:
        raise NotExpressible(f"{name} is a UINT and cannot be {value}")
    return value


def _tensor(dtype: str, sizes: Shape, layout: str, changed: DirectmlTensor | None) -> BufferTensor:
    changed = changed or DirectmlTensor()
    dtype = changed.dtype or dtype
    sizes = changed.sizes if changed.sizes is not None else sizes
    strides = changed.strides if changed.strides is not None else LAYOUTS[layout](sizes)
    if max(sizes, default=0) >= _UINT:
        raise NotExpressible("a size is a UINT")
    usual = strides if strides is None or len(strides) == len(sizes) else None
    size = changed.bytes if changed.bytes is not None else buffer_bytes(dtype, sizes, usual)
    return BufferTensor(dtype, sizes, strides, size, changed.flags or 0, changed.alignment or 0)
