"""Executes units in crash-proof workers: handles announcements, deadlines and restarts.

A worker holds at most two batches. It announces each case before it starts it, so that a crash, a hang or a
lost pipe costs only that case: the worker is replaced, and its unanswered cases go to another one. If
creating a session ends two workers in a row, the remaining cases of that graph are recorded as ended with it,
since they would all repeat the same step.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

import msgspec

from harness.model.errors import TargetUnavailable
from harness.model.records import Error
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.frames import FrameReader, GarbledError, encode_batch
from harness.targets.process import Inbox, WorkerProcess
from harness.targets.setbacks import Setbacks
from harness.worker.worker import PROTOCOL

_BATCH_CASES = 512
_BATCH_BYTES = 4 << 20
_STARTS = 3
"""How often in a row a worker may die before it greets, or later before it starts a case, until the target
counts as unavailable."""


Answer = tuple[Prepared, Graph, Execution]
"""A case, the graph it ran on, and what the target did."""


class Link(Protocol):
    """What is known of workers at the other end of a connection."""

    def refusal(self, how: str, printed: str) -> str:
        """Say in one line why a worker that ended so and printed this never greeted, and what to do."""

    def final(self, how: str, printed: str) -> bool:
        """Say whether a worker that ended so before it greeted would end so again."""

    def broken(self, how: str, printed: str) -> bool:
        """Say whether the connection ended, and not the worker: its case is then not to blame."""


class Launch(NamedTuple):
    """How to start a worker of a runtime, and what every unit of the target is run with."""

    argv: Sequence[str]
    env: Mapping[str, str] | None
    provider: str
    provider_options: Mapping[str, str]
    config: Mapping[str, str]
    start_seconds: float = 60.0
    memory_limit: int | None = None
    runtime: str = "this interpreter"
    preamble: bytes = b""
    link: Link | None = None
    threads: int = 1


class Hello(msgspec.Struct, frozen=True):
    """A worker's greeting."""

    protocol: int
    onnxruntime: str | None
    providers: tuple[str, ...]
    python: str
    numpy: str
    platform: str
    device: dict[str, object] = {}


class _Batch:
    """Cases in the order in which they were sent, with the graph of each."""

    def __init__(self, units: list[GraphCases]) -> None:
        self.units = units
        self.cases: list[tuple[Prepared, GraphCases]] = [
            (case, unit) for unit in units for case in unit.cases
        ]
        self.done = 0


class _Slot:
    """A worker's place in the pool: the process, what it was given, and the case that it is at."""

    def __init__(self, process: WorkerProcess, starting: int, working: int) -> None:
        self.process = process
        self.starting, self.working = starting, working
        self.frames = FrameReader()
        self.batches: deque[_Batch] = deque()
        self.greeted = False
        self.at: int | None = None
        self.deadline = 0.0
        self.grace: int | None = None


