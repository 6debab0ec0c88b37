"""Reads arrays of an `.npz` file that anybody may have written or damaged: in bounded memory and time, or not
at all."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from harness.model.dtypes import DTYPES, Array
from harness.model.plain_file import buffered

FILE_LIMIT = 64 << 20
"""Bytes of a file, and of its arrays."""
_MEMBERS = 64
"""More arrays than any case has tensors."""
_HEADER = 1 << 16
_STORAGES = frozenset(entry.storage for entry in DTYPES.values() if entry.storage != "O")
# NumPy reads the header of an array as Python, and zipfile trusts the numbers in a directory: what damage
# there raises is not one kind
_DAMAGE = (
    *(
        OSError,
        ValueError,
        EOFError,
        KeyError,
        IndexError,
        AttributeError,
        TypeError,
        SyntaxError,
        OverflowError,
        MemoryError,
    ),
    *(
        RecursionError,
        RuntimeError,
        AssertionError,
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
    ),
)


def load_arrays(path: Path) -> dict[str, Array] | None:
    """Return the arrays that have an element type of `dtypes`, by name in the file's order; None where the
    file cannot be read so.

    Arrays of strings would be stored as pickles, which are never read.
    """
    try:
        with buffered(path) as file:
            if file.raw.size > FILE_LIMIT:  # type: ignore[attr-defined] # a PlainFile
                return None
            return dict(_members(io.BytesIO(file.read())))
    except _DAMAGE:
        return None


def _members(file: io.BytesIO) -> Iterator[tuple[str, Array]]:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > _MEMBERS or sum(member.file_size for member in members) > FILE_LIMIT:
            raise ValueError("too large")
        for member in members:
            if member.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ) or not member.filename.endswith(".npy"):
                raise ValueError("not as NumPy writes it")
            with archive.open(member) as opened:
                array = _array(opened.read(member.file_size))
            if array is not None:
                yield member.filename.removesuffix(".npy"), array


def _array(data: bytes) -> Array | None:
    """Return one array, None if it has another element type; its header must describe just the bytes that
    follow it."""
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("not as NumPy writes it")
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(stream, max_header_size=_HEADER)
    if dtype.str[1:] not in _STORAGES or dtype.byteorder == ">":
        return None
    count = prod(shape)
    if any(extent < 0 for extent in shape) or count * dtype.itemsize != len(data) - stream.tell():
        raise ValueError("its size is not that of its shape")
    flat = np.frombuffer(data, dtype, count, stream.tell()) if count else np.empty(0, dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
