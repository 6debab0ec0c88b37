"""How workers start: as a program, or forked in milliseconds from a process that has onnxruntime loaded, where a program
takes a tenth of a second."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar

import msgspec

from harness.worker.fork_server import NUMBER

_PR_SET_PDEATHSIG = 1
_SECONDS = 10.0
"""How long it may take to learn of a worker that is to end, whether it has begun or has ended."""

ORPHANED = -(1 << 8)
"""The exit code of a worker that was not forked or whose server has ended; no signal has this number."""


def dying_with(parent: int) -> Callable[[], None] | None:
    """Return the preparation of a new process, with which a killed parent leaves none behind, not even a stopped one;
    a signal to all processes, of Ctrl-C or of Slurm, is the parent's to answer: a worker that ended by it would
    stand in the run as a crash.

    The worker asks the same for itself, but only once its interpreter is up. None where the system has no
    such request.
    """
    if sys.platform != "linux":
        return None
    request = ctypes.CDLL(None).prctl

    def ask() -> None:
        request(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def started(argv: Sequence[str], environment: Mapping[str, str], **settings: Any) -> subprocess.Popen[bytes]:
    """Start a program that ends with this process, with these variables beside those of this process."""
    # a group of its own: Ctrl-C reaches the harness alone, which then ends its workers
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of a fork beside threads: what runs in it takes no lock
        return subprocess.Popen(
            list(argv),
            env={**os.environ, **environment, "HARNESS_PARENT": str(os.getpid())},
            preexec_fn=dying_with(os.getpid()),
            **group,
            **settings,
        )


class ForkServer:
    """Starts `argv` with the first worker, or `ahead` of it, and ends it with this object. A worker has the environment and
    the working folder that this process had then."""

    _ahead: ClassVar[dict[tuple[object, ...], ForkServer]] = {}

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv = argv
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self.end: Callable[[], object] = lambda: None
        """Ends the process and its workers before this object's end."""

    @classmethod
    @contextlib.contextmanager
    def ahead(cls, argv: Sequence[str], environment: Mapping[str, str]) -> Iterator[None]:
        """Start the program for the first to ask for it in this block with `of`: it loads while this process does something
        else."""
        server = cls._ahead[_key(argv, environment)] = cls(argv, environment)
        try:
            with contextlib.suppress(OSError):  # said of the first worker, which tries again
                server._start()
            yield
        finally:
            if cls._ahead.pop(_key(argv, environment), None) is not None:
                server.end()

    @classmethod
    def of(cls, argv: Sequence[str], environment: Mapping[str, str]) -> ForkServer:
        """Return the one that was started ahead by this process, or another one."""
        return cls._ahead.pop(_key(argv, environment), None) or cls(argv, environment)

    def fork(self, environment: Mapping[str, str]) -> ForkedWorker:
        """Fork a worker with these variables of its own; a process that was killed is started again. Errors: OSError
        where it has ended by itself, as another one would."""
        process = self._process
        if process is None or process.poll() == -signal.SIGKILL:
            process = self._start()
        return ForkedWorker(process, self._control, environment)

    def _start(self) -> subprocess.Popen[bytes]:
        self.end()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            null = subprocess.DEVNULL
            self._process = started(self._argv, self._environment, stdin=theirs, stdout=null, stderr=null)
        self.end = weakref.finalize(self, _end, self._process, self._control)
        return self._process


def _key(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[object, ...]:
    return os.getpid(), *argv, *sorted(environment.items())


def _end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    process.kill()
    process.wait()


class ForkedWorker:
    """A worker that was forked: what is used of `subprocess.Popen` for one that is started as a program."""

    def __init__(
        self, server: subprocess.Popen[bytes], control: socket.socket, environment: Mapping[str, str]
    ) -> None:
        self._server, self._control = server, control
        self._pid: int | None = None
        self._code: int | None = None
        streams: list[IO[bytes]] = []
        given: list[int] = []
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            for mode, end in (("wb", 1), ("rb", 0), ("rb", 0)):
                pipe = os.pipe()
                given.append(pipe[1 - end])
                theirs.callback(os.close, given[-1])
                streams.append(ours.enter_context(open(pipe[end], mode, buffering=0)))
            self.stdin, self.stdout, self.stderr = streams
            self._status, status = socket.socketpair()
            ours.enter_context(self._status)
            theirs.enter_context(status)
            socket.send_fds(control, [msgspec.json.encode(environment)], [*given, status.fileno()])
            ours.pop_all()

    @property
    def pid(self) -> int:
        """The process id, which stays the worker's until `wait` returns. Errors: ProcessLookupError where it was never
        forked."""
        if self._pid is None:
            self._pid = self._number()
        if self._pid < 0:
            raise ProcessLookupError("the worker was not forked")
        return self._pid

    def kill(self) -> None:
        """End the worker and everything it started, at once: with the server while that still loads onnxruntime, when
        it has forked none."""
        try:
            self._control.recv(1, socket.MSG_DONTWAIT)
        except OSError:
            _end(self._server, self._control)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code, the negative number of a signal, or ORPHANED. Errors:
        TimeoutExpired."""
        with contextlib.suppress(ProcessLookupError):
            _ = self.pid
        if self._code is None:
            self._code = self._number(timeout)
        self._status.close()
        return self._code

    def _number(self, timeout: float | None = None) -> int:
        """Receive the process id, then the exit code; ORPHANED where the server has ended, or is ended here because it
        does not answer."""
        self._status.settimeout(_SECONDS if timeout is None else timeout)
        try:
            if data := self._status.recv(NUMBER.size):
                return int(NUMBER.unpack(data)[0])
        except TimeoutError:
            if timeout is not None:
                raise subprocess.TimeoutExpired("worker", timeout) from None
            _end(self._server, self._control)
        self._code = ORPHANED
        return self._code
