"""Results held back until their cases have run again, which says more of them; none is lost if the target becomes
unavailable meanwhile.

Wrong results over memory that holds a pattern, and then another, to separate elements that were not written, and
those read from outside of the inputs, from others. Both runs share their patterns among all cases. `DirectML` and ONNX
Runtime on the CPU and on DirectML alone can be told where outputs lie.

Wrong graphs without the transformers of ONNX Runtime's optimizer, to find the one by which a graph goes wrong: without
optimisation, then without one transformer after the other, then without two. Of graphs that end their process few are
run so. A graph that is wrong without optimisation has no culprit: its kernels are wrong.

Flakes: unexpected results several times, to mark a case whose results differ as flaky, with its rate. The first result
keeps its outcome and verdict: a flaky case is still unexpected.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, combinations
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor, Validity
from harness.model.errors import TargetUnavailable
from harness.model.result import Memory, Repeats, Result
from harness.model.target_info import CPU, DIRECTML, DML
from harness.model.transformers import RULES, TRANSFORMERS
from harness.model.verdict import Outcome, conforms
from harness.run.judge import judge
from harness.specs.graphs.variations import DEPLOYED
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.pool import WorkerPool

PATTERNS = ((0xA5, 0x3C), (0x5A, 0xC3))
"""The bytes of outputs and of what lies around inputs, of the first run and of the second."""
_MOST_EXAMINED = 5000
"""Results that each part of a run examines of the valid cases of a target, and of the others."""
_MOST_BYTES = 64 << 20
_ENDED = 3
"""So many workers may end over the cases of an operator, until its others are left as they are: a worker is dear."""
_PROVIDERS = frozenset({CPU, DML, DIRECTML})
_WRITTEN_WRONG = frozenset({Outcome.MISMATCH, Outcome.ACCEPTED_INVALID})

Held = tuple[Prepared, Graph, Result]
_Outputs = tuple[Tensor, ...]
_Seen = dict[tuple[int, int], _Outputs]
"""The outputs over each pattern that ran."""


class _Holding(ABC):
    """Results that are held back, each with its case and its graph."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._held: list[Held] = []

    def unchanged(self) -> Iterator[Result]:
        """Yield the kept results as they are: the target is unavailable."""
        held, self._held = self._held, []
        yield from (result for _, _, result in held)

    def results(self, pool: WorkerPool) -> Iterator[Held]:
        """Run the kept cases again, and yield them with what that says of their results; none is lost if the target
        becomes unavailable."""
        held, self._held = self._held, []
        unavailable = None
        if held:
            try:
                self._run(pool, held)
            except TargetUnavailable as error:
                unavailable = error
        for number, (prepared, graph, result) in enumerate(held):
            yield prepared, graph, self._told(number, result)
        if unavailable is not None:
            raise unavailable

    @abstractmethod
    def _run(self, pool: WorkerPool, held: Sequence[Held]) -> None:
        """Run kept cases again. Errors: TargetUnavailable."""

    @abstractmethod
    def _told(self, number: int, result: Result) -> Result:
        """Return a kept result, by its number, with what the runs so far say of it."""


class PatternRuns(_Holding):
    """Holds results back until their cases have run over both patterns."""

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self._bytes = 0
        self._outputs: list[_Outputs] = []
        self._seen: list[_Seen] = []

    def hold(self, prepared: Prepared, graph: Graph, execution: Execution, result: Result) -> bool:
        """Keep a result if its outputs are worth examining; `results` yields it again."""
        outputs = execution.outputs
        if outputs is None or not worth(self._provider, prepared, graph, outputs, result.outcome):
            return False
        size = sum(tensor.array.nbytes for tensor in (*outputs, *prepared.inputs))
        if len(self._held) >= _MOST_EXAMINED or self._bytes + size > _MOST_BYTES:
            return False
        self._bytes += size
        self._held.append((prepared, graph, result))
        self._outputs.append(outputs)
        return True

    def _run(self, pool: WorkerPool, held: Sequence[Held]) -> None:
        """Run the kept cases over both patterns."""
        self._seen = [{} for _ in held]
        cases = [(*each[:2], outputs) for each, outputs in zip(held, self._outputs, strict=True)]
        _run_over_patterns(pool, cases, self._seen)

    def _told(self, number: int, result: Result) -> Result:
        memory = _examined(self._outputs[number], self._seen[number])
        return result if memory is None else msgspec.structs.replace(result, memory=memory)


def _run_over_patterns(
    pool: WorkerPool, cases: Sequence[tuple[Prepared, Graph, _Outputs]], seen: Sequence[_Seen]
) -> None:
    """Run cases over each pattern, those of one graph in one session, and note what each gives."""
    groups: dict[Graph, list[Prepared]] = {}
    place: dict[int, int] = {}
    ended = Counter[str]()
    for number, (prepared, graph, outputs) in enumerate(cases):
        shaped = prepared._replace(output_shapes=tuple(output.array.shape for output in outputs))
        place[id(shaped)] = number
        groups.setdefault(graph, []).append(shaped)
    units = (
        GraphCases(graph._replace(patterns=patterns), alike)
        for patterns in PATTERNS
        for graph, alike in groups.items()
        if ended[alike[0].case.operator] <= _ENDED
    )
    with closing(pool.run(units, keep=True)) as answers:
        for prepared, graph, execution in answers:
            ended[prepared.case.operator] += execution.ended is not None
            if execution.outputs is not None and graph.patterns is not None:
                seen[place[id(prepared)]][graph.patterns] = execution.outputs


