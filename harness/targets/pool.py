"""Executes graphs and their cases in crash-proof workers: handles announcements, deadlines and restarts.

A worker holds at most two batches. It announces each case before it starts it, so that a crash, a hang or a lost
pipe costs only that case: the worker is replaced, and its unanswered cases go to another one. A worker that
ended with the process that forked it has lost no case. If creating a session ends two workers in a row, the
remaining cases of that graph are recorded as ended with it, since they would all repeat the same step.

`WorkerSlot` is the state of one worker: its batches and its current case. `Setbacks` counts failed starts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from queue import Empty, SimpleQueue

from harness.model.errors import TargetUnavailable
from harness.model.result import Error
from harness.targets.batches import batches, encode_batch
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.frames import FrameReader, GarbledError
from harness.targets.launching import Hello, Launch, greeting
from harness.targets.process import LOST, Inbox, WorkerProcess
from harness.targets.starting import ForkServer


class SentBatch:
    """Cases in the order in which they were sent, with the graph of each."""

    def __init__(self, groups: list[GraphCases]) -> None:
        self.groups = groups
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
        self.greeted = False
        self.at_case = False
        """Whether it announced the first case that is not answered."""
        self.began = time.monotonic()
        self.deadline = 0.0
        self.grace: int | None = None

    def lost(self) -> tuple[int, bool] | None:
        """Return the case of the first batch that ends with the worker, and whether its session was there;
        None where it was at none."""
        batch = self.batches[0] if self.batches else None
        if batch is None or not self.at_case or batch.done == len(batch.cases):
            return None
        return batch.done, self.frames.loaded(batch.cases[batch.done][1])


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


_STARTS = 3
"""How often in a row a worker may die before it greets, or later before it starts a case, until the target
counts as unavailable."""

Answer = tuple[Prepared, Graph, Execution]
"""A case, the graph it ran on, and what the target did."""


class WorkerPool:
    """Runs graphs and their cases on `size` workers of one target; `run` yields the answers in no fixed order."""

    def __init__(self, launch: Launch, *, size: int, timeout: float) -> None:
        self._launch = launch
        self._size = size
        self._timeout = timeout
        self._server = ForkServer.of(launch.forks, launch.env or {}) if launch.forks else None
        self._inbox: Inbox = SimpleQueue()
        self._slots: dict[WorkerProcess, WorkerSlot] = {}
        self._retry: deque[list[GraphCases]] = deque()
        self._starting = Setbacks(_STARTS)
        self._working = Setbacks(_STARTS)
        self._load_crashes: dict[str, int] = {}
        self._start_took = 0.0
        self._more_at = 0.0
        self._valid: bool | None = None
        self.hello: Hello | None = None
        self.restarts = 0
        self.before_waiting: Callable[[], None] = lambda: None
        """Called whenever the pool has nothing to hand on and is about to wait for a worker."""

    @property
    def runtime(self) -> str:
        """Where the workers run, as the header records it."""
        return self._launch.runtime

    def probe(self) -> Hello:
        """Start the first worker and return its greeting; TargetUnavailable with the reason if none comes."""
        try:
            while self.hello is None:
                if not self._slots:
                    self._spawn()
                for _ in self._step():
                    raise AssertionError("a result before any case was sent")
        except BaseException:
            self.close()
            raise
        return self.hello

    def start(self) -> None:
        """Start all workers, without waiting for any."""
        while len(self._slots) < self._size:
            self._spawn()

    def run(self, groups: Iterator[GraphCases], *, keep: bool = False) -> Generator[Answer, None, None]:
        """Execute all cases; closing the iterator ends all workers at once, as does the last answer unless
        they are to `keep`."""
        supply = batches(groups)
        self._more_at = time.monotonic() + self._start_took
        done = False
        try:
            while True:
                supplied = self._hand_out(supply)
                if not supplied and not any(slot.batches for slot in self._slots.values()):
                    done = True
                    return
                yield from self._step()
        finally:
            if not (keep and done):
                self.close()

    def keep_apart(self, valid: bool) -> None:
        """End the workers that ran valid cases where others follow, and the other way round."""
        if self._valid not in (None, valid):
            self.close()
        self._valid = valid

    def close(self) -> None:
        """End all workers; safe to call twice."""
        while self._slots:
            _, slot = self._slots.popitem()
            slot.process.kill()

    def end(self) -> None:
        """End all workers and the process that forks them; safe to call twice."""
        self.close()
        if self._server is not None:
            self._server.end()

    def _spawn(self) -> WorkerSlot:
        process = WorkerProcess(self._launch.argv, self._launch.env, self._inbox, self._server)
        slot = self._slots[process] = WorkerSlot(process, self._starting.round, self._working.round)
        slot.deadline = time.monotonic() + self._launch.start_seconds
        if self._launch.preamble:
            process.feed(self._launch.preamble)
        process.send({"memory_limit": self._launch.memory_limit})
        return slot

    def _hand_out(self, supply: Iterator[list[GraphCases]]) -> bool:
        """Give every worker two batches, starting workers as long as there is work for them; return whether
        anything was given.

        Another one is started when all have two and the work has lasted as long as a start does: before, it would
        not pay.
        """
        given = False
        while True:
            idlest = min(self._slots.values(), key=lambda slot: len(slot.batches), default=None)
            if idlest is not None and len(idlest.batches) > 1:
                if not self._may_start_another():
                    return given
                idlest = None
            groups = self._retry.popleft() if self._retry else next(supply, None)
            if groups is None:
                return given
            slot = idlest or self._spawn()
            if not slot.batches and slot.greeted:
                slot.deadline = time.monotonic() + self._timeout
            slot.batches.append(SentBatch(groups))
            slot.process.send(*encode_batch(groups, self._launch))
            given = True

    def _may_start_another(self) -> bool:
        return len(self._slots) < self._size and time.monotonic() >= self._more_at

    def _step(self) -> Iterator[Answer]:
        """Wait for the next message of any worker, at most to the next deadline, and process it."""
        waiting = [slot for slot in self._slots.values() if slot.batches or not slot.greeted]
        now = time.monotonic()
        for slot in waiting:
            # news that arrived before the deadline may still stand in the inbox: read what is there first
            if slot.deadline > now:
                slot.grace = None
            elif slot.grace is None:
                slot.grace = self._inbox.qsize()
            elif slot.grace <= 0:
                yield from self._expire(slot)
                return
            else:
                slot.grace -= 1
        if self._inbox.empty():
            self.before_waiting()
        until = min((slot.deadline for slot in waiting), default=now + 1.0)
        if now < self._more_at and len(self._slots) < self._size:
            until = min(until, self._more_at)
        try:
            process, data = self._inbox.get(timeout=max(0.0, until - now))
        except Empty:
            return
        found = self._slots.get(process)
        if found is None:
            return
        if data is None:
            yield from self._ended(found, "crash", found.process.end())
            return
        answers: list[Answer] = []
        try:
            moved = self._news(found, data, answers)
        except GarbledError as error:
            yield from answers
            found.process.kill()
            yield from self._ended(found, "crash", f"garbled frames: {error}")
            return
        yield from answers
        if moved:
            found.deadline = time.monotonic() + self._timeout

    def _news(self, slot: WorkerSlot, data: bytes, answers: list[Answer]) -> bool:
        """Add the answers that came to those before, and say whether the worker began something else. All are taken
        apart before the first is judged, which is faster than to alternate."""
        announced = False
        for kind, body in slot.frames.feed(data):
            if kind == "A":
                slot.at_case = announced = True
            elif kind == "H":
                self.hello = self._greeting(slot, body)
            elif kind == "D":
                if not slot.batches or slot.batches[0].done < len(slot.batches[0].cases):
                    raise GarbledError("a batch ended before its last case")
                slot.batches.popleft()
            else:
                if not slot.batches:
                    raise GarbledError("an answer to nothing")
                self._working.succeeded()
                batch = slot.batches[0]
                for execution in slot.frames.answers(kind, body, batch.cases, batch.done):
                    prepared, group = batch.cases[batch.done]
                    batch.done += 1
                    slot.at_case = False
                    answers.append((prepared, group.graph, execution))
        return announced or not slot.batches

    def _greeting(self, slot: WorkerSlot, body: memoryview) -> Hello:
        try:
            hello = greeting(body)
        except ValueError as error:
            raise GarbledError(str(error)) from error
        slot.greeted = True
        self._start_took = time.monotonic() - slot.began
        self._starting.succeeded()
        slot.deadline = time.monotonic() + self._timeout
        return hello

    def _expire(self, slot: WorkerSlot) -> Iterator[Answer]:
        slot.process.kill()
        if not slot.greeted:
            yield from self._ended(slot, "crash", f"no greeting within {self._launch.start_seconds:g} s")
        else:
            yield from self._ended(slot, "timeout", f"no answer within {self._timeout:g} s")

    def _ended(self, slot: WorkerSlot, how: str, detail: str) -> Iterator[Answer]:
        """Record the loss of a worker: the announced case is lost, the others go back to the supply."""
        del self._slots[slot.process]
        self.restarts += 1
        hint = slot.process.stderr
        link = self._launch.link
        lost = slot.lost()
        if detail == LOST or (link is not None and link.broken(detail, hint)):
            lost = None
        if lost is None and self._is_last(slot, detail, hint):
            self.close()
            if link is not None and not slot.greeted:
                raise TargetUnavailable(link.refusal(detail, hint))
            last_line = f": {hint.splitlines()[-1]}" if hint else ""
            raise TargetUnavailable(f"the worker ended before it started a case ({detail}){last_line}")
        for number, batch in enumerate(slot.batches):
            rest: list[GraphCases] = []
            position = 0
            for group in batch.groups:
                left = group.cases[max(0, batch.done - position) :]
                position += len(group.cases)
                if left and lost is not None and number == 0 and lost[0] < position:
                    case, loaded = lost
                    first = len(left) - (position - case)
                    taken = 1 if loaded else self._lost_at_load(group, left[first:])
                    error = Error(detail, hint[-2000:])
                    nodes = slot.frames.nodes_of(group)
                    for prepared in left[first : first + taken]:
                        yield (
                            prepared,
                            group.graph,
                            Execution(None, error, "run" if loaded else "load", nodes, 0.0, how),
                        )
                    left = left[:first] + left[first + taken :]
                    lost = None
                if left:
                    rest.append(GraphCases(group.graph, left))
            if rest:
                self._retry.append(rest)

    def _is_last(self, slot: WorkerSlot, detail: str, hint: str) -> bool:
        """Note that a worker ended without having lost a case; return whether no other is started after
        it."""
        if slot.greeted:
            return self._working.failed(slot.working)
        link = self._launch.link
        at_once = link is not None and self.hello is None and link.final(detail, hint)
        return self._starting.failed(slot.starting) or at_once

    def _lost_at_load(self, group: GraphCases, left: list[Prepared]) -> int:
        """Return how many of a graph's remaining cases are lost with a worker that ended while it created
        their session."""
        crashes = self._load_crashes[group.graph.digest] = self._load_crashes.get(group.graph.digest, 0) + 1
        return len(left) if crashes >= 2 else 1
