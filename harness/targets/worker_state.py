"""The state of a pool's workers: their batches, their current cases, and failed starts."""

from __future__ import annotations

import time
from collections import deque

from harness.targets.execution import GraphCases, Prepared
from harness.targets.frames import FrameReader
from harness.targets.process import AtCase, WorkerProcess


class SentBatch:
    """Cases in the order in which they were sent, with the graph of each."""

    def __init__(self, groups: list[GraphCases], number: int, *, announced: bool) -> None:
        self.groups = groups
        self.number = number
        self.announced = announced
        self.cases: list[tuple[Prepared, GraphCases]] = [
            (case, group) for group in groups for case in group.cases
        ]
        self.done = 0


class WorkerSlot:
    """A worker's place in the pool: the process, its batches, and its current case."""

    def __init__(self, process: WorkerProcess, starting: int, working: int) -> None:
        self.process = process
        self.starting, self.working = starting, working
        self.frames = FrameReader()
        self.batches: deque[SentBatch] = deque()
        self.given = 0
        self.greeted = False
        self.at: int | None = None
        self.began = time.monotonic()
        self.deadline = 0.0
        self.grace: int | None = None
        self.garbled = False

    @property
    def shared(self) -> AtCase | None:
        """What the worker says in shared memory that it is at; None where it announces by frames."""
        if self.process.announcements is None or (self.batches and self.batches[0].announced):
            return None
        return self.process.announcements.read()

    def lost(self) -> tuple[int, bool] | None:
        """Return the case of the first batch that ends with the worker, and whether its session was there;
        None where it was at none, or nobody can tell."""
        if not self.batches or self.garbled:
            return None
        batch, told = self.batches[0], self.shared
        if told is not None:
            at_one = not told.idle and told.batch == batch.number and told.case >= batch.done
            return (told.case, not told.loading) if at_one else None
        if self.at is None or self.at != batch.done:
            return None
        return self.at, self.frames.loaded(batch.cases[self.at][1])


class Setbacks:
    """Counts failures in a row; those of attempts that began before the last one was counted are the same:
    one cause, many victims."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._number = 0
        self.round = 0
        """What an attempt notes when it begins."""

    def failed(self, round: int) -> bool:
        """Note that an attempt failed which began in a round; return whether that was once too often."""
        if round == self.round:
            self.round += 1
            self._number += 1
        return self._number >= self._limit

    def succeeded(self) -> None:
        """Note that an attempt went well: what fails from now on is counted anew."""
        self._number = 0
