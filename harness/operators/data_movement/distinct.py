"""Chooses indices that name no place twice, for operators that write to the named places."""

from __future__ import annotations

from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array
from harness.operators.base import Entropy, Shape, ValueKind

DISTINCT_KINDS = (
    ValueKind("distinct"),
    ValueKind("distinct_negative", negative=True),
    ValueKind("distinct_mixed", negative=True),
)
"""Legal indices without two alike: of 0..s-1, of -s..-1, of both (an index and the same less s are the same
place)."""


def distinct(kind: str, dtype: str, shape: Shape, axis: int, size: int, entropy: Entropy) -> Array:
    """Choose indices of `shape` that differ along the axis, where there are at most as many as `size`.

    Each lane begins anywhere, goes on by a step that has no divisor in common with the size, and is then put
    in disorder.
    """
    drawn: NDArray[np.int64] = np.frombuffer(entropy, "<u4", prod(shape)).astype(np.int64)
    raw: NDArray[np.int64] = np.moveaxis(drawn.reshape(shape), axis, -1)
    if not raw.size:
        return np.zeros(shape, DTYPES[dtype].storage)
    steps = np.array([step for step in range(1, min(size, 64) + 1) if gcd(step, size) == 1])
    first = raw[..., :1]
    step = np.take(steps, (first >> 8) % len(steps))
    chosen = (first + np.arange(raw.shape[-1]) * step) % size
    chosen = np.take_along_axis(chosen, np.argsort(raw, axis=-1, kind="stable"), axis=-1)
    if kind == "distinct_negative":
        chosen -= size
    elif kind == "distinct_mixed":
        chosen -= size * (raw >> 31)
    return np.ascontiguousarray(np.moveaxis(chosen, -1, axis)).astype(DTYPES[dtype].storage)


def repeated(indices: Array, data: Shape) -> bool:
    """Say whether two tuples of coordinates, in the last dimension of indices, name the same place of
    data."""
    sizes: NDArray[np.int64] = np.maximum(np.array(data[: indices.shape[-1]], np.int64), 1)
    tuples = (indices.reshape(-1, indices.shape[-1]) % sizes).tolist()
    return len(set(map(tuple, tuples))) < len(tuples)
