"""Workers that another process forks: each ends like one that is started as a program, and none is left behind."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

import pytest

from harness.targets.launches import launch
from harness.targets.process import LOST, Inbox, WorkerProcess
from harness.targets.registry import parse_target
from harness.targets.starting import ForkServer
from tests.processes import descendants, gone, table

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux"),
    pytest.mark.usefixtures("started"),
]
SERVER = Path(__file__).parents[2] / "harness" / "worker" / "fork_server.py"
START = {"kind": "start"}


@pytest.fixture
def server(started: Callable[[], set[int]]) -> Iterator[ForkServer]:
    launched = launch(parse_target("cpu"))
    assert launched.forks == [sys.executable, str(SERVER)]
    server = ForkServer(launched.forks, launched.env or {})
    yield server
    server.end()


def forked(server: ForkServer) -> tuple[WorkerProcess, Inbox]:
    """Fork a worker that greets; the program in its place would end at once."""
    inbox: Inbox = SimpleQueue()
    worker = WorkerProcess([sys.executable, "-c", "import os; os._exit(7)"], None, inbox, server=server)
    worker.send(START)
    return worker, inbox


def greets(inbox: Inbox) -> bool:
    _, data = inbox.get(timeout=60)
    return data is not None and data[:1] == b"H"


def at_its_end(inbox: Inbox) -> None:
    while inbox.get(timeout=60)[1] is not None:
        pass


def test_one_that_is_started_ahead_is_the_first_one_s() -> None:
    argv = [sys.executable, str(SERVER)]
    with ForkServer.ahead(argv, {}):
        other, first, second = (
            ForkServer.of(argv, {"A": "b"}),
            ForkServer.of(argv, {}),
            ForkServer.of(argv, {}),
        )
        assert (other._process, second._process) == (None, None)
        assert first._process is not None
        ahead = first._process.pid
    worker, inbox = forked(first)
    assert greets(inbox)
    assert first._process.pid == ahead
    worker.kill()
    first.end()


def test_one_that_cannot_start_ahead_starts_with_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> NoReturn:
        raise OSError("too many open files")

    argv = [sys.executable, str(SERVER)]
    with monkeypatch.context() as full:
        full.setattr(socket, "socketpair", lambda *_: refused())
        with ForkServer.ahead(argv, {}):
            first = ForkServer.of(argv, {})
    worker, inbox = forked(first)
    assert greets(inbox)
    worker.kill()
    first.end()


def test_one_that_nobody_asks_for_ends() -> None:
    argv = [sys.executable, str(SERVER)]
    with ForkServer.ahead(argv, {}):
        (server,) = ForkServer._ahead.values()
        assert server._process is not None
    assert server._process.returncode == -signal.SIGKILL
    assert ForkServer.of(argv, {})._process is None


def test_workers_are_children_of_one_process_that_has_one_thread(server: ForkServer) -> None:
    workers = [forked(server) for _ in range(2)]
    for worker, inbox in workers:
        assert greets(inbox)
        assert os.getsid(worker.pid) == worker.pid
    (parent,) = {table()[worker.pid] for worker, _ in workers}
    assert table()[parent] == os.getpid()
    assert len(os.listdir(f"/proc/{parent}/task")) == 1, "onnxruntime begins no thread of its own"
    for worker, _ in workers:
        worker.kill()
    assert gone([worker.pid for worker, _ in workers])
    assert parent in table(), "it stays for the next worker"
    assert not descendants(parent)


@pytest.mark.parametrize(
    ("number", "how"),
    [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL"), (signal.SIGABRT, "SIGABRT")],
)
def test_the_signal_that_ended_a_worker_is_named(server: ForkServer, number: int, how: str) -> None:
    (worker, inbox), (other, others) = forked(server), forked(server)
    assert greets(inbox)
    os.kill(worker.pid, number)
    at_its_end(inbox)
    assert worker.end() == how
    assert greets(others), "of the other one nothing is lost"
    other.kill()
    assert gone([worker.pid, other.pid])


def test_what_a_defect_of_the_worker_prints_is_kept(server: ForkServer) -> None:
    worker, inbox = forked(server)
    assert greets(inbox)
    worker.feed(b"\x02\0\0\0\0\0\0\0[]")  # a request that is no batch
    at_its_end(inbox)
    assert worker.end() == "exit code 1"
    assert worker.stderr.splitlines()[-1].startswith("TypeError: list indices")


def test_a_worker_ends_with_its_stream(server: ForkServer) -> None:
    worker, inbox = forked(server)
    assert greets(inbox)
    assert worker._popen.stdin is not None
    worker._popen.stdin.close()
    at_its_end(inbox)
    assert worker.end() == "exit code 0"


def test_a_worker_has_a_folder_and_descriptors_of_its_own(server: ForkServer) -> None:
    worker, inbox = forked(server)
    assert greets(inbox)
    mapped = Path(f"/proc/{worker.pid}/fd")
    assert {each.name for each in mapped.iterdir()} >= {"0", "1", "2"}
    assert all("socket" not in os.readlink(each) for each in mapped.iterdir()), (
        "those are the other process's"
    )
    worker.kill()
    assert not Path(worker._scratch.name).exists()


def test_a_process_that_was_killed_is_started_again(server: ForkServer) -> None:
    worker, inbox = forked(server)
    assert greets(inbox)
    killed = table()[worker.pid]
    os.kill(killed, signal.SIGKILL)
    at_its_end(inbox)
    assert worker.end() == LOST
    assert gone([killed])
    another, inbox = forked(server)
    assert greets(inbox), "the program in its place ends at once"
    assert table()[another.pid] != killed
    another.kill()


def test_workers_start_as_programs_once_the_process_has_ended_by_itself(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")
    server = ForkServer([sys.executable, str(SERVER)], {"PYTHONPATH": str(tmp_path)})
    for how in (LOST, "exit code 7"):
        worker, inbox = forked(server)
        at_its_end(inbox)
        assert worker.end() == how


def test_a_worker_ends_at_once_while_onnxruntime_still_loads(tmp_path: Path) -> None:
    """The process that loads it ends too, of which no worker has begun, and another one is started for the next."""
    (tmp_path / "onnxruntime.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    server = ForkServer([sys.executable, str(SERVER)], {"PYTHONPATH": str(tmp_path)})
    for _ in range(2):
        (worker, _), (other, others) = forked(server), forked(server)
        began = time.monotonic()
        worker.kill()
        assert time.monotonic() - began < 5
        at_its_end(others)
        assert other.end() == LOST


def test_an_end_is_reported_once(server: ForkServer) -> None:
    """Also where nobody has asked for it when others end."""
    (worker, inbox), *others = [forked(server) for _ in range(3)]
    assert greets(inbox)
    os.kill(worker.pid, signal.SIGSEGV)
    for other, news in others:
        assert greets(news)
        os.kill(other.pid, signal.SIGSEGV)
        assert other.end() == "SIGSEGV"
    popen: Any = worker._popen
    code = popen._status.recv(1 << 10, socket.MSG_PEEK)
    assert code == (-signal.SIGSEGV).to_bytes(4, sys.byteorder, signed=True)
    assert worker.end() == "SIGSEGV"


def test_no_descriptor_stays_open_where_the_system_has_too_few(server: ForkServer) -> None:
    first, inbox = forked(server)
    assert greets(inbox)
    resource: Any = importlib.import_module("resource")  # which Windows lacks
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each) for each in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 16, limits[1]))
    taken: list[int] = []

    def take_all() -> int:
        before = len(taken)
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        return len(taken) - before

    try:
        gc.collect()  # else what earlier tests left closes its descriptors at any time
        take_all()
        for free in range(8):  # a worker needs eight
            for _ in range(free):
                os.close(taken.pop())
            with pytest.raises(OSError, match="Too many open files"):
                server.fork({})
            assert take_all() == free
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for each in taken:
            os.close(each)
    first.kill()


def test_a_worker_that_hangs_before_it_is_forked_can_be_ended(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it end the process that does not answer and its other workers."""
    monkeypatch.setattr("harness.targets.starting._SECONDS", 0.5)
    first, inbox = forked(server)
    assert greets(inbox)
    os.kill(table()[first.pid], signal.SIGSTOP)
    worker, _ = forked(server)
    began = time.monotonic()
    worker.kill()
    assert time.monotonic() - began < 5
    at_its_end(inbox)
    assert first.end() == LOST


