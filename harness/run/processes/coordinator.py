"""Coordinates the processes of a run: this one alone, or several that are forked from it.

A case costs as much outside its worker (making inputs and graph, comparing with the oracle) as inside, so a
large run has as many processes as workers. This process alone writes the run file: the others, each controlled
through a connection, send it whole lines, and at the end of a target their counts. They end with this process, and
their workers with them; if one of them dies by itself, the run ends with a fault and can be continued.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from queue import Empty, Queue
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.model.errors import HarnessFault
from harness.model.fork import fork
from harness.model.header import ClusterNode
from harness.model.target_info import TargetInfo
from harness.run.artifacts import Artifacts
from harness.run.job import RunInputs
from harness.run.numbers import LocalNumbers, SharedNumbers
from harness.run.processes.process import Fault, Opened, ProcessReport, RunProcess, Sink, TargetPart, info_of
from harness.specs.selection import MOST_CASES, CaseBlock, block_size
from harness.targets.launching import Launch
from harness.targets.programs import how_ended
from harness.targets.scratch import sweep
from harness.worker.worker import die_with_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

CASES = 1000
"""The fewest cases of a process: with fewer, its first batch would be all its work."""
HEAVY_CASES = 64
"""The same of the calls of a model."""
_AHEAD = 64
"""Messages that wait to be taken, before those who send them wait."""
_END_SECONDS = 5.0
_SIGNAL_SECONDS = 0.2
_ENDING = (signal.SIGINT, signal.SIGTERM)
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
            self.ended = how_ended(code)
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
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
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

    def _run(self, part: TargetPart) -> None:
        blocks, artifacts = self._shared.taken(part.number), self._shared.artifacts[part.number]
        report = self._process.run(
            part, blocks, artifacts, lambda data, lines: self._send(Lines(data, lines))
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


def processes_for(total: int, jobs: int, *, heavy: bool = False) -> int:
    """Return the number of processes for a number of cases, `heavy` ones or not, and of workers a target."""
    return max(1, min(jobs, total // (HEAVY_CASES if heavy else CASES))) if sys.platform == "linux" else 1


def coordinator(work: RunInputs, jobs: int, total: int, *, heavy: bool = False) -> Coordinator:
    """Return the processes for a run of `total` cases on `jobs` workers a target, to be used as a context
    manager."""
    if (number := processes_for(total, jobs, heavy=heavy)) > 1:
        return ForkingCoordinator(work, jobs, total, number)
    return Coordinator(work, jobs)


class Coordinator:
    """Runs everything in this process."""

    def __init__(self, work: RunInputs, jobs: int) -> None:
        self._work = work
        self._used: Sequence[LocalNumbers] = [LocalNumbers(3) for _ in work.targets]
        self._process = RunProcess(work, jobs)

    def open(self, number: int) -> Opened | str:
        """Start the first worker of target `number`; where that is impossible, return the reason."""
        return self._process.open(number)

    def run(self, part: TargetPart, sink: Sink) -> list[ProcessReport]:
        """Run everything on a target. Errors: HarnessError; lines that were made by then have gone to `sink`."""
        self._continue(part)
        blocks, artifacts = self._work.selection.blocks(MOST_CASES), self._artifacts(part.number)
        return [self._process.run(part, blocks, artifacts, sink)]

    def info(self, number: int, opened: Opened | str) -> TargetInfo:
        """Describe target `number` for the header, by what `open` returned."""
        return info_of(self._work.targets[number], opened)

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """The nodes of a cluster that are there so far; none where everything runs on this machine."""
        return ()

    def _artifacts(self, number: int) -> Artifacts | None:
        folder = self._work.artifacts
        return None if folder is None else Artifacts(folder, self._used[number])

    def _continue(self, part: TargetPart) -> None:
        """Let what the interrupted run kept of a target count."""
        if part.done is not None:
            self._used[part.number].take()
            self._used[part.number].put(*part.done.kept.used(self._work.targets[part.number].name))

    def close(self) -> None:
        """End all workers and processes, at once where they are in the middle of something."""
        self._process.close()

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ForkingCoordinator(Coordinator):
    """Runs everything in several processes."""

    def __init__(self, work: RunInputs, jobs: int, total: int, number: int) -> None:
        """Fork `number` processes; call before this one has threads or files of the run. Errors: HarnessFault."""
        self._work = work
        self._used = [SharedNumbers(3) for _ in work.targets]
        self._next = [SharedNumbers(1) for _ in work.targets]
        self._inbox: Queue[tuple[ForkedProcess, Any]] = Queue(_AHEAD)
        self._processes: list[ForkedProcess] = []
        blocks = partial(work.selection.blocks, block_size(total, number))
        shared = Shared(blocks, self._next, list(map(self._artifacts, range(len(work.targets)))))
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            for position in range(number):
                process = RunProcess(work, jobs // number + (position < jobs % number), at_once=True)
                self._processes.append(ForkedProcess(process, shared, self._processes))
        except OSError as error:
            self.close()
            raise HarnessFault(f"a process cannot be forked: {error.strerror}; try a smaller -j") from error
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        for each in self._processes:
            threading.Thread(target=self._receive, args=(each,), daemon=True).start()

    def open(self, number: int) -> Opened | str:
        """Start the first worker of target `number`, and those of the first target all at once."""
        self._processes[0].tell("open", number)
        while True:
            answer = self._take()
            if isinstance(answer, str | Opened):
                return answer
            if isinstance(answer, Launch):
                for process in self._processes[1:] if number == 0 else ():
                    process.tell("start", number, answer)

    def run(self, part: TargetPart, sink: Sink) -> list[ProcessReport]:
        """Run everything on a target. Errors: HarnessError; lines that were made by then have gone to `sink`."""
        reports: list[ProcessReport] = []
        writing = False
        try:
            for message in self.messages(part):
                if isinstance(message, ProcessReport):
                    reports.append(message)
                    continue
                writing = True
                sink(*message)
                writing = False
        except BaseException:
            if not writing:
                self._signal(signal.SIGTERM)
                for lines in self._last():
                    sink(*lines)
            raise
        return reports

    def messages(self, part: TargetPart) -> Iterator[Lines | ProcessReport]:
        """Run all blocks on a target; yield its lines, and a report of each process. Processes wait while
        nobody reads their messages. Errors: HarnessError."""
        self._continue(part)
        for process in self._processes:
            process.tell("run", part)
        left = len(self._processes)
        while left:
            message = self._take()
            left -= isinstance(message, ProcessReport)
            yield message

    def close(self) -> None:
        """End all processes, and by that their workers; safe to call twice."""
        if not self._processes:
            return
        self._signal(signal.SIGTERM)
        for _ in self._last():
            pass
        self._signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()
            process.connection.close()
        sweep()  # of processes that were killed; those that ended have left nothing
        self._processes.clear()
        for numbers in (*self._next, *self._used):
            numbers.close()

    def _signal(self, number: int) -> None:
        for process in self._processes:
            if process.ended is None:
                with contextlib.suppress(ProcessLookupError):  # an interrupted `wait` can have taken its end
                    os.kill(process.pid, number)

    def _take(self) -> Any:
        process, message = self._inbox.get()
        if message is None:
            ended = process.wait()
            sleep(
                _SIGNAL_SECONDS
            )  # a signal to all processes may reach this one last, and interrupts it here
            raise HarnessFault(f"a process of the run ended ({ended})")
        if isinstance(message, Fault):
            message.reraise()
        return message

    def _last(self) -> Iterator[Lines]:
        """Wait until all processes have ended, some seconds at most, and yield the lines that they still hand over."""
        end = monotonic() + _END_SECONDS
        while any(process.ended is None for process in self._processes) and monotonic() < end:
            try:
                process, message = self._inbox.get(timeout=max(0.0, end - monotonic()))
            except Empty:
                return
            if message is None:
                process.wait()
            elif isinstance(message, Lines):
                yield message

    def _receive(self, process: ForkedProcess) -> None:
        message: Any = ...
        while message is not None:
            try:
                message = process.connection.recv()
            except (OSError, EOFError, pickle.UnpicklingError):
                message = None
            self._inbox.put((process, message))
