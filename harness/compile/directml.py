"""Encodes a case's DirectML call for a worker: the bytes of the description, and the buffers of its inputs."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from math import prod

from harness.model.case import Case, DirectmlOptions, Tensor
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import operator_schema
from harness.operators.base import Call
from harness.operators.directml.description import BufferTensor, Description, decode
from harness.operators.directml.layout import lay_out
from harness.operators.directml.lowering import HELD_AS, directml_call
from harness.targets.execution import Graph, Prepared

_PLAIN = DirectmlOptions()


def lowered(case: Case, call: Call, description: Description) -> Graph:
    """Return what the worker is sent of a case; equal descriptions are one graph."""
    schema = operator_schema(case.operator, case.opset)
    outputs = []
    for place, name in enumerate(description.outputs):
        held = description.view(name).dtype
        outputs.append(
            (
                schema.output_name(place),
                call.outputs[place] if held == HELD_AS.get(call.outputs[place]) else held,
            )
        )
    fed = tuple(n for n, spec in enumerate(case.inputs) if spec.name in _bound(case, call))
    inputs = tuple((case.inputs[n].name, case.inputs[n].dtype) for n in fed)
    return _graph(description.encode(), fed, inputs, tuple(outputs))


def _bound(case: Case, call: Call) -> set[str | int]:
    """Return what the tensors of the call carry: an input that is a member's value is not among them."""
    return {tensor.carries for _, tensor in directml_call(case, call).views()}


@lru_cache(maxsize=4096)
def _graph(
    model: bytes,
    fed: tuple[int, ...],
    inputs: tuple[tuple[str, str], ...],
    outputs: tuple[tuple[str, str], ...],
) -> Graph:
    description = decode(model)
    return Graph(
        model=model,
        digest=sha256(model).hexdigest(),
        fed=fed,
        inputs=tuple((name, DTYPES[dtype].onnx) for name, dtype in inputs),
        outputs=tuple((name, DTYPES[dtype].onnx) for name, dtype in outputs),
        tested=(description.operator,),
        in_place=description.in_place is not None,
    )


def prepared(case: Case, call: Call, inputs: tuple[Tensor, ...], description: Description) -> Prepared:
    """Return the case with its inputs and, where a tensor has strides of the case's own, with its buffers."""
    asked = {name for name, layout in (case.directml or _PLAIN).layout} | {
        name for name, _ in (case.directml or _PLAIN).tensors
    }
    if not asked or all(description.view(name).strides is None for name in description.inputs):
        return Prepared(case, call, inputs)
    bound, views = _bound(case, call), map(description.view, description.inputs)
    laid = [
        _laid(next(views), given) if spec.name in bound else (given, given)
        for spec, given in zip(case.inputs, inputs, strict=True)
    ]
    return Prepared(case, call, tuple(held for held, _ in laid), tuple(buffer for _, buffer in laid))


def _laid(tensor: BufferTensor, given: Tensor) -> tuple[Tensor, Tensor]:
    if (
        tensor.strides is None
        or len(tensor.strides) != len(tensor.sizes)
        or prod(tensor.sizes) != given.array.size
    ):
        return given, given  # a description that contradicts the case: what its buffer holds is no matter
    return lay_out(given, tensor.sizes, tensor.strides)
