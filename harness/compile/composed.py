"""Compiles a case of a graph of several operators to a ModelProto: nodes, constants as initializers or
Constant nodes, and inputs, some of them as initializers."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, helper

from harness.compile.protos import PRODUCER, UNTESTED, attributed, encoded, pad, tensor_proto, value_info
from harness.compile.sequences import lifted
from harness.model.case import DEPLOYMENTS, Case, Tensor
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import IR_VERSIONS, operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, Shape
from harness.operators.elements import displaced
from harness.specs.graphs.control_flow import FED
from harness.specs.graphs.operator import filled_graph
from harness.specs.graphs.pattern import FilledGraph
from harness.targets.execution import Graph

_BESIDE = 4
"""The version of ai.onnx.ml in a graph with nodes of it."""


def compile_graph(case: Case, call: Call, inputs: tuple[Tensor, ...], results: tuple[Shape, ...]) -> Graph:
    """Return the graph of a case; `results` are the shapes of its outputs."""
    graph = filled_graph(OPERATORS[case.operator], call)
    wanted = {*(case.options.initializer or "").split(",")} - {*graph.overridable}
    constants = [n for n, each in enumerate(case.inputs) if each.name in wanted]
    fed = tuple(n for n in range(len(inputs)) if n not in constants)
    model = _model(case, graph, call, inputs, fed, results)
    model, optionals, dropped = lifted(model, case.options.optionals)
    fed = tuple(n for n in fed if case.inputs[n].name not in dropped)
    constant_nodes = len(graph.constants) if graph.constants_are_nodes else 0
    nodes = model.graph.node[constant_nodes:]
    operators = [node.op_type for node in nodes]
    tested = tuple(sorted(name for name in operators if name not in UNTESTED))
    functions = {
        node.op_type
        for node in nodes
        if node.op_type in tested and operator_schema(_named(node), case.opset).function
    }
    return Graph(
        *encoded(model),
        fed=fed,
        inputs=tuple((case.inputs[n].name, DTYPES[case.inputs[n].dtype].onnx) for n in fed),
        outputs=tuple(
            (name, DTYPES[dtype].onnx) for name, dtype in zip(graph.outputs, call.outputs, strict=True)
        ),
        tested=tested,
        optimization=case.options.optimization,
        untested=tuple(name for name in operators if name in UNTESTED),
        functions=tuple(name for name in dict.fromkeys(tested) if name in functions),
        composed=True,
        optionals=optionals,
        deployed=tuple(_deployed(case, call, inputs, fed)),
    )


def as_run(compiled: Graph, case: Case, call: Call, inputs: tuple[Tensor, ...]) -> Graph:
    """Return the compiled graph of a case for another case, whose level of optimisation or deployment alone differs."""
    deployed = tuple(_deployed(case, call, inputs, compiled.fed))
    return compiled._replace(optimization=case.options.optimization, deployed=deployed)


def _deployed(
    case: Case, call: Call, inputs: tuple[Tensor, ...], fed: tuple[int, ...]
) -> Iterator[tuple[str, object]]:
    for name in DEPLOYMENTS:
        value = getattr(case.options, name)
        if value is None:
            continue
        if name == "dimensions":
            value = tuple(
                (f"{each.name}_{n}", extent)
                for each in (case.inputs[number] for number in fed)
                for n, extent in enumerate(each.shape)
            )
        elif name == "initializers":
            graph = filled_graph(OPERATORS[case.operator], call)
            value = tuple(
                (each, DTYPES[tensor.dtype].onnx, tensor.array.shape, tensor.array.tobytes().hex())
                for each, tensor in _initializers(case, graph, inputs, fed).items()
            )
        yield name, value


def _initializers(
    case: Case, graph: FilledGraph, inputs: tuple[Tensor, ...], fed: tuple[int, ...]
) -> dict[str, Tensor]:
    named = {case.inputs[n].name: inputs[n] for n in range(len(inputs)) if n not in fed}
    return named if graph.constants_are_nodes else {**named, **graph.constants}


def _model(
    case: Case,
    graph: FilledGraph,
    call: Call,
    inputs: tuple[Tensor, ...],
    fed: tuple[int, ...],
    results: tuple[Shape, ...],
) -> ModelProto:
    initializers = _initializers(case, graph, inputs, fed)
    shapes = case.options.shapes
    nodes, given = _nodes(graph, case.opset), case.inputs
    for node in nodes if case.options.left_out else ():
        pad(node, operator_schema(_named(node), case.opset))
    made_graph = helper.make_graph(
        nodes,
        case.operator,
        [
            value_info(name, dtype, shape, "static" if name in graph.overridable else shapes)
            for name, dtype, shape in ((given[n].name, given[n].dtype, given[n].shape) for n in fed)
        ],
        [
            value_info(name, dtype, shape, shapes)
            for name, dtype, shape in zip(graph.outputs, call.outputs, results, strict=True)
        ],
        [
            *(tensor_proto(name, tensor) for name, tensor in initializers.items()),
            *(
                tensor_proto(each.name, displaced(inputs[n]))
                for n, each in enumerate(given)
                if each.name in graph.overridable
            ),
        ],
    )
    return helper.make_model(
        made_graph,
        producer_name=PRODUCER,
        ir_version=IR_VERSIONS[case.opset],
        opset_imports=[
            helper.make_opsetid("", case.opset),
            *(helper.make_opsetid(each, _BESIDE) for each in sorted({node.domain for node in nodes} - {""})),
        ],
    )


def _named(node: NodeProto) -> str:
    """Return the operator of a node with its domain."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _nodes(graph: FilledGraph, opset: int, within: str = "") -> list[NodeProto]:
    nodes = [*(_constants(graph, within) if graph.constants_are_nodes else ())]
    for made in graph.nodes:
        name = f"{within}{made.operator}_{len(nodes)}"
        domain, _, type_ = made.operator.rpartition(".")
        node = helper.make_node(type_, list(made.inputs), list(made.outputs), name, domain=domain or None)
        attributed(node, operator_schema(made.operator, opset), made.attributes)
        node.attribute.extend(
            helper.make_attribute(key, _subgraph(each, made.operator, opset, f"{name}_{key}"))
            for key, each in sorted(made.subgraphs.items())
        )
        nodes.append(node)
    return nodes


def _subgraph(graph: FilledGraph, operator: str, opset: int, name: str) -> GraphProto:
    """Return the subgraph of a node. ONNX infers the types of its inputs and outputs, so that names suffice
    except for values that the operator itself supplies."""
    fed = FED.get(operator, ())
    inputs = [
        value_info(each, *fed[n], "static") if n < len(fed) else value_info(each, graph.types.get(each))
        for n, each in enumerate(graph.inputs)
    ]
    initializers = {} if graph.constants_are_nodes else graph.constants
    return helper.make_graph(
        _nodes(graph, opset, f"{name}_"),
        name,
        inputs,
        [value_info(each, graph.types.get(each)) for each in graph.outputs],
        [tensor_proto(each, tensor) for each, tensor in initializers.items()],
    )


def _constants(graph: FilledGraph, within: str) -> Iterator[NodeProto]:
    for number, (name, tensor) in enumerate(graph.constants.items()):
        yield helper.make_node(
            "Constant", [], [name], f"{within}Constant_{number}", value=tensor_proto(name, tensor)
        )
