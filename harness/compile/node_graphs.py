"""Turns nodes of a model into a graph without parameters, as the spec of a graph has it: those with graphs as attributes, and
those between which sequences pass."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import count

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from harness.compile.decompile import node_attributes
from harness.compile.protos import LeftOut, tensor_of
from harness.model.case import Options, Shapes, Tensor
from harness.model.onnx_schemas import OpsetUnavailable, UnknownOperator, operator_schema
from harness.operators.in_models import CONSTANT, PASSED_ON
from harness.specs.graphs.pattern import FilledGraph, GraphNode
from harness.specs.graphs.plain import PlainGraph

FEW = 64
"""Elements of a constant that a spec writes out."""
_FIRST_OPSET = 9
"""Since when the slices of a scanned input are not those of a batch."""


class NodeGraph:
    """Takes nodes in their order; `names` are those of the values that are known so far, with `tensors` of those that none of
    the nodes makes."""

    def __init__(self, opset: int, tensors: Mapping[str, Tensor], fixed: Collection[str]) -> None:
        self._opset = opset
        self._numbers = count()
        self._names = {"": "", **{name: self._new() for name in tensors}}
        self._tensors = {self._names[name]: each for name, each in tensors.items()}
        self._fixed = {self._names[name] for name in fixed}

    def of(
        self,
        nodes: Sequence[NodeProto],
        outputs: Sequence[str],
        source: str,
        shapes: Shapes,
        *,
        decided: str,
    ) -> PlainGraph:
        """Return nodes as a graph; small weights are its constants, and small tensors whose kind in NumPy is `decided`. Raises
        LeftOut."""
        made = tuple(self._node(each, self._names) for each in nodes)
        constants = {
            name: each
            for name, each in self._tensors.items()
            if each.array.size <= FEW
            and each.dtype != "string"
            and (name in self._fixed or each.array.dtype.kind in decided)
        }
        inputs = {name: each for name, each in self._tensors.items() if name not in constants}
        options = Options(
            shapes=shapes, initializer=",".join(name for name in inputs if name in self._fixed) or None
        )
        gives = tuple(self._names[name] for name in outputs)
        return PlainGraph(self._opset, made, gives, inputs, constants, source, options)

    def _new(self) -> str:
        return f"t{next(self._numbers)}"

    def _constant(self, proto: TensorProto) -> str:
        """Take a weight of an inner graph as one of the outer."""
        name = self._new()
        self._tensors[name] = tensor_of(proto.data_type, proto)
        self._fixed.add(name)
        return name

    def _node(self, node: NodeProto, names: dict[str, str]) -> GraphNode:
        operator = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
        try:
            schema = operator_schema(operator, self._opset)
        except (UnknownOperator, OpsetUnavailable) as error:
            raise LeftOut("the harness has no formula for an operator", operator) from error
        if lost := [name for name in node.input if name not in names]:
            raise LeftOut("a value that was not recorded", lost[0])
        takes = tuple(names[name] for name in node.input)
        graphs = {each.name: each.g for each in node.attribute if each.type == AttributeProto.GRAPH}
        if graphs and self._opset < _FIRST_OPSET:
            raise LeftOut(f"a node with a graph before opset {_FIRST_OPSET}")
        own = NodeProto(attribute=[each for each in node.attribute if each.name not in graphs])
        for held in (each.t for each in own.attribute if operator == CONSTANT and each.HasField("t")):
            if math.prod(held.dims) > FEW:
                operator, takes, own = PASSED_ON, (self._constant(held),), NodeProto()
        attributes = dict(node_attributes(schema, own))
        inner = {key: self._graph(each, dict(names)) for key, each in graphs.items()}
        names |= {name: self._new() for name in node.output if name}
        return GraphNode(operator, takes, tuple(names[each] for each in node.output), attributes, inner)

    def _graph(self, graph: GraphProto, names: dict[str, str]) -> FilledGraph:
        names |= {value.name: self._new() for value in graph.input}
        names |= {each.name: self._constant(each) for each in graph.initializer}
        nodes = tuple(self._node(each, names) for each in graph.node)
        if lost := [each.name for each in graph.output if each.name not in names]:
            raise LeftOut("a value that was not recorded", lost[0])
        gives = tuple(names[each.name] for each in graph.output)
        return FilledGraph(nodes, gives, {}, False, tuple(names[value.name] for value in graph.input))
