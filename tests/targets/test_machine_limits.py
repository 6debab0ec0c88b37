"""What a machine does not give: each command ends with one line and 2, never with a traceback or with 1, which says that results
are unexpected."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.errors import HarnessFault, limit
from harness.results.runfile import RunWriter
from tests.running import ROUND, complaint, harness, raising, script_of
from tests.sampled import one_of
from tests.synthetic import header

RUN = ("run", str(ROUND), "-k", "Round@22:case=*", "-j", "1")
posix = pytest.mark.skipif(sys.platform != "linux", reason="a shell's redirections, and /dev/full")


def shell(tmp_path: Path, line: str) -> tuple[int, str]:
    """Run a line of a shell, in which `harness` is the command and RUN a small run; return code and what it said."""
    program = f"{shlex.quote(sys.executable)} -m harness"
    run = f"{shlex.join(RUN)} -t fake,script={script_of(tmp_path, [])} -o {tmp_path}/run"
    done = subprocess.run(
        ["bash", "-c", line.replace("harness", program).replace("RUN", run)], capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.returncode, done.stderr


@posix
@pytest.mark.parametrize(
    "command", ["harness RUN", "harness list specs/Round.yaml", "harness --version", "harness run -h"]
)
def test_standard_output_that_is_full(tmp_path: Path, command: str) -> None:
    code, said = shell(tmp_path, f"{command} >/dev/full")
    assert code == 2
    assert said.splitlines()[-1] == "harness: No space left on device"
    assert "Traceback" not in said


@pytest.mark.slow
@posix
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_standard_streams_that_are_closed(tmp_path: Path, closed: str) -> None:
    assert shell(tmp_path, f"harness RUN {closed}") == (0, "") or closed == ">&-"
    assert shell(tmp_path, f"harness report {tmp_path}/run --format csv {closed}") == (0, "")
    assert shell(tmp_path, f"harness list absent.yaml {closed}")[0] == 2


@posix
@pytest.mark.parametrize("wrong", ["absent.yaml", "--no-such-option"])
def test_standard_error_that_is_full(tmp_path: Path, wrong: str) -> None:
    assert shell(tmp_path, f"harness list {wrong} 2>/dev/full")[0] == 2


@posix
def test_few_open_files(tmp_path: Path) -> None:
    code, said = shell(tmp_path, "ulimit -n 8; harness RUN")
    assert code == 2
    assert said.splitlines()[-1].endswith("Too many open files")
    assert "Traceback" not in said


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    ended = harness(*RUN, "-t", "fake", "-o", tmp_path / ("x" * 300))
    assert ended.code == 2
    assert complaint(ended).endswith(": File name too long")


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.api.load", raising(MemoryError))
    ended = harness("list", ROUND)
    assert (ended.code, complaint(ended)) == (2, "this machine gives no more memory")


def test_a_full_disk_before_the_header_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunWriter, "append", raising(HarnessFault("full")))
    with pytest.raises(HarnessFault):
        RunWriter(tmp_path / "run.jsonl", header())
    assert not (tmp_path / "run.jsonl").exists()


@pytest.mark.parametrize(
    "name", one_of(5, ["artifacts", "run.jsonl", "report.md", "report.html.part", "artifacts/x.npz"])
)
@pytest.mark.parametrize("option", ["--resume", "--force"])
def test_a_link_in_a_folder_of_a_run_is_not_followed(tmp_path: Path, name: str, option: str) -> None:
    run = (*RUN, "-t", f"fake,script={script_of(tmp_path, [('Round', 'ulp')])}", "-o", tmp_path / "run")
    assert harness(*run).code == 1
    outside = tmp_path / "outside"
    outside.mkdir()
    path = tmp_path / "run" / name
    if path.exists():
        path.rename(outside / path.name)
    path.symlink_to(outside / path.name)
    before = {each: each.read_bytes() for each in outside.rglob("*") if each.is_file()}
    ended = harness(*run, option)
    assert ended.code == 2
    assert complaint(ended) == f"{path}: is a link; choose another folder with -o, or remove it"
    assert {each: each.read_bytes() for each in outside.rglob("*") if each.is_file()} == before


@posix
def test_an_early_interruption_shows_no_traceback() -> None:
    code = "import signal, harness.__main__; print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    ignored = ["bash", "-c", f'trap "" INT; {shlex.quote(sys.executable)} -c {shlex.quote(code)}']
    assert subprocess.run(ignored, capture_output=True, text=True, check=True).stdout == "False\n"
    assert os.name == "posix"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_threads_that_the_machine_does_not_start() -> None:
    said = limit(RuntimeError("can't start new thread"))
    assert (
        said == "this machine starts no more threads: allow more processes or memory (ulimit -u, ulimit -v)"
    )
    assert limit(RuntimeError("dictionary changed size during iteration")) is None


@posix
def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    named = tmp_path / os.fsdecode(b"l\xe9.yaml")
    named.write_bytes(ROUND.read_bytes())
    ended = harness("run", named, *RUN[2:], "-t", "fake", "-o", tmp_path / "run")
    assert (ended.code, complaint(ended).partition("' is ")[2]) == (
        2,
        "not text in UTF-8: rename the file, or set LANG to a locale of UTF-8",
    )
    assert not (tmp_path / "run" / "run.jsonl").exists()
