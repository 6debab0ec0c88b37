"""Anyone's ONNX model: read with its weights, cut into parts that a worker runs with every tensor as an output, and
each node as a model of its own.

Weights stay in their files until a part needs them. Local functions are inlined.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
    helper,
)

from harness.compile.protos import LeftOut, encoded, tensor_of, tensor_proto, value_info
from harness.model import plain_file
from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES
from harness.model.errors import UsageError, shown
from harness.operators.in_models import CONSTANT, counts_outputs
from harness.specs.reading.literals import MAX_RANK
from harness.targets.execution import Graph
from harness.worker.worker import PACKED, unpacked

PROTOBUF_LIMIT = (1 << 31) - 1
_PART = 256 << 20
"""Bytes of weights in one part of a model."""
_NO_TENSOR = ("seq(", "optional(", "map(")
_CONTRIBUTED = "com.microsoft"
_MOST_NODES = 1 << 20
"""Nodes up to which functions are inlined: twenty that call each other twice are a million."""


class Model(NamedTuple):
    """A model and its weights by name; `opsets` by domain, "" for ONNX's own."""

    path: Path
    graph: GraphProto
    weights: Mapping[str, Tensor]
    opsets: Mapping[str, int]
    ir_version: int
    digest: str

    @property
    def inputs(self) -> list[ValueInfoProto]:
        """The inputs that a caller feeds."""
        return [value for value in self.graph.input if value.name not in self.weights]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [value.name for value in self.graph.output]

    @property
    def static(self) -> bool:
        """Say whether every extent of every input is a number."""
        return all(
            dimension.HasField("dim_value")
            for value in self.inputs
            for dimension in value.type.tensor_type.shape.dim
        )


def read_model(path: Path) -> Model:
    """Read a model. Errors: UsageError, one line, if the file is no model or a file of its weights is
    missing."""
    proto = ModelProto()
    try:
        str(path).encode()
        if path.stat().st_size > PROTOBUF_LIMIT:
            raise UsageError(
                f"{path}: larger than the 2 GiB of Protocol Buffers; save the weights as external data"
            )
        data = plain_file.read_bytes(path, PROTOBUF_LIMIT)
        proto.ParseFromString(data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise UsageError(f"{path}: no ONNX model, or a damaged one; export or copy it again") from error
    except UnicodeEncodeError as error:
        raise UsageError(f"{str(path)!r} is not text in UTF-8: rename the file") from error
    if not proto.graph.node or not proto.opset_import:
        raise UsageError(f"{path}: no ONNX model: it has no node, or does not say its opset; export it again")
    for each in proto.opset_import:
        if not 1 <= each.version < 1 << 31:
            raise UsageError(
                f"{path}: domain {shown(each.domain)!r} has no opset {each.version}; export the model again"
            )
    if proto.functions:
        if _written_out(proto) > _MOST_NODES:
            raise UsageError(
                f"{path}: its functions call each other so often that it has more than {_MOST_NODES:,} nodes; "
                "export the model with fewer"
            )
        from onnx import checker, inliner

        _raise_opsets(proto)
        try:
            proto = inliner.inline_local_functions(proto, convert_version=True)
        except (checker.ValidationError, RuntimeError) as error:
            why = shown(" ".join(str(error).split()), 200)
            raise UsageError(
                f"{path}: its functions cannot be inlined: {why}; export the model again"
            ) from error
    for text in _texts(proto.graph):
        if not isinstance(text, str):
            raise UsageError(f"{path}: a name in it is no UTF-8: {text!r:.60}; export the model again")
    for graph in (proto.graph, *bodies(proto.graph)):
        graph.initializer.extend(_dense(path, each) for each in graph.sparse_initializer)
        graph.ClearField("sparse_initializer")
    _check(path, proto.graph)
    for extent in (each for value in proto.graph.input for each in value.type.tensor_type.shape.dim):
        if extent.dim_value < 0:  # a free dimension to ONNX Runtime, and to exporters that write -1
            extent.ClearField("dim_value")
    weights = {each.name: _weight(path, each) for each in proto.graph.initializer}
    for graph in bodies(proto.graph):
        for each in graph.initializer:
            each.CopyFrom(tensor_proto(each.name, _weight(path, each)))
    opsets = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in proto.opset_import}
    if any(node.domain == _CONTRIBUTED for each in (proto.graph, *bodies(proto.graph)) for node in each.node):
        opsets.setdefault(_CONTRIBUTED, 1)  # as ONNX Runtime does
    return Model(path, proto.graph, weights, opsets, proto.ir_version, sha256(data).hexdigest())


