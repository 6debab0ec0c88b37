"""Records every tensor of one unoptimised run of a model on the CPU, in a worker: what ends the process there ends no
more than that.

A body of If, Loop or Scan is run once more by itself, as its first iteration takes its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import closing
from typing import NamedTuple

from onnx import GraphProto, NodeProto, helper

from harness.compile.models import (
    Model,
    Part,
    declared_dtypes,
    node_bodies,
    parts,
    runnable,
    taken,
    without_unused,
)
from harness.compile.protos import tensor_of
from harness.model.case import Case, Tensor, TensorSpec
from harness.model.errors import NothingRan, shown
from harness.operators.base import Call
from harness.operators.in_models import draws, first_body
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.pool import WorkerPool

_LONG = 800
"""Letters of an error of ONNX Runtime, which repeats names of the model whole."""
_NO_KERNEL = (
    "is not a registered function/op",
    "Could not find an implementation",
    "Failed to find kernel",
    "nvalid model",
    "Type Error",
)
"""What ONNX Runtime says of an operator that it has not, or a graph that is none, which no size of an input helps."""
_KEPT = 1 << 30
"""Bytes of values that are kept to the end."""


class RecordedNode(NamedTuple):
    """A node with the tensors that it took and gave; a value that is no tensor is absent. `constant` are the names
    among its inputs that follow from weights alone. `before` are the nodes that make a sequence or an optional which it takes,
    whose tensors are among its inputs."""

    name: str
    node: NodeProto
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    constant: frozenset[str]
    before: tuple[NodeProto, ...] = ()


def execute(pool: WorkerPool, graph: Graph, inputs: Mapping[str, Tensor], name: str) -> Execution:
    """Run a graph once."""
    return executed(pool, graph, [inputs], name)[0]


def executed(
    pool: WorkerPool, graph: Graph, runs: Iterable[Mapping[str, Tensor]], name: str
) -> list[Execution]:
    """Run a graph in one session, with these inputs one after the other."""
    prepared = []
    for inputs in runs:
        specs = tuple(TensorSpec(key, each.dtype, each.array.shape) for key, each in inputs.items())
        prepared.append(Prepared(Case(name, name, 0, {}, specs), Call({}, {}, {}, 0), tuple(inputs.values())))
    units = iter([GraphCases(graph, prepared)])
    with closing(pool.run(units, keep=True)) as answers:
        return [execution for _, _, execution in answers]


class InputsRefused(NothingRan):
    """A part of a model does not run with its inputs; with others it may."""


class Recording:
    """Walks through a model and hands on each node with its tensors. At the end, `outputs` are the model's own,
    `constant` the values that follow from weights alone, and `kept` all values, none where they are too large. Of a model that
    does not run `stopped` is the node that does not run alone either."""

    def __init__(self, model: Model, pool: WorkerPool, tell: Callable[[int, int], None]) -> None:
        self._model = model
        self._pool = pool
        self._tell = tell
        self.outputs: dict[str, Tensor] = {}
        self.constant: set[str] = set()
        self.kept: dict[str, Tensor] = {}
        self.stopped: RecordedNode | None = None
        self._room = _KEPT
        self._dtypes = declared_dtypes(model.graph)  # of what ONNX Runtime does not infer

    def nodes(self, feeds: Mapping[str, Tensor]) -> Iterator[RecordedNode]:
        """Yield all nodes in their order, those of bodies behind their node; raise NothingRan where a part does not
        run."""
        yield from self._walk(self._model.graph, dict(feeds), set(), dict(self._model.weights), "")

    def _walk(
        self,
        graph: GraphProto,
        values: dict[str, Tensor],
        constant: set[str],
        weights: Mapping[str, Tensor],
        prefix: str,
    ) -> Iterator[RecordedNode]:
        if prefix:
            initializers = {each.name: tensor_of(each.data_type, each) for each in graph.initializer}
            weights = {**weights, **initializers}
        constant = {*constant, *weights}
        used = {name for node in graph.node for name in taken(node)} | {each.name for each in graph.output}
        opset = self._model.opsets.get("", 1)
        last = {name: number for number, node in enumerate(graph.node) for name in taken(node)}
        number = 0
        opaque: dict[str, tuple[NodeProto, ...]] = {}
        nodes, lost = _within_reach(graph, values.keys() | weights.keys()) if prefix else (graph.node, [])
        for part in parts(nodes, weights, opset):
            try:
                values |= self._run(part, values, weights, prefix or "the model")
            except NothingRan:
                if not prefix:
                    self.stopped = self._stopping(part, dict(values), weights, number)
                    raise
                lost += part.nodes  # the model has run, of whose values a body may need more
                continue
            for whole in part.nodes:
                node = without_unused(whole, used, opset)
                name = prefix + (node.name or f"{node.op_type}_{number}")
                made = {id(each): each for key in taken(node) for each in opaque.get(key, ())}
                before = tuple(made.values())
                opaque |= {key: (*before, node) for key in node.output if key not in values}
                keys = [*node.input, *sorted(set().union(*map(taken, (node, *before))) - set(node.input))]
                own = _known(keys, values, weights)
                if not draws(node.op_type, len(node.input)) and all(key in constant for key in taken(node)):
                    constant |= set(node.output)
                yield RecordedNode(
                    name,
                    node,
                    own,
                    {key: values[key] for key in node.output if key in values},
                    frozenset(key for key in own if key in constant),
                    before,
                )
                inner = first_iteration(node, values, weights) if any(node_bodies(node)) else None
                if inner is not None:
                    body, given = inner
                    yield from self._walk(body, {**values, **given}, constant, weights, f"{name}/")
                number += 1
                if not prefix:
                    self._tell(number, len(graph.node))
            if not prefix:
                self.constant |= constant
                self._keep(values)
                self.outputs |= _known(self._model.outputs, values, weights)
            for key in [key for key in values if last.get(key, -1) < number]:
                del values[key]
        for place, node in enumerate(lost, number):
            own = _known(node.input, values, weights)
            yield RecordedNode(prefix + (node.name or f"{node.op_type}_{place}"), node, own, {}, frozenset())

    def _stopping(
        self, part: Part, values: dict[str, Tensor], weights: Mapping[str, Tensor], number: int
    ) -> RecordedNode | None:
        """Return the first node of a part that does not run alone; None where one takes a sequence, or all run."""
        for place, node in enumerate(part.nodes, number):
            if not taken(node) <= values.keys() | weights.keys():
                return None
            (alone,) = parts([node], weights, self._model.opsets.get("", 1))
            try:
                values |= self._run(alone, values, weights, "")
            except NothingRan:
                own = _known(sorted(taken(node)), values, weights)
                own = {**_known(node.input, values, weights), **own}
                return RecordedNode(node.name or f"{node.op_type}_{place}", node, own, {}, frozenset())
        return None

    def _keep(self, values: Mapping[str, Tensor]) -> None:
        """Keep the values at hand, as long as there is room for all."""
        new = {name: each for name, each in values.items() if name not in self.kept}
        self._room -= sum(each.array.nbytes for each in new.values())
        self.kept = {**self.kept, **new} if self._room >= 0 else {}

    def _run(
        self, part: Part, values: Mapping[str, Tensor], weights: Mapping[str, Tensor], where: str
    ) -> dict[str, Tensor]:
        if not part.gives:
            return {}
        given = _known(part.takes, values, weights)
        constants = [key for key in given if key in weights and key not in values]
        dtypes = {name: self._dtypes[name] for name in part.gives if name in self._dtypes}
        graph = runnable(part.nodes, given, part.gives, self._model, constants=constants, dtypes=dtypes)
        fed = {key: each for key, each in given.items() if key not in constants}
        done = execute(self._pool, graph, fed, self._model.path.name)
        if done.outputs is None:
            assert done.error is not None
            what = {"crash": "ended the process", "timeout": "was given up: --timeout allows more"}.get(
                done.ended or "", done.error.class_
            )
            said = shown(" ".join(done.error.message.split()), _LONG)
            refused = done.ended is None and not any(words in said for words in _NO_KERNEL)
            raise (InputsRefused if refused else NothingRan)(
                f"{self._model.path}: {where} does not run on the CPU: {what}{': ' if said else ''}{said}"
            )
        return dict(zip(part.gives, done.outputs, strict=True))


def _within_reach(graph: GraphProto, known: Set[str]) -> tuple[list[NodeProto], list[NodeProto]]:
    """Return the nodes of a body that follow from known values, and those that take a sequence or an optional from outside."""
    made = {*known}
    nodes: list[NodeProto] = []
    lost: list[NodeProto] = []
    for node in graph.node:
        near = taken(node) <= made
        made |= set(node.output) if near else set()
        (nodes if near else lost).append(node)
    return nodes, lost


def _known(
    names: Iterable[str], values: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return those of the named tensors that a run or a weight has given so far."""
    found = {name: values.get(name, weights.get(name)) for name in names if name}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def first_iteration(
    node: NodeProto, values: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> tuple[GraphProto, Mapping[str, Tensor]] | None:
    """Return the body of a node that runs, with those of its first inputs that are tensors; None where they are others than
    those of the node, as of Scan before opset 9."""
    held = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    found = first_body(node.op_type, held, [values.get(key, weights.get(key)) for key in node.input])
    if found is None:
        return None
    body: GraphProto = held[found[0]]
    if len(found[1]) != len(body.input):
        return None
    given = {value.name: each for value, each in zip(body.input, found[1], strict=True) if each is not None}
    for value in body.input:  # a counter or a condition may have a dimension
        each = given.get(value.name)
        if each and not each.array.ndim and len(value.type.tensor_type.shape.dim) == 1:
            given[value.name] = Tensor(each.dtype, each.array.reshape(1))
    return body, given


def written(tensor: Tensor) -> str:
    """Write element type and shape."""
    return f"{tensor.dtype}[{','.join(map(str, tensor.array.shape))}]"
