"""Components of the cache whose stamps are damaged: they count as not installed, or as changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.targets import components
from harness.targets.runtimes import environments


def component(folder: Path) -> Path:
    """Make a whole component with one key file."""
    place = folder / "onnxruntime-1.22.1"
    place.mkdir()
    (place / "key.txt").write_text("key", encoding="utf-8")
    components.seal(place, ["*.txt"])
    assert components.problems(place) == []
    return place


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b'{"component": "\xff"}',
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"component": 1}',
        b'{"component": "\\ud800"}',
    ],
    ids=[
        "no text",
        "no text in a string",
        "empty",
        "nothing in it",
        "nested",
        "of another type",
        "half a pair",
    ],
)
def test_a_damaged_stamp(tmp_path: Path, content: bytes) -> None:
    place = component(tmp_path)
    (place / "stamp.json").write_bytes(content)
    assert components.stamp_of(place) is None
    assert components.stamps(tmp_path) == {}
    assert components.problems(place) == ["onnxruntime-1.22.1: not installed"]


@pytest.mark.parametrize("name", ["a\0b", "../" * 2000, "none"], ids=["zero byte", "long", "gone"])
def test_a_stamp_of_files_that_cannot_be(tmp_path: Path, name: str) -> None:
    place = component(tmp_path)
    stamp = json.loads((place / "stamp.json").read_bytes())
    stamp["files"] = {name: stamp["files"]["key.txt"]}
    (place / "stamp.json").write_text(json.dumps(stamp), encoding="utf-8")
    assert components.problems(place) == [f"onnxruntime-1.22.1/{name} is gone"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipes_in_the_place_of_files(tmp_path: Path) -> None:
    place = component(tmp_path)
    (place / "key.txt").unlink()
    os.mkfifo(place / "key.txt")
    stamp = json.loads((place / "stamp.json").read_bytes())
    status = (place / "key.txt").stat()
    stamp["files"]["key.txt"][:2] = [status.st_size, status.st_mtime_ns]
    (place / "stamp.json").write_text(json.dumps(stamp), encoding="utf-8")
    assert components.problems(place) == ["onnxruntime-1.22.1/key.txt is gone"]
    (place / "stamp.json").unlink()
    os.mkfifo(place / "stamp.json")
    assert components.stamp_of(place) is None


def test_a_folder_that_is_no_release_is_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(components.CACHE_ENV, str(tmp_path))
    (tmp_path / "runtimes").mkdir()
    whole = component(tmp_path / "runtimes")
    other = whole.with_name("onnxruntime-mine")
    other.mkdir()
    (other / "stamp.json").write_bytes((whole / "stamp.json").read_bytes())
    assert [str(version) for version in environments.installed()] == ["1.22.1"]
