"""Finds the transformer of ONNX Runtime's optimizer by which a graph goes wrong: runs it without optimisation, then
without one transformer after the other, then without two.

A graph that is wrong without optimisation has no culprit: its kernels are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import combinations

import msgspec

from harness.model.case import Validity
from harness.model.errors import TargetUnavailable
from harness.model.result import Result
from harness.model.transformers import RULES, TRANSFORMERS
from harness.model.verdict import Outcome
from harness.run.judge import judge
from harness.targets.execution import Graph, GraphCases, Prepared
from harness.targets.pool import WorkerPool

LIMIT = 300
"""Results that each part of a run examines; of more the first tell enough."""
_MOST_PAIRS = 45
_WORTH = frozenset({Outcome.MISMATCH, Outcome.CRASH, Outcome.TIMEOUT, Outcome.REJECTED, Outcome.UNSUPPORTED})

Held = tuple[Prepared, Graph, Result]


class Culprits:
    """Holds results of optimised graphs back until it is known which transformer makes them wrong."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._held: list[Held] = []

    def hold(self, prepared: Prepared, graph: Graph, result: Result) -> bool:
        """Keep a result if a transformer may have made it what it is; `results` yields it again."""
        if (
            not graph.composed
            or graph.optimization == "off"
            or result.validity is not Validity.VALID
            or result.outcome not in _WORTH
            or len(self._held) >= LIMIT
        ):
            return False
        self._held.append((prepared, graph, result))
        return True

    def results(self, pool: WorkerPool) -> Iterator[Held]:
        """Yield what is held with its culprits; none is lost where the target goes away."""
        held, self._held = self._held, []
        found: dict[int, tuple[str, ...]] = {}
        gone: TargetUnavailable | None = None
        try:
            well = self._passing(
                pool,
                [(n, graph._replace(optimization="off"), ()) for n, (_, graph, _) in enumerate(held)],
                held,
            )
            for size in (1, 2):
                asked = [
                    (n, graph._replace(disabled=chosen), chosen)
                    for n, (_, graph, result) in enumerate(held)
                    if n in well and n not in found
                    for chosen in _choices(result, size)
                ]
                found |= self._passing(pool, asked, held)
        except TargetUnavailable as error:
            gone = error
        for number, (prepared, graph, result) in enumerate(held):
            culprit = found.get(number)
            yield (
                prepared,
                graph,
                result if culprit is None else msgspec.structs.replace(result, culprit=culprit),
            )
        if gone is not None:
            raise gone

    def _passing(
        self, pool: WorkerPool, asked: list[tuple[int, Graph, tuple[str, ...]]], held: list[Held]
    ) -> dict[int, tuple[str, ...]]:
        """Run graphs of held results, and return by the number of the result the first of its graphs that passes."""
        units = [GraphCases(graph, [held[number][0]._replace()]) for number, graph, _ in asked]
        place = {
            id(unit.cases[0]): (number, chosen)
            for unit, (number, _, chosen) in zip(units, asked, strict=True)
        }
        found: dict[int, tuple[str, ...]] = {}
        if units:
            with closing(pool.run(iter(units), keep=True)) as answers:
                for prepared, graph, execution in answers:
                    if judge(prepared, graph, execution, self._provider).outcome is Outcome.PASS:
                        number, chosen = place[id(prepared)]
                        found.setdefault(number, chosen)
        return found


def _choices(result: Result, size: int) -> Iterator[tuple[str, ...]]:
    """Yield what to disable: of the transformers that changed the graph, or of all where the process ended before it
    told; a rule stands for itself."""
    told = result.transformers if isinstance(result.transformers, tuple) else tuple(TRANSFORMERS)
    names = list(dict.fromkeys(name for each in told for name in RULES.get(each, (each,))))
    for number, chosen in enumerate(combinations(names, size)):
        if size > 1 and number >= _MOST_PAIRS:
            return
        yield chosen
