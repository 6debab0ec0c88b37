"""Coordinates the lanes of a run: one in this process, or several in processes forked from it.

A case costs as much outside its worker (making inputs and graph, comparing with the oracle) as inside, so a
large run has as many lanes as workers. This process alone writes the run file: lanes send it whole lines, and
at the end of a target their counts. A lane ends with this process, and its workers with it; if a lane dies by
itself, the run ends with a fault and can be continued.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import Any

from harness.model.errors import HarnessFault
from harness.model.header import ClusterNode
from harness.model.shares import BLOCK, LocalNumbers, SharedNumbers
from harness.model.target_info import TargetInfo
from harness.run.job import RunInputs
from harness.run.lanes.lane import Opened, ProcessReport, RunProcess, Shared, Sink
from harness.run.lanes.process import Fault, Lines, fork_lane
from harness.run.resume import Done
from harness.run.target_info import target_info
from harness.targets.launching import Launch
from harness.targets.scratch import sweep
from harness.targets.target import greeted

_CASES = 1000
"""Of which a lane has at least so many: below that, its first batch would be all it does."""
_HEAVY = BLOCK
_END_SECONDS = 5.0


def lanes(work: RunInputs, jobs: int, total: int, *, heavy: bool = False) -> Coordinator:
    """Return the lanes for a run of `total` cases, `heavy` ones or not, on `jobs` workers a target, to be used as a
    context manager."""
    number = min(jobs, total // (_HEAVY if heavy else _CASES))
    if number < 2 or not work.selection.divisible or sys.platform != "linux":
        return Coordinator(work, jobs, at_once=total >= _CASES // 2)
    return ForkingCoordinator(work, jobs, number)


class Coordinator:
    """One lane, in this process."""

    def __init__(self, work: RunInputs, jobs: int, *, at_once: bool) -> None:
        """`at_once`: let all workers of the first target start together, since there is work for each."""
        self._targets = work.targets
        self._shared = Shared([None] * len(work.targets), [LocalNumbers(3) for _ in work.targets])
        self._lane = RunProcess(work, self._shared, jobs, at_once=at_once)

    def open(self, number: int) -> Opened | str:
        """Start the first worker of target `number`; where that is impossible, return the reason."""
        return self._lane.open(number, lambda _: None)

    def run(
        self, number: int, info: TargetInfo, opened: Opened | None, done: Done | None, sink: Sink
    ) -> list[ProcessReport]:
        """Run everything on target `number`. Errors: HarnessError; lines that were made by then have gone to
        `sink`."""
        self._continue(number, done)
        return [self._lane.run(number, info, opened, done, sink)]

    def info(self, number: int, opened: Opened | str) -> TargetInfo:
        """Describe target `number` for the header, by what `open` returned."""
        target = self._targets[number]
        if isinstance(opened, str):
            return TargetInfo(target.provider, unavailable=opened, options=target.options)
        return target_info(greeted(target, opened.hello), opened.hello, opened.launch.runtime)

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """The nodes of a cluster that are there so far; none where everything runs on this machine."""
        return ()

    def _continue(self, number: int, done: Done | None) -> None:
        """Let what the interrupted run kept of target `number` count."""
        if done is not None:
            numbers = self._shared.artifacts[number]
            numbers.take()
            numbers.put(*done.kept.used(self._targets[number].name))

    def close(self) -> None:
        """End all workers and lanes, at once where they are in the middle of something."""
        self._lane.close()

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LaneMember:
    """A lane's process as this one sees it; `ended` is how it ended, None as long as that is not known."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid = pid
        self.connection = connection
        self.ended: str | None = None

    def wait(self) -> str:
        """Wait for the process and say how it ended."""
        if self.ended is None:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self.ended = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return self.ended

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.ended is None:
            os.kill(self.pid, number)


