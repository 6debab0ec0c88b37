"""What a killed harness leaves behind: nothing for long; what a worker that ended had to say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from harness.targets import scratch
from harness.targets.process import Inbox, WorkerProcess
from harness.targets.scratch import Scratch, sweep
from tests.processes import gone

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the request to die with a parent, and folders that are locked"
)

STARTS = """
import sys, time
from queue import SimpleQueue
from harness.targets.process import WorkerProcess
started = [WorkerProcess(["sleep", "600"], None, SimpleQueue()) for _ in range(5)]
print(*(each.pid for each in started), flush=True)
time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let temporary folders be made in a folder of this test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def killed(temporary: Path) -> list[int]:
    """Start a process with five workers that are no harness's, stop those, kill the process; return their
    ids."""
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(list(temporary.iterdir())) == 5
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        process.kill()
    return pids


def test_stopped_workers_die_with_a_killed_harness(temporary: Path) -> None:
    """They ask for it before their program starts, so that it does not matter when they are stopped."""
    pids = killed(temporary)
    assert len(pids) == 5
    assert gone(pids)


def test_folders_that_a_killed_harness_left_are_removed_by_the_next(temporary: Path) -> None:
    killed(temporary)
    left = [path for path in temporary.iterdir() if path.name.startswith(scratch.PREFIX)]
    assert len(left) == 5
    mine = Scratch()
    (Path(mine.name) / "file").touch()
    sweep()
    assert [path.name for path in temporary.iterdir()] == [Path(mine.name).name]
    with subprocess.Popen(
        [sys.executable, "-c", "from harness.targets.scratch import sweep; sweep()"]
    ) as other:
        assert other.wait(60) == 0
    assert (Path(mine.name) / "file").exists()
    mine.cleanup()
    mine.cleanup()
    assert not list(temporary.iterdir())


def test_a_folder_that_is_only_being_made_is_left(temporary: Path) -> None:
    """It has its name only once it is locked; after a minute nobody is making it any more."""
    new = temporary / f".{scratch.PREFIX}x"
    new.mkdir()
    sweep()
    assert new.exists()
    os.utime(new, (time.time() - 100,) * 2)
    sweep()
    assert not new.exists()


def test_a_link_is_not_followed(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "file").touch()
    (temporary / f"{scratch.PREFIX}x").symlink_to(other)
    sweep()
    assert (other / "file").exists()


PRINTS = """
import sys
for number in range(200):
    print(f"2026-11-26 19:40:25.{number:09} [I:onnxruntime:, graph_transformer.cc:15 Apply] modified: 0", file=sys.stderr)
print("2026-11-26 19:40:25.000000001 [E:onnxruntime:, sequential_executor.cc:514 ExecuteKernel] Non-zero status", file=sys.stderr)
print("terminate called after throwing an instance of 'std::out_of_range'", file=sys.stderr)
"""


def test_a_log_of_what_went_well_is_no_part_of_what_a_worker_said() -> None:
    inbox: Inbox = SimpleQueue()
    worker = WorkerProcess([sys.executable, "-c", PRINTS], None, inbox)
    while inbox.get(timeout=60)[1] is not None:
        pass
    assert worker.end() == "exit code 0"
    assert worker.stderr.splitlines() == [
        "2026-11-26 19:40:25.000000001 [E:onnxruntime:, sequential_executor.cc:514 ExecuteKernel] Non-zero status",
        "terminate called after throwing an instance of 'std::out_of_range'",
    ]
