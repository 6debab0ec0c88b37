"""A run process of its own: forked from the first one, controlled through a connection, ended with its parent."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from harness.model.fork import fork
from harness.model.target_info import TargetInfo
from harness.run.artifacts import Artifacts
from harness.run.numbers import LocalNumbers
from harness.run.processes.process import Fault, Opened, RunProcess
from harness.run.resume import Done
from harness.specs.blocks import CaseBlock
from harness.worker.worker import die_with_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

ENDING = (signal.SIGINT, signal.SIGTERM)
"""What the first process holds back while it forks, until each process has handlers of its own."""


class Lines(NamedTuple):
    """A message: lines of the run file."""

    data: bytes
    number: int


class Shared(NamedTuple):
    """The cases of a run, and what its processes share of each target: which block is next, and the artifacts."""

    blocks: Callable[[], Iterable[CaseBlock]]
    next_block: Sequence[LocalNumbers]
    artifacts: Sequence[Artifacts | None]

    def taken(self, number: int) -> Iterator[CaseBlock]:
        """Yield blocks for target `number` that no other process takes: the next free one when this one has use for
        it, so that all processes end at about the same time."""
        mine = -1
        for block in self.blocks():
            if block.number > mine:
                (mine,) = self.next_block[number].take()
                self.next_block[number].put(mine + 1)
            if block.number == mine:
                yield block


class ForkedProcess:
    """A run process as the first process sees it; `ended` is how it ended, None as long as that is not known."""

    def __init__(self, process: RunProcess, shared: Shared, others: Sequence[ForkedProcess]) -> None:
        """Fork it; the connections of `others` are not the child's. Errors: OSError."""
        from multiprocessing.connection import Pipe  # a run of one process does without

        self.connection, theirs = Pipe()
        self.ended: str | None = None
        parent = os.getpid()
        self.pid = fork()
        if self.pid:
            theirs.close()
            return
        try:
            for each in (*others, self):
                each.connection.close()
            os.environ["HARNESS_PARENT"] = str(parent)
            die_with_parent()
            os.setsid()  # away from the terminal: the first process asks this one to end
            _Served(process, shared, theirs).serve()
        finally:
            os._exit(0)

    def tell(self, what: str, *arguments: object) -> None:
        """Ask it for something; one that has ended says so in its connection."""
        with contextlib.suppress(OSError):
            self.connection.send((what, arguments))

    def wait(self) -> str:
        """Wait for the process and say how it ended."""
        if self.ended is None:
            try:
                code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # an interruption came before the line below was reached
                code = 0
            self.ended = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return self.ended


class _Served:
    """The side of the process: handles requests until the connection ends or SIGTERM arrives."""

    def __init__(self, process: RunProcess, shared: Shared, connection: Connection) -> None:
        self._process = process
        self._shared = shared
        self._connection = connection
        self._sending = False
        self._interrupted = False
        # Ctrl-C is the first process's to answer, even where all processes get it; workers inherit this
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._interrupt)

    def serve(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            while True:
                name, arguments = self._connection.recv()
                if name == "run":
                    self._run(*arguments)
                elif name == "open":
                    (number,) = arguments
                    self._send(self._process.open(number, self._send))
                else:
                    self._process.start(*arguments)
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the first process reports it
            self._send(Fault.of(error))
        finally:
            self._process.close()

    def _run(self, number: int, info: TargetInfo, opened: Opened | None, done: Done | None) -> None:
        blocks, artifacts = self._shared.taken(number), self._shared.artifacts[number]
        report = self._process.run(
            number, info, opened, done, blocks, artifacts, lambda data, lines: self._send(Lines(data, lines))
        )
        self._send(report)

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
