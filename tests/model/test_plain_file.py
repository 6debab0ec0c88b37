"""Files that never end, or are none, do not hold the harness up."""

from __future__ import annotations

import os
import sys
from array import array
from hashlib import sha256
from pathlib import Path

import pytest

from harness.model.plain_file import NotPlain, PlainFile, buffered, read_bytes, sha256_of
from tests.running import complaint, harness

linux = pytest.mark.skipif(sys.platform != "linux", reason="files of /proc")


def test_what_a_file_held_when_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    with buffered(path) as file:
        with path.open("ab") as more:
            more.write(b"three\n")
        assert list(file) == [b"one\n", b"two\n"]
    assert read_bytes(path, 14) == b"one\ntwo\nthree\n"
    assert sha256_of(path) == sha256(b"one\ntwo\nthree\n").hexdigest()


def test_a_buffer_of_numbers_takes_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(array("i", [1, 2, 3]).tobytes())
    found = array("i", [0, 0, 7])
    with PlainFile(path) as file:
        assert file.readinto(memoryview(found)[:2]) == 8
    assert found.tolist() == [1, 2, 7]


def test_more_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(NotPlain, match="is larger than 4 bytes"):
        read_bytes(tmp_path / "file", 4)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_devices_and_folders(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(NotPlain, match="is no regular file: save it as one"):
            read_bytes(path, 10)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path, 10)
    with pytest.raises(OSError, match="null byte"):
        read_bytes(tmp_path / "a\0b", 10)


@linux
def test_what_only_looks_like_a_file_is_empty() -> None:
    """As /proc/kmsg, which waits for the kernel's next message."""
    assert Path("/proc/self/status").read_bytes()
    assert read_bytes(Path("/proc/self/status"), 10) == b""


@linux
@pytest.mark.skipif(
    not os.access("/proc/kmsg", os.R_OK), reason="needs the right to read the kernel's messages"
)
@pytest.mark.parametrize(
    "arguments",
    [("report", "/proc/kmsg", "--format", "csv"), ("history", "/proc/kmsg"), ("check", "/proc/kmsg")],
)
def test_a_file_that_never_ends(arguments: tuple[str, ...]) -> None:
    ended = harness(*arguments)
    assert ended.code == 2
    assert "/proc/kmsg" in complaint(ended)
    assert complaint(ended).endswith("is empty")


PIPE_ARGUMENTS = [
    ("report", "pipe", "--format", "csv"),
    ("history", "pipe"),
    ("check", "pipe"),
    ("run", "-t", "fake,script=pipe"),
    ("run", "-t", "directml,dll=pipe"),
    ("repro", "--case", "pipe", "-t", "cpu", "-o", "out"),
    ("compile", "--check", "-o", "models"),
    ("compile", "specs/Round.yaml", "-k", "Round@22:case=*", "-o", "models"),
    ("expect", "lint", "pipe"),
]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("arguments", PIPE_ARGUMENTS, ids=" ".join)
def test_every_command_refuses_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").symlink_to(Path(__file__).resolve().parents[2] / "specs")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "models").mkdir()
    os.mkfifo(tmp_path / "models" / "manifest.txt")
    os.mkfifo(tmp_path / "models" / f"{'0' * 64}.onnx")
    ended = harness(*arguments)
    if arguments[-1] == "models" and "--check" not in arguments:
        assert ended.code == 0  # no graph of these cases has that hash: nothing is read
        return
    assert ended.code == 2
    assert "is no regular file: save it as one" in complaint(ended)
