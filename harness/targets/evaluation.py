"""Computes the outputs of a compiled case with the operator's formula, which the fake target uses in place of
a provider."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

from harness.model.case import Tensor, TensorValue, Value
from harness.model.caseid import parse
from harness.model.dtypes import BY_ONNX_NUMBER
from harness.model.expected import nearest
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import TensorType
from harness.specs.sweeps.calls import make_call
from harness.worker.worker import unpacked


def evaluate(model: ModelProto, case_id: str, fed: Mapping[str, Tensor]) -> list[Tensor]:
    """Return the outputs of a case's graph for the tensors that are fed, by name; a result with a bound as
    the value nearest to it."""
    graph = model.graph
    told = parse(case_id)
    operator = OPERATORS[told.operator]
    given = {**fed, **{proto.name: tensor_of(proto) for proto in graph.initializer}}
    node = next((node for node in graph.node if node.name == "tested"), None)
    names = (
        [value.name for value in graph.input]
        if node is None
        else _names(node, told.operator, told.opset, given)
    )
    inputs = {name: given[name] for name in names}
    attributes = {} if node is None else {entry.name: _value(entry) for entry in node.attribute}
    types = {name: TensorType(tensor.dtype, tensor.array.shape) for name, tensor in inputs.items()}
    constants = {name: tensor.array for name, tensor in inputs.items() if name in operator.constants}
    omitted = told.terms.get("omit")
    count = len(graph.output) + (omitted.count(",") + 1 if omitted else 0)
    call = make_call(operator, told.opset, types, attributes, constants, told.terms.get("variant"), count)
    expected = operator.oracle(call, inputs, "ieee")
    kept = operator_schema(told.operator, told.opset).given_outputs(len(expected), omitted)
    return [nearest(expected[position]) for position in kept]


def _names(node: NodeProto, operator: str, opset: int, given: Mapping[str, Tensor]) -> list[str]:
    """Return the formal names of a node's inputs that are present: its first one may come from a neighbour, a
    sequence is made of its tensors, a map of keys and values."""
    parameters = operator_schema(operator, opset).inputs
    sequences = {parameter.name for parameter in parameters if parameter.sequence}
    found: list[str] = []
    for name in filter(None, node.input):
        if parts := [parameter.name for parameter in parameters if parameter.map == name]:
            found += parts
        elif name in sequences:
            held = (key for key in given if key.partition(".")[0] == name)
            found += sorted(held, key=lambda key: int(key.partition(".")[2]))
        else:
            found.append(name if name in given else name.removesuffix("_before"))
    return found


def _value(entry: AttributeProto) -> Value:
    value = helper.get_attribute_value(entry)
    if entry.type == AttributeProto.TENSOR:
        dtype, array = tensor_of(value)
        return TensorValue(dtype, array.shape, tuple(array.reshape(-1).tolist()))
    if entry.type == AttributeProto.STRING:
        return str(value.decode())
    if entry.type == AttributeProto.STRINGS:
        return tuple(text.decode() for text in value)
    return (
        tuple(value)
        if isinstance(value, (list, tuple)) or entry.type in (AttributeProto.INTS, AttributeProto.FLOATS)
        else value
    )


def tensor_of(proto: TensorProto) -> Tensor:
    """Return an initializer that `compile/graphs.py` wrote."""
    dtype = BY_ONNX_NUMBER[proto.data_type]
    shape = tuple(proto.dims)
    if dtype.name != "string":
        held = np.frombuffer(proto.raw_data, dtype.storage)
        return Tensor(dtype.name, unpacked(held, proto.data_type, shape))
    array = np.empty(len(proto.string_data), object)
    array[:] = [text.decode() for text in proto.string_data]
    return Tensor("string", array.reshape(shape))
