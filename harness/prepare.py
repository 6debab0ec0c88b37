"""From cases to units: inputs generated, graphs compiled, consecutive cases of one graph together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.execution import Graph, Prepared, Unit
from harness.graphs import compile_case
from harness.operators import OPERATORS
from harness.records import Case
from harness.values import case_inputs

_UNIT_CASES = 512


def units(cases: Iterable[Case], seed: int) -> Iterator[Unit]:
    """Yield the cases as units of at most some hundred cases each."""
    current: Graph | None = None
    collected: list[Prepared] = []
    for case in cases:
        inputs = case_inputs(OPERATORS[case.operator], case, seed)
        graph = compile_case(case, inputs)
        if current is not None and (not _alike(graph, current) or len(collected) >= _UNIT_CASES):
            yield Unit(current, collected)
            collected = []
        current = graph
        collected.append(Prepared(case, inputs))
    if current is not None and collected:
        yield Unit(current, collected)


def _alike(a: Graph, b: Graph) -> bool:
    """Say whether one session can run both: the same bytes, optimised and bound in the same way."""
    return a is b or (a.digest == b.digest and a.optimization == b.optimization and a.in_place == b.in_place)
