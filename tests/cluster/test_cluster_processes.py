"""Runs on real processes of Dask: nodes that are killed, Ctrl-C, schedulers that are not there."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.run.cluster import scheduler
from harness.run.cluster.scheduler import NodeCame, NodeGone, TaskEnded, connected
from tests.cluster.lacking import need_dask
from tests.needs import need
from tests.processes import descendants, gone
from tests.running import HARNESS, ROUND, complaint, harness, lines_of, results_of, without_time

ROOT = Path(__file__).parents[2]
ONE = ["run", str(ROUND), "-t", "cpu", "-j", "1"]
FAMILIES = ("ScatterND", "TopK", "Add", "ReduceSum", "Softmax", "Conv", "MaxPool", "LSTM")
BY_HISTORY = {
    "Gemm", "GroupNormalization", "LogSoftmax", "LSTM", "MatMulInteger",
    "ReduceLogSum", "ReduceMax", "ReduceMean", "ReduceProd", "ReduceSum",
}  # fmt: skip
"""Operators of which some outputs on the CPU provider depend on what ran before in the process: on memory that is read
before it is written (LSTM of elements of no numbers, which an expectation says), or on how a buffer lies."""
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture(autouse=True)
def _dask() -> None:
    need_dask()


def nodes_of(pid: int) -> list[int]:
    """Return the processes of the nodes below a harness, or among workers started by hand."""
    found = []
    for each in descendants(pid):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(each)
    return found


def cmdline(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def started(arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with open(log, "wb") as file:
        return subprocess.Popen([*HARNESS, *arguments], stdout=file, stderr=file, start_new_session=True)


def begun(process: subprocess.Popen[bytes], out: Path) -> None:
    """Wait until a run has written results."""
    while process.poll() is None and not (
        (out / "run.jsonl").exists() and (out / "run.jsonl").read_bytes().count(b"\n") > 1
    ):
        time.sleep(0.02)


def killed(arguments: Sequence[str], out: Path, times: int, seed: int, pause: float) -> int:
    """Run on three nodes and kill one at random moments, `pause` seconds apart on average; return how many died before
    the run was over."""
    chance = random.Random(seed)
    log = out.parent / f"{out.name}.log"
    process = started([*arguments, "--cluster", "local:3", "-o", str(out)], log)
    dead = 0
    begun(process, out)
    while dead < times:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, 2 * pause))
            break
        nodes = nodes_of(process.pid)
        if nodes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(nodes), signal.SIGKILL)
                dead += 1
    assert process.wait() == 0, log.read_text()
    return dead


def settled(results: dict[str, dict[str, Any]]) -> dict[str, object]:
    """Return what does not depend on memory that ONNX Runtime reads before it is written, or on where its sums begin:
    verdicts of all cases, outcomes of those whose verdict leaves no other."""
    return {
        case: (result["validity"], result["levels"], result["verdict"], result["placed_on"])
        for case, result in results.items()
    }


@pytest.mark.slow
@linux
def test_three_killed_nodes(tmp_path: Path) -> None:
    assert subprocess.run([*HARNESS, *ONE, "-o", str(tmp_path / "alone")], check=False).returncode == 0
    assert killed(ONE, tmp_path / "o", 3, seed=1, pause=0.3) == 3
    assert without_time(results_of(tmp_path / "o")) == without_time(results_of(tmp_path / "alone"))


@pytest.mark.slow
@linux
def test_ten_killed_nodes_of_the_default_set(tmp_path: Path) -> None:
    """Some of every family; HARNESS_ALONE names a folder with a run of all specs on this machine's CPU provider, of
    which all are run then, some ten minutes."""
    whole = os.environ.get("HARNESS_ALONE")
    command = ["run", "-t", "cpu"]
    if not whole:
        command += [part for operator in FAMILIES for part in ("-k", operator)]
        subprocess.run([*HARNESS, *command, "-o", str(tmp_path / "alone")], check=True)
    alone = Path(whole or tmp_path / "alone")
    assert killed(command, tmp_path / "o", 10, seed=2, pause=8 if whole else 0.7) == 10
    found, wanted = results_of(tmp_path / "o"), results_of(alone)
    assert settled(found) == settled(wanted)
    ours, theirs = without_time(found), without_time(wanted)
    differing = {wanted[case]["operator"] for case in wanted if ours[case] != theirs[case]}
    assert differing <= BY_HISTORY


@pytest.mark.slow
@linux
def test_an_interrupted_run_leaves_nothing_and_goes_on(tmp_path: Path) -> None:
    assert subprocess.run([*HARNESS, *ONE, "-o", str(tmp_path / "alone")], check=False).returncode == 0
    log = tmp_path / "log"
    process = started([*ONE, "--cluster", "local:2", "-o", str(tmp_path / "o")], log)
    begun(process, tmp_path / "o")
    below = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(120) == 130, log.read_text()
    last = log.read_text().splitlines()[-1]
    assert last.startswith(
        "harness: interrupted; what was finished is kept: continue with: harness run --resume"
    )
    assert "Traceback" not in log.read_text()
    assert gone(below)
    assert harness(*ONE, "--resume", "-o", tmp_path / "o").code == 0
    assert without_time(results_of(tmp_path / "o")) == without_time(results_of(tmp_path / "alone"))


@contextlib.contextmanager
def by_hand(
    folder: Path, workers: int, protocol: str = "tcp"
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and workers as a user does from a shell, without nannies; yield its address and the workers."""
    dask = [sys.executable, "-m", "dask"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    file = folder / "scheduler.json"
    running = [
        subprocess.Popen(
            [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--protocol", protocol, "--no-dashboard",
             "--scheduler-file", str(file)],
            **quiet,
        )
    ]  # fmt: skip
    try:
        while not file.exists() or not file.read_text():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        command = [*dask, "worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        running += [subprocess.Popen(command, **quiet) for _ in range(workers)]
        yield address, running[1:]
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.slow
@linux
def test_a_cluster_from_the_command_line(tmp_path: Path) -> None:
    """One node of three dies for good, and the others end the run; a second run finds them free."""
    assert subprocess.run([*HARNESS, *ONE, "-o", str(tmp_path / "alone")], check=False).returncode == 0
    wanted = without_time(results_of(tmp_path / "alone"))
    with by_hand(tmp_path, 3) as (address, workers):
        process = started([*ONE, "--cluster", address, "-o", str(tmp_path / "o")], tmp_path / "log")
        begun(process, tmp_path / "o")
        workers[0].kill()
        assert process.wait() == 0, (tmp_path / "log").read_text()
        assert without_time(results_of(tmp_path / "o")) == wanted
        again = harness(*ONE, "--cluster", address, "-o", tmp_path / "again")
        assert again.code == 0, again.err
        assert f"cluster {address}: 2 nodes" in again.err
        assert len(lines_of(tmp_path / "again")[0]["nodes"]) == 2
        assert without_time(results_of(tmp_path / "again")) == wanted
        assert all(not descendants(worker.pid) for worker in workers[1:]), "their workers have ended"


@pytest.mark.slow
@linux
def test_a_scheduler_that_dies(tmp_path: Path) -> None:
    many = ["run", "-t", "cpu", "-j", "1", "-k", "GatherElements", "-o", str(tmp_path / "o")]
    with by_hand(tmp_path, 2) as (address, _):
        (pid,) = (each for each in descendants(os.getpid()) if b"scheduler-file" in cmdline(each))
        process = started([*many, "--cluster", address], tmp_path / "log")
        begun(process, tmp_path / "o")
        os.kill(pid, signal.SIGKILL)
        assert process.wait(120) == 3, (tmp_path / "log").read_text()
    said = (tmp_path / "log").read_text().splitlines()
    assert said[-1].startswith(
        f"harness: --cluster {address}: the scheduler has ended; what was finished is kept: continue with: "
    )
    assert all(line.startswith(("harness: ", "cpu: ", "expanding ")) for line in said)


@pytest.mark.slow
def test_a_scheduler_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "_WORKERS_SECONDS", 1)
    with by_hand(tmp_path, 0) as (address, _):
        ended = harness(*ONE, "--cluster", address, "-o", tmp_path / "o")
    assert ended.code == 3
    assert complaint(ended) == (
        f"--cluster {address}: the scheduler has no workers within 1 s: start some with `dask worker {address} --nthreads 1`"
    )


@pytest.mark.parametrize("listens", [False, True])
def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: bool) -> None:
    """Nobody at the address, or another service."""
    monkeypatch.setattr(scheduler, "_CONNECT_SECONDS", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listens:
            other.listen()
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        ended = harness(*ONE, "--cluster", address, "-o", tmp_path / "o")
    assert ended.code == 3
    assert complaint(ended) == (
        f"--cluster {address}: no Dask scheduler answers there within 0.3 s: start one with `dask scheduler`, and name the "
        "address that it prints"
    )


@pytest.mark.slow
def test_events_and_tasks(tmp_path: Path) -> None:
    """What the connection tells: values with their tickets, errors, nodes that go and come."""
    with connected("local:2") as cluster:
        first, second = cluster.nodes()
        cluster.submit(first, "a", os.getpid)
        ended = cluster.inbox.get(timeout=120)
        assert isinstance(ended, TaskEnded)
        assert ended.ticket == "a"
        cluster.submit(second, "b", shutil.rmtree, str(tmp_path / "absent"))
        failed = cluster.inbox.get(timeout=120)
        assert isinstance(failed, TaskEnded)
        assert isinstance(failed.error, FileNotFoundError)
        cluster.submit(first, "c", time.sleep, 60)
        os.kill(ended.value, signal.SIGKILL)
        assert cluster.inbox.get(timeout=120) == NodeGone(first)
        cluster.forget("c")
        came = cluster.inbox.get(timeout=120)
        assert isinstance(came, NodeCame)
        assert sorted(cluster.nodes()) == sorted([second, came.node])
        assert cluster.inbox.empty()


def tls(folder: Path) -> dict[str, str]:
    """Make a certificate and Dask's configuration, as docs/cluster.md has it; return the variable that names it."""
    folder.mkdir()
    subprocess.run(
        [*["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=conformance"],
         *("-keyout", folder / "key.pem", "-out", folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    documented = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    config = documented.split("```yaml\n", 1)[1].split("```")[0]
    (folder / "tls.yaml").write_text(config.replace("/etc/dask", str(folder)))
    return {"DASK_CONFIG": str(folder)}


STRANGER = """
import sys, distributed
try:
    client = distributed.Client(sys.argv[1], timeout=3)
except (OSError, ValueError):
    sys.exit(42)
print(client.submit(str, 1).result())
"""


def refused(address: str, environment: dict[str, str]) -> bool:
    """Say whether a scheduler lets no client in that has this environment."""
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, address],
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )
    return done.returncode == 42


def test_no_stranger_reaches_local_nodes(tmp_path: Path) -> None:
    need("openssl", None if shutil.which("openssl") else "install openssl")
    with connected("local:1") as cluster:
        address = cluster._client.scheduler.address
        assert all(each.startswith("tls://127.0.0.1:") for each in (address, *cluster.nodes()))
        assert refused(address, tls(tmp_path / "stranger"))
        assert refused(address.replace("tls", "tcp"), {})


@pytest.mark.slow
@linux
def test_a_cluster_behind_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("openssl", None if shutil.which("openssl") else "install openssl")
    for name, value in tls(tmp_path / "ours").items():
        monkeypatch.setenv(name, value)
    with by_hand(tmp_path, 2, "tls") as (address, _):
        assert address.startswith("tls://")
        assert not refused(address, {})
        assert refused(address, tls(tmp_path / "stranger"))
        log = tmp_path / "log"
        run = started([*ONE, "--cluster", address, "-o", str(tmp_path / "o")], log)
        assert run.wait() == 0, log.read_text()
    assert f"cluster {address}: 2 nodes" in log.read_text()