def _examined(outputs: _Outputs, seen: _Seen) -> Memory | None:
    return examine(outputs, [seen.get(patterns, ()) for patterns in PATTERNS])


def worth(
    provider: str, prepared: Prepared, graph: Graph, outputs: tuple[Tensor, ...], outcome: Outcome
) -> bool:
    """Say whether outputs can be examined, and whether that says anything."""
    if outcome not in _WRITTEN_WRONG or provider not in _PROVIDERS:
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
    seen: _Seen = {}
    _run_over_patterns(pool, [(prepared, graph, outputs)], [seen])
    return _examined(outputs, seen)


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


_MOST_SEARCHED = 2000
"""Results that each part of a run examines."""
_MOST_PAIRS = 45
_LEADERS = 2
"""Graphs of a pattern and level that end their process and are run without each transformer: an attempt costs a worker.
The others are run without what was found of these, and none without pairs."""
_BY_TRANSFORMER = frozenset(
    {Outcome.MISMATCH, Outcome.CRASH, Outcome.TIMEOUT, Outcome.REJECTED, Outcome.UNSUPPORTED}
)


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


class Culprits(_Holding):
    """Holds results of optimised graphs back until it is known which transformer makes them wrong; `searched` says that
    it is."""

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self.searched = False
        self._found: dict[int, tuple[str, ...]] = {}

    def hold(self, prepared: Prepared, graph: Graph, result: Result) -> bool:
        """Keep a result for the search if a transformer may have caused it; `results` yields it again."""
        if not self.concerns(graph, result) or len(self._held) >= _MOST_SEARCHED:
            return False
        self._held.append((prepared, graph, result))
        return True

    @staticmethod
    def concerns(graph: Graph, result: Result) -> bool:
        """Say whether a transformer may have caused a result."""
        return (
            graph.composed
            and (bool(graph.deployed) or graph.optimization != "off")
            and result.validity is Validity.VALID
            and result.outcome in _BY_TRANSFORMER
        )

    def _run(self, pool: WorkerPool, held: Sequence[Held]) -> None:
        """Search the culprits."""
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
        self._found = culprits(pool, self._provider, suspects)
        self.searched = True

    def _told(self, number: int, result: Result) -> Result:
        culprit = self._found.get(number)
        return result if culprit is None else msgspec.structs.replace(result, culprit=culprit)


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
        }
        ending = {n: asked.pop(n) for n in [*asked] if suspects[n].ended}
        found |= _search(pool, provider, asked, suspects)
        found |= _halved(pool, provider, ending, suspects) if size == 1 else {}
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


def _halved(
    pool: WorkerPool,
    provider: str,
    choices: Mapping[int, Sequence[tuple[str, ...]]],
    suspects: Sequence[WrongGraph],
) -> dict[int, tuple[str, ...]]:
    """The same for graphs that end their process, with halves of the choices together: of fifty transformers six runs end,
    each of which costs the start of a process."""
    found: dict[int, tuple[str, ...]] = {}
    left = {n: list(listed) for n, listed in choices.items()}
    while left:
        halves = {n: listed[: len(listed) // 2 or 1] for n, listed in left.items()}
        together = {n: tuple(chain.from_iterable(half)) for n, half in halves.items()}
        asked = [(n, _without(suspects[n].graph, chosen), chosen) for n, chosen in together.items()]
        passing = _passing(pool, provider, asked, suspects)
        found |= {n: chosen for n, chosen in passing.items() if len(halves[n]) == 1}
        rest = {n: half if n in passing else left[n][len(half) :] for n, half in halves.items()}
        left = {n: listed for n, listed in rest.items() if listed and n not in found}
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


_MOST_REPEATED = 500
"""Results that each part of a run repeats of the valid cases of a target, and of the others; a target with
more is broken, not flaky."""


class Reruns(_Holding):
    """Holds unexpected results back until their cases have been run `times` times more."""

    def __init__(self, provider: str, times: int) -> None:
        super().__init__(provider)
        self._times = times
        self._outcomes: list[Counter[Outcome]] = []

    def hold(self, prepared: Prepared, graph: Graph, result: Result) -> bool:
        """Keep a result if its case is to be repeated; `results` yields it again."""
        if not self._times or len(self._held) >= _MOST_REPEATED or not result.unexpected(baseline=False):
            return False
        self._held.append((prepared, graph, result))
        return True

    def _run(self, pool: WorkerPool, held: Sequence[Held]) -> None:
        """Repeat the kept cases, each time in a session of its own."""
        self._outcomes = [Counter() for _ in held]
        place = {id(prepared): number for number, (prepared, _, _) in enumerate(held)}
        groups = (GraphCases(graph, [prepared]) for prepared, graph, _ in held for _ in range(self._times))
        pool.close()  # what ran before must not be the reason
        with closing(pool.run(groups)) as answers:
            for prepared, graph, execution in answers:
                outcome = judge(prepared, graph, execution, self._provider).outcome
                self._outcomes[place[id(prepared)]][outcome] += 1

    def _told(self, number: int, result: Result) -> Result:
        found = self._outcomes[number]
        if not found:
            return result
        failed = sum(count for outcome, count in found.items() if not conforms(result.validity, outcome))
        counts = {outcome.value: found[outcome] for outcome in Outcome if found[outcome]}
        return msgspec.structs.replace(result, repeats=Repeats(found.total(), failed, counts))
