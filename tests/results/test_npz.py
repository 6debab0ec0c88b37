"""Tensors kept beside a run, as anybody may have written or damaged them."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from harness.results.npz import load_arrays


def saved(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    given = {
        "input_data": np.arange(6, dtype=np.float32).reshape(2, 3),
        "input_indices": np.asfortranarray(np.arange(6).reshape(3, 2)),
        "expected": np.float64(3.5).reshape(()),
        "actual": np.zeros((0, 4), np.int8),
        "flags": np.array([True, False]),
    }
    found = load_arrays(saved(tmp_path / "a.npz", **given))
    assert found is not None
    assert list(found) == list(given)
    for name, array in given.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tolist() == array.tolist()


def member(**fields: object) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2,), **fields}
    )
    return header.getvalue() + bytes(8)


def raw_header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(8)


@pytest.mark.parametrize(
    "content",
    [
        member(shape=(3,)),
        member(shape=(1 << 62,)),
        member(shape=(1 << 70,)),
        member(shape=(1 << 32, 1 << 32)),
        raw_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -2)}"),
        raw_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': " + b"(" * 5000 + b")" * 5000 + b"}"),
        raw_header(b"{'descr': [('a', '<f4', " + b"9" * 30 + b")], 'fortran_order': False, 'shape': (2,)}"),
        raw_header(b"\xff\xfe"),
        b"\x93NUMPY\x09\x00",
        b"",
    ],
    ids=[
        "short",
        "huge",
        "beyond 64 bits",
        "overflow",
        "negative",
        "nested",
        "long type",
        "no text",
        "version",
        "empty",
    ],
)
def test_a_header_that_does_not_describe_its_bytes(tmp_path: Path, content: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("expected.npy", content)
    assert load_arrays(tmp_path / "a.npz") is None


def test_a_bomb_and_a_crowd(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("expected.npy", bytes(65 << 20))
    with zipfile.ZipFile(tmp_path / "crowd.npz", "w") as archive:
        for number in range(65):
            archive.writestr(f"{number}.npy", member())
    assert load_arrays(tmp_path / "bomb.npz") is None
    assert load_arrays(tmp_path / "crowd.npz") is None


class Runs:
    """Pickles to a call that leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["expected.npy", "expected"])
def test_a_pickle_is_not_run(tmp_path: Path, name: str) -> None:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.array([Runs(tmp_path / "it ran")], object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr(name, content.getvalue())
    assert load_arrays(tmp_path / "a.npz") is None
    assert not (tmp_path / "it ran").exists()


def test_other_ways_to_pack(tmp_path: Path) -> None:
    """NumPy stores or deflates; other decoders are not let near such a file, nor is what asks for a
    password."""
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
            archive.writestr("expected.npy", member())
        assert load_arrays(tmp_path / "a.npz") is None
    data = bytearray(saved(tmp_path / "b.npz", expected=np.ones(2, np.float32)).read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "b.npz").write_bytes(data)
    assert load_arrays(tmp_path / "b.npz") is None


@pytest.mark.slow
def test_damage_is_never_more_than_nothing(tmp_path: Path) -> None:
    rng = random.Random(7)
    whole = saved(
        tmp_path / "a.npz", input_X=np.ones((3, 4), np.float32), expected=np.arange(5), actual=np.arange(5)
    ).read_bytes()
    given = 0
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "a.npz").write_bytes(data[: rng.choice((len(data), len(data), rng.randrange(len(data))))])
        given += load_arrays(tmp_path / "a.npz") is not None
    assert 0 < given < 2000
