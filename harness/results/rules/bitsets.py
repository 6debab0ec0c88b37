"""Sets of rows as packed bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
"""One bit a row along the last axis, 64 to an element; bits behind the last row are 0."""


def pack(rows: NDArray[np.bool_]) -> Bits:
    """Pack truth values, shape (rows,), into bits."""
    packed = np.packbits(rows, bitorder="little")
    padded = np.zeros(-(-len(rows) // 64) * 8, np.uint8)
    padded[: len(packed)] = packed
    return padded.view(np.uint64)


def unpack(bits: Bits, rows: int) -> NDArray[np.bool_]:
    """Return the truth values of the first `rows` rows."""
    return np.unpackbits(bits.view(np.uint8), count=rows, bitorder="little").view(np.bool_)


def size(bits: Bits) -> NDArray[np.int64]:
    """Count the rows of each set: the last axis is summed."""
    return np.asarray(np.bitwise_count(bits).sum(axis=-1, dtype=np.int64))
