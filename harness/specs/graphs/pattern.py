"""One graph of a spec: its nodes with the parameters filled in, and what ONNX would say of it if it were one
operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from harness.model.case import Case, Tensor, Value
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import OpsetUnavailable, operator_schema
from harness.model.operator_schema import Attribute, OperatorSchema, Parameter
from harness.specs import literals
from harness.specs.attribute_values import typed
from harness.specs.graphs.schema import GraphSpec

OPTIONS: Mapping[str, Value] = {"constants": "initializer", "exposed": "", "reused": ""}
"""The factors that every graph has, beside `initializer` and `shapes`, and their usual levels."""


class Unfit(ValueError):
    """The nodes do not fit together: what a node's operator says of its inputs or attributes."""


class GraphNode(NamedTuple):
    """A node: an empty name stands for an optional tensor that is left out."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Value]


class FilledGraph(NamedTuple):
    """The graph of one choice of parameters; `constants_are_nodes` in place of initializers."""

    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Tensor]
    constants_are_nodes: bool


class Pattern:
    """A graph of a spec: `filled` is it with its parameters."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.defaults: dict[str, Value] = {name: plain(value) for name, value in spec.parameters.items()}
        taken = {each.type for each in spec.inputs.values()}
        self.defaults |= {name: listed[0] for name, listed in spec.types.items() if name not in taken}
        self.filled = lru_cache(maxsize=4096)(self._filled)

    @property
    def operators(self) -> set[str]:
        """The operators that nodes may be."""
        levels = [
            level for sweep in self.spec.sweeps for listed in sweep.factors.values() for level in listed
        ]
        named = {node.operator for node in self.spec.nodes}
        given = [*self.spec.parameters.values(), *levels]
        return (
            named | {text for text in given if isinstance(text, str)}
            if any(parameters_in(tuple(named)))
            else named
        )

    def type_of(self, name: str, types: Mapping[str, str]) -> str:
        """Return the element type that a type parameter stands for, or that is named."""
        return types.get(name, name)

    def types(self, inputs: Mapping[str, str]) -> dict[str, str]:
        """Return the element type of each type parameter by those of inputs; its first where no input has it."""
        found = {name: listed[0] for name, listed in self.spec.types.items()}
        for name, dtype in inputs.items():
            if self.spec.inputs[name].type in found:
                found[self.spec.inputs[name].type] = dtype
        return found

    def _filled(
        self, opset: int, dtypes: tuple[tuple[str, str], ...], attributes: tuple[tuple[str, Value], ...]
    ) -> FilledGraph:
        """Return the graph at an opset, for element types of inputs and the parameters that are given."""
        spec, types = self.spec, self.types(dict(dtypes))
        given = {**self.defaults, **OPTIONS, **dict(attributes)}
        types |= {name: str(given[name]) for name in types if name in given}
        given |= types
        nodes = [self._node(node, given, opset, types) for node in spec.nodes]
        outputs = [str(_filled_in(name, given)) for name in spec.outputs]
        for name in _names(given["exposed"]):
            outputs += [name] if name not in outputs else []
        for name in _names(given["reused"]):
            nodes.append(GraphNode("Abs", (name,), (f"{name}_again",), {}))
            outputs.append(f"{name}_again")
        first = next(iter(spec.types), "float32")
        constants = {}
        for name, constant in spec.constants.items():
            dtype = self.type_of(constant.type or first, types)
            values = _filled_in(constant.values, given)
            constants[name] = Tensor(dtype, literals.to_array(dtype, values, constant.shape))
        used = {name for node in nodes for name in node.inputs} | set(outputs)
        return FilledGraph(
            tuple(nodes),
            tuple(outputs),
            {name: tensor for name, tensor in constants.items() if name in used},
            given["constants"] == "node",
        )

    def _node(self, node: Any, given: Mapping[str, Value], opset: int, types: Mapping[str, str]) -> GraphNode:
        operator = str(_filled_in(node.operator, given))
        try:
            schema = operator_schema(operator, opset)
        except OpsetUnavailable as error:
            raise Unfit(str(error)) from error
        attributes: dict[str, Value] = {}
        for name, value in node.attributes.items():
            filled = _filled_in(value, given)
            if filled == "":
                continue
            if name not in schema.attributes:
                raise Unfit(f"{operator} has no attribute {name} at opset {opset}")
            if isinstance(filled, str) and filled in DTYPES and schema.attributes[name].type == "INT":
                filled = DTYPES[filled].onnx  # the `to` of a Cast
            attributes[name] = typed(schema.attributes[name].type, filled)
        return GraphNode(operator, _listed(node.inputs, given), _listed(node.outputs, given), attributes)

    def schema(self, opset: int) -> OperatorSchema:
        """Return the signature of the graph as of an operator: its parameters are attributes."""
        spec = self.spec
        inputs = tuple(
            Parameter(name, each.type, tuple(spec.types.get(each.type, (each.type,))))
            for name, each in spec.inputs.items()
        )
        attributes = {**self.defaults, **OPTIONS}
        return OperatorSchema(
            spec.graph,
            opset,
            inputs,
            tuple(Parameter(name, name, ()) for name in spec.outputs),
            {name: Attribute(_kind(value), value, False) for name, value in attributes.items()},
            False,
        )


def pattern_key(case: Case) -> tuple[int, tuple[tuple[str, str], ...], tuple[tuple[str, Value], ...]]:
    """Return what `Pattern.filled` takes of a case."""
    return (
        case.opset,
        tuple((each.name, each.dtype) for each in case.inputs),
        tuple(sorted(case.attributes.items())),
    )


def plain(value: Any) -> Value:
    """Return the value of a parameter as an attribute holds it."""
    return int(value) if isinstance(value, bool) else value


def parameters_in(value: Any) -> list[str]:
    """Return the names of parameters that a value refers to."""
    if isinstance(value, tuple):
        return [name for each in value for name in parameters_in(each)]
    return [value[1:]] if isinstance(value, str) and value.startswith("$") else []


def _filled_in(value: Any, given: Mapping[str, Value]) -> Any:
    if isinstance(value, tuple):
        return tuple(_filled_in(each, given) for each in value)
    return given[value[1:]] if isinstance(value, str) and value.startswith("$") else value


def _listed(names: tuple[str, ...], given: Mapping[str, Value]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        filled = _filled_in(name, given)
        found += map(str, filled) if isinstance(filled, tuple) else [str(filled)]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _names(text: Value) -> list[str]:
    return [name for name in str(text).split(",") if name]


def _kind(value: Value) -> str:
    first = value[0] if isinstance(value, tuple) and value else value
    kind = "INT" if isinstance(first, int) else "FLOAT" if isinstance(first, float) else "STRING"
    return f"{kind}S" if isinstance(value, tuple) else kind
