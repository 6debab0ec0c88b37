"""Targets over ssh, against a real server on loopback: the same answers, clear refusals, and no process left
at the other end."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.model.case import Case, TensorSpec
from harness.model.errors import TargetUnavailable, UsageError
from harness.targets import remote
from harness.targets.execution import Execution, GraphCases
from harness.targets.launches import launch
from harness.targets.launching import Launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from tests import sshd
from tests.needs import need
from tests.prepared import chosen, compiled, prepared_case
from tests.processes import descendants, gone
from tests.running import ROUND, harness, lines_of, results_of, without_time
from tests.sshd import Server

QUERY = "Round@22:sweep=sizes"


@pytest.fixture(scope="module")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    need("ssh", sshd.missing())
    with sshd.server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def server(ssh_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Yield the server; whatever a test started must be gone after it, here and there."""
    monkeypatch.setenv(remote.CONFIG_ENV, str(ssh_server.config))
    before = descendants(os.getpid())
    yield ssh_server
    assert gone(descendants(os.getpid()) - before), "a process is left behind"


def target(host: str = "loopback", python: str = sys.executable) -> str:
    return f"cpu@ssh:{host},python={python}"


def start(**changes: object) -> Launch:
    return launch(parse_target(target()))._replace(**changes)


def answers(pool: WorkerPool, given: list[GraphCases]) -> dict[str, Execution]:
    found = {prepared.case.id: execution for prepared, _, execution in pool.run(iter(given))}
    assert found.keys() == {prepared.case.id for unit in given for prepared in unit.cases}
    return found