def _written_out(proto: ModelProto) -> int:
    """Return how many nodes a model has once its functions are inlined; of functions that call themselves a part."""
    calls = {}
    for key, nodes in (
        ("", proto.graph.node),
        *(((each.domain, each.name), each.node) for each in proto.functions),
    ):
        graph = GraphProto(node=nodes)
        calls[key] = Counter(
            (node.domain, node.op_type) for each in (graph, *bodies(graph)) for node in each.node
        )
    sizes = dict.fromkeys(calls, 0)
    for _ in calls:  # each turn has the sizes of functions one call deeper
        grown = {
            key: sum(n * sizes.get(each, 1) for each, n in found.items()) for key, found in calls.items()
        }
        if grown == sizes or max(grown.values()) > _MOST_NODES:
            break
        sizes = grown
    return max(grown.values())


def _raise_opsets(proto: ModelProto) -> None:
    """Give functions the model's opsets where these have their operators in the same versions: to convert a function, ONNX needs
    the types of all that it takes."""
    versions = {each.domain: each.version for each in proto.opset_import}
    for function in proto.functions:
        graph = GraphProto(node=function.node)
        nodes = [node for each in (graph, *bodies(graph)) for node in each.node]
        for each in function.opset_import:
            own = [node for node in nodes if node.domain == each.domain]
            version = versions.get(each.domain, each.version)
            if all(_since(node, each.version) == _since(node, version) for node in own):
                each.version = version


def _since(node: NodeProto, opset: int) -> int | None:
    schema = schema_of(node, opset)
    return None if schema is None else schema.since_version


def _check(path: Path, graph: GraphProto) -> None:
    """Refuse what nothing could go on with: values of one name, outputs that nothing makes, tensors that no array holds,
    sparse ones in attributes, and data of attributes in other files, which ONNX Runtime would look for in the folder that it is
    started in."""
    names = Counter(value.name for value in graph.input)
    if twice := [name for name, number in names.items() if number > 1]:
        raise UsageError(f"{path}: two inputs are named {shown(twice[0])!r}; export the model again")
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in graph.input}
    ranks |= {each.name: len(each.dims) for each in graph.initializer}
    if large := [name for name, rank in ranks.items() if rank > MAX_RANK]:
        raise UsageError(
            f"{path}: {shown(large[0])!r} has {ranks[large[0]]} dimensions, and {MAX_RANK} are the most; export the model with fewer"
        )
    made = {name for node in graph.node for name in node.output} | ranks.keys()
    numbers = Counter(name for node in graph.node if node.op_type != CONSTANT for name in node.output if name)
    numbers.update(ranks.keys())  # of two constants of one name ONNX Runtime takes the last
    if twice := [name for name, number in numbers.items() if number > 1]:
        raise UsageError(f"{path}: {shown(twice[0])!r} is the name of two values; export the model again")
    if lost := [each.name for each in graph.output if each.name not in made]:
        raise UsageError(f"{path}: nothing makes the output {shown(lost[0])!r}; export the model again")
    for node in (node for each in (graph, *bodies(graph)) for node in each.node):
        if not any(node.output):
            raise UsageError(f"{path}: a node of {shown(node.op_type)} has no output; export the model again")
        for attribute in node.attribute:
            if attribute.HasField("sparse_tensor"):
                raise UsageError(
                    f"{path}: attribute {shown(attribute.name)!r} of a {shown(node.op_type)} is a sparse tensor; "
                    "save the model with dense weights"
                )
            for tensor in (attribute.t, *attribute.tensors):
                if tensor.data_location == TensorProto.EXTERNAL:
                    raise UsageError(
                        f"{path}: attribute {shown(attribute.name)!r} of a {shown(node.op_type)} has its data in another file; "
                        "save the model with the data of attributes in it"
                    )


