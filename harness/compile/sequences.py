"""Composes a graph whose inputs and outputs are tensors around an operator on sequences of tensors or on optionals.

A sequence that the operator takes is made of its tensors by SequenceConstruct, or by SequenceEmpty where it holds
none; of one that it gives SequenceLength and SequenceAt take the number of tensors and each of them. Optional makes
an optional, OptionalHasElement and OptionalGetElement take one apart. Which inputs and outputs are sequences or
optionals is what ONNX's schema says.

Nothing in a graph makes a map or takes one apart. A map is an input or an output of the graph, and the worker makes it
of two tensors, or makes these of it: `X_keys` and `X_values` of `X`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.operator_schema import OperatorSchema
from harness.operators.base import Node


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
    """Return what a graph calls the optional of a tensor."""
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
            askers = zip(("OptionalHasElement", "OptionalGetElement"), results, strict=False)
            yield from (Node(asker, (held(parameter.name),), result) for asker, result in askers)
        if not parameter.sequence:
            continue
        length, *tensors = results
        yield Node("SequenceLength", (parameter.name,), length)
        for place, tensor in enumerate(tensors):
            position = f"position_{place}"
            yield Node("Constant", (), position, value=Tensor("int64", np.array(place, np.int64)))
            yield Node("SequenceAt", (parameter.name, position), tensor)
