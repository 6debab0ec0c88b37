"""One worker process: started in its own process session, read and written by threads, ended without a trace."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import msgspec

from harness.targets.programs import how_ended
from harness.targets.scratch import Scratch
from harness.targets.starting import ORPHANED, ForkedWorker, ForkServer, started
from harness.worker.worker import ANNOUNCED, FRAME, REQUEST

LOST = "not forked, or ended with the process that forked it"
"""How a worker ended that no case of its own has ended."""
fcntl: Any = importlib.import_module("fcntl") if sys.platform == "linux" else None
_KEPT_STDERR = 1 << 13
_LOGGED = re.compile(r"^[-0-9]+ [0-9:.]+ \[[VI]:onnxruntime:.*\n?", re.MULTILINE)
"""A line of ONNX Runtime's log, verbose or informative."""
_NAP = 0.03
"""Seconds for which the frames of short cases add up."""
_MUCH = 1 << 14
Inbox = SimpleQueue[tuple["WorkerProcess", bytes | None]]
"""What the reader threads deliver: bytes as they arrive, None at the end of a worker's stream."""


class WorkerProcess:
    """A running worker. `send` never blocks; what the worker writes arrives in the inbox; `stderr` keeps the
    last 8 KiB it printed."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        inbox: Inbox,
        server: ForkServer | None = None,
    ) -> None:
        """Start a worker, or fork it where there is a `server`."""
        # what a worker that is killed leaves in its temporary folder goes with it
        self._scratch = Scratch()
        own = dict.fromkeys(("TEMP", "TMP") if sys.platform == "win32" else ("TMPDIR",), self._scratch.name)
        self._popen: subprocess.Popen[bytes] | ForkedWorker
        try:
            if server is None:
                raise OSError
            self._popen = server.fork(own)
        except OSError:  # the server ended: a worker that starts as a program says why
            pipe = subprocess.PIPE
            self._popen = started(
                argv, {**(env or {}), **own}, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
            )
        for stream in (self._popen.stdin, self._popen.stdout) if fcntl is not None else ():
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream, fcntl.F_SETPIPE_SZ, 1 << 20)
        self._inbox = inbox
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._stderr: deque[bytes] = deque()
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._read, self._write, self._read_stderr)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def stderr(self) -> str:
        """The end of what the worker and its libraries printed, without ONNX Runtime's log of what went well; some of
        Windows' print UTF-16."""
        printed = b"".join(self._stderr)
        text = printed[-_KEPT_STDERR:].decode("utf-8", "replace").replace("\0", "")
        if len(printed) > _KEPT_STDERR and _LOGGED.search(text):
            text = text.partition("\n")[2]  # the first line lacks its beginning
        return _LOGGED.sub("", text).strip()

    def feed(self, data: bytes) -> None:
        """Queue bytes that come before the first request."""
        self._outbox.put(data)

    def send(self, header: object, payload: Sequence[bytes] = ()) -> None:
        """Queue one request."""
        head = msgspec.json.encode(header)
        body = b"".join(payload)
        self._outbox.put(REQUEST.pack(len(head), len(body)) + head + body)

    def end(self) -> str:
        """Wait for a worker whose stream has ended and say how: `SIGSEGV`, `exit code 3`, LOST."""
        try:
            code = self._popen.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._popen.wait()
        self._close()
        if code == ORPHANED:
            return LOST
        return how_ended(code)

    def kill(self) -> None:
        """End the worker and everything it started, at once."""
        if sys.platform == "win32" or isinstance(self._popen, ForkedWorker):
            self._popen.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._close()

    def _close(self) -> None:
        self._outbox.put(None)
        for thread in self._threads:
            thread.join(timeout=10)
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._scratch.cleanup()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        descriptor = self._popen.stdout.fileno()
        while True:
            data = os.read(descriptor, 1 << 20)
            self._inbox.put((self, data or None))
            if not data:
                return
            # an answer, and the next case runs: to wake up for the frames of each costs more than a short case
            if FRAME.size < len(data) < _MUCH and data.endswith(ANNOUNCED):
                _nap(descriptor)

    def _read_stderr(self) -> None:
        assert self._popen.stderr is not None
        descriptor = self._popen.stderr.fileno()
        while data := os.read(descriptor, 1 << 16):
            self._stderr.append(data)
            while len(self._stderr) > 1 and sum(map(len, self._stderr)) > 2 * _KEPT_STDERR:
                self._stderr.popleft()

    def _write(self) -> None:
        assert self._popen.stdin is not None
        descriptor = self._popen.stdin.fileno()
        while (data := self._outbox.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(descriptor, view) :]
            except OSError:
                return  # the reader sees the end of the worker's stream and reports it


def _nap(descriptor: int) -> None:
    """Wait a little, but no longer than the other end of a pipe is open."""
    if sys.platform == "win32":
        time.sleep(_NAP)
    else:
        closed = select.poll()
        closed.register(descriptor, 0)
        closed.poll(_NAP * 1000)
