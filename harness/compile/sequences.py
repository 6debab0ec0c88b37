"""Composes a graph whose inputs and outputs are tensors around an operator on sequences of tensors or on optionals.

A sequence that the operator takes is made of its tensors by SequenceConstruct, or by SequenceEmpty where it holds
none; of one that it gives SequenceLength and SequenceAt take the number of tensors and each of them. Optional makes
an optional, OptionalHasElement and OptionalGetElement take one apart. Which inputs and outputs are sequences or
optionals is what ONNX's schema says.

Optionals are values of the graph itself where a case asks for it: what Optional makes of the graph's inputs is an input,
which the worker passes; what OptionalHasElement and OptionalGetElement give as outputs is one output, which the worker
takes apart.

Nothing in a graph makes a map or takes one apart. A map is an input or an output of the graph, and the worker makes it
of two tensors, or makes these of it: `X_keys` and `X_values` of `X`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto, helper

from harness.compile.protos import TESTED
from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.operator_schema import OperatorSchema
from harness.operators.base import Node

Optionals = tuple[tuple[str, ...], ...]
_ASKERS = ("OptionalHasElement", "OptionalGetElement")


def composed(schema: OperatorSchema) -> bool:
    """Say whether an operator takes or gives a sequence or an optional."""
    return any(each.sequence or each.optional_type for each in (*schema.inputs, *schema.outputs))


def packed(schema: OperatorSchema, dtypes: Mapping[str, str], renamed: Mapping[str, str]) -> Iterator[Node]:
    """Yield the nodes that make the operator's sequences, each under the formal name of its input, and its optionals,
    each as `held` names it.

    `dtypes` are the element types of the tensors by their names in a case; `renamed` are those whose values have
    other names in the graph. Without a tensor of its type a sequence is one of float32, SequenceEmpty's
    default.
    """
    for parameter in schema.inputs:
        if parameter.optional_type and parameter.name in dtypes:
            name = parameter.name
            yield Node("Optional", (renamed.get(name, name),), held(name))
        if not parameter.sequence:
            continue
        listed = [name for name in dtypes if name.partition(".")[0] == parameter.name]
        if listed:
            taken = tuple(renamed.get(name, name) for name in listed)
            yield Node("SequenceConstruct", taken, parameter.name)
            continue
        like = (dtype for name, dtype in dtypes.items() if _type_param(schema, name) == parameter.type_param)
        dtype = next(like, "float32")
        yield Node("SequenceEmpty", (), parameter.name, {"dtype": DTYPES[dtype].onnx})


def _type_param(schema: OperatorSchema, name: str) -> str | None:
    parameter = schema.input(name)
    return None if parameter is None else parameter.type_param


def held(name: str) -> str:
    """Return the name of the optional of a tensor in the graph."""
    return f"{name}_held"


def given(schema: OperatorSchema, results: Sequence[str]) -> list[str]:
    """Return the operator's outputs for the tensors that are taken of them: of a sequence its formal name, of an
    optional as `held` names it, of keys and values their map's."""
    if optionals := [held(each.name) for each in schema.outputs if each.optional_type]:
        return optionals
    maps = {each.name: each.map for each in schema.outputs if each.map}
    whole = list(dict.fromkeys(maps.values())) if maps else list(results)
    return [each.name for each in schema.outputs if each.sequence] or whole


def unpacked(schema: OperatorSchema, results: Sequence[str]) -> Iterator[Node]:
    """Yield the nodes that take the length and the tensors of a sequence that the operator gives, or what says whether
    there is an element and that."""
    for parameter in schema.outputs:
        if parameter.optional_type:
            askers = zip(_ASKERS, results, strict=False)
            yield from (Node(asker, (held(parameter.name),), result) for asker, result in askers)
        if not parameter.sequence:
            continue
        length, *tensors = results
        yield Node("SequenceLength", (parameter.name,), length)
        for place, tensor in enumerate(tensors):
            position = f"position_{place}"
            yield Node("Constant", (), position, value=Tensor("int64", np.array(place, np.int64)))
            yield Node("SequenceAt", (parameter.name, position), tensor)


def lifted(model: ModelProto, kind: str | None) -> tuple[ModelProto, Optionals, set[str]]:
    """Return a model whose optionals are inputs and outputs, and the names of their tensors. An input has its
    element's tensor, none if it is empty; an output has a flag that says whether there is an element, and the
    element. An empty input is not passed at all where `kind` is `left_out`; where `kind` is None the model stays
    as it is. The last value returned are the tensors that are no longer inputs: no node and no optional takes
    them."""
    if kind is None:
        return model, (), set()
    found = ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    inputs = tuple(_inputs(graph))
    outputs = tuple(_outputs(graph, {name for name, *_ in inputs}))
    used = set(_taken(graph))
    kept = [value for value in graph.input if value.name in used]
    del graph.input[:]
    graph.input.extend(kept)
    passed = [each for each in inputs if each[0] in used and (len(each) > 1 or kind != "left_out")]
    dropped = {value.name for value in model.graph.input} - used.union(*passed)
    return found, (*passed, *outputs), dropped


def _inputs(graph: GraphProto) -> Iterator[tuple[str, ...]]:
    types = {value.name: value.type for value in graph.input}
    made = {node.output[0]: node for node in graph.node}
    for node in [each for each in graph.node if each.op_type == "Optional" and each.name != TESTED]:
        tensors = list(node.input)
        listed = made.get(tensors[0]) if tensors else None
        if listed is not None and listed.op_type == "SequenceConstruct":
            tensors = list(listed.input)
            element = helper.make_sequence_type_proto(types[tensors[0]])
            graph.node.remove(listed)
        else:
            element = types[tensors[0]] if tensors else _type(node)
        graph.node.remove(node)
        graph.input.append(helper.make_value_info(node.output[0], helper.make_optional_type_proto(element)))
        yield (node.output[0], *tensors)


def _type(node: NodeProto) -> TypeProto:
    (attribute,) = node.attribute
    type_: TypeProto = attribute.tp
    return type_


def _outputs(graph: GraphProto, inputs: set[str]) -> Iterator[tuple[str, ...]]:
    values = {value.name: value for value in graph.output}
    asked: dict[str, dict[str, NodeProto]] = {}
    for node in graph.node:
        if node.op_type in _ASKERS and node.output[0] in values and node.input[0] not in inputs:
            asked.setdefault(node.input[0], {})[node.op_type] = node
    for name, nodes in asked.items():
        if len(nodes) == len(_ASKERS):
            element = values[nodes[_ASKERS[1]].output[0]].type
        else:  # what is asked alone is an Optional without an element
            element = _type(next(node for node in graph.node if name in node.output))
        tensors = [nodes[asker].output[0] for asker in _ASKERS if asker in nodes]
        for node in nodes.values():
            graph.node.remove(node)
            graph.output.remove(values[node.output[0]])
        graph.output.append(helper.make_value_info(name, helper.make_optional_type_proto(element)))
        yield (name, *tensors)


def _taken(graph: GraphProto) -> Iterator[str]:
    """Yield the inputs of nodes, and the values of the outer graph that subgraphs use."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _taken(attribute.g)
                yield from (value.name for value in attribute.g.output)
