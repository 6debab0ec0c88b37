"""What two runs say of the same cases, in memory that does not grow with them: each result is some numbers, which lie in
a temporary file once there are many, and the runs are joined a range of keys at a time."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.errors import UsageError

Rows = NDArray[np.void]
"""Numbers of results, sorted by key: `digest` of the key, `ulp`, `line`, `state`, `place`."""
_ROW = np.dtype([("digest", "<u8"), ("ulp", "<u8"), ("line", "<u4"), ("state", "<u4"), ("place", "<u2")])
_PACKED = struct.Struct("<QQIIH")
_WHOLE = (1 << 64) - 1
_CHUNK = 1 << 18
"""Results that are held in memory before they go to the file."""
_PARTS = 256


class _Chunk(NamedTuple):
    """Sorted rows in the file, from `offset` on; `bounds` is where each part of the keys begins, and the end."""

    offset: int
    bounds: NDArray[np.int64]


class KeyedResults:
    """The results of a run by key: what a target did as `state`, the ULP distance plus one or 0, and the line."""

    def __init__(self) -> None:
        self._bytes = bytearray(_CHUNK * _ROW.itemsize)
        self._rows = np.frombuffer(self._bytes, _ROW)
        self._number = 0
        self._chunks: list[_Chunk] = []
        self._file: IO[bytes] | None = None

    def add(self, case: str, place: int, state: int, ulp: int, line: int) -> None:
        """Take a result. Errors: UsageError where the temporary file cannot be written."""
        digest = hash((case, place)) & _WHOLE  # salted by the process, so that no file can choose two alike
        _PACKED.pack_into(self._bytes, self._number * _ROW.itemsize, digest, ulp, line, state, place)
        self._number += 1
        if self._number == len(self._rows):
            self._spill()

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file is not None:
            self._file.close()

    @property
    def spilled(self) -> bool:
        """Say whether there are too many to hold in memory."""
        return bool(self._chunks)

    def parts(self, *, whole: bool) -> Iterator[Rows]:
        """Yield all results, a range of keys after the other; `whole` is for runs that fit in memory."""
        last = _sorted(self._rows[: self._number])
        if whole:
            yield last
            return
        bounds = _bounds(last)
        for part in range(_PARTS):
            found = [
                *(self._read(chunk, part) for chunk in self._chunks),
                last[bounds[part] : bounds[part + 1]],
            ]
            yield _sorted(np.concatenate(found))

    def _spill(self) -> None:
        rows = _sorted(self._rows[: self._number])
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="harness-compare-")  # noqa: SIM115 - gone with this object
            offset = self._file.seek(0, 2)
            self._file.write(rows.tobytes())
            self._file.flush()
        except OSError as error:
            raise UsageError(
                f"{tempfile.gettempdir()}: {error.strerror}; make room, or name another folder in TMPDIR"
            ) from error
        self._chunks.append(_Chunk(offset, _bounds(rows)))
        self._number = 0

    def _read(self, chunk: _Chunk, part: int) -> Rows:
        assert self._file is not None
        first, last = int(chunk.bounds[part]), int(chunk.bounds[part + 1])
        self._file.seek(chunk.offset + first * _ROW.itemsize)
        return np.frombuffer(self._file.read((last - first) * _ROW.itemsize), _ROW)


def _sorted(rows: Rows) -> Rows:
    """Sort rows by key; those of a key stay in the order of their lines."""
    return rows[np.argsort(rows["digest"], kind="stable")]


def _bounds(rows: Rows) -> NDArray[np.int64]:
    edges = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(56)
    inner = np.searchsorted(rows["digest"], edges)
    return np.concatenate(([0], inner, [len(rows)])).astype(np.int64)


class JoinedPart(NamedTuple):
    """A range of keys of two runs: rows of both for the cases that both have, in the same order, and of the others."""

    both: tuple[Rows, Rows]
    only_base: Rows
    only_head: Rows


def join(base: KeyedResults, head: KeyedResults) -> Iterator[JoinedPart | tuple[str, int]]:
    """Yield the runs range by range; and before a range ("base" or "head", line) for each result that is in one of
    them twice."""
    whole = not (base.spilled or head.spilled)
    for first, second in zip(base.parts(whole=whole), head.parts(whole=whole), strict=True):
        for name, rows in (("base", first), ("head", second)):
            repeated = rows["line"][1:][rows["digest"][1:] == rows["digest"][:-1]]
            yield from ((name, int(line)) for line in repeated)
        _, here, there = np.intersect1d(first["digest"], second["digest"], return_indices=True)
        yield JoinedPart((first[here], second[there]), np.delete(first, here), np.delete(second, there))


def kinds(*columns: NDArray[Any]) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64]]]:
    """Yield the distinct combinations of integers in these columns, each with the rows that have it."""
    if not len(columns[0]):
        return
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = code * (int(column.max()) + 1) + column
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    edges = np.searchsorted(which.reshape(-1)[order], np.arange(1, len(first)))
    for place, rows in zip(first, np.split(order, edges), strict=True):
        yield tuple(int(column[place]) for column in columns), rows
