"""The data that targets receive and return: units of prepared cases, and executions."""

from __future__ import annotations

from typing import NamedTuple

from harness.model.records import Case, Error, Stage, Tensor
from harness.operators.base import Call

Nodes = tuple[tuple[str, str], ...]
"""(execution provider, operator type) of every node of a session's graph, as the runtime itself reports
it."""


class Prepared(NamedTuple):
    """A case with its call as the operator sees it and its inputs, in the order of the specification.

    `buffers` are what crosses the pipe where that is not the inputs' elements in row-major order: one flat
    tensor a buffer.
    """

    case: Case
    call: Call
    inputs: tuple[Tensor, ...]
    buffers: tuple[Tensor, ...] | None = None


class Graph(NamedTuple):
    """A compiled ModelProto: its bytes, and what a worker must know to feed it.

    `fed` are the positions of the inputs that are passed at run time; `inputs` and `outputs` are (name, ONNX
    element type); `tested` the operator types whose placement must be proven; `digest` the SHA-256 of the
    bytes, hexadecimal.
    """

    model: bytes
    digest: str
    fed: tuple[int, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    tested: tuple[str, ...]
    optimization: str = "off"
    in_place: bool = False


class GraphCases(NamedTuple):
    """A graph and the cases that run on it in one session."""

    graph: Graph
    cases: list[Prepared]


class Execution(NamedTuple):
    """What a target did with a case; exactly one of `outputs` and `error` is set, `ended` says how the worker
    ended if it did.

    `nodes` is the proof of placement: None where the session never told.
    """

    outputs: tuple[Tensor, ...] | None
    error: Error | None
    stage: Stage
    nodes: Nodes | None
    seconds: float
    ended: str | None = None
    """None, "crash" or "timeout"."""
