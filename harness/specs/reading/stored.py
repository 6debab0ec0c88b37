"""Tensors of literal cases that are too large to be written out: their bytes in one file beside the specs."""

from __future__ import annotations

import math
import mmap
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.specs.reading.entry_schema import CaseInput
from harness.specs.reading.literals import LiteralError

_ALIGNED = 64


class TensorStore:
    """Appends tensors to a new file, each once; use it in a `with` statement. Errors: OSError."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = open(path, "wb")  # noqa: SIM115 - closed by __exit__
        self._places: dict[bytes, int] = {}

    def add(self, tensor: Tensor) -> str:
        """Return the keys of a literal case's input, beside its element type, that name the tensor."""
        data = np.ascontiguousarray(tensor.array).reshape(-1).view(np.uint8).data
        key = blake2b(data, digest_size=16).digest()
        if key not in self._places:
            self._file.write(bytes(-self._file.tell() % _ALIGNED))
            self._places[key] = self._file.tell()
            self._file.write(data)
        shape = list(tensor.array.shape)
        return f"shape: {shape}, file: {self._name}, offset: {self._places[key]}"

    def flush(self) -> None:
        """Make the added entries visible to readers."""
        self._file.flush()

    def __enter__(self) -> TensorStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def stored_array(folder: Path, given: CaseInput) -> Array:
    """Return the elements of an input that stand in a file of the spec's folder, without reading them yet; raise
    LiteralError."""
    assert given.file is not None
    assert given.shape is not None
    storage = DTYPES[given.dtype].storage
    count = math.prod(given.shape)
    if storage == "O":
        raise LiteralError([((), "strings cannot stand in a file; write 'values'")])
    if not count:
        return np.empty(given.shape, storage)
    path = folder / given.file
    try:
        data = _mapped(path, path.stat().st_mtime_ns)
        return np.frombuffer(data, storage, count, given.offset).reshape(given.shape)
    except OSError as error:
        raise LiteralError([((), f"cannot be read: {error.strerror}")]) from error
    except ValueError as error:
        size = path.stat().st_size
        what = f"holds {size:,} bytes: too few for {given.dtype}{list(given.shape)} at byte {given.offset:,}"
        raise LiteralError([((), what)]) from error


@lru_cache(maxsize=16)
def _mapped(path: Path, _changed: int) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
