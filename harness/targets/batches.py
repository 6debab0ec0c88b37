"""Batches, the requests that a pool sends: some graphs with their cases, encoded as `worker.py` documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from harness.model.case import Tensor
from harness.targets.execution import GraphCases
from harness.targets.launching import Launch
from harness.worker.worker import encode_texts

_CASES = 512
_BYTES = 4 << 20
FAKE = "FakeExecutionProvider"
"""The only provider that is told which cases it runs: it has to act out their outcomes."""
_KIND = (
    *("optimization", "in_place", "inputs", "outputs", "tested", "patterns"),
    *("disabled", "maps", "optionals", "deployed"),
)
_kind_of = attrgetter(*_KIND)


def batches(groups: Iterator[GraphCases]) -> Iterator[list[GraphCases]]:
    """Put graphs into batches of some hundred cases or a few MiB; one with many cases is split."""
    batch: list[GraphCases] = []
    cases = size = 0
    for graph, prepared in groups:
        start = 0
        for end, (_, _, inputs, *_) in enumerate(prepared, start=1):
            cases += 1
            for tensor in inputs:
                size += tensor.array.nbytes
            if cases >= _CASES or size >= _BYTES:
                batch.append(GraphCases(graph, prepared[start:end]))
                yield batch
                batch, start, cases, size = [], end, 0, 0
        if start < len(prepared):
            batch.append(GraphCases(graph, prepared[start:]))
    if batch:
        yield batch


def encode_batch(
    groups: Sequence[GraphCases], launch: Launch, *, announced: bool = False
) -> tuple[dict[str, Any], list[bytes]]:
    """Return header and payload of the request that runs `groups`; cases are numbered from 0 through the
    batch.

    `threads` is the number of intra-op threads of a session. Each case of an `announced` batch is told and answered
    by frames of its own. What graphs have in common stands once, in
    `kinds`.
    """
    kinds: dict[tuple[object, ...], int] = {}
    described = []
    payload: list[bytes] = []
    first = 0
    for number, (graph, cases) in enumerate(groups):
        payload.append(graph.model)
        fed = graph.fed
        shapes = []
        earlier: list[list[tuple[int, ...]] | None] = []
        for case, _, inputs, buffers, _, before, _ in cases:
            first_run = () if before is None else tuple(before[position] for position in fed)
            earlier.append(None if before is None else [tensor.array.shape for tensor in first_run])
            payload += map(piped, first_run)
            if buffers is None:
                shapes.append([case.inputs[position].shape for position in fed])
            else:
                inputs = buffers
                shapes.append([buffers[position].array.shape for position in fed])
            for position in fed:
                payload.append(piped(inputs[position]))
        tells = graph.composed and graph.optimization != "off"
        kind = kinds.setdefault((*_kind_of(graph), tells), len(kinds))
        group = {"unit": number, "kind": kind, "model": len(graph.model), "first": first, "cases": shapes}
        if any(each is not None for each in earlier):
            group["before"] = earlier
        if graph.patterns is not None or graph.deployed:
            group["output_shapes"] = [prepared.output_shapes or prepared.inferred for prepared in cases]
        if launch.provider == FAKE:
            group["fake"] = [(case.id, case.validity) for case, *_ in cases]
        described.append(group)
        first += len(cases)
    target = {name: getattr(launch, name) for name in ("provider", "provider_options", "config", "threads")}
    header: dict[str, Any] = {
        "kinds": [target | dict(zip((*_KIND, "tells_transformers"), kind, strict=True)) for kind in kinds],
        "units": described,
    }
    if announced:
        header["announced"] = True
    return header, payload


def piped(tensor: Tensor) -> bytes:
    """Return the bytes of a tensor as they cross the pipe."""
    if tensor.dtype != "string":
        return tensor.array.tobytes()
    return encode_texts([str(text) for text in tensor.array.reshape(-1).tolist()])