class ForkingCoordinator(Coordinator):
    """Several lanes, each in a process of its own."""

    def __init__(self, work: RunInputs, jobs: int, number: int) -> None:
        """Fork `number` lanes; call before this process has threads or files of the run."""
        self._targets = work.targets
        self._shared = Shared(
            [SharedNumbers(1) for _ in work.targets], [SharedNumbers(3) for _ in work.targets]
        )
        self._inbox: SimpleQueue[tuple[LaneMember, Any]] = SimpleQueue()
        self._members: list[LaneMember] = []
        self._sinking = False
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            for position in range(number):
                size = jobs // number + (position < jobs % number)
                lane = RunProcess(work, self._shared, size, at_once=True)
                self._members.append(
                    LaneMember(*fork_lane(lane, [member.connection for member in self._members]))
                )
        except OSError as error:
            self.close()
            raise HarnessFault(f"a process cannot be forked: {error.strerror}; try a smaller -j") from error
        for member in self._members:
            threading.Thread(target=self._receive, args=(member,), daemon=True).start()

    def open(self, number: int) -> Opened | str:
        """Start the first worker of target `number`, and those of the first target all at once."""
        self._tell(self._members[0], "open", number)
        while True:
            answer = self._next()
            if isinstance(answer, str | Opened):
                return answer
            if isinstance(answer, Launch):
                for member in self._members[1:] if number == 0 else ():
                    self._tell(member, "start", number, answer)

    def run(
        self, number: int, info: TargetInfo, opened: Opened | None, done: Done | None, sink: Sink
    ) -> list[ProcessReport]:
        """Run everything on target `number`. Errors: HarnessError; lines that were made by then have gone to
        `sink`."""
        self._continue(number, done)
        for member in self._members:
            self._tell(member, "run", number, info, opened, done)
        reports: list[ProcessReport] = []
        try:
            while len(reports) < len(self._members):
                answer = self._next()
                if isinstance(answer, Lines):
                    self._sink(answer, sink)
                elif isinstance(answer, ProcessReport):
                    reports.append(answer)
        except BaseException:
            if not self._sinking:
                self._stop(sink)
            raise
        return reports

    def close(self) -> None:
        """End all lanes, and by that their workers."""
        for member in self._members:
            if member.ended is None:
                member.signal(signal.SIGTERM)
        self._wait(lambda _: None)
        for member in self._members:
            member.signal(signal.SIGKILL)
            member.wait()
            member.connection.close()
        if self._members:
            sweep()  # of lanes that were killed; those that ended have left nothing
        self._members.clear()
        for numbers in (*self._shared.blocks, *self._shared.artifacts):
            if numbers is not None:
                numbers.close()
        self._shared = Shared((), ())

    def _tell(self, member: LaneMember, what: str, *arguments: object) -> None:
        with contextlib.suppress(OSError):  # a lane that has ended says so in the inbox
            member.connection.send((what, arguments))

    def _next(self) -> Any:
        member, message = self._inbox.get()
        if message is None:
            raise HarnessFault(f"a process of the run ended ({member.wait()})")
        if isinstance(message, Fault):
            sys.stderr.write(message.trace)
            raise message.error
        return message

    def _sink(self, lines: Lines, sink: Sink) -> None:
        self._sinking = True
        sink(*lines)
        self._sinking = False

    def _stop(self, sink: Sink) -> None:
        """Ask all lanes to end, and take the lines that they still hand over."""
        for member in self._members:
            member.signal(signal.SIGTERM)
        self._wait(lambda lines: self._sink(lines, sink))

    def _wait(self, take: Callable[[Lines], None]) -> None:
        end = monotonic() + _END_SECONDS
        while any(member.ended is None for member in self._members) and monotonic() < end:
            try:
                member, message = self._inbox.get(timeout=max(0.0, end - monotonic()))
            except Empty:
                return
            if message is None:
                member.wait()
            elif isinstance(message, Lines):
                take(message)

    def _receive(self, member: LaneMember) -> None:
        while True:
            try:
                message = member.connection.recv()
            except (OSError, EOFError, pickle.UnpicklingError):
                message = None
            self._inbox.put((member, message))
            if message is None:
                return
