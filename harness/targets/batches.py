"""Batches, the requests that a pool sends: some graphs with their cases, encoded as `worker.py` documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from harness.targets.execution import Graph, GraphCases, Prepared, Sent
from harness.targets.launching import Launch
from harness.worker.worker import encode_elements

_CASES = 512
_BYTES = 4 << 20
FAKE = "FakeExecutionProvider"
"""The only provider whose requests name their cases: it has to act out their outcomes."""
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
        for end, (_, _, inputs, *_, kept) in enumerate(prepared, start=1):
            cases += 1
            for tensor in inputs:
                size += tensor.array.nbytes
            if kept is not None and kept.sent is not None:
                size += len(kept.sent.payload)
            if cases >= _CASES or size >= _BYTES:
                batch.append(GraphCases(graph, prepared[start:end]))
                yield batch
                batch, start, cases, size = [], end, 0, 0
        if start < len(prepared):
            batch.append(GraphCases(graph, prepared[start:]))
    if batch:
        yield batch


def encode_batch(groups: Sequence[GraphCases], launch: Launch) -> tuple[dict[str, Any], list[bytes]]:
    """Return header and payload of the request that runs `groups`; cases are numbered from 0 through the
    batch.

    `threads` is the number of intra-op threads of a session. What graphs have in common stands once, in `kinds`.
    """
    kinds: dict[tuple[object, ...], int] = {}
    described = []
    payload: list[bytes] = []
    first = 0
    for number, (graph, cases) in enumerate(groups):
        sent = [
            sent_of(graph, case) if case.kept is None or case.kept.sent is None else case.kept.sent
            for case in cases
        ]
        data = [graph.model, *(each.payload for each in sent)]
        payload += data
        kept = cases[0].kept
        known = kept is not None and all(case.kept is not None and case.kept.digest for case in cases)
        optimized = kept.optimized if kept is not None and known else None
        tells = graph.composed and graph.optimization != "off" and optimized is None
        kind = kinds.setdefault((*_kind_of(graph), tells), len(kinds))
        shapes = [each.shapes for each in sent]
        sizes = {"model": len(graph.model), "bytes": sum(map(len, data))}
        group = {"unit": number, "kind": kind, **sizes, "first": first, "cases": shapes}
        if any(each.before is not None for each in sent):
            group["before"] = [each.before for each in sent]
        if graph.patterns is not None or graph.deployed:
            group["output_shapes"] = [each.output_shapes for each in sent]
        if optimized is not None:
            group["optimized"] = optimized.transformers, optimized.graph_nodes, optimized.graph_edges
        if launch.provider == FAKE:
            group["fake"] = [(case.id, case.validity) for case, *_ in cases]
        described.append(group)
        first += len(cases)
    target = {name: getattr(launch, name) for name in ("provider", "provider_options", "config", "threads")}
    described_kinds = [
        target | dict(zip((*_KIND, "tells_transformers"), kind, strict=True)) for kind in kinds
    ]
    return {"kinds": described_kinds, "units": described}, payload


def sent_of(graph: Graph, prepared: Prepared) -> Sent:
    """Return what of a case crosses the pipe besides its graph."""
    _, _, inputs, buffers, output_shapes, before, inferred, _ = prepared
    first_run = () if before is None else tuple(before[position] for position in graph.fed)
    if buffers is None:
        shapes = tuple([prepared.case.inputs[position].shape for position in graph.fed])
    else:
        inputs = buffers
        shapes = tuple([buffers[position].array.shape for position in graph.fed])
    tensors = (*first_run, *(inputs[position] for position in graph.fed))
    parts = [encode_elements(tensor.array) for tensor in tensors]
    return Sent(
        shapes,
        None if before is None else tuple([tensor.array.shape for tensor in first_run]),
        output_shapes or inferred,
        parts[0] if len(parts) == 1 else b"".join(parts),
    )
