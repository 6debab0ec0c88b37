"""The data that targets receive and return: graphs with their prepared cases, and executions."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from harness.model.case import Case, Tensor
from harness.model.result import Error, Result, Stage
from harness.operators.base import Call

Nodes = tuple[tuple[str, str], ...]
"""(execution provider, operator type) of every node of a session's graph, as the runtime itself reports
it."""


Edges = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""The names of the values that each node takes, and of those that it gives."""
Shapes = tuple[tuple[int, ...], ...]


class Sent(msgspec.Struct, frozen=True, array_like=True):
    """The inputs of a case as they cross the pipe: shapes, those of the inputs `before`, where a call runs first, of
    outputs, where the worker needs them, and the bytes of all inputs, those before them first."""

    shapes: Shapes
    before: Shapes | None
    output_shapes: Shapes
    payload: bytes


class Optimized(msgspec.Struct, frozen=True, array_like=True):
    """What the optimizer of a `library` (`Hello`) made of a graph, as `Execution` says it."""

    library: str
    transformers: tuple[str, ...]
    graph_nodes: tuple[str, ...]
    graph_edges: Edges


class KeptCase(msgspec.Struct, array_like=True):
    """A case of a block that an earlier run executed: its `piece` and its `position` in it.

    `digest` is that of its answer (`Execution`), empty where nothing is to be executed; `result` what it was
    judged to be, None where that is not kept; `entries` the positions, among the expectations for its operator, of
    those that counted it; `sent` its inputs, None where these are to be made again; `optimized`, of the first case of a
    graph, what became of that.
    """

    piece: int
    position: int
    digest: str = ""
    result: Result | None = None
    entries: tuple[int, ...] = ()
    sent: Sent | None = None
    optimized: Optimized | None = None


class Prepared(NamedTuple):
    """A case with its call as the operator sees it and its inputs, in the order of the specification.

    `buffers` are what crosses the pipe where that is not the inputs' elements in row-major order: one flat
    tensor a buffer. `output_shapes` are needed where the graph is run over patterns alone.
    `before` are the inputs of a call that the session runs first. `inferred` are the outputs' shapes as the
    operator's family infers them, () where nobody has asked it.
    """

    case: Case
    call: Call
    inputs: tuple[Tensor, ...]
    buffers: tuple[Tensor, ...] | None = None
    output_shapes: tuple[tuple[int, ...], ...] = ()
    before: tuple[Tensor, ...] | None = None
    inferred: tuple[tuple[int, ...], ...] = ()
    kept: KeptCase | None = None
    """What an earlier run kept of it. Where it has what is `sent`, the other fields are placeholders."""


class Graph(NamedTuple):
    """A compiled ModelProto: its bytes, and the description of its inputs for the worker.

    `fed` are the positions of the inputs that are passed at run time; `inputs` and `outputs` are (name, ONNX
    element type); `tested` the operator type of each node whose placement must be proven, `untested` that of each
    other node; `functions` are the tested operators that ONNX defines by a body as well; `digest` is the SHA-256 of
    the bytes, hexadecimal. `patterns` are the bytes that outputs and what lies around inputs hold before a run,
    None where nothing is held there on purpose.
    """

    model: bytes
    digest: str
    fed: tuple[int, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    tested: tuple[str, ...]
    optimization: str = "off"
    in_place: bool = False
    patterns: tuple[int, int] | None = None
    untested: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    composed: bool = False
    """Of several tested operators, in place of which others may run: all nodes must be on the provider."""
    disabled: tuple[str, ...] = ()
    """The transformers that are not to change it."""
    maps: tuple[str, ...] = ()
    """Its inputs and outputs that are maps, or sequences of maps: of `X` the tensors `X_keys` and `X_values` are passed."""
    optionals: tuple[tuple[str, ...], ...] = ()
    """Its inputs and outputs that are optionals and are passed: the name, and those of the tensors that stand for it."""
    deployed: tuple[tuple[str, object], ...] = ()
    """How an application runs it, by `case.DEPLOYMENTS`: `dimensions` are names with extents, `initializers` name, ONNX
    element type, shape and bytes in hexadecimal of each initializer."""


class GraphCases(NamedTuple):
    """A graph and the cases that run on it in one session."""

    graph: Graph
    cases: list[Prepared]


class Execution(NamedTuple):
    """The outcome of a case on a target. Exactly one of `outputs` and `error` is set; `ended` says how the worker
    ended, if it ended.

    `nodes` is the proof of placement: None where the session did not say.
    """

    outputs: tuple[Tensor, ...] | None
    error: Error | None
    stage: Stage
    nodes: Nodes | None
    seconds: float
    ended: str | None = None
    """None, "crash" or "timeout"."""
    transformers: tuple[str, ...] = ()
    """The optimizer's transformers that changed a graph of several operators, in the order in which they did."""
    graph_nodes: tuple[str, ...] = ()
    """The operators of the nodes that these made of it, where the runtime can write the graph."""
    graph_edges: Edges = ()
    fuses: bool = False
    """The release cannot be told to keep nodes apart: a node that it fused of several is proof for all of
    them."""
    digest: str = ""
    """Of the worker's answer with the placement, to the bit; empty where the worker ended."""
    declared: tuple[int, tuple[int | None, ...]] | None = None
    """The position of an output that has another shape than its session declares, and the shape that is declared, None for
    a dimension that is open."""
