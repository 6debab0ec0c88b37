"""Compiles a case to a ModelProto: the tested operator alone, between others that make and take apart its
sequences (`sequences`), or a variant composed of several operators, with pinned versions.

Cases that differ only in shapes and values share one graph with symbolic dimensions, unless a case asks for
static shapes or for an input as an initializer. Graphs are content-addressed: the same case gives the same
bytes on every platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import starmap
from typing import NamedTuple

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from harness.compile import sequences
from harness.compile.composed import compile_graph
from harness.compile.protos import (
    LOADED,
    PRODUCER,
    TESTED,
    UNTESTED,
    attributed,
    encoded,
    pad,
    tensor_proto,
    value_info,
)
from harness.model.case import CONSTANTS, Case, Options, Tensor, Value
from harness.model.dtypes import DTYPES
from harness.model.onnx_schemas import IR_VERSIONS, ir_version, latest_opset, operator_schema, opset_imports
from harness.model.operator_schema import Parameter
from harness.operators import OPERATORS
from harness.operators.base import Call, Node, Shape
from harness.specs.graphs.operator import FAMILY
from harness.targets.execution import Graph


class _Form(NamedTuple):
    """What cases that share one graph with symbolic dimensions have in common: names, element types, ranks,
    everything but the shapes."""

    operator: str
    opset: int
    attributes: tuple[tuple[str, Value], ...]
    written: str
    """The attributes as text, which tells 0.0 and -0.0 apart: they are equal."""
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    outputs: tuple[tuple[str, int], ...]
    """Element type and rank of each output."""
    options: Options


def compile_case(
    case: Case, call: Call, inputs: tuple[Tensor, ...], results: Sequence[Shape] | None = None
) -> Graph:
    """Return the case's graph; `inputs` are used only where the case wants some as initializers. `results` are
    the shapes of the outputs that the operator's family infers, where they are known."""
    options = case.options
    operator = OPERATORS[case.operator]
    shapes = tuple(spec.shape for spec in case.inputs)
    if results is None:
        results = operator.family.output_shapes(operator, call)
    if operator.family is FAMILY:
        return compile_graph(case, call, inputs, tuple(results))
    attributes = tuple(sorted(case.attributes.items()))
    form = _Form(
        case.operator,
        case.opset,
        attributes,
        repr(attributes),
        tuple(spec.name for spec in case.inputs),
        tuple(spec.dtype for spec in case.inputs),
        tuple(map(len, shapes)),
        tuple((dtype, len(shape)) for dtype, shape in zip(call.outputs, results, strict=False)),
        options,
    )
    wanted = set(filter(None, (options.initializer or "").split(",")))
    constants = [
        n
        for n, spec in enumerate(case.inputs)
        if wanted.intersection((spec.name, CONSTANTS if _decides(case, n) else ""))
    ]
    if not constants and options.shapes != "static":
        return _shared(form)
    model = _model(form)
    if options.shapes == "static":
        _set_dimensions(model, dict(zip(form.names, shapes, strict=True)))
    if constants:
        model = _with_initializers(model, {case.inputs[n].name: inputs[n] for n in constants})
    return _graph(model, form, constants)


def _decides(case: Case, position: int) -> bool:
    spec = case.inputs[position]
    return spec.elements is not None or spec.name in OPERATORS[case.operator].constants


@lru_cache(maxsize=4096)
def _shared(form: _Form) -> Graph:
    return _graph(_model(form), form, ())


