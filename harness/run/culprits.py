"""Finds the transformer of ONNX Runtime's optimizer by which a graph goes wrong: runs it without optimisation, then
without one transformer after the other, then without two. Of graphs that end their process few are run so.

A graph that is wrong without optimisation has no culprit: its kernels are wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import combinations
from typing import NamedTuple

import msgspec

from harness.model.case import Validity
from harness.model.errors import TargetUnavailable
from harness.model.result import Result
from harness.model.transformers import RULES, TRANSFORMERS
from harness.model.verdict import Outcome
from harness.run.judge import judge
from harness.run.memory_patterns import Held
from harness.specs.graphs.variations import DEPLOYED
from harness.targets.execution import Graph, GraphCases, Prepared
from harness.targets.pool import WorkerPool

LIMIT = 2000
"""Results that each part of a run examines."""
_MOST_PAIRS = 45
_LEADERS = 2
"""Graphs of a pattern and level that end their process and are run without each transformer: an attempt costs a worker.
The others are run without what was found of these, and none without pairs."""
_WORTH = frozenset({Outcome.MISMATCH, Outcome.CRASH, Outcome.TIMEOUT, Outcome.REJECTED, Outcome.UNSUPPORTED})


class WrongGraph(NamedTuple):
    """A graph that went wrong, the transformers that changed it, and whether it ended its process."""

    prepared: Prepared
    graph: Graph
    transformers: Sequence[str]
    ended: bool = False

    @property
    def alike(self) -> tuple[str, str]:
        """The pattern and the level."""
        return self.prepared.case.operator, self.graph.optimization


class Culprits:
    """Holds results of optimised graphs back until it is known which transformer makes them wrong."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._held: list[Held] = []

    def hold(self, prepared: Prepared, graph: Graph, result: Result) -> bool:
        """Keep a result for the search if a transformer may have caused it; `results` yields it again."""
        if (
            not graph.composed
            or not (graph.deployed or graph.optimization != "off")
            or result.validity is not Validity.VALID
            or result.outcome not in _WORTH
            or len(self._held) >= LIMIT
        ):
            return False
        self._held.append((prepared, graph, result))
        return True

    def results(self, pool: WorkerPool) -> Iterator[Held]:
        """Yield the kept results with their culprits; none is lost if the target becomes unavailable."""
        held, self._held = self._held, []
        suspects = [
            WrongGraph(
                prepared,
                graph,
                result.transformers
                if isinstance(result.transformers, tuple)
                else tuple(TRANSFORMERS if graph.optimization != "off" else ()),
                result.outcome in (Outcome.CRASH, Outcome.TIMEOUT),
            )
            for prepared, graph, result in held
        ]
        try:
            found = culprits(pool, self._provider, suspects)
        except TargetUnavailable:
            yield from held
            raise
        for number, (prepared, graph, result) in enumerate(held):
            culprit = found.get(number)
            if culprit is not None:
                result = msgspec.structs.replace(result, culprit=culprit)
            yield prepared, graph, result


def culprits(pool: WorkerPool, provider: str, suspects: Sequence[WrongGraph]) -> dict[int, tuple[str, ...]]:
    """Return, by the number of the suspect, the transformers without which its graph passes, or what of its deployment
    (`arena=off`)."""
    off = [(n, each.graph._replace(optimization="off", deployed=()), ()) for n, each in enumerate(suspects)]
    well = _passing(pool, provider, off, suspects)
    found: dict[int, tuple[str, ...]] = {}
    ended: Counter[tuple[str, str]] = Counter()
    following = []
    for n in sorted(well):
        ended[suspects[n].alike] += suspects[n].ended
        if suspects[n].ended and ended[suspects[n].alike] > _LEADERS:
            following.append(n)
    for size in (1, 2):
        asked = {
            n: [*choices([*map(_term, suspects[n].graph.deployed), *suspects[n].transformers], size)]
            for n in sorted(well.keys() - found.keys() - set(following))
            if size == 1 or not suspects[n].ended
        }
        found |= _search(pool, provider, asked, suspects)
    known: dict[tuple[str, str], dict[tuple[str, ...], None]] = {}
    for n, chosen in found.items():
        known.setdefault(suspects[n].alike, {})[chosen] = None
    asked = {n: [*known.get(suspects[n].alike, ())] for n in following}
    return found | _search(pool, provider, asked, suspects)


def _search(
    pool: WorkerPool,
    provider: str,
    choices: Mapping[int, Sequence[tuple[str, ...]]],
    suspects: Sequence[WrongGraph],
) -> dict[int, tuple[str, ...]]:
    """Return the first choice without which the graph of a suspect passes, by the number of the suspect."""
    found: dict[int, tuple[str, ...]] = {}
    for place in range(max(map(len, choices.values()), default=0)):
        asked = [
            (n, _without(suspects[n].graph, listed[place]), listed[place])
            for n, listed in choices.items()
            if place < len(listed) and n not in found
        ]
        found |= _passing(pool, provider, asked, suspects)
    return found


def _without(graph: Graph, chosen: tuple[str, ...]) -> Graph:
    deployed = tuple(each for each in graph.deployed if _term(each) not in chosen)
    return graph._replace(disabled=tuple(each for each in chosen if "=" not in each), deployed=deployed)


def _term(deployed: tuple[str, object]) -> str:
    name, value = deployed
    return f"{name}={DEPLOYED[name][1] if isinstance(value, tuple) else value}"


def _passing(
    pool: WorkerPool,
    provider: str,
    asked: Sequence[tuple[int, Graph, tuple[str, ...]]],
    suspects: Sequence[WrongGraph],
) -> dict[int, tuple[str, ...]]:
    """Run graphs of suspects, and return by the number of the suspect the first of its graphs that passes."""
    groups = [GraphCases(graph, [suspects[number].prepared._replace()]) for number, graph, _ in asked]
    place = {
        id(group.cases[0]): (number, chosen) for group, (number, _, chosen) in zip(groups, asked, strict=True)
    }
    found: dict[int, tuple[str, ...]] = {}
    if groups:
        with closing(pool.run(iter(groups), keep=True)) as answers:
            for prepared, graph, execution in answers:
                if judge(prepared, graph, execution, provider).outcome is Outcome.PASS:
                    number, chosen = place[id(prepared)]
                    found.setdefault(number, chosen)
    return found


def choices(transformers: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield what to disable: a rule stands for itself, not for the transformer that applies it."""
    names = list(dict.fromkeys(name for each in transformers for name in RULES.get(each, (each,))))
    for number, chosen in enumerate(combinations(names, size)):
        if size > 1 and number >= _MOST_PAIRS:
            return
        yield chosen