def workers(running: Server) -> set[int]:
    """Return the interpreters that the server started."""
    found = set()
    for pid in descendants(running.pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"-c" in words and b"readline" in words[-2] and b"python" in words[0]:
            found.add(pid)
    return found


def with_worker(change: str) -> bytes:
    """Return the program with some lines put before the last part of the worker."""

    line, _, packed = remote.program().partition(b"\n")
    sources = json.loads(zlib.decompress(packed))
    sources["worker"] = sources["worker"].replace(
        'if __name__ == "__main__":', change + '\n\nif __name__ == "__main__":'
    )
    changed = zlib.compress(json.dumps(sources).encode())
    return line.replace(str(len(packed)).encode(), str(len(changed)).encode()) + b"\n" + changed


def test_a_run_over_ssh_equals_one_here(server: Server, tmp_path: Path) -> None:
    ended = harness("run", ROUND, "-k", QUERY, "-t", "cpu", "-t", target(), "-o", tmp_path / "run", "-j", "2")
    assert ended.code == 0, ended.err
    header = lines_of(tmp_path / "run")[0]
    assert header["targets"][target()]["runtime"] == "ssh:loopback"
    assert header["targets"]["cpu"].get("runtime", "this interpreter") == "this interpreter"
    here, there = (without_time(results_of(tmp_path / "run", name)) for name in ("cpu", target()))
    assert len(here) > 20
    for result in (*here.values(), *there.values()):
        del result["target"]
    assert here == there


def test_what_a_case_kills_is_that_case_alone(server: Server) -> None:
    """The worker's output is complete up to the crash, also through the connection."""
    given = chosen(QUERY + ";X=float16")
    crash = """
class OnnxRuntime(OnnxRuntime):
    def run(self, session, unit, arrays, position):
        if arrays[0].size == 5:
            ctypes.string_at(0)
        return super().run(session, unit, arrays, position)
"""
    pool = WorkerPool(start(preamble=with_worker(crash)), size=1, timeout=60)
    found = answers(pool, given)
    size = {prepared.case.id: prepared.inputs[0].array.size for unit in given for prepared in unit.cases}
    lost = {case for case, execution in found.items() if execution.outputs is None}
    assert lost
    assert lost == {case for case in found if size[case] == 5}
    assert {found[case].ended for case in lost} == {"crash"}
    assert pool.restarts == len(lost)


def test_a_hung_case_is_ended_at_the_other_end_too(server: Server) -> None:
    """It neither reads its stdin nor comes back, and more is on its way to it than a pipe holds."""
    hang = "OnnxRuntime.run = lambda *_: time.sleep(600)"
    pool = WorkerPool(start(preamble=with_worker(hang)), size=1, timeout=1)
    given = [big(1 << 20), big((1 << 20) + 1)]
    found = answers(pool, given)
    assert {execution.ended for execution in found.values()} == {"timeout"}
    assert gone(workers(server))


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_lost_connection_leaves_no_process(server: Server, state: str) -> None:
    change = "" if state == "idle" else "OnnxRuntime.run = lambda *_: time.sleep(600)"
    pool = WorkerPool(start(preamble=with_worker(change)), size=1, timeout=60)
    pool.probe()
    if state == "busy":
        process = next(iter(pool._slots))
        pool._hand_out(iter([[chosen(QUERY + ";X=float16")[0]]]))
        time.sleep(0.5)
    left = workers(server)
    assert left
    process = next(iter(pool._slots))
    os.kill(process.pid, signal.SIGKILL)
    assert gone(left)
    pool.close()


def test_a_connection_that_ends_is_not_blamed_on_a_case(server: Server, tmp_path: Path) -> None:
    """The server ends one session in the middle; the cases are run again through another."""
    given = chosen(QUERY + ";X=float16")
    marker = tmp_path / "once"
    cut = f"""
class OnnxRuntime(OnnxRuntime):
    def run(self, session, unit, arrays, position):
        if not os.path.exists({str(marker)!r}):
            open({str(marker)!r}, "w").close()
            parent = os.getppid()
            with open("/proc/%d/cmdline" % parent) as file:
                if "sshd" not in file.read():
                    with open("/proc/%d/stat" % parent) as stat:
                        parent = int(stat.read().rpartition(")")[2].split()[1])
            os.kill(parent, 9)
            time.sleep(60)
        return super().run(session, unit, arrays, position)
"""
    pool = WorkerPool(start(preamble=with_worker(cut)), size=1, timeout=60)
    found = answers(pool, given)
    assert marker.exists()
    assert {execution.ended for execution in found.values()} == {None}
    assert pool.restarts == 1


def test_stray_prints_do_not_reach_the_frames(server: Server) -> None:
    shout = """
class OnnxRuntime(OnnxRuntime):
    def run(self, session, unit, arrays, position):
        print("R" * 100, flush=True)
        os.write(1, b"A" * 500)
        ctypes.CDLL(None).puts(b"puts from a native library")
        return super().run(session, unit, arrays, position)
"""
    pool = WorkerPool(start(preamble=with_worker(shout)), size=1, timeout=60)
    found = answers(pool, chosen(QUERY + ";X=float16"))
    assert all(execution.outputs is not None for execution in found.values())
    assert pool.restarts == 0


def big(elements: int, opset: int = 22) -> GraphCases:
    """Return one case of Round with a large tensor each way."""
    case = Case(
        f"Round@{opset}:case=big;X=float32[{elements}]",
        "Round",
        opset,
        {},
        (TensorSpec("X", "float32", (elements,), "ordinary"),),
    )
    return GraphCases(compiled(case), [prepared_case(case)])


def test_large_tensors_both_ways(server: Server) -> None:
    given = [big(6 << 20), *chosen(QUERY + ";X=float16"), big((6 << 20) + 1)]
    pool = WorkerPool(start(), size=1, timeout=60)
    found = answers(pool, given)
    for unit in (given[0], given[-1]):
        prepared = unit.cases[0]
        outputs = found[prepared.case.id].outputs
        assert outputs is not None
        (output,) = outputs
        np.testing.assert_array_equal(output.array, np.rint(prepared.inputs[0].array))
    assert pool.restarts == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (target("no-such-host.invalid"), "cannot be reached: ssh: Could not resolve hostname"),
        (target("nobody-listens"), "start an ssh server there"),
        (target("no-key"), "install a key there"),
        (target("strange-key"), "log in once by hand and accept the machine's key"),
        (target(python="no-such-python"), "install Python 3.8 or later there or name it with python="),
        (
            target(python=f"{sys.executable} -S -s"),
            "cannot import what the worker needs: No module named 'numpy'; install it there",
        ),
        (
            "dml@ssh:loopback,python=" + sys.executable,
            "not DmlExecutionProvider; install onnxruntime-directml on that machine",
        ),
        (target(python="echo hello; " + sys.executable), "prints something before the worker starts"),
    ],
)
def test_what_is_missing_is_one_line_with_a_remedy(
    server: Server, tmp_path: Path, name: str, says: str
) -> None:
    ended = harness("run", ROUND, "-k", QUERY + ";X=float16", "-t", name, "-o", tmp_path / "run")
    assert ended.code == 3
    (header,) = (line for line in lines_of(tmp_path / "run") if line["type"] == "run")
    reason = header["targets"][name]["unavailable"]
    assert says in reason
    assert "\n" not in reason


