"""Runs the selected cases in large batches, and gives each item its result.

Items request results in order: the first item of a batch starts it, later ones find their result or wait for
it. A batch is every valid case of a target, or every other one, since the two share no worker; or, where there
are many, all cases of a target, which lanes divide among themselves. In a process of pytest-xdist, which does
not know its items in advance, a batch is a block of neighbours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.commands.pytest_plugin.lanes import LaneResults, lanes_for
from harness.model.case import Case, Validity
from harness.model.errors import TargetUnavailable
from harness.model.header import SCHEMA, Header
from harness.model.result import Result
from harness.model.shares import WHOLE
from harness.model.target_info import TargetInfo
from harness.run.artifacts import NoArtifacts
from harness.run.job import RunInputs, TargetRun
from harness.run.lanes.lane import Opened
from harness.run.probe import greeting
from harness.run.request import new_run_id
from harness.run.target_info import target_info
from harness.specs.expectations import Expectations
from harness.specs.selection import ChosenCases
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.target import Target, greeted

BLOCK = 128
"""Neighbours that a process of pytest-xdist runs at once; those that another one was given are run for
nothing."""


class Wanted(NamedTuple):
    """A case on a target."""

    case: Case
    target: str


class Batch(NamedTuple):
    """What is run at once."""

    target: str
    valid: bool
    block: int


class OpenTarget(NamedTuple):
    """A target whose workers run, or can be started, with what a run's header says of it."""

    target: Target
    pool: WorkerPool
    header: Header
    info: TargetInfo
    start: Opened


class ItemRuns:
    """Results of the `wanted` cases, which are in the order in which they will be asked for. Close it, or
    workers stay."""

    def __init__(
        self,
        targets: Sequence[Target],
        wanted: Sequence[Wanted],
        expectations: Expectations,
        *,
        timeout: float,
        jobs: int,
        blocks: bool,
    ) -> None:
        self._targets = {target.name: target for target in targets}
        self._expectations = expectations
        self._timeout = timeout
        self._jobs = jobs
        self._size = BLOCK if blocks else len(wanted) or 1
        self._batches: dict[Batch, list[Case]] = defaultdict(list)
        self._batch: dict[tuple[str, str], Batch] = {}
        self._operators = {each.case.operator for each in wanted}
        numbers = Counter(each.target for each in wanted)
        self._lanes = {name: 0 if blocks else lanes_for(number, jobs) for name, number in numbers.items()}
        for number, (case, name) in enumerate(wanted):
            valid = case.validity is Validity.VALID or self._lanes[name] > 1
            batch = Batch(name, valid, number // self._size)
            self._batches[batch].append(case)
            self._batch[name, case.id] = batch
        self._found: dict[tuple[str, str], Result] = {}
        self._opened: dict[str, OpenTarget] = {}
        self._gone: dict[str, TargetUnavailable] = {}
        self._now: Batch | None = None
        self._running: Iterator[Result] = iter(())
        self._in_lanes: LaneResults | None = None

    def result(self, wanted: Wanted) -> tuple[Result, Header]:
        """Return what the target did with the case. Errors: TargetUnavailable, for each case of a target that
        is not here, or no longer."""
        key = (wanted.target, wanted.case.id)
        try:
            while key not in self._found:
                self._advance(self._batch[key], wanted.case)
        except TargetUnavailable as error:
            self._gone[wanted.target] = error
            raise
        return self._found.pop(key), self._opened[wanted.target].header

    def _advance(self, batch: Batch, case: Case) -> None:
        """Take in one result of a batch, which begins where it is not running; a case that is asked for again
        is run alone."""
        if batch != self._now:
            for result in self._running:  # what was begun is not begun again
                self._found[result.target, result.case] = result
            self._begin(batch, self._batches.pop(batch, [case]))
        found = next(self._running, None)
        if found is None:
            self._begin(batch, [case])
        else:
            self._found[found.target, found.case] = found

    def _begin(self, batch: Batch, cases: list[Case]) -> None:
        opened = self.open(batch.target)
        self._close_lanes()
        if self._now is not None and (self._now.target, self._now.valid) != (batch.target, batch.valid):
            self._opened[self._now.target].pool.close()
        self._now = batch
        work = RunInputs(
            (opened.target,), ChosenCases(cases), self._expectations, None, None, 0, self._timeout
        )
        number = self._lanes.get(batch.target, 0)
        self._lanes[batch.target] = 0  # a case that is asked for again runs here
        if number > 1:
            self._running = self._in_lanes = LaneResults(work, opened.info, opened.start, self._jobs, number)
            return
        known = self._expectations.for_target(batch.target, opened.info)
        self._running = TargetRun(work, opened.target, known, None, NoArtifacts(), WHOLE, keep=True).results(
            opened.pool
        )

    def open(self, name: str) -> OpenTarget:
        """Start the target's first worker, where none ran yet. Errors: TargetUnavailable with the reason and
        the remedy."""
        if name in self._gone:
            raise self._gone[name]
        if name not in self._opened:
            target = self._targets[name]
            start = launch(target)
            pool = WorkerPool(start, size=self._jobs, timeout=self._timeout)
            hello = greeting(pool, target)
            if self._lanes.get(name, 0) > 1:
                pool.close()  # lanes have workers of their own, and must not inherit this one's pipes
            target = greeted(target, hello)
            info = target_info(target, hello, pool.runtime)
            stated = self._expectations.stated({name: info}, self._operators)
            header = Header(SCHEMA, new_run_id(), "pytest", 0, {}, {name: info}, expectations=stated)
            self._opened[name] = OpenTarget(target, pool, header, info, Opened(hello, start))
        return self._opened[name]

    def close(self) -> None:
        """End all workers; safe to call twice."""
        self._running = iter(())
        self._close_lanes()
        for opened in self._opened.values():
            opened.pool.close()

    def _close_lanes(self) -> None:
        if self._in_lanes is not None:
            self._in_lanes.close()
            self._in_lanes = None
