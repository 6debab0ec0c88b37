"""A lane: prepares, runs and judges its share of the cases, target by target, with workers of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.model.errors import TargetUnavailable
from harness.model.shares import LocalNumbers, Share
from harness.model.target_info import TargetInfo
from harness.results.counts import Counts
from harness.results.runfile import ResultLines
from harness.run.artifacts import Artifacts, NoArtifacts
from harness.run.job import RunInputs, TargetRun
from harness.run.probe import greeting
from harness.run.resume import Done
from harness.specs.target_expectations import Findings
from harness.targets.launches import launch
from harness.targets.launching import Hello, Launch
from harness.targets.pool import WorkerPool
from harness.targets.target import greeted

Sink = Callable[[bytes, int], None]
"""Takes lines of the run file and how many they are."""


class Opened(NamedTuple):
    """A target whose first worker has greeted, and how its other workers are started."""

    hello: Hello
    launch: Launch


class ProcessReport(NamedTuple):
    """What a lane found on one target; `problem` says why its workers no longer start."""

    counts: Counts
    findings: Findings
    problem: str | None = None


class Shared(NamedTuple):
    """What the lanes of a run share of each target: which blocks of cases are taken, and what the artifacts
    hold."""

    blocks: Sequence[LocalNumbers | None]
    artifacts: Sequence[LocalNumbers]


class RunProcess:
    """One of the parts that work side by side on a target's cases; `size` workers are its own."""

    def __init__(self, work: RunInputs, shared: Shared, size: int, *, at_once: bool) -> None:
        """`at_once`: all workers of the first target start together, and not only when the ones before have
        work."""
        self._work = work
        self._shared = shared
        self._size = size
        self._at_once = at_once
        self._pools: dict[int, WorkerPool] = {}

    def open(self, number: int, launching: Callable[[Launch], None]) -> Opened | str:
        """Start the first worker of target `number`; where that is impossible, return the reason. `launching`
        learns how it is started."""
        target = self._work.targets[number]
        try:
            start = launch(target)
            launching(start)
            pool = self._pool(number, start)
            if self._at_once and number == 0:
                pool.start()
            return Opened(greeting(pool, target), start)
        except TargetUnavailable as error:
            self._forget(number)
            return str(error)

    def start(self, number: int, launch: Launch) -> None:
        """Let all workers of target `number` start, without waiting for them."""
        self._pool(number, launch).start()

    def run(
        self, number: int, info: TargetInfo, opened: Opened | None, done: Done | None, sink: Sink
    ) -> ProcessReport:
        """Run this lane's share on target `number`; where it was not opened every case is unavailable.
        Errors: HarnessFault."""
        work = self._work
        target = work.targets[number] if opened is None else greeted(work.targets[number], opened.hello)
        known = work.expectations.for_target(target.name, info)
        kept = self._shared.artifacts[number]
        artifacts = NoArtifacts() if work.artifacts is None else Artifacts(work.artifacts, kept)
        job = TargetRun(work, target, known, done, artifacts, Share(self._shared.blocks[number]))
        counts = Counts()
        lines = ResultLines(sink)
        problem = None
        try:
            pool = self._ready(number, opened, lines)
            for result in job.results(pool):
                lines.add(result)
                counts.add(result)
        except TargetUnavailable as error:  # its workers no longer start: the other targets go on
            problem = f"{target.name}: {error}"
            counts.lost += 1
        finally:
            self._forget(number)
            lines.flush()
        return ProcessReport(counts, known.findings(), problem)

    def close(self) -> None:
        """End all workers; safe to call twice."""
        for number in list(self._pools):
            self._forget(number)

    def _ready(self, number: int, opened: Opened | None, lines: ResultLines) -> WorkerPool | None:
        if opened is None:
            self._forget(number)
            return None
        pool = self._pool(number, opened.launch)
        pool.hello = opened.hello
        pool.before_waiting = lines.flush
        return pool

    def _pool(self, number: int, launch: Launch) -> WorkerPool:
        if number not in self._pools:
            self._pools[number] = WorkerPool(launch, size=self._size, timeout=self._work.timeout)
        return self._pools[number]

    def _forget(self, number: int) -> None:
        pool = self._pools.pop(number, None)
        if pool is not None:
            pool.close()
