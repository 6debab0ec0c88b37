"""Opens files for the harness: only regular ones, and no more than they hold when they are opened.

A pipe or a device may block for ever, and so may a pseudo-file: the files of /proc report that they are
empty, and are treated as empty. The type is checked on the opened file, so that nobody can exchange it in
between.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 20
# without O_NONBLOCK opening a pipe waits until somebody writes to it
_FLAGS = sum(
    getattr(os, name, 0)
    for name in ("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
)


class NotPlain(OSError):
    """A path that is no regular file, or a file over the limit of size; `strerror` says which."""

    def __init__(self, what: str) -> None:
        super().__init__(0, what)


class PlainFile(io.RawIOBase):
    """A regular file, opened to read its first `size` bytes: those that it had then."""

    def __init__(self, path: Path) -> None:
        """Open a file; OSError (`NotPlain` among them) where that is impossible."""
        try:
            _check(os.stat(path))
            self._descriptor = os.open(path, _FLAGS)
        except ValueError as error:  # a zero byte in the name
            raise OSError(errno.EINVAL, str(error)) from error
        try:
            status = os.fstat(self._descriptor)
            _check(status)
        except OSError:
            os.close(self._descriptor)
            raise
        self.size = self._left = status.st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        place = memoryview(buffer).cast("B")
        data = os.read(self._descriptor, min(len(place), self._left)) if self._left else b""
        place[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        super().close()


def _check(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise NotPlain("is no regular file: save it as one")


def buffered(path: Path, size: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open a file for reading in pieces; OSError where that is impossible."""
    return io.BufferedReader(PlainFile(path), size)


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a file; OSError where it cannot be read or has more than `limit` bytes."""
    with PlainFile(path) as file:
        if file.size > limit:
            raise NotPlain(f"is larger than {limit:,} bytes")
        return file.readall()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file; OSError where it cannot be read."""
    state = sha256()
    with buffered(path, _BLOCK) as file:
        while block := file.read(_BLOCK):
            state.update(block)
    return state.hexdigest()
