"""Compiles a case to a ModelProto: the tested operator alone, or a variant composed of several operators, with pinned versions.

Cases that differ only in shapes and values share one graph with symbolic dimensions, unless a case asks for static shapes or for an input
as an initializer. Graphs are content-addressed: the same case gives the same bytes on every platform.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from harness.dtypes import DTYPES, Array
from harness.execution import Graph
from harness.frames import tensor_bytes
from harness.onnx_schemas import IR_VERSIONS
from harness.operators import OPERATORS
from harness.operators.base import Shapes
from harness.operators.round import HALVES_AWAY, TOWARD_ZERO
from harness.records import Case, Options, Tensor

_ONE_BYTE = 128
"""Protocol Buffers write integers below this as one byte."""
_UNTESTED = {"Identity", "Constant"}
PRODUCER = "onnxruntime-conformance-harness"


def compile_case(case: Case, inputs: tuple[Tensor, ...]) -> Graph:
    """Return the case's graph; `inputs` are used only where the case wants one as an initializer."""
    options = case.options
    dtypes = tuple(spec.dtype for spec in case.inputs)
    attributes = tuple(sorted(case.attributes.items()))
    shapes = tuple(spec.shape for spec in case.inputs)
    ranks = (*map(len, shapes), len(OPERATORS[case.operator].output_shape(shapes, case.attributes)))
    if options.shapes == "static" and options.initializer is None:
        template = _template(case.operator, case.opset, attributes, dtypes, ranks, options)
        extents = [extent for shape in shapes for extent in shape]
        if len(template.places) == len(extents) and max(extents, default=0) < _ONE_BYTE:
            return template.filled(extents)
    if options.initializer is not None or options.shapes == "static":
        model = _model(case.operator, case.opset, attributes, dtypes, ranks, options)
        if options.shapes == "static":
            _set_dimensions(model, shapes)
        if options.initializer is None:
            return _graph(model, case.operator, dtypes, options, None)
        names = OPERATORS[case.operator].inputs
        position = names.index(options.initializer)
        return _graph(_with_initializer(model, names[position], inputs[position]), case.operator, dtypes, options, position)
    return _shared(case.operator, case.opset, attributes, dtypes, ranks, options)


@lru_cache(maxsize=4096)
def _shared(
    operator: str, opset: int, attributes: tuple[tuple[str, int], ...], dtypes: tuple[str, ...], ranks: tuple[int, ...], options: Options
) -> Graph:
    return _graph(_model(operator, opset, attributes, dtypes, ranks, options), operator, dtypes, options, None)


@lru_cache(maxsize=512)
def _model(
    operator: str, opset: int, attributes: tuple[tuple[str, int], ...], dtypes: tuple[str, ...], ranks: tuple[int, ...], options: Options
) -> ModelProto:
    """Build the model with symbolic dimensions; `ranks` are those of the inputs, then that of the output.

    The output's dimensions have names of their own: onnx's checker wants a shape on it, and nothing is to be inferred from it.
    """
    entry = OPERATORS[operator]
    first, last = entry.inputs[0], entry.output
    nodes = []
    if options.neighbours:
        nodes.append(helper.make_node("Identity", [first], [f"{first}_before"], name="before"))
        first, last = f"{first}_before", f"{last}_after"
    operands = [first, *entry.inputs[1:]]
    if options.variant is None:
        node = helper.make_node(operator, operands, [last], name="tested")
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes)
        nodes.append(node)
    else:
        nodes.extend(_VARIANTS[options.variant](operands[0], last, dtypes[0]))
    if options.neighbours:
        nodes.append(helper.make_node("Identity", [last], [entry.output], name="after"))
    values = [
        helper.make_tensor_value_info(name, DTYPES[dtype].onnx, [f"{name}_{n}" for n in range(rank)])
        for name, dtype, rank in zip(entry.inputs, dtypes, ranks[:-1], strict=True)
    ]
    output = helper.make_tensor_value_info(entry.output, DTYPES[dtypes[0]].onnx, [f"{entry.output}_{n}" for n in range(ranks[-1])])
    graph = helper.make_graph(nodes, operator, values, [output])
    return helper.make_model(
        graph,
        producer_name=PRODUCER,
        ir_version=IR_VERSIONS[opset],
        opset_imports=[helper.make_opsetid("", opset)],
    )


