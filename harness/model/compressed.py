"""Reads files that may be compressed: detects xz and gzip by their first bytes, in bounded memory.

A line has a limit, and so does the memory that an xz file may request, so a small hostile file cannot fill
this machine's memory.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from harness.model.errors import UsageError
from harness.model.plain_file import NotPlain, buffered

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SUFFIXES = ("", ".xz", ".gz")
"""What the name of such a file ends in, the plain one first."""
LONGEST_LINE = 16 << 20
XZ_MEMORY = 512 << 20
"""Bytes that decoding may take: those of the strongest preset are 65 MiB, larger windows join repeats that
are further apart."""
_BUFFER = 1 << 16
_XZ, _GZIP = b"\xfd7zXZ\x00", b"\x1f\x8b"


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their ends; only the last one can lack it. Errors: UsageError that names
    the file."""
    try:
        with buffered(path, _BUFFER) as file:
            unpacked = _unpacked(file)
            number = 1
            while line := unpacked.readline(LONGEST_LINE):
                if len(line) == LONGEST_LINE:
                    raise UsageError(
                        f"{path}:{number}: longer than {LONGEST_LINE >> 20} MiB: no line of a run file is"
                    )
                yield line
                number += 1
    except EOFError as error:
        raise UsageError(
            f"{path}: the compressed file is cut off: copy it again, or take the uncompressed one"
        ) from error
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: damaged compressed file: {error}") from error
    except NotPlain as error:
        raise UsageError(f"{path}: {error.strerror}, because reports read it more than once") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _unpacked(file: Any) -> BinaryIO:
    start = file.peek(len(_XZ))
    if start.startswith(_XZ):
        return cast(BinaryIO, io.BufferedReader(_Xz(file), _BUFFER))
    if start.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return cast(BinaryIO, file)


class _Xz(io.RawIOBase):
    """The content of one xz stream; the standard library's own reader has no limit of memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        place = memoryview(buffer).cast("B")
        while not self._decoder.eof:
            data = self._file.read(_BUFFER) if self._decoder.needs_input else b""
            if not data and self._decoder.needs_input:
                raise EOFError
            piece = self._decoder.decompress(data, len(place))
            if piece:
                place[: len(piece)] = piece
                return len(piece)
        if self._decoder.unused_data or self._file.read(1):
            raise lzma.LZMAError("something follows its end")
        return 0
