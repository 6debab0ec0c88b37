"""Turns a model of one operator and its tensors back into a case: the way of `graphs`, backwards.

The call is what counts: element types, attributes, inputs that are left out. Of the options a case has what a
model can show: declared shapes, an initializer, an Identity on both sides, further outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    helper,
)

from harness.compile.backend_folders import DataSet, fed_inputs
from harness.compile.protos import LeftOut, tensor_of
from harness.model.case import (
    CONSTANTS,
    Case,
    Options,
    Shapes,
    Tensor,
    TensorSpec,
    TensorValue,
    Validity,
    Value,
)
from harness.model.dtypes import BY_ONNX_NUMBER, Array
from harness.model.onnx_schemas import (
    IR_VERSIONS,
    OpsetUnavailable,
    UnknownOperator,
    is_graph,
    operator_schema,
    plain,
)
from harness.model.operator_schema import OperatorSchema
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, TensorType, Undefined
from harness.operators.in_models import left_open
from harness.specs.reading.literal_cases import identified, unlike
from harness.specs.sweeps.calls import make_call

_NEIGHBOUR = "Identity"
NO_OUTPUT = "no expected output"
"""Why a call is no case that ONNX defines."""
_UNFORESEEN = "a call that the operator's rules do not foresee"
_ASKED = 1 << 16
"""Elements of the inputs of a call whose formula is asked whether ONNX defines the result: it takes as long as the run's."""
_NAMED = {"float32": "float", "float64": "double"}
"""Element types by other names in ONNX's texts."""
_ATTRIBUTES = frozenset(
    {"INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "TENSOR", "SPARSE_TENSOR", "TYPE_PROTO"}
)


class _Node(NamedTuple):
    """The tested node with the names of its inputs and outputs as the graph's own."""

    node: NodeProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    neighbours: bool


def case_of(name: str, source: str, model: ModelProto, data: DataSet) -> Case:
    """Return the case of a model of one operator and one data set: its elements written out, its outputs
    documented.

    `name` is that of the entry, `source` what the case is from. Raises LeftOut.
    """
    found = _tested(model.graph)
    domain = "" if found.node.domain == "ai.onnx" else found.node.domain
    named = f"{domain}.{found.node.op_type}" if domain else found.node.op_type
    operator = None if is_graph(named) else OPERATORS.get(named)
    if operator is None:
        raise LeftOut("the harness has no formula for the operator", named)
    opset = _opset(model, domain)
    try:
        schema = operator_schema(operator.name, opset)
    except (UnknownOperator, OpsetUnavailable) as error:
        raise LeftOut("an opset at which the installed onnx has no such operator", str(error)) from error
    if not domain and opset not in IR_VERSIONS:
        raise LeftOut("an opset whose IR version is not known", str(opset))
    held = _held(model, data)
    inputs = _inputs(schema, found, held)
    attributes = dict(node_attributes(schema, found.node))
    call = _call(operator, opset, inputs, attributes, len(found.outputs))
    options = _options(operator, schema, model.graph, found, inputs, call)
    specs = tuple(
        TensorSpec(key, tensor.dtype, tensor.array.shape, "literal") for key, tensor in inputs.items()
    )
    _check(operator, schema, call, inputs, specs)
    documented = _documented(model.graph, found, call, data)
    case = Case(
        id=name,
        operator=operator.name,
        opset=opset,
        attributes=attributes,
        inputs=specs,
        options=options,
        validity=Validity.VALID,
        source=source,
        literals=tuple(tensor.array for tensor in inputs.values()),
        documented=documented,
    )
    return identified(case)


def _tested(graph: GraphProto) -> _Node:
    """Return the only node, or the one between two of Identity."""
    nodes = list(graph.node)
    if len(nodes) == 1:
        return _Node(nodes[0], tuple(nodes[0].input), _named(nodes[0].output), False)
    if len(nodes) == 3 and nodes[0].op_type == nodes[2].op_type == _NEIGHBOUR:
        before, node, after = nodes
        between = next(filter(None, node.output), "")
        if [node.input[0]] == list(before.output) and [between] == list(after.input):
            outputs = [after.output[0] if name == between else name for name in node.output]
            return _Node(node, (before.input[0], *node.input[1:]), _named(outputs), True)
    raise LeftOut("a model of several nodes" if nodes else "a model without a node")


def _named(outputs: Sequence[str]) -> tuple[str, ...]:
    """Return the outputs up to the last that has a name: the others are left out as if they were not there."""
    named = [n for n, name in enumerate(outputs) if name]
    return tuple(outputs[: named[-1] + 1]) if named else ()


def _opset(model: ModelProto, domain: str) -> int:
    names = (domain,) if domain else ("", "ai.onnx")
    versions = [each.version for each in model.opset_import if each.domain in names]
    if len(versions) != 1:
        raise LeftOut("a model that does not say its opset")
    return int(versions[0])


def _held(model: ModelProto, data: DataSet) -> dict[str, Tensor]:
    """Return every tensor of the graph by name: initializers and inputs."""
    held = {tensor.name: tensor_of(tensor.data_type, tensor) for tensor in model.graph.initializer}
    for value, given in zip(fed_inputs(model), data.inputs, strict=False):
        if not value.type.HasField("tensor_type"):
            raise LeftOut("sequences, maps or optional values")
        held[value.name] = tensor_of(value.type.tensor_type.elem_type, given)
    return held


def _inputs(schema: OperatorSchema, found: _Node, held: dict[str, Tensor]) -> dict[str, Tensor]:
    inputs: dict[str, Tensor] = {}
    for place, name in enumerate(found.inputs):
        parameter = schema.inputs[min(place, len(schema.inputs) - 1)] if schema.inputs else None
        if parameter is None or (place >= len(schema.inputs) and not parameter.variadic):
            raise LeftOut("more inputs than the operator has")
        if not name:
            continue
        if name not in held:
            raise LeftOut("an input that the data set does not hold", name)
        number = place - len(schema.inputs) + 1
        inputs[f"{parameter.name}.{number}" if parameter.variadic else parameter.name] = held[name]
    for parameter in schema.inputs:
        given = any(key.partition(".")[0] == parameter.name for key in inputs)
        if not given and parameter.needed:
            raise LeftOut("an input that the operator needs is left out", parameter.name)
    return inputs


def node_attributes(schema: OperatorSchema, node: NodeProto) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a node; raise LeftOut for one that a spec cannot write."""
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        if known is None:
            raise LeftOut("an attribute that the operator does not have", attribute.name)
        if known.type not in _ATTRIBUTES or AttributeProto.AttributeType.Name(attribute.type) != known.type:
            raise LeftOut("an attribute of a type that a spec cannot write", attribute.name)
        yield attribute.name, _value(helper.get_attribute_value(attribute))


def _value(value: Any) -> Value:
    if isinstance(value, SparseTensorProto):
        return _tensor_value(value.values)._replace(
            shape=tuple(value.dims), indices=_tensor_value(value.indices)
        )
    if isinstance(value, TypeProto):
        return _type(value)
    if isinstance(value, TensorProto):
        return _tensor_value(value)
    found: Value = plain(value)
    return found


def _tensor_value(value: TensorProto) -> TensorValue:
    tensor = tensor_of(value.data_type, value)
    return TensorValue(tensor.dtype, tensor.array.shape, tuple(tensor.array.reshape(-1).tolist()))


def _type(value: TypeProto) -> str:
    """Return a type as ONNX writes it, `tensor(float)` or `seq(tensor(float))`."""
    if value.HasField("sequence_type"):
        return f"seq({_type(value.sequence_type.elem_type)})"
    if not value.HasField("tensor_type") or value.tensor_type.elem_type not in BY_ONNX_NUMBER:
        raise LeftOut("an attribute of a type that a spec cannot write", "a type")
    name = BY_ONNX_NUMBER[value.tensor_type.elem_type].name
    return f"tensor({_NAMED.get(name, name)})"


def _call(
    operator: Operator,
    opset: int,
    inputs: dict[str, Tensor],
    attributes: dict[str, Value],
    outputs: int,
) -> Call:
    types = {key: TensorType(tensor.dtype, tensor.array.shape) for key, tensor in inputs.items()}
    constants = {key: tensor.array for key, tensor in inputs.items() if key in operator.constants}
    try:
        return make_call(operator, opset, types, attributes, constants, None, outputs)
    except Exception as error:  # whatever the family says: it may take for granted what no spec leaves out
        raise LeftOut(_UNFORESEEN, f"{type(error).__name__}: {error}") from error


def _check(
    operator: Operator,
    schema: OperatorSchema,
    call: Call,
    inputs: dict[str, Tensor],
    specs: Sequence[TensorSpec],
) -> None:
    """Raise LeftOut where the call is not valid."""
    for name, tensor in inputs.items():
        parameter = schema.input(name)
        if parameter is not None and tensor.dtype not in parameter.dtypes:
            raise LeftOut("an element type that ONNX does not allow there", f"{tensor.dtype} for {name}")
    try:
        broken = operator.broken(call, inputs) or unlike(schema, specs)
    except Exception as error:  # whatever a rule says: it may take for granted what no spec leaves out
        raise LeftOut(_UNFORESEEN, f"{type(error).__name__}: {error}") from error
    if broken is not None:
        raise LeftOut("a call that ONNX does not define", broken)
    opened = left_open(operator.name, call.opset, len(call.outputs))
    if opened is None and sum(tensor.array.size for tensor in inputs.values()) <= _ASKED:
        opened = _undefined(operator, call, inputs)
    if opened is not None:
        raise LeftOut("a result that ONNX leaves open", opened)


@np.errstate(all="ignore")
def _undefined(operator: Operator, call: Call, inputs: dict[str, Tensor]) -> str | None:
    """Return what no source says of a result, None where a formula gives it."""
    try:
        operator.oracle(call, inputs, "opencl")
    except Undefined as error:
        return str(error)
    except Exception:  # noqa: BLE001 - the run of the call says what else its formula raises
        return None
    return None


def _options(
    operator: Operator,
    schema: OperatorSchema,
    graph: GraphProto,
    found: _Node,
    inputs: dict[str, Tensor],
    call: Call,
) -> Options:
    initialized = {tensor.name for tensor in graph.initializer}
    names = dict(zip((name for name in found.inputs if name), inputs, strict=True))
    constants = {key for name, key in names.items() if name in initialized}
    deciding = {key for key in inputs if key in operator.constants}
    initializer = ",".join(key for key in inputs if key in constants) or None
    if len(constants) > 1 and constants == deciding:
        initializer = CONSTANTS
    usual = operator.family.output_count(operator, call)
    unnamed = [n for n, name in enumerate(found.outputs) if not name]
    if not all(schema.output(n).optional for n in unnamed):
        raise LeftOut("a node without an output that is not optional")
    omitted = [schema.output_name(n) for n in unnamed]
    return Options(
        shapes=_shapes(graph, initialized),
        initializer=initializer if len(inputs) > 1 else None,
        neighbours=found.neighbours,
        outputs=len(found.outputs) if omitted or len(found.outputs) != usual else None,
        omit=",".join(omitted) or None,
    )


def _shapes(graph: GraphProto, initialized: set[str]) -> Shapes:
    declared = [value.type.tensor_type for value in graph.input if value.name not in initialized]
    if declared and not any(each.HasField("shape") for each in declared):
        return "undeclared"
    dimensions = [dimension for each in declared for dimension in each.shape.dim]
    return "static" if dimensions and all(each.HasField("dim_value") for each in dimensions) else "symbolic"


def _documented(graph: GraphProto, found: _Node, call: Call, data: DataSet) -> tuple[Array | None, ...]:
    known: dict[str, Tensor] = {}
    for value, given in zip(graph.output, data.outputs, strict=False):
        if not value.type.HasField("tensor_type"):
            raise LeftOut("sequences, maps or optional values")
        known[value.name] = tensor_of(value.type.tensor_type.elem_type, given)
    documented: list[Array | None] = []
    for name, dtype in zip(found.outputs, call.outputs, strict=False):
        tensor = known.get(name)
        if tensor is not None and tensor.dtype != dtype:
            raise LeftOut(
                "an output of another element type than the operator gives", f"{tensor.dtype}, not {dtype}"
            )
        documented.append(None if tensor is None else tensor.array)
    if all(each is None for each in documented):
        raise LeftOut(NO_OUTPUT)
    return tuple(documented)
