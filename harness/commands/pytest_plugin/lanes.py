"""Runs many cases of a target in several processes, as `harness run` does, and yields their results.

Pytest reports in one process, which takes about as long as running the cases does: lanes prepare and judge them
meanwhile. They wait when pytest is behind, because what they send stays in their pipes.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from multiprocessing.connection import wait
from time import monotonic, sleep

import msgspec

from harness.model.errors import HarnessFault, TargetUnavailable
from harness.model.result import Result
from harness.model.shares import SharedNumbers
from harness.model.target_info import TargetInfo
from harness.run.job import RunInputs
from harness.run.lanes.coordinator import LaneMember
from harness.run.lanes.lane import Opened, ProcessReport, RunProcess, Shared
from harness.run.lanes.process import Fault, Lines, fork_lane
from harness.targets.scratch import sweep

CASES = 1000
"""Of which a lane has at least so many: fewer are run before the lanes have started."""
_END_SECONDS = 5.0


def lanes_for(cases: int, jobs: int) -> int:
    """Return how many lanes run so many cases on so many workers; below 2 none is worth while."""
    return min(jobs, cases // CASES) if sys.platform == "linux" else 0


class LaneResults(Iterator[Result]):
    """The results of all cases of the only target of a run, in no fixed order, the valid ones of each lane
    first.

    Errors while iterating: TargetUnavailable after the last result where workers no longer started,
    HarnessFault for a lane that ended. Close it, or lanes stay.
    """

    def __init__(self, work: RunInputs, info: TargetInfo, opened: Opened, jobs: int, number: int) -> None:
        """Fork `number` lanes and let them begin. Errors: HarnessFault."""
        self._numbers = taken, kept = SharedNumbers(1), SharedNumbers(3)
        shared = Shared([taken], [kept])
        self._members: list[LaneMember] = []
        self._running: list[LaneMember] = []
        self._problem: str | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            for position in range(number):
                size = jobs // number + (position < jobs % number)
                lane = RunProcess(work, shared, size, at_once=True)
                self._members.append(
                    LaneMember(*fork_lane(lane, [member.connection for member in self._members]))
                )
        except OSError as error:
            self.close()
            raise HarnessFault(f"a process cannot be forked: {error.strerror}; try fewer jobs") from error
        self._running = list(self._members)
        for member in self._members:
            member.connection.send(("run", (0, info, opened, None)))
        self._results = self._receive()

    def __next__(self) -> Result:
        return next(self._results)

    def _receive(self) -> Iterator[Result]:
        decode = msgspec.json.Decoder(Result).decode
        while self._running:
            ready = wait([member.connection for member in self._running])
            for member in [member for member in self._running if member.connection in ready]:
                try:
                    message = member.connection.recv()
                except (OSError, EOFError) as error:
                    raise HarnessFault(f"a process of the run ended ({member.wait()})") from error
                if isinstance(message, Lines):
                    yield from map(decode, message.data.splitlines())
                elif isinstance(message, ProcessReport):
                    self._running.remove(member)
                    self._problem = self._problem or message.problem
                elif isinstance(message, Fault):
                    sys.stderr.write(message.trace)
                    raise message.error
        if self._problem is not None:
            raise TargetUnavailable(self._problem)

    def close(self) -> None:
        """End all lanes, and by that their workers; safe to call twice."""
        for member in self._members:
            member.signal(signal.SIGTERM)
        end = monotonic() + _END_SECONDS
        for member in self._members:
            while monotonic() < end and not self._has_left(member):
                sleep(0.005)
            member.signal(signal.SIGKILL)
            member.wait()
            member.connection.close()
        if self._members:
            sweep()  # of lanes that were killed; those that ended have left nothing
            for numbers in self._numbers:
                numbers.close()
        self._members.clear()
        self._running.clear()

    def _has_left(self, member: LaneMember) -> bool:
        """Say whether a lane has closed its side; what it still sent is dropped."""
        try:
            while member.connection.poll(0):
                member.connection.recv()
        except (OSError, EOFError):
            return True
        return False
