"""The runtime that `harness windows install` sets up: it runs DirectML, keeps workers apart and leaves
nothing behind."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from harness.targets.windows import install, runtime
from harness.targets.windows.releases import default_release, release_for_level, usable_levels

pytestmark = pytest.mark.windows_runtime
PROBE = Path(__file__).with_name("probe_worker.py")


class Probe:
    """One worker that answers JSON lines."""

    def __init__(self, ort: str | None = None, args: tuple[str, ...] = ()) -> None:
        argv, env = runtime.launch(PROBE, ort=ort, args=args)
        self.process = subprocess.Popen(
            argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._line() == {"ready": True}

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        return answer

    def send(self, **ask: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(ask).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, **ask: Any) -> dict[str, Any]:
        self.send(**ask)
        return self._line()

    def gather(self, data: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
        feeds = [
            [name, x.dtype.name, x.shape, encoded(x)] for name, x in (("data", data), ("indices", indices))
        ]
        answer = self.ask(do="run", model=gather_elements(data, indices, axis), feeds=feeds)
        assert "error" not in answer, answer["error"]
        assert answer["placed"] in (None, [["DmlExecutionProvider", ["GatherElements"]]])
        return np.frombuffer(base64.b64decode(answer["data"]), answer["dtype"]).reshape(answer["shape"])


@contextmanager
def probe(ort: str | None = None, args: tuple[str, ...] = ()) -> Iterator[Probe]:
    started = Probe(ort, args)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait(60)
        for pipe in (started.process.stdin, started.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture(scope="module")
def worker() -> Iterator[Probe]:
    """Return one worker for all tests that leave it as it was."""
    with probe(args=("--first", "with space")) as started:
        yield started


def encoded(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def gather_elements(data: np.ndarray, indices: np.ndarray, axis: int) -> str:
    return serialized(
        helper.make_node("GatherElements", ["data", "indices"], ["out"], axis=axis),
        data,
        indices,
        indices.shape,
    )


def serialized(node: NodeProto, data: np.ndarray, indices: np.ndarray, shape: tuple[int, ...]) -> str:
    """Return a graph of one node, with symbolic dimensions, that the oldest release here can read."""
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), [f"{name}_{n}" for n in range(x.ndim)]
        )
        for name, x in (("data", data), ("indices", indices))
    ]
    out = helper.make_tensor_value_info(
        "out", helper.np_dtype_to_tensor_dtype(data.dtype), [f"out_{n}" for n in range(len(shape))]
    )
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [out]),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=7,
    )
    return base64.b64encode(model.SerializeToString()).decode()


def pid_namespaces(ancestor: int) -> set[str]:
    """Return the process namespaces, other than ours, of a process and everything below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    below = {ancestor}
    while grown := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= grown
    found = set()
    for pid in below:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/pid"))
        except OSError:
            continue
    return found - {os.readlink("/proc/self/ns/pid")}