@lru_cache(maxsize=512)
def _model(form: _Form) -> ModelProto:
    """Build the model with symbolic dimensions, or without any: ONNX asks a main graph for the ranks of its
    inputs, ONNX Runtime does not.

    The outputs' dimensions have names of their own: onnx's checker wants a shape on them, and nothing is to
    be inferred from it.
    """
    schema = operator_schema(form.operator, form.opset)
    options = form.options
    given = schema.given_outputs(len(form.outputs), options.omit)
    results = [schema.output_name(n) if n in given else "" for n in range(len(form.outputs))]
    first, last = form.names[0] if form.names else "", results[given[0]]
    loaded = form.operator in LOADED
    nodes = []
    before = options.neighbours and first and not schema.inputs[0].map  # Identity takes no map
    after = (options.neighbours or loaded) and not schema.outputs[0].map
    if before:
        nodes.append(helper.make_node("Identity", [first], [f"{first}_before"], name="before"))
        first = f"{first}_before"
    if after:
        last = f"{last}_after"
    if options.variant is None:
        named = [last if n == given[0] else name for n, name in enumerate(results)]
        nodes.extend(_called(form, dict.fromkeys(form.names[:1], first), named))
    else:
        nodes.extend(
            map(_node, OPERATORS[form.operator].variants[options.variant](first, last, form.dtypes[0]))
        )
    if after:
        nodes.append(helper.make_node("Identity", [last], [results[given[0]]], name="after"))
    declared = options.shapes != "undeclared"
    values = zip(form.names, form.dtypes, form.ranks, strict=True)
    outputs = ((name, *each) for name, each in zip(results, form.outputs, strict=True) if name)
    graph = helper.make_graph(
        nodes,
        form.operator,
        _values(schema.inputs, values, declared=declared),
        _values(schema.outputs, outputs, declared=declared),
    )
    return helper.make_model(
        graph,
        producer_name=PRODUCER,
        ir_version=ir_version(form.operator, form.opset),
        opset_imports=list(starmap(helper.make_opsetid, opset_imports(form.operator, form.opset).items())),
    )


def _called(form: _Form, renamed: Mapping[str, str], results: Sequence[str]) -> list[NodeProto]:
    """Return the tested node, between those that make its sequences and those that take them apart; `renamed`
    are inputs whose values have other names in the graph."""
    schema = operator_schema(form.operator, form.opset)
    optionals = {each.name for each in schema.inputs if each.optional_type}
    operands = [sequences.held(n) if n in optionals else renamed.get(n, n) for n in _operands(form)]
    domain, _, type_ = form.operator.rpartition(".")
    given = sequences.given(schema, results)
    node = helper.make_node(type_, operands, given, name=TESTED, domain=domain or None)
    attributed(node, schema, dict(form.attributes))
    if form.options.left_out:
        pad(node, schema)
    family, nodes = OPERATORS[form.operator].family, [node]
    twins = family.twins(OPERATORS[form.operator], dict(form.attributes))
    for name, attributes in zip(results[1:], twins, strict=False):
        twin = helper.make_node(type_, operands, [name], name=f"tested/{name}", domain=domain or None)
        attributed(twin, schema, attributes)
        del node.output[1:]
        nodes.append(twin)
    before = sequences.packed(schema, dict(zip(form.names, form.dtypes, strict=True)), renamed)
    return [*map(_node, before), *nodes, *map(_node, sequences.unpacked(schema, results))]


def _operands(form: _Form) -> list[str]:
    """Return the node's inputs by position: an optional one that is left out before others is an empty name, a
    sequence or a map is one under its formal name."""
    found: list[str] = []
    kept = set(form.names)
    for parameter in operator_schema(form.operator, form.opset).inputs:
        if whole := parameter.map or (parameter.name if parameter.sequence else ""):
            kept.add(whole)
            found += [whole] if whole not in found else []
            continue
        given = [name for name in form.names if name.partition(".")[0] == parameter.name]
        found += given or ["" if not parameter.variadic else parameter.name]
    while found and found[-1] not in kept:
        found.pop()
    return found


