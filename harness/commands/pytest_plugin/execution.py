"""Runs the selected cases in large batches, and gives each item its result.

Items request results in order: the first item of a batch starts it, later ones find their result or wait for
it. A batch is every case of a target. Where these are many, several processes prepare, run and judge them while pytest
reports. In a process of pytest-xdist, which does not know its items in advance, a batch is a block of neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from harness.model.case import Case
from harness.model.errors import TargetUnavailable
from harness.model.header import SCHEMA, Header
from harness.model.result import Result
from harness.run.job import RunInputs
from harness.run.processes.coordinator import ForkingCoordinator, Lines, processes_for
from harness.run.processes.process import ProcessReport, RunProcess, TargetPart, info_of
from harness.run.request import new_run_id
from harness.specs.expectations.expectations import Expectations
from harness.specs.selection import ChosenCases
from harness.targets.target import Target

BLOCK = 128
"""Neighbours that a process of pytest-xdist runs at once; those that another one was given are run for
nothing."""


class Wanted(NamedTuple):
    """A case on a target."""

    case: Case
    target: str


class Batch(NamedTuple):
    """The key of a batch of cases that run together: a target and a block."""

    target: str
    block: int


class OpenTarget(NamedTuple):
    """A target with running or startable workers, and the header of a run of it."""

    part: TargetPart
    header: Header


class ItemRuns:
    """Results of the `wanted` cases, in the order in which pytest runs them. Close it to end the workers."""

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
        self._work = RunInputs(tuple(targets), ChosenCases(()), expectations, None, None, 0, timeout)
        self._jobs = jobs
        self._process = RunProcess(self._work, jobs)
        self._forked: ForkingCoordinator | None = None
        size = BLOCK if blocks else len(wanted) or 1
        self._batches: dict[Batch, list[Case]] = defaultdict(list)
        self._batch: dict[tuple[str, str], Batch] = {}
        self._operators = {each.case.operator for each in wanted}
        for number, (case, name) in enumerate(wanted):
            batch = Batch(name, number // size)
            self._batches[batch].append(case)
            self._batch[name, case.id] = batch
        self._found: dict[tuple[str, str], Result] = {}
        self._opened: dict[str, OpenTarget] = {}
        self._gone: dict[str, TargetUnavailable] = {}
        self._now: Batch | None = None
        self._running: Iterator[Result] = iter(())

    def result(self, wanted: Wanted) -> tuple[Result, Header]:
        """Return the result of a case on the target. Errors: TargetUnavailable, for each case, if the target
        is or becomes unavailable."""
        key = (wanted.target, wanted.case.id)
        try:
            while key not in self._found:
                self._advance(self._batch[key], wanted.case)
        except TargetUnavailable as error:
            self._gone[wanted.target] = error
            raise
        return self._found.pop(key), self._opened[wanted.target].header

    def _advance(self, batch: Batch, case: Case) -> None:
        """Take one result of a batch, and start the batch if it is not running; a case that is requested
        again runs alone."""
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
        part = self.open(batch.target).part
        self._end_forked()
        if self._now is not None and self._now.target != batch.target:
            self._process.release(self._opened[self._now.target].part.number)
        self._now = batch
        chosen = ChosenCases(cases)
        if (processes := processes_for(len(cases), self._jobs)) > 1:
            self._process.close()  # processes have workers of their own, and must not inherit pipes of others
            work = self._work._replace(selection=chosen)
            self._forked = ForkingCoordinator(work, self._jobs, len(cases), processes)
            self._running = _results(self._forked.messages(part))
        else:
            job = self._process.job(part, None)
            self._running = self._process.results(part, job, chosen.blocks(len(cases)))

    def open(self, name: str) -> OpenTarget:
        """Start the target's first worker, where none ran yet. Errors: TargetUnavailable with the reason and
        the remedy."""
        if name in self._gone:
            raise self._gone[name]
        if name not in self._opened:
            number = next(number for number, target in enumerate(self._work.targets) if target.name == name)
            opened = self._process.open(number)
            if isinstance(opened, str):
                raise TargetUnavailable(opened)
            info = info_of(self._work.targets[number], opened)
            stated = self._work.expectations.stated({name: info}, self._operators)
            header = Header(SCHEMA, new_run_id(), "pytest", 0, {}, {name: info}, expectations=stated)
            self._opened[name] = OpenTarget(TargetPart(number, info, opened), header)
        return self._opened[name]

    def close(self) -> None:
        """End all workers; safe to call twice."""
        self._running = iter(())
        self._end_forked()
        self._process.close()

    def _end_forked(self) -> None:
        if self._forked is not None:
            self._forked.close()
            self._forked = None


def _results(messages: Iterable[Lines | ProcessReport]) -> Iterator[Result]:
    """Yield the results of several processes. Errors: TargetUnavailable after the last one where workers no longer
    start, HarnessFault where a process ended."""
    decode = msgspec.json.Decoder(Result).decode
    problem = None
    for message in messages:
        if isinstance(message, Lines):
            yield from map(decode, message.data.splitlines())
        else:
            problem = problem or message.problem
    if problem is not None:
        raise TargetUnavailable(problem)