def members(namespaces: set[str]) -> list[str]:
    """Return the processes that live in one of these namespaces."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "ns/pid") in namespaces:
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def wait_until_gone(namespaces: set[str], seconds: float = 60.0) -> list[str]:
    end = time.monotonic() + seconds
    while (left := members(namespaces)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


def test_versions_are_those_of_the_default_release(worker: Probe) -> None:
    row = default_release()
    got = worker.ask(do="versions")
    assert (got["onnxruntime"], got["numpy"]) == (row.onnxruntime, row.numpy)
    assert got["python"].startswith(row.python + ".")
    assert got["arguments"] == ["--first", "with space"]


def test_gather_elements_on_directml_is_bit_exact(tool: str) -> None:
    random = np.random.default_rng(7)
    indices = np.array([[0, 1, 3], [3, -1, 0], [2, 2, -4]], np.int64)
    with probe() as worker:
        for dtype in (
            "float32",
            "float16",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
        ):
            data = np.frombuffer(random.bytes(12 * np.dtype(dtype).itemsize), dtype).reshape(3, 4)
            got = worker.gather(data, indices, 1)
            assert got.dtype == data.dtype
            assert got.tobytes() == np.take_along_axis(data, indices, 1).tobytes(), dtype


def test_device_is_described_from_the_loaded_dll(worker: Probe) -> None:
    got = worker.ask(do="device")
    assert (got["directml"], got["max_feature_level"]) == (
        default_release().directml,
        default_release().answers,
    )
    assert got["directml_path"].endswith(r"\onnxruntime\capi\DirectML.dll")
    assert len(got["directml_sha256"]) == 64
    assert "llvmpipe" in got["adapter"]
    assert got["software"] is True
    assert got["vendor"] == "Mesa (0x10005)"
    assert set(got["device_dtypes"]) >= {"float32", "float16", "int8", "int64", "uint64", "float64"}
    assert got["luid"].count(":") == 1


def test_a_failed_session_leaves_nothing_to_the_next(worker: Probe) -> None:
    """Without `after_failure` the second of these sessions ends the process: it runs what the first had
    recorded."""
    data, indices = (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array([[3, 0], [1, 1], [-1, 2]], np.int64),
    )
    nine = np.zeros((1, 1, 1, 2, 1, 1, 1, 2, 1), np.int64)
    failing = serialized(
        helper.make_node("GatherND", ["data", "indices"], ["out"]),
        np.zeros(5, np.float16),
        nine,
        nine.shape[:8],
    )
    feeds = [
        [name, x.dtype.name, x.shape, encoded(x)]
        for name, x in (("data", np.zeros(5, np.float16)), ("indices", nine))
    ]
    for _ in range(10):
        failed = worker.ask(do="run", model=failing, feeds=feeds)
        assert "error" in failed
        assert failed["lost"] is False
    assert worker.gather(data, indices, 1).tobytes() == np.take_along_axis(data, indices, 1).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("level", usable_levels())
def test_each_level_runs_with_its_release(level: str) -> None:
    row = release_for_level(level)
    data, indices = (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array([[3, 0], [1, 1], [-1, 2]], np.int64),
    )
    with probe(row.onnxruntime) as worker:
        assert worker.ask(do="versions")["onnxruntime"] == row.onnxruntime
        device = worker.ask(do="device")
        assert (device["directml"], device["max_feature_level"]) == (row.directml, row.answers)
        assert worker.gather(data, indices, 1).tobytes() == np.take_along_axis(data, indices, 1).tobytes()


def test_two_workers_share_one_installation(worker: Probe) -> None:
    data, indices = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([[1], [2], [0]], np.int64)
    with probe() as second:
        for _ in range(20):
            for one in (worker, second):
                assert one.gather(data, indices, 1).tolist() == [[1], [6], [8]]


def test_a_worker_writes_only_to_its_own_memory(tool: str) -> None:
    with probe() as worker:
        for path in (
            r"Z:\windows\python\x",
            r"Z:\windows\x",
            r"C:\windows\x",
            r"Z:\windows\onnxruntime\x",
            r"Z:\etc\x",
        ):
            assert worker.ask(do="write", path=path)["refused"], path
        assert worker.ask(do="write", path=r"Z:\tmp\x") == {"refused": None}


def test_a_crash_ends_the_stream_and_leaves_nothing(tool: str) -> None:
    with probe() as worker:
        namespaces = pid_namespaces(worker.process.pid)
        assert members(namespaces)
        with pytest.raises(EOFError):
            worker.ask(do="crash")
        assert worker.process.wait(60) == 5  # the low eight bits of an access violation
        assert wait_until_gone(namespaces) == []
    assert (
        str(install.cache_dir()) not in Path("/proc/self/mountinfo").read_text()
    )  # others on the machine may mount what they like


def test_killing_a_hanging_worker_leaves_nothing(tool: str) -> None:
    with probe() as worker:
        namespaces = pid_namespaces(worker.process.pid)
        worker.send(do="hang")
        worker.process.kill()
        worker.process.wait(60)
        assert wait_until_gone(namespaces) == []


def test_a_killed_parent_takes_the_worker_along(tool: str) -> None:
    script = f"""
import subprocess, sys, time
from pathlib import Path
from harness.targets.windows import runtime
from harness.targets.windows import sandbox
sandbox.launcher = lambda: {tool!r}
argv, env = runtime.launch(Path({str(PROBE)!r}))
p = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdout.readline(); p.stdin.write(b'{{"do": "hang"}}\\n'); p.stdin.flush()
print(p.pid, flush=True); time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            namespaces = pid_namespaces(int(parent.stdout.readline()))
            assert members(namespaces)
        finally:
            parent.send_signal(signal.SIGKILL)
    assert wait_until_gone(namespaces) == []


def test_an_unknown_wine_is_refused_before_the_worker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in runtime.BOOT.parent.glob("*.py"):
        (tmp_path / path.name).write_text(
            path.read_text().replace("wine-10.0 (Debian 10.0~repack-6)", "wine-9.0")
        )
    monkeypatch.setattr(runtime, "BOOT", tmp_path / "boot.py")
    argv, env = runtime.launch(PROBE)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (86, "")
    assert "the compatibility layer knows wine-9.0, not wine-10.0 (Debian 10.0~repack-6)" in done.stderr