def _set_dimensions(model: ModelProto, shapes: Shapes) -> None:
    """Write the inputs' shapes over the dimensions of the (cached) model."""
    for value, shape in zip(model.graph.input, shapes, strict=True):
        for dimension, extent in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            dimension.dim_value = extent


class _Template(NamedTuple):
    """A graph with static shapes, and for each dimension of its inputs the place of its extent among the graph's bytes."""

    graph: Graph
    places: tuple[int, ...]

    def filled(self, extents: Sequence[int]) -> Graph:
        """Return the graph with other extents, each below 128 and by that one byte long."""
        model = bytearray(self.graph.model)
        for place, extent in zip(self.places, extents, strict=True):
            model[place] = extent
        return self.graph._replace(model=bytes(model), digest=sha256(model).hexdigest())


@lru_cache(maxsize=512)
def _template(
    operator: str, opset: int, attributes: tuple[tuple[str, int], ...], dtypes: tuple[str, ...], ranks: tuple[int, ...], options: Options
) -> _Template:
    """Build the model with extents of 1 and of 2: the bytes that differ are the extents, in the order of the inputs."""
    model = _model(operator, opset, attributes, dtypes, ranks, options)
    ones, twos = (_sized(model, ranks[:-1], extent, operator, dtypes, options) for extent in (1, 2))
    places = tuple(n for n, (one, two) in enumerate(zip(ones.model, twos.model, strict=True)) if one != two)
    return _Template(ones, places)


def _sized(model: ModelProto, ranks: tuple[int, ...], extent: int, operator: str, dtypes: tuple[str, ...], options: Options) -> Graph:
    _set_dimensions(model, tuple((extent,) * rank for rank in ranks))
    return _graph(model, operator, dtypes, options, None)


def _with_initializer(model: ModelProto, name: str, tensor: Tensor) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    graph: GraphProto = copy.graph
    kept = [value for value in graph.input if value.name != name]
    del graph.input[:]
    graph.input.extend(kept)
    constant = TensorProto(name=name, data_type=DTYPES[tensor.dtype].onnx, dims=tensor.array.shape)
    if tensor.dtype == "string":
        constant.string_data.extend(str(text).encode() for text in tensor.array.reshape(-1))
    else:
        constant.raw_data = tensor_bytes(tensor)
    graph.initializer.append(constant)
    return copy