def _texts(message: Message) -> Iterator[str | bytes]:
    """Yield all texts of a message and of those within, but for the data of tensors; bytes are those that are no UTF-8, which
    Protocol Buffers let through."""
    for field, value in [] if isinstance(message, TensorProto) else message.ListFields():
        for each in value if field.is_repeated else [value]:
            if field.type == field.TYPE_MESSAGE:
                yield from _texts(each)
            elif field.type == field.TYPE_STRING:
                yield each


def _dense(path: Path, proto: SparseTensorProto) -> TensorProto:
    """Return a sparse weight as the dense one that it stands for: `onnx.proto` has its indices in order, each once, as places in
    the row-major elements or as coordinates."""
    values, places, shape = _weight(path, proto.values), _weight(path, proto.indices).array, tuple(proto.dims)
    count, problem = len(values.array) if values.array.ndim == 1 else -1, ""
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        problem = f"has a negative dimension, or more than {MAX_RANK}"
    elif math.prod(shape) * DTYPES[values.dtype].itemsize > _PART:
        problem = f"has more than {_PART >> 20} MiB as a dense one"
    elif places.dtype != np.int64 or places.shape not in ((count,), (count, len(shape))):
        problem = "has indices that do not fit its values"
    elif not ((places >= 0) & (places < (math.prod(shape) if places.ndim == 1 else np.array(shape)))).all():
        problem = "has an index outside of it"
    else:
        steps = np.array([math.prod(shape[n:]) for n in range(1, len(shape) + 1)], np.int64)
        flat = places if places.ndim == 1 else places @ steps
        if not (np.diff(flat) > 0).all():
            problem = "has indices that are not in order, or one twice"
    if problem:
        raise UsageError(
            f"{path}: sparse weight {shown(proto.values.name)!r} {problem}; export the model again"
        )
    dense = np.full(math.prod(shape), "" if values.dtype == "string" else 0, DTYPES[values.dtype].storage)
    dense[flat] = values.array
    return tensor_proto(proto.values.name, Tensor(values.dtype, dense.reshape(shape)))


