"""Forks workers from a process that has NumPy and onnxruntime loaded: on Linux, in the interpreter of the harness.

The argument names another module than `worker` to fork workers of: one with `load` and `main`, as the fake target has.
`targets/starting.py` starts this program and connects its descriptor 0, a socket of whole messages. A request is the
environment that a worker has beside this process's (JSON), with four descriptors: its standard streams, and a socket
that takes two i32, the worker's process id and, once it has ended, its exit code or the negative number of a signal. An
ended worker keeps its process id until the other side closes that socket, which also ends one that still runs. This
side of the socket of requests is shut down for writing once the module is loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import traceback
from typing import Any, NoReturn

NUMBER = struct.Struct("<i")


class ForkLoop:
    """The workers that this process forked, by the descriptor of the socket that says how each ended."""

    def __init__(self) -> None:
        self._control = socket.socket(fileno=0)
        self._pids: dict[int, int] = {}
        self._running: set[int] = set()
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)
        self._woken = woken
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN)
        self._poll.register(woken, select.POLLIN)
        sys.path.insert(0, os.path.dirname(__file__))  # also where Python is told not to
        self._name = sys.argv[1] if len(sys.argv) > 1 else "worker"
        self._worker: Any = importlib.import_module(self._name)
        try:
            self._worker.load()
            self._forks = len(os.listdir("/proc/self/task")) == 1  # a forked process lacks the other threads
        except Exception:  # noqa: BLE001 - a worker that starts from the beginning says what is wrong
            self._forks = False

    def serve(self) -> None:
        """Say that the module is loaded, then answer requests until the other side of the socket is closed."""
        self._control.shutdown(socket.SHUT_WR)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._woken:
                    os.read(descriptor, 4096)
                    self._report()
                elif descriptor in self._pids:
                    self._release(descriptor)
                else:
                    data, received, _, _ = socket.recv_fds(self._control, 1 << 16, 4)
                    if not data:
                        return
                    self._start(json.loads(data), received)

    def _start(self, environment: dict[str, str], received: list[int]) -> None:
        parent = os.getpid()
        *ended, status = received
        try:
            pid = os.fork()
        except OSError:  # the system has no room for another process: this one worker does not start
            ended.append(status)
        else:
            if not pid:
                self._become_worker(dict(environment, HARNESS_PARENT=str(parent)), received)
            self._pids[status] = pid
            self._running.add(status)
            self._poll.register(status, select.POLLIN)
        for each in ended:
            os.close(each)

    def _become_worker(self, environment: dict[str, str], received: list[int]) -> NoReturn:
        """Be a worker as `worker.py` is one that is started as a program."""
        code = 1
        try:
            os.setsid()  # before the other side knows the process id, which it takes for that of a group
            os.write(received[3], NUMBER.pack(os.getpid()))
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, each in enumerate(received[:3]):
                os.dup2(each, number)
            for each in (self._woken, signal.set_wakeup_fd(-1), *received, *self._pids):
                os.close(each)
            os.environ.update(environment)
            if not self._forks:
                program = ["-m", self._name] if "." in self._name else [self._worker.__file__]
                os.execv(sys.executable, [sys.executable, *program])
            self._worker.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:  # noqa: BLE001 - a program ends like this too
            traceback.print_exc()
        finally:
            os._exit(code)

    def _report(self) -> None:
        for status in tuple(self._running):
            ended = os.waitid(os.P_PID, self._pids[status], os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._running.remove(status)
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                with contextlib.suppress(OSError):  # nobody asks any more
                    os.write(status, NUMBER.pack(code))

    def _release(self, status: int) -> None:
        pid = self._pids.pop(status)
        self._running.discard(status)
        self._poll.unregister(status)
        os.close(status)
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):  # it made no group
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    ForkLoop().serve()
    os._exit(0)
