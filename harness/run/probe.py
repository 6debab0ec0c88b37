"""Probes: run cases on a target one by one to find out their outcome, without expectations.

For `reduce`, `repro` and `bisect`: the cases may be synthetic, the workers stay alive between probes, and
whatever ends a worker costs only the case that it was running.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from harness.compile.prepare import by_graph
from harness.model.case import Case, Validity
from harness.model.errors import TargetUnavailable, UsageError
from harness.model.result import Memory
from harness.model.signature import Signature, signature_of
from harness.model.transformers import TRANSFORMERS
from harness.run.held_back import WrongGraph, culprits, over_patterns, worth
from harness.run.judge import Judgement, judge
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.fake_script import check_scripts
from harness.targets.launches import launch
from harness.targets.launching import Hello
from harness.targets.pool import WorkerPool
from harness.targets.target import Target, greeted, wheel


class Probe(NamedTuple):
    """One case with its inputs and graph, the target's outputs or error, and the outcome."""

    prepared: Prepared
    graph: Graph
    execution: Execution
    judgement: Judgement

    @property
    def signature(self) -> Signature:
        """By which reduce, repro and the fuzzer tell whether two cases fail alike."""
        judgement = self.judgement
        return signature_of(judgement.outcome, self.execution.stage, judgement.error, judgement.diff)


class Probes:
    """Runs cases on one target; use it in a `with` statement, or call `close`.

    `number` counts the cases that were run, `restarts` the workers that had to be replaced. Raises
    TargetUnavailable where the target is not on this machine, at once and again whenever its workers no
    longer start.
    """

    def __init__(self, target: Target, *, timeout: float = 30.0, seed: int = 0, jobs: int = 1) -> None:
        self.seed = seed
        self.number = 0
        check_scripts([target])
        self._pool, self.hello = open_pool(target, jobs=jobs, timeout=timeout)
        self.target = greeted(target, self.hello)

    @property
    def runtime(self) -> str:
        """Where the workers run, as a run's header records it."""
        return self._pool.runtime

    @property
    def restarts(self) -> int:
        return self._pool.restarts

    def run(self, cases: Iterable[Case], *, apart: bool = False) -> list[Probe]:
        """Run the cases and return one probe for each, in their order.

        Cases of one graph share a session unless they run `apart`; the valid ones run first and share no
        worker with others, as in a run.
        """
        given = list(cases)
        valid = [case for case in given if case.validity is Validity.VALID]
        others = [case for case in given if case.validity is not Validity.VALID]
        found = self._run(valid, apart)
        if valid and others:
            self._pool.close()
        found |= self._run(others, apart)
        return [found[id(case)] for case in given]

    def _run(self, cases: Sequence[Case], apart: bool) -> dict[int, Probe]:
        found = {id(probe.prepared.case): probe for probe in self._judged(self._units(cases, apart))}
        self.number += len(found)
        return found

    def _judged(self, units: Iterator[GraphCases]) -> Iterator[Probe]:
        with closing(self._pool.run(units, keep=True)) as answers:
            for prepared, graph, execution in answers:
                judgement = judge(prepared, graph, execution, self.target.provider)
                yield Probe(prepared, graph, execution, judgement)

    def again(self, graphs: Sequence[tuple[Graph, Prepared]]) -> list[Probe]:
        """Run prepared cases on other graphs, each in a session of its own."""
        groups = [GraphCases(graph, [prepared._replace()]) for graph, prepared in graphs]
        found = {id(probe.prepared): probe for probe in self._judged(iter(groups))}
        return [found[id(each.cases[0])] for each in groups]

    def culprit(self, probe: Probe) -> tuple[str, ...]:
        """Return the transformer, the two transformers, or the option of the deployment without which a graph is
        right; () if there is none."""
        optimised = probe.graph.optimization != "off"
        if not (optimised or probe.graph.deployed) or not probe.graph.composed:
            return ()
        suspects = probe.execution.transformers or tuple(TRANSFORMERS if optimised else ())
        found = culprits(
            self._pool, self.target.provider, [WrongGraph(probe.prepared, probe.graph, suspects)]
        )
        return found.get(0, ())

    def one(self, case: Case) -> Probe:
        """Run one case in a session of its own."""
        return self.run([case])[0]

    def fresh(self, case: Case) -> Probe:
        """Run one case in a worker of its own, in which nothing ran before and nothing will after."""
        self._pool.close()
        try:
            return self.one(case)
        finally:
            self._pool.close()

    def repeat(self, case: Case, times: int) -> list[Probe]:
        """Run one case several times, each time in a session of its own."""
        return [self.one(case) for _ in range(times)]

    def memory(self, probe: Probe) -> Memory | None:
        """Run a case again over memory that holds patterns, in workers of its own, and say what its outputs are
        there; None where that says nothing."""
        outputs = probe.execution.outputs
        if outputs is None or not worth(
            self.target.provider, probe.prepared, probe.graph, outputs, probe.judgement.outcome
        ):
            return None
        self._pool.close()
        try:
            return over_patterns(self._pool, probe.prepared, probe.graph, outputs)
        finally:
            self._pool.close()

    def _units(self, cases: Sequence[Case], apart: bool) -> Iterator[GraphCases]:
        groups = [[case] for case in cases] if apart else [cases]
        return (
            each
            for group in groups
            for each in by_graph(group, self.seed, self.target.provider, self._refuse)
        )

    def _refuse(self, case: Case, why: str) -> None:
        raise UsageError(f"{case.id}: not expressible on target {self.target.name!r}: {why}")

    def close(self) -> None:
        """End all workers; safe to call twice."""
        self._pool.end()

    def __enter__(self) -> Probes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_pool(target: Target, *, jobs: int, timeout: float) -> tuple[WorkerPool, Hello]:
    """Start the target's first worker and return the pool with its greeting; TargetUnavailable where it lacks
    the provider."""
    pool = WorkerPool(launch(target), size=jobs, timeout=timeout)
    return pool, greeting(pool, target)


def greeting(pool: WorkerPool, target: Target) -> Hello:
    """Return the greeting of the target's first worker; TargetUnavailable, and an empty pool, where it lacks
    the provider."""
    hello = pool.probe()
    if greeted(target, hello).provider not in hello.providers:
        pool.close()
        offered = ", ".join(hello.providers)
        remedy = f"; install {wheel(target)} on that machine" if target.host else ""
        raise TargetUnavailable(
            f"target {target.name!r}: onnxruntime {hello.onnxruntime} offers {offered}, not {target.provider}{remedy}"
        )
    return hello
