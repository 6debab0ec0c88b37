"""One graph of a spec: its nodes with the parameters filled in, and what ONNX would say of it if it were one
operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.model.case import Tensor, Value
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import OpsetUnavailable, operator_schema
from harness.model.operator_schema import Attribute, OperatorSchema, Parameter
from harness.specs.reading import literals
from harness.specs.reading.attribute_values import typed
from harness.specs.reading.source import KeyPath

if TYPE_CHECKING:  # a run of operators reads no spec of a graph
    from harness.specs.graphs.schema import GraphConstant, GraphSpec, NodeEntry, Subgraph

INNER = ("exposed", "reused", "captured")
"""The factors whose levels are inner values, divided by commas."""
OPTIONS: Mapping[str, Value] = {"constants": "initializer", "overridable": "", **dict.fromkeys(INNER, "")}
"""The factors that every graph has, beside `initializer` and `shapes`, and their usual levels."""


class Unfit(ValueError):
    """The nodes do not fit together; the message is that of a node's operator about its inputs or
    attributes."""


class GraphNode(NamedTuple):
    """A node: an empty name stands for an optional tensor that is left out. `subgraphs` are its attributes that are
    graphs."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Value]
    subgraphs: Mapping[str, FilledGraph] = MappingProxyType({})

    @property
    def taken(self) -> tuple[str, ...]:
        """The tensors that it takes, those that its subgraphs take from around them among them."""
        return (*self.inputs, *(name for each in self.subgraphs.values() for name in each.taken))

    def called(self, names: Mapping[str, str]) -> GraphNode:
        """Return the node with renamed inputs."""
        inputs = tuple(names.get(name, name) for name in self.inputs)
        return self._replace(
            inputs=inputs, subgraphs={key: each.called(names) for key, each in self.subgraphs.items()}
        )


class FilledGraph(NamedTuple):
    """The graph of one choice of parameters, or one in a node, to which its operator may feed `inputs`;
    `constants_are_nodes` in place of initializers; `types` are those declared of its inputs and outputs. Of the
    `overridable` inputs it has other elements as initializers."""

    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Tensor]
    constants_are_nodes: bool
    inputs: tuple[str, ...] = ()
    types: Mapping[str, str] = MappingProxyType({})
    overridable: tuple[str, ...] = ()

    @property
    def own(self) -> set[str]:
        """The tensors that it makes, has or is fed."""
        return {*self.inputs, *self.constants, *(name for node in self.nodes for name in node.outputs)}

    @property
    def taken(self) -> tuple[str, ...]:
        """The tensors that it takes from around it."""
        every, own = (*(name for node in self.nodes for name in node.taken), *self.outputs), self.own
        return tuple(name for name in every if name not in own)

    def called(self, names: Mapping[str, str]) -> FilledGraph:
        """Return the graph with renamed values of the outer graph."""
        outer = {name: names[name] for name in names if name not in self.own}
        outputs = tuple(outer.get(name, name) for name in self.outputs)
        return self._replace(nodes=tuple(node.called(outer) for node in self.nodes), outputs=outputs)


def every_node(nodes: tuple[NodeEntry, ...], path: KeyPath = ()) -> Iterator[tuple[KeyPath, NodeEntry]]:
    """Yield nodes and those of their subgraphs, each with the keys that lead to it."""
    for number, node in enumerate(nodes):
        here = (*path, "nodes", number)
        yield here, node
        for name, graph in node.subgraphs.items():
            yield from every_node(graph.nodes, (*here, "attributes", name))


