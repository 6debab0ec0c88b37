"""Reads arrays of an `.npz` file that anybody may have written: nothing in it is run, and it takes no more memory than
its limit."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.model.plain_file import buffered

FILE_LIMIT = 64 << 20
"""Bytes of a file, and of its arrays."""
_MEMBERS = 64
"""More arrays than any case has tensors."""
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_STORAGES = frozenset(f"{order}{entry.storage}" for entry in DTYPES.values() for order in "<|")


def load_arrays(path: Path) -> dict[str, Array] | None:
    """Return the arrays that have an element type of `dtypes`, by name in the file's order; None where the
    file cannot be read so.

    Arrays of strings would be stored as pickles, which are never read.
    """
    try:
        with buffered(path) as file:
            data = BytesIO(file.read(FILE_LIMIT))
        with zipfile.ZipFile(data) as archive:
            members = archive.infolist()
        packed = {member.compress_type for member in members}
        if (
            len(members) > _MEMBERS
            or sum(member.file_size for member in members) > FILE_LIMIT
            or packed - _PACKED
        ):
            return None
        data.seek(0)
        with np.load(data, allow_pickle=False) as arrays:
            found = dict(arrays.items())
    except Exception:  # noqa: BLE001 - NumPy and zipfile raise errors of some twenty types for damage
        return None
    if not all(isinstance(each, np.ndarray) for each in found.values()):
        return None
    return {name: each for name, each in found.items() if each.dtype.str in _STORAGES}
