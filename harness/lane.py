"""A lane: prepares, runs and judges its portion of the cases, target by target, with workers of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.artifacts import Artifacts
from harness.counts import Counts
from harness.errors import TargetUnavailable
from harness.expectations import Findings
from harness.job import Job, Work
from harness.pool import Hello, Pool
from harness.portions import Numbers, Portion
from harness.records import TargetInfo
from harness.resume import Done
from harness.runfile import ResultLines
from harness.targets import Target, launch, wheel

Sink = Callable[[bytes, int], None]
"""Takes lines of the run file and how many they are."""


class Opened(NamedTuple):
    """A target whose first worker has greeted."""

    hello: Hello
    runtime: str


class Report(NamedTuple):
    """What a lane found on one target; `problem` says why its workers no longer start."""

    counts: Counts
    findings: Findings
    problem: str | None = None


class Shared(NamedTuple):
    """What the lanes of a run share of each target: which blocks of cases are taken, and what the artifacts hold."""

    blocks: Sequence[Numbers | None]
    artifacts: Sequence[Numbers]


class Lane:
    """One of the parts that work side by side on a target's cases; `size` workers are its own."""

    def __init__(self, work: Work, shared: Shared, size: int) -> None:
        self._work = work
        self._shared = shared
        self._size = size
        self._pools: dict[int, Pool] = {}

    def start(self, number: int) -> None:
        """Let the workers of target `number` start, without waiting for them; what hinders them shows when they run."""
        try:
            self._pool(number).start()
        except TargetUnavailable:
            self._forget(number)

    def open(self, number: int) -> Opened | str:
        """Start the first worker of target `number`; where that is impossible, return the reason."""
        target = self._work.targets[number]
        try:
            pool = self._pool(number)
            hello = pool.probe()
            _check_provider(target, hello)
        except TargetUnavailable as error:
            self._forget(number)
            return str(error)
        return Opened(hello, pool.runtime)

    def run(self, number: int, info: TargetInfo, hello: Hello | None, done: Done | None, sink: Sink) -> Report:
        """Run this lane's portion on target `number`; without a greeting every case is unavailable. Errors: HarnessFault."""
        work = self._work
        target = work.targets[number]
        known = work.expectations.for_target(target.name, info)
        artifacts = Artifacts(work.artifacts, self._shared.artifacts[number])
        job = Job(work, target, known, done, artifacts, Portion(self._shared.blocks[number]))
        counts = Counts()
        lines = ResultLines(sink)
        problem = None
        try:
            pool = self._ready(number, hello, lines)
            for result in job.results(pool):
                lines.add(result)
                counts.add(result.validity, result.outcome, result.verdict)
        except TargetUnavailable as error:  # its workers no longer start: the other targets go on
            problem = f"{target.name}: {error}"
            counts.lost += 1
        finally:
            self._forget(number)
            lines.flush()
        return Report(counts, known.findings(), problem)

    def close(self) -> None:
        """End all workers; safe to call twice."""
        for number in list(self._pools):
            self._forget(number)

    def _ready(self, number: int, hello: Hello | None, lines: ResultLines) -> Pool | None:
        if hello is None:
            self._forget(number)
            return None
        pool = self._pool(number)
        pool.hello = hello
        pool.before_waiting = lines.flush
        return pool

    def _pool(self, number: int) -> Pool:
        if number not in self._pools:
            self._pools[number] = Pool(launch(self._work.targets[number]), size=self._size, timeout=self._work.timeout)
        return self._pools[number]

    def _forget(self, number: int) -> None:
        pool = self._pools.pop(number, None)
        if pool is not None:
            pool.close()


def _check_provider(target: Target, hello: Hello) -> None:
    if target.provider not in hello.providers:
        offered = ", ".join(hello.providers)
        remedy = f"; install {wheel(target)} on that machine" if target.host else ""
        raise TargetUnavailable(f"target {target.name!r}: onnxruntime {hello.onnxruntime} offers {offered}, not {target.provider}{remedy}")
