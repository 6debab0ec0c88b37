"""Flakes: repeats unexpected results before they are written, and marks a case whose results differ as flaky,
with its rate.

The first result keeps its outcome and verdict: a flaky case is still unexpected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import msgspec

from harness.model.errors import TargetUnavailable
from harness.model.result import Repeats, Result
from harness.model.verdict import Outcome, conforms
from harness.run.judge import judge
from harness.run.memory_patterns import Held
from harness.targets.execution import Graph, GraphCases, Prepared
from harness.targets.pool import WorkerPool

LIMIT = 500
"""Results that each part of a run repeats of the valid cases of a target, and of the others; a target with
more is broken, not flaky."""


class Reruns:
    """Holds unexpected results back until their cases have been run `times` times more."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._held: list[Held] = []

    def hold(self, prepared: Prepared, graph: Graph, result: Result) -> bool:
        """Keep a result if its case is to be repeated; `results` yields it again."""
        if not self._times or len(self._held) >= LIMIT or not result.unexpected(baseline=False):
            return False
        self._held.append((prepared, graph, result))
        return True

    def unrepeated(self) -> Iterator[Result]:
        """Yield the kept results unchanged: the target is unavailable."""
        held, self._held = self._held, []
        yield from (result for _, _, result in held)

    def results(self, pool: WorkerPool, provider: str) -> Iterator[Result]:
        """Repeat the kept cases, each time in a session of its own, and yield their results; none is lost if
        the target becomes unavailable."""
        held, self._held = self._held, []
        outcomes: list[Counter[Outcome]] = [Counter() for _ in held]
        place = {id(prepared): number for number, (prepared, _, _) in enumerate(held)}
        groups = (GraphCases(graph, [prepared]) for prepared, graph, _ in held for _ in range(self._times))
        try:
            if held:
                pool.close()  # what ran before must not be the reason
                with closing(pool.run(groups)) as answers:
                    for prepared, graph, execution in answers:
                        outcomes[place[id(prepared)]][
                            judge(prepared, graph, execution, provider).outcome
                        ] += 1
        except TargetUnavailable:
            yield from map(_with_repeats, held, outcomes)
            raise
        yield from map(_with_repeats, held, outcomes)


def _with_repeats(held: Held, found: Counter[Outcome]) -> Result:
    result = held[2]
    if not found:
        return result
    failed = sum(number for outcome, number in found.items() if not conforms(result.validity, outcome))
    counts = {outcome.value: found[outcome] for outcome in Outcome if found[outcome]}
    return msgspec.structs.replace(result, repeats=Repeats(found.total(), failed, counts))