def test_without_ssh_the_remedy_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(TargetUnavailable, match="install openssh-client"):
        launch(parse_target("cpu@ssh:somewhere"))


@pytest.mark.parametrize("name", ["cpu@ssh:", "dml@ssh:a b", "fake@ssh:pc", "cpu,python=python3"])
def test_targets_that_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        parse_target(name)


def test_a_host_is_as_ssh_takes_it() -> None:
    for host in (
        *(
            "pc",
            "user@pc",
            "ssh://user@pc:2222",
            "user@10.0.0.7",
            "gpu-box_2.lab",
            "a.b+c@pc",
            "::1",
            "user@fe80::1%eth0",
            "ssh://[::1]:22",
        ),
        *("x", "größe"),
    ):
        assert parse_target(f"dml@ssh:{host},device_id=1").host == host


@pytest.mark.parametrize(
    "host",
    [
        *(
            "-oProxyCommand=x",
            "user@-oProxyCommand=x",
            "-l@pc",
            "ssh://-oProxyCommand=x",
            "pc;touch x",
            "$(touch x)",
            "`touch x`",
            "pc|sh",
        ),
        *(
            "a b",
            "pc\n",
            "pc\tx",
            "pc&",
            "pc>x",
            "pc'",
            'pc"',
            "pc\\x",
            "~root",
            "pc*",
            "pc=x",
            "user@",
            "@pc",
            "ssh://",
            "pc:port",
            "pc-",
        ),
        *("pc#x", "pc%h", "{pc}", "a@b@c", "pc/../x", "\u202epc"),
    ],
)
def test_a_host_is_no_option_and_nothing_to_a_shell(host: str) -> None:
    with pytest.raises(UsageError, match="is not a host; write for instance cpu@ssh:user@pc"):
        parse_target(f"cpu@ssh:{host}")


def test_threads_reach_the_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)  # nothing is started
    started = launch(parse_target("cpu@ssh:pc,python=python3,threads=2"))
    assert (started.threads, started.config["session.intra_op.allow_spinning"]) == (2, "0")


@pytest.mark.skipif(sys.platform == "win32", reason="the shells of a POSIX system")
@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_the_bootstrap_works_in_a_shell(shell: str) -> None:
    greet([shell, "-c", remote.interpreter(sys.executable)])


def test_the_bootstrap_has_nothing_that_a_shell_would_change() -> None:
    line = remote.interpreter("python")
    assert line.count('"') == 2
    assert not set(line) & set("'$`\\%!^&|<>\n")


def greet(argv: list[str], env: dict[str, str] | None = None) -> bytes:
    """Start a worker by the bootstrap alone and return its greeting."""
    request = b'{"kind": "start"}'
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(remote.program() + struct.pack("<II", len(request), 0) + request)
        process.stdin.flush()
        kind, size = struct.unpack("<BI", process.stdout.read(5))
        greeting = process.stdout.read(size)
        assert chr(kind) == "H"
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    return greeting