def control_graph(opset: int) -> Graph:
    """Return a graph of one Identity of float32 at an opset: where it does not run, no case of this opset says anything."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}_0"]) for name in ("X", "Y"))
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"], name="tested")], "control", [x], [y])
    imports = [helper.make_opsetid("", opset)]
    data = helper.make_model(graph, producer_name=PRODUCER, ir_version=IR_VERSIONS[opset], opset_imports=imports).SerializeToString(
        deterministic=True
    )
    return Graph(data, sha256(data).hexdigest(), (0,), (("X", TensorProto.FLOAT),), ("Y", TensorProto.FLOAT), ("Identity",))


def _graph(model: ModelProto, operator: str, dtypes: tuple[str, ...], options: Options, initializer: int | None) -> Graph:
    entry = OPERATORS[operator]
    data = model.SerializeToString(deterministic=True)
    fed = tuple(n for n in range(len(entry.inputs)) if n != initializer)
    return Graph(
        model=data,
        digest=sha256(data).hexdigest(),
        fed=fed,
        inputs=tuple((entry.inputs[n], DTYPES[dtypes[n]].onnx) for n in fed),
        output=(entry.output, DTYPES[dtypes[0]].onnx),
        tested=(operator,) if options.variant is None else tuple(sorted({node.op_type for node in model.graph.node} - _UNTESTED)),
        optimization=options.optimization,
        in_place=options.in_place,
    )


def _toward_zero(x: str, y: str, dtype: str) -> list[NodeProto]:
    """Y = sign(X) * Floor(|X|), with a sign that is -0 for -0."""
    return [*_sign_and_floor(x, dtype), helper.make_node("Mul", ["sign", "floor"], [y])]


def _halves_away(x: str, y: str, dtype: str) -> list[NodeProto]:
    """Y = sign(X) * (Floor(|X|) + 1) where |X| - Floor(|X|) is not below 0.5, sign(X) * Floor(|X|) elsewhere.

    The difference is exact, and one is added only where |X| has a fraction and is therefore small; for NaN and infinity the difference
    is NaN, which is not below 0.5, and adding one changes neither.
    """
    return [
        *_sign_and_floor(x, dtype),
        _constant("half", 0.5, dtype),
        helper.make_node("Sub", ["magnitude", "floor"], ["fraction"]),
        helper.make_node("Less", ["fraction", "half"], ["near"]),
        helper.make_node("Not", ["near"], ["far"]),
        helper.make_node("Cast", ["far"], ["step"], to=DTYPES[dtype].onnx),
        helper.make_node("Add", ["floor", "step"], ["rounded"]),
        helper.make_node("Mul", ["sign", "rounded"], [y]),
    ]


def _sign_and_floor(x: str, dtype: str) -> list[NodeProto]:
    """Make `sign` (-1, 1, and X itself for a zero), `magnitude` |X| and `floor` of it.

    `sign` is Z / |Z| for X clipped to Z in [-1, 1], which keeps infinity from becoming NaN, with 1 for |Z| where Z is zero. Where would be
    shorter, but ONNX Runtime's CPU kernel of it turns -0 into 0.
    """
    return [
        _constant("zero", 0.0, dtype),
        _constant("one", 1.0, dtype),
        _constant("minus_one", -1.0, dtype),
        helper.make_node("Min", [x, "one"], ["at_most_one"]),
        helper.make_node("Max", ["at_most_one", "minus_one"], ["clipped"]),
        helper.make_node("Abs", ["clipped"], ["clipped_magnitude"]),
        helper.make_node("Equal", ["clipped", "zero"], ["is_zero"]),
        helper.make_node("Cast", ["is_zero"], ["one_for_zero"], to=DTYPES[dtype].onnx),
        helper.make_node("Add", ["clipped_magnitude", "one_for_zero"], ["divisor"]),
        helper.make_node("Div", ["clipped", "divisor"], ["sign"]),
        helper.make_node("Abs", [x], ["magnitude"]),
        helper.make_node("Floor", ["magnitude"], ["floor"]),
    ]


def _through_float32(compose: object, x: str, y: str, dtype: str) -> list[NodeProto]:
    """Compose on float32 where the type is narrower: both casts are exact, and few providers have all the operators in 16 bits."""
    assert callable(compose)
    if dtype not in ("float16", "bfloat16"):
        return list(compose(x, y, dtype))
    return [
        helper.make_node("Cast", [x], ["wide"], to=TensorProto.FLOAT),
        *compose("wide", "wide_result", "float32"),
        helper.make_node("Cast", ["wide_result"], [y], to=DTYPES[dtype].onnx),
    ]


def _constant(name: str, value: float, dtype: str) -> NodeProto:
    array: Array = np.array(value, DTYPES[dtype].storage)
    tensor = TensorProto(name=name, data_type=DTYPES[dtype].onnx, raw_data=array.tobytes())
    return helper.make_node("Constant", [], [name], value=tensor)


_VARIANTS = {
    TOWARD_ZERO: lambda x, y, dtype: _through_float32(_toward_zero, x, y, dtype),
    HALVES_AWAY: lambda x, y, dtype: _through_float32(_halves_away, x, y, dtype),
}
