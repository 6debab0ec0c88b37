"""A run process: prepares, runs and judges blocks of cases, target by target, with workers of its own."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

from harness.model.errors import HarnessError, HarnessFault, TargetUnavailable
from harness.model.result import Result
from harness.model.target_info import TargetInfo
from harness.results.counts import Counts
from harness.results.runfile import ResultLines
from harness.run.artifacts import Artifacts
from harness.run.job import RunInputs, TargetRun
from harness.run.probe import greeting
from harness.run.resume import Done
from harness.run.target_info import target_info
from harness.specs.expectations.target_expectations import Findings
from harness.specs.selection import CaseBlock
from harness.targets.launches import launch
from harness.targets.launching import Hello, Launch
from harness.targets.pool import WorkerPool
from harness.targets.target import Target, greeted

Sink = Callable[[bytes, int], None]
"""Takes lines of the run file and their number."""


class Opened(NamedTuple):
    """A target whose first worker has greeted, and how its other workers are started."""

    hello: Hello
    launch: Launch


class TargetPart(NamedTuple):
    """One target's part of a run: its number and its entry in the header; `opened` is None where it is not there, `done` is
    what an interrupted run has of it."""

    number: int
    info: TargetInfo
    opened: Opened | None
    done: Done | None = None


def info_of(target: Target, opened: Opened | str) -> TargetInfo:
    """Describe a target for the header, by what opening it returned."""
    if isinstance(opened, str):
        return TargetInfo(target.provider, unavailable=opened, options=target.options)
    return target_info(greeted(target, opened.hello), opened.hello, opened.launch.runtime)


class ProcessReport(NamedTuple):
    """What blocks showed on one target; `problem` says why its workers no longer start."""

    counts: Counts
    findings: Findings
    problem: str | None = None


class Fault(NamedTuple):
    """What ended a process of the run, with the traceback of a defect."""

    error: HarnessError
    trace: str = ""

    @classmethod
    def of(cls, error: Exception) -> Fault:
        """Return the fault that an exception is, within its handler."""
        if isinstance(error, HarnessError):
            return cls(error)
        fault = HarnessFault(f"a fault in the harness: {type(error).__name__}: {error}")
        return cls(fault, traceback.format_exc())

    def reraise(self) -> NoReturn:
        """End this process by it too."""
        sys.stderr.write(self.trace)
        raise self.error


class RunProcess:
    """Runs blocks on targets; a target has `size` workers here."""

    def __init__(self, work: RunInputs, size: int, *, at_once: bool = False) -> None:
        """`at_once`: all workers of the first target start together, and not only when the ones before have
        work."""
        self._work = work
        self._size = size
        self._at_once = at_once
        self._pools: dict[int, WorkerPool] = {}

    def open(self, number: int, launching: Callable[[Launch], None] = lambda _: None) -> Opened | str:
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
            self.release(number)
            return str(error)

    def start(self, number: int, launch: Launch) -> None:
        """Let all workers of target `number` start, without waiting for them."""
        self._pool(number, launch).start()

    def job(self, part: TargetPart, artifacts: Artifacts | None) -> TargetRun:
        """Return what makes results of blocks on a target."""
        target = self._work.targets[part.number]
        target = target if part.opened is None else greeted(target, part.opened.hello)
        known = self._work.expectations.for_target(target.name, part.info)
        return TargetRun(self._work, target, known, part.done, artifacts)

    def results(
        self,
        part: TargetPart,
        job: TargetRun,
        blocks: Iterable[CaseBlock],
        before_waiting: Callable[[], None] = lambda: None,
    ) -> Iterator[Result]:
        """Yield the results of blocks; where the target was not opened every case is unavailable. Its workers stay.
        Errors: TargetUnavailable where they no longer start, after the last result."""
        pool = None
        if part.opened is not None:
            pool = self._pool(part.number, part.opened.launch)
            pool.hello = part.opened.hello
            pool.before_waiting = before_waiting
        yield from job.results(pool, blocks)

    def run(
        self,
        part: TargetPart,
        blocks: Iterable[CaseBlock],
        artifacts: Artifacts | None,
        sink: Sink,
        *,
        keep: bool = False,
    ) -> ProcessReport:
        """Run blocks on a target, and end its workers unless they are to `keep`. Errors: HarnessFault; lines that
        were made by then have gone to `sink`."""
        job = self.job(part, artifacts)
        counts = Counts()
        lines = ResultLines(sink)
        problem = None
        try:
            for result in self.results(part, job, blocks, lines.flush):
                lines.add(result)
                counts.add(result)
        except TargetUnavailable as error:  # its workers no longer start: the other targets go on
            problem = str(error)
            counts.lost += 1
        finally:
            if not keep:
                self.release(part.number)
            lines.flush()
        return ProcessReport(counts, job.known.findings(), problem)

    def release(self, number: int) -> None:
        """End the workers of target `number`."""
        pool = self._pools.pop(number, None)
        if pool is not None:
            pool.close()

    def close(self) -> None:
        """End all workers; safe to call twice."""
        for number in list(self._pools):
            self.release(number)

    def _pool(self, number: int, launch: Launch) -> WorkerPool:
        if number not in self._pools:
            self._pools[number] = WorkerPool(launch, size=self._size, timeout=self._work.timeout)
        return self._pools[number]