def test_a_worker_ends_although_the_process_that_forked_it_does_not_answer(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.targets.starting._SECONDS", 0.5)
    worker, inbox = forked(server)
    assert greets(inbox)
    os.kill(table()[worker.pid], signal.SIGSTOP)
    began = time.monotonic()
    worker.kill()
    assert time.monotonic() - began < 5
    assert gone([worker.pid])


def test_where_onnxruntime_has_threads_workers_start_as_programs(tmp_path: Path) -> None:
    """As a release does whose telemetry runs: a forked process would lack them."""
    begins = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    (tmp_path / "onnxruntime.py").write_text(begins, encoding="utf-8")
    server = ForkServer([sys.executable, str(SERVER)], {"PYTHONPATH": str(tmp_path)})
    worker, inbox = forked(server)
    at_its_end(inbox)  # this onnxruntime is none
    assert worker.end() == "exit code 1"
    assert "set_default_logger_severity" in worker.stderr.splitlines()[-1]
    assert "worker.py" in worker.stderr
    assert "fork_server.py" not in worker.stderr


def test_a_system_without_room_for_a_process_ends_no_other_worker(tmp_path: Path) -> None:
    """The process that forks stays: the program in its worker's place would say 7."""
    once = "import os\nfork = os.fork\ndef first():\n    os.fork = fork\n    raise BlockingIOError(11, 'none left')\nos.fork = first\n"
    (tmp_path / "onnxruntime.py").write_text(once, encoding="utf-8")
    server = ForkServer([sys.executable, str(SERVER)], {"PYTHONPATH": str(tmp_path)})
    for how in (LOST, "exit code 1"):
        worker, inbox = forked(server)
        at_its_end(inbox)
        assert worker.end() == how


def test_the_worker_is_found_where_python_adds_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    server = ForkServer([sys.executable, str(SERVER)], {})
    worker, inbox = forked(server)
    assert greets(inbox)
    worker.kill()


STARTS = """
import sys, time
from queue import SimpleQueue
from harness.targets.launches import launch
from harness.targets.process import WorkerProcess
from harness.targets.registry import parse_target
from harness.targets.starting import ForkServer
launched = launch(parse_target("cpu"))
server = ForkServer(launched.forks, launched.env)
started = [WorkerProcess(launched.argv, launched.env, SimpleQueue(), server=server) for _ in range(3)]
print(*(each.pid for each in started), flush=True)
time.sleep(600)
"""


def test_stopped_workers_die_with_a_killed_harness(started: Callable[[], set[int]]) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        time.sleep(0.2)  # until each has asked to die with the process that forked it
        for pid in (*pids, table()[pids[0]]):
            os.kill(pid, signal.SIGSTOP)
        process.kill()
    assert len(pids) == 3
    assert gone(pids)
    assert not started()
