"""Repeats wrong results over memory that holds a pattern, and then another, to separate elements that were not
written, and those read from outside of the inputs, from others.

Both runs share their patterns among all cases. `DirectML` and ONNX Runtime on the CPU and on DirectML alone
can be told where outputs lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.errors import TargetUnavailable
from harness.model.result import Memory, Result
from harness.model.target_info import CPU, DIRECTML, DML
from harness.model.verdict import Outcome
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.pool import WorkerPool

PATTERNS = ((0xA5, 0x3C), (0x5A, 0xC3))
"""The bytes of outputs and of what lies around inputs, of the first run and of the second."""
LIMIT = 5000
"""Results that each part of a run examines of the valid cases of a target, and of the others."""
_LIMIT_BYTES = 64 << 20
_ENDED = 3
"""So many workers may end over the cases of an operator, until its others are left as they are: a worker is dear."""
_PROVIDERS = frozenset({CPU, DML, DIRECTML})
_WORTH = frozenset({Outcome.MISMATCH, Outcome.ACCEPTED_INVALID})

Held = tuple[Prepared, Graph, Result]


class PatternRuns:
    """Holds results back until their cases have run over both patterns."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._held: list[tuple[Prepared, Graph, Result, tuple[Tensor, ...]]] = []
        self._bytes = 0

    def hold(self, prepared: Prepared, graph: Graph, execution: Execution, result: Result) -> bool:
        """Keep a result if its outputs are worth examining; `results` yields it again."""
        outputs = execution.outputs
        if outputs is None or not worth(self._provider, prepared, graph, outputs, result.outcome):
            return False
        size = sum(tensor.array.nbytes for tensor in (*outputs, *prepared.inputs))
        if len(self._held) >= LIMIT:
            return False
        if self._bytes + size > _LIMIT_BYTES:
            return False
        self._bytes += size
        self._held.append((prepared, graph, result, outputs))
        return True

    def results(self, pool: WorkerPool) -> Iterator[Held]:
        """Run the kept cases over both patterns, and yield them with the state of their elements; none is
        lost if the target becomes unavailable."""
        held, self._held = self._held, []
        found: list[dict[tuple[int, int], tuple[Tensor, ...]]] = [{} for _ in held]
        place: dict[int, int] = {}
        ended = Counter[str]()
        try:
            if held:
                with closing(pool.run(self._units(held, place, ended), keep=True)) as answers:
                    for prepared, graph, execution in answers:
                        ended[prepared.case.operator] += execution.ended is not None
                        if execution.outputs is not None and graph.patterns is not None:
                            found[place[id(prepared)]][graph.patterns] = execution.outputs
        except TargetUnavailable:
            yield from map(_examined, held, found)
            raise
        yield from map(_examined, held, found)

    def _units(
        self,
        held: list[tuple[Prepared, Graph, Result, tuple[Tensor, ...]]],
        place: dict[int, int],
        ended: Counter[str],
    ) -> Iterator[GraphCases]:
        """Yield the cases over each pattern, those of one graph in one session; note the place of each. `ended` are the
        workers that ended meanwhile over the cases of an operator."""
        groups: dict[Graph, list[Prepared]] = {}
        for number, (prepared, graph, _, outputs) in enumerate(held):
            shaped = prepared._replace(output_shapes=tuple(output.array.shape for output in outputs))
            place[id(shaped)] = number
            groups.setdefault(graph, []).append(shaped)
        self._kept = groups  # as long as their ids are asked for
        for patterns in PATTERNS:
            for graph, cases in groups.items():
                if ended[cases[0].case.operator] <= _ENDED:
                    yield GraphCases(graph._replace(patterns=patterns), cases)


def _examined(
    held: tuple[Prepared, Graph, Result, tuple[Tensor, ...]],
    seen: Mapping[tuple[int, int], tuple[Tensor, ...]],
) -> Held:
    prepared, graph, result, outputs = held
    memory = examine(outputs, [seen.get(patterns, ()) for patterns in PATTERNS])
    return prepared, graph, result if memory is None else msgspec.structs.replace(result, memory=memory)


def worth(
    provider: str, prepared: Prepared, graph: Graph, outputs: tuple[Tensor, ...], outcome: Outcome
) -> bool:
    """Say whether outputs can be examined, and whether that says anything."""
    if outcome not in _WORTH or provider not in _PROVIDERS:
        return False
    if (
        graph.in_place
        or graph.maps
        or graph.optionals
        or any(each.dtype == "string" for each in (*outputs, *prepared.inputs))
    ):
        return False  # what an output held before is its input; maps and texts have no bytes of their own
    return any(output.array.size for output in outputs)


def over_patterns(
    pool: WorkerPool, prepared: Prepared, graph: Graph, outputs: tuple[Tensor, ...]
) -> Memory | None:
    """Run one case again over each pattern and return what its elements are; None where a run ended
    otherwise."""
    shaped = prepared._replace(output_shapes=tuple(output.array.shape for output in outputs))
    again_on = (GraphCases(graph._replace(patterns=patterns), [shaped]) for patterns in PATTERNS)
    with closing(pool.run(again_on, keep=True)) as answers:
        again = {on.patterns: execution.outputs or () for _, on, execution in answers}
    return examine(outputs, [again.get(patterns, ()) for patterns in PATTERNS])


def examine(outputs: tuple[Tensor, ...], runs: list[tuple[Tensor, ...]]) -> Memory | None:
    """Return the state of the elements of `outputs` in a run over each of `PATTERNS`; None if a run gave no
    such outputs."""
    unwritten = outside = unstable = total = 0
    for position, output in enumerate(outputs):
        again = [run[position] for run in runs if len(run) == len(outputs)]
        alike = [
            each for each in again if (each.dtype, each.array.shape) == (output.dtype, output.array.shape)
        ]
        if len(alike) < len(PATTERNS):
            return None
        own, *others = (_bytes(tensor) for tensor in (output, *alike))
        kept, taken = (
            np.logical_and.reduce(
                [
                    (each == patterns[which]).all(axis=1)
                    for each, patterns in zip(others, PATTERNS, strict=True)
                ]
            )
            for which in (0, 1)
        )
        changed = np.logical_or.reduce([(each != own).any(axis=1) for each in others])
        unwritten += int(np.count_nonzero(kept))
        outside += int(np.count_nonzero(taken))
        unstable += int(np.count_nonzero(changed & ~kept & ~taken))
        total += len(own)
    return Memory(unwritten, outside, unstable, total)


def _bytes(tensor: Tensor) -> NDArray[np.uint8]:
    """Return the bytes of each element: uint8[elements, bytes of an element]."""
    flat = np.ascontiguousarray(tensor.array).reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, flat.itemsize)
