"""A graph without parameters: its nodes, constants and the elements of its inputs, as the fuzzer draws it and as
reducing leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from harness.model import onnx_schemas
from harness.model.case import Case, Options, Tensor, TensorSpec
from harness.model.dtypes import DTYPES
from harness.model.expected import nearest
from harness.operators import OPERATORS
from harness.specs.graphs.composition import composed
from harness.specs.graphs.operator import filled_graph, register
from harness.specs.graphs.pattern import FilledGraph, GraphNode, Pattern
from harness.specs.graphs.schema import GraphConstant, GraphInput, GraphSpec, NodeEntry, Subgraph
from harness.specs.reading.literal_cases import identified
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.schema import Spec
from harness.specs.reading.source import Source, parse
from harness.specs.sweeps.calls import call_of

NAME = "fuzz"
"""The name of the case of such a graph."""
_SAMPLE = "opencl"
"""The arithmetic in which inner values are asked for."""


NO_GRAPH = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What the formulas raise of a graph whose nodes do not fit together in a way that no spec tries."""


class PlainGraph(NamedTuple):
    """A graph with the elements of its inputs; `options` name those that are initializers."""

    opset: int
    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]
    inputs: Mapping[str, Tensor]
    constants: Mapping[str, Tensor]
    source: str
    options: Options = Options()
    constants_are_nodes: bool = False
    opsets: tuple[int, ...] = ()

    @property
    def made(self) -> tuple[str, ...]:
        """The values that nodes make."""
        return tuple(name for node in self.nodes for name in node.outputs if name)

    @property
    def filled(self) -> FilledGraph:
        return FilledGraph(self.nodes, self.outputs, self.constants, self.constants_are_nodes)

    def values(self) -> dict[str, Tensor]:
        """Return what each node makes; raise Unfit where nodes do not fit together."""
        every = self.filled._replace(outputs=self.made)
        found = composed(every, self.opset, self.inputs, _SAMPLE, bounds=False)
        return {name: nearest(each) for name, each in zip(self.made, found, strict=True)}

    def pruned(self) -> PlainGraph:
        """Return the graph without the nodes that no output needs."""
        nodes: list[GraphNode] = []
        needed = set(self.outputs)
        for node in reversed(self.nodes):
            if needed & set(node.outputs):
                nodes.insert(0, node)
                needed |= set(node.taken)
        inputs = {name: tensor for name, tensor in self.inputs.items() if name in needed}
        constant = [name for name in (self.options.initializer or "").split(",") if name in inputs]
        return self._replace(
            nodes=tuple(nodes),
            inputs=inputs,
            constants={name: tensor for name, tensor in self.constants.items() if name in needed},
            options=msgspec.structs.replace(self.options, initializer=",".join(constant) or None),
        )

    def known_as(self, name: str) -> tuple[Case, LoadedSpec]:
        """Return the graph as a case of a spec of this name, which is registered until it is forgotten."""
        spec = GraphSpec.model_construct(
            graph=name,
            source=self.source,
            fuses_to=(),
            opsets=tuple(sorted({self.opset, *self.opsets})),
            types={},
            inputs={
                name: GraphInput.model_construct(type=each.dtype, shape=each.array.shape, values="unit")
                for name, each in self.inputs.items()
            },
            constants=_constants(self.constants),
            parameters={},
            nodes=_entries(self.nodes),
            outputs=self.outputs,
            cases=(),
            sweeps=(),
        )
        pattern = Pattern(spec)
        register(pattern)
        model = Spec.model_construct(operator=name, opsets=spec.opsets, cases=())
        given = tuple(
            TensorSpec(name, each.dtype, each.array.shape, "literal") for name, each in self.inputs.items()
        )
        case = Case(
            id=NAME,
            operator=name,
            opset=self.opset,
            attributes={"constants": "node"} if self.constants_are_nodes else {},
            inputs=given,
            options=self.options,
            source=self.source,
            literals=tuple(each.array for each in self.inputs.values()),
        )
        return identified(case), LoadedSpec(Path(name), model, _nowhere(), pattern)


def plain_graph(case: Case, inputs: Sequence[Tensor], opsets: tuple[int, ...] = ()) -> PlainGraph:
    """Return the graph of a case with its inputs; it may have other opsets."""
    graph = filled_graph(OPERATORS[case.operator], call_of(case))
    return PlainGraph(
        case.opset,
        graph.nodes,
        graph.outputs,
        {each.name: tensor for each, tensor in zip(case.inputs, inputs, strict=True)},
        graph.constants,
        case.source or "",
        case.options,
        graph.constants_are_nodes,
        opsets,
    )


def _entries(nodes: Sequence[GraphNode]) -> tuple[NodeEntry, ...]:
    return tuple(
        NodeEntry.model_construct(
            operator=node.operator,
            inputs=node.inputs,
            outputs=node.outputs,
            attributes={
                **node.attributes,
                **{name: _subgraph(each) for name, each in node.subgraphs.items()},
            },
        )
        for node in nodes
    )


def _subgraph(graph: FilledGraph) -> Subgraph:
    return Subgraph.model_construct(
        inputs=graph.inputs,
        types=dict(graph.types),
        constants=_constants(graph.constants),
        nodes=_entries(graph.nodes),
        outputs=graph.outputs,
    )


def _constants(constants: Mapping[str, Tensor]) -> dict[str, GraphConstant]:
    return {
        name: GraphConstant.model_construct(type=each.dtype, values=_elements(each), shape=each.array.shape)
        for name, each in constants.items()
    }


def forget(name: str) -> None:
    """Make the graph of a name unknown."""
    OPERATORS.pop(name, None)
    onnx_schemas.forget_graph(name)


@cache
def _nowhere() -> Source:
    return parse(b"{}", path=Path(NAME), label=NAME)


def _elements(tensor: Tensor) -> tuple[object, ...]:
    """Return elements as a spec has them: the bits of floats."""
    entry, flat = DTYPES[tensor.dtype], tensor.array.reshape(-1)
    if not (entry.is_float or entry.is_minifloat):
        return tuple(flat.tolist())
    bits = np.ascontiguousarray(flat).view(f"u{entry.itemsize}")
    return tuple(f"0x{int(each):0{entry.itemsize * 2}x}" for each in bits)