class Pattern:
    """A graph of a spec."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.defaults: dict[str, Value] = {name: plain(value) for name, value in spec.parameters.items()}
        taken = {each.type for each in spec.inputs.values()}
        self.defaults |= {name: listed[0] for name, listed in spec.types.items() if name not in taken}
        self._kept = lru_cache(maxsize=4096)(self._filled)

    @property
    def operators(self) -> set[str]:
        """The operators that nodes may be."""
        levels = [
            level for sweep in self.spec.sweeps for listed in sweep.factors.values() for level in listed
        ]
        named = {node.operator for _, node in every_node(self.spec.nodes)}
        given = [*self.spec.parameters.values(), *levels]
        return (
            named | {text for text in given if isinstance(text, str)}
            if any(parameters_in(tuple(named)))
            else named
        )

    def types(self, inputs: Mapping[str, str]) -> dict[str, str]:
        """Return the element type of each type parameter by those of inputs; its first where no input has it."""
        found = {name: listed[0] for name, listed in self.spec.types.items()}
        for name, dtype in inputs.items():
            if self.spec.inputs[name].type in found:
                found[self.spec.inputs[name].type] = dtype
        return found

    def filled(
        self, opset: int, dtypes: tuple[tuple[str, str], ...], attributes: tuple[tuple[str, Value], ...]
    ) -> FilledGraph:
        """Return the graph at an opset, for element types of inputs and the parameters that are given."""
        return self._kept(opset, dtypes, attributes, repr(attributes))

    def _filled(
        self,
        opset: int,
        dtypes: tuple[tuple[str, str], ...],
        attributes: tuple[tuple[str, Value], ...],
        written: str,
    ) -> FilledGraph:
        """Return the graph; how attributes are `written` tells 0.0 and -0.0 apart, which are equal."""
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
        for name in _names(given["captured"]):
            nodes += _branches(name, next(iter(spec.inputs)))
            outputs.append(f"{name}_captured")
        used = {name for node in nodes for name in node.taken} | set(outputs)
        constants = self._constants(spec.constants, given, types)
        return FilledGraph(
            tuple(nodes),
            tuple(outputs),
            {name: tensor for name, tensor in constants.items() if name in used},
            given["constants"] == "node",
            overridable=tuple(_names(given["overridable"])),
        )

    def _constants(
        self, constants: Mapping[str, GraphConstant], given: Mapping[str, Value], types: Mapping[str, str]
    ) -> dict[str, Tensor]:
        first, found = next(iter(self.spec.types), "float32"), {}
        for name, constant in constants.items():
            dtype = types.get(constant.type or first, constant.type or first)
            values = _filled_in(constant.values, given)
            found[name] = Tensor(dtype, literals.to_array(dtype, values, constant.shape))
        return found

    def _subgraph(
        self, graph: Subgraph, given: Mapping[str, Value], opset: int, types: Mapping[str, str]
    ) -> FilledGraph:
        return FilledGraph(
            tuple(self._node(node, given, opset, types) for node in graph.nodes),
            _listed(graph.outputs, given),
            self._constants(graph.constants, given, types),
            given["constants"] == "node",
            graph.inputs,
            {name: types.get(each, each) for name, each in graph.types.items()},
        )

    def _node(
        self, node: NodeEntry, given: Mapping[str, Value], opset: int, types: Mapping[str, str]
    ) -> GraphNode:
        operator = str(_filled_in(node.operator, given))
        try:
            schema = operator_schema(operator, opset)
        except OpsetUnavailable as error:
            raise Unfit(str(error)) from error
        attributes: dict[str, Value] = {}
        subgraphs = {
            name: self._subgraph(graph, given, opset, types) for name, graph in node.subgraphs.items()
        }
        for name, value in node.attributes.items():
            if name in subgraphs:
                continue
            filled = _filled_in(value, given)
            if filled == "":
                continue
            if name not in schema.attributes:
                raise Unfit(f"{operator} has no attribute {name} at opset {opset}")
            if isinstance(filled, str) and filled in DTYPES and schema.attributes[name].type == "INT":
                filled = DTYPES[filled].onnx  # the `to` of a Cast
            attributes[name] = typed(schema.attributes[name].type, filled)
        return GraphNode(
            operator, _listed(node.inputs, given), _listed(node.outputs, given), attributes, subgraphs
        )

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


def _branches(name: str, decides: str) -> Iterator[GraphNode]:
    """Yield an If that takes a value in both branches, by whether an input has elements: no level folds that away."""
    size, condition, kept = f"{name}_size", f"{name}_condition", f"{name}_kept"
    yield GraphNode("Size", (decides,), (size,), {})
    yield GraphNode("Cast", (size,), (condition,), {"to": DTYPES["bool"].onnx})
    branches = {
        branch: FilledGraph((GraphNode("Identity", (name,), (kept,), {}),), (kept,), {}, False)
        for branch in ("then_branch", "else_branch")
    }
    yield GraphNode("If", (condition,), (f"{name}_captured",), {}, branches)


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