def _values(
    parameters: Sequence[Parameter], given: Iterable[tuple[str, str, int]], *, declared: bool
) -> list[ValueInfoProto]:
    """Return the values that a graph takes or gives, of names, element types and ranks; of keys and values of two
    dimensions a sequence of maps."""
    maps = {each.name: each.map for each in parameters if each.map}
    found, keys = [], ""
    for name, dtype, rank in given:
        if name not in maps:
            found.append(value_info(name, dtype, range(rank), "symbolic" if declared else "undeclared"))
        elif name.endswith("_keys"):
            keys = dtype
        else:
            held = helper.make_map_type_proto(
                DTYPES[keys].onnx, helper.make_tensor_type_proto(DTYPES[dtype].onnx, None)
            )
            type_ = helper.make_sequence_type_proto(held) if rank > 1 else held
            found.append(helper.make_value_info(maps[name], type_))
    return found


def _node(node: Node) -> NodeProto:
    made = helper.make_node(node.operator, list(node.inputs), [node.output])
    if node.value is not None:
        made.attribute.append(helper.make_attribute("value", tensor_proto(node.output, node.value)))
        return made
    return attributed(made, operator_schema(node.operator, latest_opset()), node.attributes)


def _set_dimensions(model: ModelProto, shapes: Mapping[str, Shape]) -> None:
    """Write the inputs' shapes over the dimensions of the (cached) model; a map has none."""
    for value in model.graph.input:
        for dimension, extent in zip(
            value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=True
        ):
            dimension.dim_value = extent


def _with_initializers(model: ModelProto, constants: dict[str, Tensor]) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    graph: GraphProto = copy.graph
    kept = [value for value in graph.input if value.name not in constants]
    del graph.input[:]
    graph.input.extend(kept)
    graph.initializer.extend(tensor_proto(name, tensor) for name, tensor in constants.items())
    return copy


def control_graph(opset: int) -> Graph:
    """Return a graph of one Identity of float32 at an opset: where it does not run, no case of this opset
    says anything."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}_0"]) for name in ("X", "Y"))
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"], name=TESTED)], "control", [x], [y])
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(
        graph, producer_name=PRODUCER, ir_version=IR_VERSIONS[opset], opset_imports=imports
    )
    takes, gives = (((name, TensorProto.FLOAT),) for name in ("X", "Y"))
    return Graph(*encoded(model), fed=(0,), inputs=takes, outputs=gives, tested=("Identity",))


def _functions(form: _Form, tested: tuple[str, ...]) -> tuple[str, ...]:
    """Return which types of tested nodes are defined by a body as well."""
    if len(tested) == 1:
        return tested[:1] if operator_schema(form.operator, form.opset).function else ()
    return tuple(name for name in dict.fromkeys(tested) if operator_schema(name, form.opset).function)


def _graph(model: ModelProto, form: _Form, constants: Sequence[int]) -> Graph:
    options = form.options
    schema = operator_schema(form.operator, form.opset)
    model, optionals, dropped = sequences.lifted(model, options.optionals)
    fed = tuple(n for n in range(len(form.names)) if n not in constants and form.names[n] not in dropped)
    composed = options.variant is not None or sequences.composed(schema)
    proof = "after" if form.operator in LOADED else TESTED
    nodes = [
        (node.op_type not in UNTESTED if composed else node.name.partition("/")[0] == proof, node.op_type)
        for node in model.graph.node
    ]
    tested = tuple(sorted(operator for proven, operator in nodes if proven))
    return Graph(
        *encoded(model),
        fed=fed,
        inputs=tuple((form.names[n], DTYPES[form.dtypes[n]].onnx) for n in fed),
        outputs=tuple(
            (schema.output_name(n), DTYPES[form.outputs[n][0]].onnx)
            for n in schema.given_outputs(len(form.outputs), options.omit)
        ),
        tested=tested,
        optimization=options.optimization,
        in_place=options.in_place,
        untested=tuple(operator for proven, operator in nodes if not proven),
        functions=_functions(form, tested),
        maps=tuple(dict.fromkeys(each.map for each in (*schema.inputs, *schema.outputs) if each.map)),
        optionals=optionals,
    )
