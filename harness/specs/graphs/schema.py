"""The format of a spec of a graph, `specs/graphs/*.yaml`: nodes with parameters, and the factors that its cases
vary."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from harness.specs.reading.entry_schema import LiteralCase
from harness.specs.reading.schema_types import (
    Alternatives,
    AttributeValue,
    Dtype,
    Elements,
    Name,
    OneOrMore,
    Opsets,
    Shape,
    Strict,
    Text,
    json_schema,
    refuse,
)

GraphName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=60)]
ValueName = Annotated[str, Field(pattern=r"^(\$[a-z]\w*|[A-Za-z]\w*|)$", max_length=60)]
"""The name of a tensor, empty for one that is left out; `$name` for what a parameter names."""


def _constant(value: object) -> object:
    return value if isinstance(value, dict) else {"values": value}


class GraphInput(Strict):
    """An input: an element type or the name of a type parameter, its usual shape and kind of values."""

    type: Text
    shape: Shape
    values: Name = "unit"


class GraphConstant(Strict):
    """A constant tensor; a number or a list alone is one of the first type parameter. `$name` as values are those of
    a parameter."""

    type: Text | None = None
    values: Elements
    shape: Shape | None = None


Constant = Annotated[GraphConstant, BeforeValidator(_constant), WithJsonSchema({})]
_NAMES = WithJsonSchema({"type": ["string", "array"]})
Names = Annotated[Alternatives[ValueName], _NAMES]
Operands = Annotated[tuple[ValueName, ...], OneOrMore(), _NAMES]
"""A node may take one tensor twice."""


def _attribute_form(value: object) -> str:
    if isinstance(value, Subgraph) or (isinstance(value, dict) and "nodes" in value):
        return "<graph>"
    return "<value>"


_NO_GRAPH = {
    "type": ["number", "string", "boolean", "array", "object", "null"],
    "not": {"type": "object", "required": ["nodes"]},
}
NodeAttribute = Annotated[
    Annotated["Subgraph", Tag("<graph>")] | Annotated[Any, Tag("<value>"), WithJsonSchema(_NO_GRAPH)],
    Discriminator(_attribute_form),
]


class NodeEntry(Strict):
    """A node; `$name` anywhere stands for the value of a parameter, and `$name` as `inputs` for a list of them."""

    operator: Text
    inputs: Operands = ()
    outputs: Names
    attributes: dict[str, NodeAttribute] = {}

    @property
    def subgraphs(self) -> dict[str, Subgraph]:
        """The attributes that are graphs."""
        return {name: value for name, value in self.attributes.items() if isinstance(value, Subgraph)}


class Subgraph(Strict):
    """A graph that is an attribute of a node, such as a branch; its nodes take tensors around it as well. `inputs` are
    what the operator feeds it, if it does. `types` are element types of inputs and outputs that are declared, which
    SequenceMap needs."""

    inputs: Operands = ()
    types: dict[Text, Text] = {}
    constants: dict[Text, Constant] = {}
    nodes: Annotated[tuple[NodeEntry, ...], Field(min_length=1, max_length=64)]
    outputs: Operands


NodeEntry.model_rebuild()


class GraphSweep(Strict):
    """Cases: the graph with the first level of each factor, with each other level of one factor, and with each two
    other levels of two.

    A factor is a parameter, a type parameter, `opset`, `NAME.shape` or `NAME.values` of an input, or an option:
    `initializer` (inputs that are constants, divided by commas), `overridable` (inputs that have a default), `shapes`,
    `constants` (`initializer` or `node`), `exposed` (inner values that are outputs too), `reused` (inner values that a
    further node consumes), `captured` (inner values that the branches of an If consume), `left_out` (`empty_names`), or
    one of `case.DEPLOYMENTS`.
    """

    name: Name
    factors: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]]
    alone: Alternatives[Text] = ()
    """Factors whose levels are not paired with others."""
    deployed: bool = False
    """Whether the graph with the first level of each factor also runs in every two ways of deployment."""


class GraphSpec(Strict):
    """One file; `nodes` are in topological order. `fuses_to` names the operators that a runtime's optimizer is
    expected to make of the graph with the first level of each factor."""

    graph: GraphName
    source: Text
    fuses_to: Alternatives[Text] = ()
    opsets: Opsets
    types: dict[Text, Alternatives[Dtype]] = {}
    inputs: dict[Text, GraphInput]
    constants: dict[Text, Constant] = {}
    parameters: dict[Text, AttributeValue] = {}
    nodes: Annotated[tuple[NodeEntry, ...], Field(min_length=1, max_length=64)]
    outputs: Names
    cases: tuple[LiteralCase, ...] = ()
    sweeps: tuple[GraphSweep, ...] = ()

    @model_validator(mode="after")
    def _distinct_names(self) -> GraphSpec:
        if not self.cases and not self.sweeps:
            raise refuse("a spec needs at least one entry in 'cases' or 'sweeps'")
        names = [*self.inputs, *self.constants]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise refuse(f"{twice!r} is an input and a constant")
        return self


def graph_json_schema() -> str:
    """Return the JSON Schema of a spec of a graph, for editors, as the text of `docs/graph.schema.json`."""
    return json_schema(GraphSpec.model_json_schema(), "Graph spec")


if __name__ == "__main__":
    print(graph_json_schema(), end="")