class WorkerPool:
    """Runs units on `size` workers of one target; `run` yields the answers in no fixed order."""

    def __init__(self, launch: Launch, *, size: int, timeout: float) -> None:
        self._launch = launch
        self._size = size
        self._timeout = timeout
        self._inbox: Inbox = SimpleQueue()
        self._slots: dict[WorkerProcess, _Slot] = {}
        self._retry: deque[list[GraphCases]] = deque()
        self._starting = Setbacks(_STARTS)
        self._working = Setbacks(_STARTS)
        self._load_crashes: dict[str, int] = {}
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

    def run(self, units: Iterator[GraphCases], *, keep: bool = False) -> Generator[Answer, None, None]:
        """Execute all units; closing the iterator ends all workers at once, as does the last answer unless
        they are to `keep`."""
        supply = _batches(units)
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

    def close(self) -> None:
        """End all workers; safe to call twice."""
        while self._slots:
            _, slot = self._slots.popitem()
            slot.process.kill()

    def _spawn(self) -> _Slot:
        process = WorkerProcess(self._launch.argv, self._launch.env, self._inbox)
        slot = self._slots[process] = _Slot(process, self._starting.round, self._working.round)
        slot.deadline = time.monotonic() + self._launch.start_seconds
        if self._launch.preamble:
            process.feed(self._launch.preamble)
        process.send({"kind": "start", "memory_limit": self._launch.memory_limit})
        return slot

    def _hand_out(self, supply: Iterator[list[GraphCases]]) -> bool:
        """Give every worker two batches, starting workers as long as there is work for them; return whether
        anything was given."""
        given = False
        while True:
            idlest = min(self._slots.values(), key=lambda slot: len(slot.batches), default=None)
            if (idlest is None or idlest.batches) and len(self._slots) < self._size:
                idlest = None
            elif idlest is not None and len(idlest.batches) > 1:
                return given
            units = self._retry.popleft() if self._retry else next(supply, None)
            if units is None:
                return given
            slot = idlest or self._spawn()
            if not slot.batches and slot.greeted:
                slot.deadline = time.monotonic() + self._timeout
            slot.batches.append(_Batch(units))
            start = self._launch
            slot.process.send(
                *encode_batch(units, start.provider, start.provider_options, start.config, start.threads)
            )
            given = True

    def _step(self) -> Iterator[Answer]:
        """Wait for the next news of any worker, at most to the next deadline, and hand on what it says."""
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
        try:
            process, data = self._inbox.get(
                timeout=max(0.0, min(slot.deadline for slot in waiting) - now) if waiting else 1.0
            )
        except Empty:
            return
        found = self._slots.get(process)
        if found is None:
            return
        if data is None:
            yield from self._ended(found, "crash", found.process.end())
            return
        try:
            yield from self._news(found, data)
        except GarbledError as error:
            found.process.kill()
            yield from self._ended(found, "crash", f"garbled frames: {error}")

    def _news(self, slot: _Slot, data: bytes) -> Iterator[Answer]:
        announced = False
        for kind, body in slot.frames.feed(data):
            if kind == "A":
                slot.at = body
                announced = True
            elif kind == "H":
                self.hello = self._greeting(slot, body)
            elif kind == "D":
                if not slot.batches or slot.batches[0].done < len(slot.batches[0].cases):
                    raise GarbledError("a batch ended before its last case")
                slot.batches.popleft()
                slot.at = None
            else:
                if not slot.batches:
                    raise GarbledError("an answer to nothing")
                self._working.succeeded()
                batch = slot.batches[0]
                for execution in slot.frames.answers(kind, body, batch.cases, batch.done):
                    prepared, unit = batch.cases[batch.done]
                    batch.done += 1
                    yield prepared, unit.graph, execution
        if announced or not slot.batches:
            slot.deadline = time.monotonic() + self._timeout

    def _greeting(self, slot: _Slot, body: bytes) -> Hello:
        try:
            hello = msgspec.json.decode(body, type=Hello)
        except msgspec.MsgspecError as error:
            raise GarbledError(f"not a greeting: {error}") from error
        if hello.protocol != PROTOCOL:
            raise TargetUnavailable(
                f"worker speaks protocol {hello.protocol}, this harness {PROTOCOL}: the two are of different versions"
            )
        slot.greeted = True
        self._starting.succeeded()
        slot.deadline = time.monotonic() + self._timeout
        return hello

    def _expire(self, slot: _Slot) -> Iterator[Answer]:
        slot.process.kill()
        if not slot.greeted:
            yield from self._ended(slot, "crash", f"no greeting within {self._launch.start_seconds:g} s")
        else:
            yield from self._ended(slot, "timeout", f"no answer within {self._timeout:g} s")

    def _ended(self, slot: _Slot, how: str, detail: str) -> Iterator[Answer]:
        """Record the loss of a worker: the announced case is lost, the others go back to the supply."""
        del self._slots[slot.process]
        self.restarts += 1
        hint = slot.process.stderr
        link = self._launch.link
        lost = bool(slot.batches) and slot.at is not None and slot.at == slot.batches[0].done
        if link is not None and link.broken(detail, hint):
            lost = False
        if not lost and self._is_last(slot, detail, hint):
            self.close()
            if link is not None and not slot.greeted:
                raise TargetUnavailable(link.refusal(detail, hint))
            last_line = f": {hint.splitlines()[-1]}" if hint else ""
            raise TargetUnavailable(f"the worker ended before it started a case ({detail}){last_line}")
        for number, batch in enumerate(slot.batches):
            rest: list[GraphCases] = []
            position = 0
            for unit in batch.units:
                left = unit.cases[max(0, batch.done - position) :]
                position += len(unit.cases)
                if left and lost and number == 0:
                    nodes = slot.frames.nodes_of(unit)
                    loaded = slot.frames.loaded(unit)
                    taken = 1 if loaded else self._lost_at_load(unit, left)
                    for prepared in left[:taken]:
                        error = Error(detail, hint[-2000:])
                        yield (
                            prepared,
                            unit.graph,
                            Execution(None, error, "run" if loaded else "load", nodes, 0.0, how),
                        )
                    left = left[taken:]
                    lost = False
                if left:
                    rest.append(GraphCases(unit.graph, left))
            if rest:
                self._retry.append(rest)

    def _is_last(self, slot: _Slot, detail: str, hint: str) -> bool:
        """Note that a worker ended without having lost a case; return whether no other is started after
        it."""
        if slot.greeted:
            return self._working.failed(slot.working)
        link = self._launch.link
        at_once = link is not None and self.hello is None and link.final(detail, hint)
        return self._starting.failed(slot.starting) or at_once

    def _lost_at_load(self, unit: GraphCases, left: list[Prepared]) -> int:
        """Return how many of the unit's remaining cases are lost with a worker that ended while it created
        their session."""
        crashes = self._load_crashes[unit.graph.digest] = self._load_crashes.get(unit.graph.digest, 0) + 1
        return len(left) if crashes >= 2 else 1


def _batches(units: Iterator[GraphCases]) -> Iterator[list[GraphCases]]:
    """Group units into batches of some hundred cases or a few MiB; a large unit is split."""
    batch: list[GraphCases] = []
    cases = size = 0
    for graph, prepared in units:
        start = 0
        for end, (_, _, inputs, _) in enumerate(prepared, start=1):
            cases += 1
            for tensor in inputs:
                size += tensor.array.nbytes
            if cases >= _BATCH_CASES or size >= _BATCH_BYTES:
                batch.append(GraphCases(graph, prepared[start:end]))
                yield batch
                batch, start, cases, size = [], end, 0, 0
        if start < len(prepared):
            batch.append(GraphCases(graph, prepared[start:]))
    if batch:
        yield batch