def _weight(path: Path, proto: TensorProto) -> Tensor:
    """Return a weight; what lies in another file stays there."""
    where = f"{path}: weight {shown(proto.name)!r}"
    try:
        if proto.data_location != TensorProto.EXTERNAL:
            return tensor_of(proto.data_type, proto)
        if proto.data_type not in BY_ONNX_NUMBER:
            raise LeftOut("an element type that the harness cannot feed to ONNX Runtime")
    except LeftOut as error:
        raise UsageError(f"{where}: {error}; export the model again") from error
    entries = {entry.key: entry.value for entry in proto.external_data}
    dtype, shape = BY_ONNX_NUMBER[proto.data_type], tuple(proto.dims)
    try:
        file = (path.parent / entries.get("location", "")).resolve()
        if not any(file.is_relative_to(each) for each in (path.parent.resolve(), path.resolve().parent)):
            raise UsageError(
                f"{where} lies outside of the model's folder: {shown(entries['location'])}; copy its file beside the model"
            )
        plain_file.PlainFile(file).close()  # a pipe would be waited for
        if not math.prod(shape):
            return Tensor(dtype.name, np.empty(shape, dtype.storage))
        size = -(-math.prod(shape) * PACKED.get(dtype.onnx, 8 * dtype.itemsize) // 8)
        if int(entries.get("length", 0)) not in (0, size):  # ONNX Runtime takes 0 for all
            raise ValueError
        place = int(entries.get("offset", 0))
        if dtype.onnx in PACKED:
            held = np.memmap(file, "u1", "r", place, (size,))
            return Tensor(dtype.name, dtype.wrapped(unpacked(held, dtype.onnx, shape)))
        return Tensor(dtype.name, np.memmap(file, dtype.storage, "r", place, shape))
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "its extents or its place do not fit the file"
        raise UsageError(
            f"{where} in {shown(entries.get('location', ''))!r} is missing or damaged: {why}; copy its file beside the model"
        ) from error


def declared_dtypes(graph: GraphProto) -> dict[str, str]:
    """Return the element types that a graph and those within declare of values, without those of two types."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in (graph, *bodies(graph)):
        for value in (*each.output, *each.value_info):
            number = value.type.tensor_type.elem_type
            found[value.name] |= {BY_ONNX_NUMBER[number].name} if number in BY_ONNX_NUMBER else set()
    return {name: next(iter(dtypes)) for name, dtypes in found.items() if len(dtypes) == 1}


def bodies(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the graphs in attributes of nodes, at any depth."""
    for node in graph.node:
        for body in node_bodies(node):
            yield body
            yield from bodies(body)


def node_bodies(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs in attributes of a node."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def taken(node: NodeProto) -> set[str]:
    """Return the names that a node takes, by its inputs or inside of its graphs."""
    found = set(filter(None, node.input))
    for body in node_bodies(node):
        own = {value.name for value in body.input} | {each.name for each in body.initializer}
        for inner in body.node:
            found |= taken(inner) - own
            own |= set(inner.output)
        found |= {value.name for value in body.output} - own
    return found


def schema_of(node: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    """Return ONNX's schema of a node; None for an operator that ONNX has not, or not in this opset."""
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def _tensors_given(node: NodeProto, opset: int, opaque: Collection[str]) -> list[str]:
    """Return the names of a node's outputs that are tensors, as far as its schema, its graphs and its inputs determine;
    `opaque` are the values known so far to be no tensors."""
    known = schema_of(node, opset)
    declared = known.outputs if known else ()
    body = next(node_bodies(node), None)
    # behind a condition, if there is one, a body has what the node gives
    made = body.output[-len(node.output) :] if body else ()
    found = []
    for number, name in enumerate(node.output):
        types = declared[min(number, len(declared) - 1)].types if declared else ()
        others = [text.startswith(_NO_TENSOR) for text in types]
        tensor = number < len(made) and made[number].type.HasField("tensor_type")
        passed_on = any(others) and not tensor and not taken(node).isdisjoint(opaque)
        if name and not passed_on and not (others and all(others)):
            found.append(name)
    return found


def without_unused(node: NodeProto, used: Collection[str], opset: int) -> NodeProto:
    """Return a node without optional outputs at its end that nothing takes."""
    known = schema_of(node, opset)
    if known is None or counts_outputs(node.op_type):
        return node
    declared = known.outputs
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    kept = len(node.output)
    while (
        1 < kept <= len(declared)
        and declared[kept - 1].option == optional
        and node.output[kept - 1] not in used
    ):
        kept -= 1
    if kept == len(node.output):
        return node
    short = NodeProto()
    short.CopyFrom(node)
    del short.output[kept:]
    return short


class Part(NamedTuple):
    """Some neighbouring nodes: the values that they take from before, and the tensors that they make."""

    nodes: Sequence[NodeProto]
    takes: Sequence[str]
    gives: Sequence[str]


def parts(all_nodes: Iterable[NodeProto], weights: Mapping[str, Tensor], opset: int) -> Iterator[Part]:
    """Yield nodes in parts whose weights fit into memory; only tensors cross the borders of parts."""
    opaque: set[str] = set()
    nodes: list[NodeProto] = []
    gives: list[str] = []
    own: set[str] = set()
    size = 0
    for node in all_nodes:
        held = {name for name in taken(node) if name in weights} - own
        grown = sum(weights[name].array.nbytes for name in held)
        if nodes and size + grown > _PART and not opaque:
            yield _part(nodes, gives)
            nodes, gives, own, size = [], [], set(), 0
        nodes.append(node)
        own |= held
        size += grown
        tensors = _tensors_given(node, opset, opaque)
        gives += tensors
        opaque |= {name for name in node.output if name} - set(tensors)
    yield _part(nodes, gives)


def _part(nodes: Sequence[NodeProto], gives: Sequence[str]) -> Part:
    made: set[str] = set()
    takes: dict[str, None] = {}
    for node in nodes:
        takes.update(dict.fromkeys(sorted(taken(node) - made)))
        made |= set(node.output)
    return Part(nodes, list(takes), gives)


def runnable(
    nodes: Iterable[NodeProto],
    given: Mapping[str, Tensor],
    outputs: Sequence[str],
    model: Model,
    *,
    constants: Collection[str] = (),
    dtypes: Mapping[str, str] | None = None,
) -> Graph:
    """Return nodes as a graph of its own; of the tensors that are `given`, `constants` are initializers, and the
    others are fed in the order of `given`. Outputs are declared where their `dtypes` are known."""
    nodes = list(nodes)
    inputs = [(name, each) for name, each in given.items() if name not in constants]
    dtypes = dtypes or {}
    made = single_model(nodes, given, outputs, model, constants=constants, dtypes=dtypes)
    return Graph(
        *encoded(made),
        fed=tuple(range(len(inputs))),
        inputs=tuple((name, DTYPES[each.dtype].onnx) for name, each in inputs),
        outputs=tuple((name, DTYPES[dtypes[name]].onnx if name in dtypes else 0) for name in outputs),
        tested=tuple(sorted(node.op_type for node in nodes)),
        composed=True,
    )


def single_model(
    nodes: Iterable[NodeProto],
    given: Mapping[str, Tensor],
    outputs: Sequence[str],
    model: Model,
    *,
    constants: Collection[str] = (),
    shapes: str = "static",
    dtypes: Mapping[str, str] | None = None,
) -> ModelProto:
    """Return nodes as a model with the opsets of another."""
    known = dtypes or {}
    graph = helper.make_graph(
        [_without_shapes(node) for node in nodes],
        "part",
        [
            value_info(name, each.dtype, each.array.shape, shapes)
            for name, each in given.items()
            if name not in constants
        ],
        [value_info(name, known.get(name)) for name in outputs],
        [tensor_proto(name, given[name]) for name in given if name in constants],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in model.opsets.items()]
    return helper.make_model(graph, ir_version=max(model.ir_version, 4), opset_imports=imports)


def _without_shapes(node: NodeProto) -> NodeProto:
    """Return a node whose graphs declare no shapes of what they make: ONNX Runtime fails where an exporter wrote others."""
    if not any(node_bodies(node)):
        return node
    copied = NodeProto()
    copied.CopyFrom(node)
    holder = GraphProto(node=[copied])
    for value in (each for body in bodies(holder) for each in (*body.output, *body.value_info)):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    made: NodeProto = holder.node[0]
    return made


def whole(model: Model, optimization: str, exposed: Sequence[str] = ()) -> Graph:
    """Return a model as deployed, with all its declarations; `exposed` are further outputs. Outputs that are
    not tensors are computed but not fetched."""
    proto = ModelProto(ir_version=model.ir_version)
    proto.opset_import.extend(
        helper.make_opsetid(domain, version) for domain, version in model.opsets.items()
    )
    proto.graph.CopyFrom(model.graph)
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(tensor_proto(name, each) for name, each in model.weights.items())
    kinds = {value.name: value.type.WhichOneof("value") for value in proto.graph.output}
    declared = {
        value.name: value.type.tensor_type.elem_type
        for value in proto.graph.output
        if kinds[value.name] in ("tensor_type", None)
    }
    proto.graph.output.extend(ValueInfoProto(name=name) for name in exposed if name not in kinds)
    inputs = tuple((value.name, value.type.tensor_type.elem_type) for value in model.inputs)
    return Graph(
        *encoded(proto),
        fed=tuple(range(len(inputs))),
        inputs=inputs,
        outputs=tuple((name, declared.get(name, 0)) for name in dict.fromkeys([*declared, *exposed])),
        tested=tuple(sorted(node.op_type for node in model.graph.node)),
        composed=True,
    )
