"""A lane's process: forked from the first one, controlled through a connection, ended with its parent."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from types import FrameType
from typing import NamedTuple

from harness.model.errors import HarnessError, HarnessFault
from harness.model.fork import fork
from harness.model.target_info import TargetInfo
from harness.run.lanes.lane import Opened, RunProcess
from harness.run.resume import Done
from harness.worker.worker import die_with_parent


class Lines(NamedTuple):
    """A message: lines of the run file."""

    data: bytes
    number: int


class Fault(NamedTuple):
    """A message: why a lane ends; with the traceback of a defect."""

    error: HarnessError
    trace: str = ""


def fork_lane(lane: RunProcess, inherited: Sequence[Connection]) -> tuple[int, Connection]:
    """Start a process for a lane; return its id and the connection to it. `inherited` are connections that
    are not the child's."""
    ours, theirs = Pipe()
    parent = os.getpid()
    pid = fork()
    if pid:
        theirs.close()
        return pid, ours
    try:
        for connection in (*inherited, ours):
            connection.close()
        os.environ["HARNESS_PARENT"] = str(parent)
        die_with_parent()
        os.setsid()  # Ctrl-C reaches the first process alone, which then asks the lanes to end
        _Process(lane, theirs).serve()
    finally:
        os._exit(0)


class _Process:
    """A lane's own side: does what it is told until the connection ends or SIGTERM comes."""

    def __init__(self, lane: RunProcess, connection: Connection) -> None:
        self._lane = lane
        self._connection = connection
        self._sending = False
        self._interrupted = False
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, self._interrupt)

    def serve(self) -> None:
        try:
            while True:
                name, arguments = self._connection.recv()
                if name == "run":
                    self._run(*arguments)
                elif name == "open":
                    (number,) = arguments
                    self._send(self._lane.open(number, self._send))
                else:
                    self._lane.start(*arguments)
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            pass
        except HarnessError as error:
            self._send(Fault(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the first process tells it
            fault = HarnessFault(f"a fault in the harness: {type(error).__name__}: {error}")
            self._send(Fault(fault, traceback.format_exc()))
        finally:
            self._lane.close()

    def _run(self, number: int, info: TargetInfo, opened: Opened | None, done: Done | None) -> None:
        self._send(
            self._lane.run(number, info, opened, done, lambda data, lines: self._send(Lines(data, lines)))
        )

    def _send(self, message: object) -> None:
        """Send a whole message: an interruption waits until it is out."""
        self._sending = True
        self._connection.send(message)
        self._sending = False
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._sending:
            self._interrupted = True
        else:
            raise KeyboardInterrupt
