"""The worker's frames on the harness's side: takes its stream apart and decodes executions (`worker.py` documents the
format)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import prod
from typing import Any, Literal

import msgspec
import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, Array
from harness.model.result import Error, Stage
from harness.targets.execution import Edges, Execution, GraphCases, Nodes, Prepared
from harness.worker.worker import COUNT, FRAME, RESULT, contradicts, decode_texts

_TENSOR = struct.Struct("<BBI")
_EXTENTS = [struct.Struct(f"<{rank}q") for rank in range(256)]
"""The shape of a tensor, by its rank."""
_STORED: dict[int, tuple[str, np.dtype[Any] | None]] = {
    number: (dtype.name, None if dtype.storage == "O" else np.dtype(dtype.storage))
    for number, dtype in BY_ONNX_NUMBER.items()
}
"""By ONNX element type its name, and how its elements are stored; None for strings."""
_MAX_BODY = 1 << 31
_KINDS = frozenset(b"HAPRED")


class GarbledError(Exception):
    """The worker's stream breaks the protocol."""


class _Failure(msgspec.Struct, frozen=True):
    """The body of an E frame; `count` cases share it."""

    case: int
    stage: Stage
    class_: str = msgspec.field(name="class")
    message: str
    seconds: float
    count: int = 1
    by: Literal["core"] | msgspec.UnsetType = msgspec.UNSET


class _Placement(msgspec.Struct, frozen=True):
    """The body of a P frame; `nodes` is None where the runtime tells the placement only after a run."""

    nodes: tuple[tuple[str, str], ...] | None
    fuses: bool = False
    transformers: tuple[str, ...] = ()
    graph_nodes: tuple[str, ...] = ()
    graph_edges: Edges = ()
    declared: tuple[tuple[int | None, ...] | None, ...] = ()


def tensor_bytes(tensor: Tensor) -> bytes:
    """Return the bytes of a tensor's elements as they are hashed: strings as u32 length and UTF-8 each."""
    if tensor.dtype != "string":
        return tensor.array.tobytes()
    texts = [str(text).encode() for text in tensor.array.reshape(-1).tolist()]
    return b"".join([COUNT.pack(len(text)) + text for text in texts])


class FrameReader:
    """Takes a worker's stream apart and remembers the placement of the graph that the worker is at."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = 0
        self._placement, self._body = _Placement(None), b""
        self._group: GraphCases | None = None
        self._failure = msgspec.json.Decoder(_Failure).decode
        self._decode_placement = msgspec.json.Decoder(_Placement).decode

    def nodes_of(self, group: GraphCases) -> Nodes | None:
        """Return the placement of a graph, None until the worker reports it."""
        return self._placement.nodes if group is self._group else None

    def loaded(self, group: GraphCases) -> bool:
        """Say whether the worker has created the session of a graph."""
        return group is self._group

    def feed(self, data: bytes) -> Iterator[tuple[str, memoryview]]:
        """Yield the complete frames, each its kind and its body."""
        self._parts.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return  # a long frame is joined once, not with every piece of it
        buffer = data if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._needed = 0
        at, end = 0, len(buffer)
        view = memoryview(buffer)
        while end - at >= 5:
            kind, size = FRAME.unpack_from(buffer, at)
            if kind not in _KINDS or size > _MAX_BODY:
                raise GarbledError(f"byte {kind:#04x} where a frame should begin")
            if end - at - 5 < size:
                self._needed = 5 + size
                break
            at += 5 + size
            yield chr(kind), view[at - size : at]
        self._held = end - at
        if self._held:
            self._parts.append(buffer[at:])

    def answers(
        self, kind: str, body: memoryview, cases: Sequence[tuple[Prepared, GraphCases]], done: int
    ) -> Sequence[Execution]:
        """Return the executions that an R or E frame tells of, for the cases from number `done` on; take note of a P
        frame."""
        try:
            group = cases[done][1]
            if kind == "P":
                self._placement, self._body, self._group = self._decode_placement(body), bytes(body), group
                return ()
            if group is not self._group:
                self._placement, self._body = _Placement(None), b""
            if kind == "R":
                return (self._result(body, done, cases[done][0]),)
            failure = self._failure(body)
        except (msgspec.MsgspecError, struct.error, IndexError, KeyError, ValueError) as error:
            raise GarbledError(str(error)) from error
        if failure.case != done or not 1 <= failure.count <= len(cases) - done:
            raise GarbledError("an answer out of order")
        why = Error(failure.class_, failure.message, failure.by)
        said = "\0".join((failure.stage, why.class_, why.message, why.by or ""))
        answer = said.encode("utf-8", "replace")
        return [self._execution(None, why, failure.stage, failure.seconds, answer)] * failure.count

    def _execution(
        self,
        outputs: tuple[Tensor, ...] | None,
        error: Error | None,
        stage: Stage,
        seconds: float,
        answer: bytes | memoryview,
    ) -> Execution:
        placed, digest = self._placement, blake2b(self._body, digest_size=16)
        digest.update(answer)
        return Execution(
            outputs, error, stage, placed.nodes, seconds, None, placed.transformers, placed.graph_nodes, placed.graph_edges, placed.fuses,
            digest.hexdigest(),
        )  # fmt: skip

    def _result(self, body: memoryview, done: int, prepared: Prepared) -> Execution:
        """Return what an R frame says; without its outputs where the answer is the one that is kept."""
        number, seconds, count = RESULT.unpack_from(body)
        if number != done:
            raise GarbledError("an answer out of order")
        answer = body[RESULT.size - COUNT.size :]
        if prepared.kept is not None and prepared.kept.digest:
            found = self._execution((), None, "compare", seconds, answer)
            if found.digest == prepared.kept.digest:
                return found
        outputs = []
        at = RESULT.size
        for _ in range(count):
            element, rank, size = _TENSOR.unpack_from(body, at)
            at += _TENSOR.size
            shape = _EXTENTS[rank].unpack_from(body, at)
            if rank and min(shape) < 0:
                raise GarbledError("a negative dimension")
            at += 8 * rank
            raw = body[at : at + size]
            if len(raw) < size:
                raise GarbledError("an output is cut off")
            at += size
            name, storage = _STORED[element]
            array: Array = (
                _strings(raw, shape) if storage is None else np.frombuffer(raw, storage).reshape(shape)
            )
            outputs.append(Tensor(name, array))
        if at != len(body):
            raise GarbledError("bytes behind the last output")
        found = self._execution(tuple(outputs), None, "compare", seconds, answer)
        for position, (shape, output) in enumerate(zip(self._placement.declared, outputs, strict=False)):
            if shape is not None and contradicts(shape, output.array.shape):
                return found._replace(declared=(position, shape))
        return found


def _strings(raw: memoryview, shape: tuple[int, ...]) -> Array:
    count = prod(shape)
    texts, size = decode_texts(raw, count)
    if size != len(raw):
        raise GarbledError("bytes behind the last string")
    array = np.empty(count, object)
    array[:] = texts
    return array.reshape(shape)
