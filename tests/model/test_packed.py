"""Compressed run files are read like plain ones; hostile ones are one line and never much memory."""

from __future__ import annotations

import gzip
import lzma
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model import compressed as packed
from harness.model.errors import UsageError
from harness.results.runfile import RunReader, run_file
from tests import synthetic
from tests.running import harness
from tests.synthetic import CPU, DML

PACK = {".xz": lzma.compress, ".gz": gzip.compress}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return synthetic.write_run(tmp_path / "run.jsonl", 200, {"cpu": CPU, "dml": DML}, whole=True)


def packed_copy(plain: Path, suffix: str) -> Path:
    path = plain.with_name(f"run.jsonl{suffix}")
    path.write_bytes(PACK[suffix](plain.read_bytes()))
    return path


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_run_has_the_same_results(suffix: str, plain: Path) -> None:
    first, second = RunReader(plain), RunReader(packed_copy(plain, suffix))
    assert (second.header, list(second)) == (first.header, list(first))
    assert second.end == first.end is not None


def test_a_folder_gives_the_plain_file_first(plain: Path) -> None:
    other = packed_copy(plain, ".xz")
    assert run_file(plain.parent) == plain
    plain.unlink()
    assert run_file(plain.parent) == other
    other.unlink()
    assert run_file(plain.parent) == plain  # which a message then names


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(
    "command", [("report", "--format", "markdown"), ("report", "--format", "ctrf"), ("compare",)]
)
def test_commands_take_compressed_runs(command: tuple[str, ...], suffix: str, plain: Path) -> None:
    """The same bytes come out of a compressed run as of the plain one."""
    name, *options = command
    runs = [plain, plain] if name == "compare" else [plain]
    expected = harness(name, *runs, *options)
    other = packed_copy(plain, suffix)
    got = harness(name, *[other] * len(runs), *options)
    assert (got.code, got.out) == (expected.code, expected.out)
    assert expected.code == 0
    assert expected.out


@pytest.mark.parametrize("suffix", PACK)
def test_damage_is_one_line(suffix: str, plain: Path) -> None:
    path = packed_copy(plain, suffix)
    whole = path.read_bytes()
    for content, message in (
        (whole[: len(whole) // 2], "the compressed file is cut off"),
        (whole[:8], "the compressed file is cut off"),
        (whole[:200] + bytes(80) + whole[280:], "damaged"),
        (whole + b"behind the end", "damaged compressed file"),
    ):
        path.write_bytes(content)
        ended = harness("report", path, "--format", "csv")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith(f"harness: {path}")
        assert message in ended.err
        assert ended.err.count("\n") == 1


def test_garbage_is_no_run_file(tmp_path: Path) -> None:
    for content in (
        b"\xfd7zXZ\x00 garbage of some length",
        b"\x1f\x8b\x08 garbage of some length",
        b"PK\x03\x04 a zip file\n",
    ):
        path = tmp_path / "run.jsonl.xz"
        path.write_bytes(content)
        with pytest.raises(
            UsageError, match=r"run\.jsonl\.xz.*(damaged compressed file|not the header of a run file)"
        ):
            RunReader(path)


@pytest.mark.parametrize("suffix", PACK)
def test_a_bomb_takes_no_memory(suffix: str, tmp_path: Path) -> None:
    """A line of 512 MiB in some kilobytes; the reader has 300 MiB of address space."""
    path = tmp_path / f"bomb.jsonl{suffix}"
    block = bytes(16 << 20)
    packed = lzma.compress(block, preset=0) if suffix == ".xz" else gzip.compress(block, 1)
    path.write_bytes(packed * 32)  # both formats may be several such streams, one behind the other
    program = "import sys; from pathlib import Path; from harness.results.runfile import RunReader; RunReader(Path(sys.argv[1]))"
    ended = subprocess.run(
        [sys.executable, "-c", program, path],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20)),
    )
    assert "UsageError" in ended.stderr
    assert f"{path}:1: longer than 16 MiB" in ended.stderr


def test_an_xz_that_wants_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.xz"
    filters = [
        {
            "id": lzma.FILTER_LZMA2,
            "dict_size": 1 << 30,
            "mode": lzma.MODE_FAST,
            "mf": lzma.MF_HC3,
            "nice_len": 8,
        }
    ]
    try:
        path.write_bytes(lzma.compress(b"{}\n", filters=filters))
    except MemoryError:
        pytest.skip("this machine has no memory to make such a file")
    with pytest.raises(UsageError, match="damaged compressed file: Memory usage limit exceeded"):
        RunReader(path)


def test_the_limit_of_a_line_holds_for_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "LONGEST_LINE", 100)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"x" * 200)
    with pytest.raises(UsageError, match=r"run\.jsonl:1: longer than"):
        RunReader(path)
