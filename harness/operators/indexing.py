"""Index tensors for the gather operators: how they are chosen and when they are out of range.

An index i into a dimension of size s is legal when -s <= i <= s - 1 (ONNX, GatherElements and GatherND). `sizes` is the size of the
indexed dimension, or one size per coordinate of an index tuple, broadcast along the last axis of the indices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.dtypes import DTYPES, Array
from harness.operators.base import Bits, Shape, ValueKind

INDEX_KINDS = (
    ValueKind("in_range"),
    ValueKind("repeated"),
    ValueKind("first"),
    ValueKind("last"),
    ValueKind("negative", negative=True),
    ValueKind("mixed", negative=True),
    ValueKind("boundary", negative=True),
    ValueKind("above", invalid=True),
    ValueKind("below", negative=True, invalid=True),
    ValueKind("far_above", invalid=True),
    ValueKind("far_below", negative=True, invalid=True),
    ValueKind("wraps_to_legal", invalid=True),
    ValueKind("wraps_to_legal_negative", negative=True, invalid=True),
)
"""in_range: 0..s-1; repeated: one legal index everywhere; first, last: 0, s-1; negative: -s..-1; mixed: both signs; boundary: -s, -1, 0,
s-1. Invalid, in one element of otherwise legal ones: above: s; below: -s-1; far_*: the extreme of the index type; wraps_to_legal*: a legal
index plus or minus 2**32 (an implementation that truncates to 32 bits reads a wrong element instead of refusing; int64 only)."""


def indices(kind: str, dtype: str, shape: Shape, sizes: int | NDArray[np.int64], bits: Bits) -> Array:
    """Choose indices of `shape` by kind, which must apply to them; in an empty dimension, where none is legal, as if it had one element."""
    storage = DTYPES[dtype].storage
    count = int(np.prod(shape, dtype=np.int64))
    sizes = np.maximum(sizes, 1)
    raw = np.frombuffer(bits(4 * count), np.uint32).reshape(shape).astype(np.int64)
    legal = raw % sizes if count else raw
    if kind == "in_range":
        return legal.astype(storage)
    if kind == "negative":
        return (legal - sizes).astype(storage)
    if kind == "mixed":
        return np.where(raw & 0x10000, legal, legal - sizes).astype(storage)
    if kind == "boundary":
        edges = np.stack(np.broadcast_arrays(0, np.subtract(sizes, 1), -1, np.negative(sizes)))
        picked = np.choose((raw >> 20) & 3, [edges[i] for i in range(4)])
        return np.broadcast_to(picked, shape).astype(storage)
    if kind in ("repeated", "first", "last"):
        one = {"repeated": legal.reshape(-1)[:1].sum() % sizes, "first": 0 * np.asarray(sizes), "last": np.subtract(sizes, 1)}[kind]
        return np.broadcast_to(one, shape).astype(storage)
    return _with_one_illegal(kind, legal, sizes, storage, int(raw.reshape(-1)[:1].sum()))


def _with_one_illegal(kind: str, legal: NDArray[np.int64], sizes: int | NDArray[np.int64], storage: str, pick: int) -> Array:
    flat = legal.astype(storage).reshape(-1)
    limits = np.iinfo(storage)
    at = pick % flat.size
    size = int(np.broadcast_to(sizes, legal.shape).reshape(-1)[at])
    flat[at] = {
        "above": size,
        "below": -size - 1,
        "far_above": int(limits.max),
        "far_below": int(limits.min),
        "wraps_to_legal": int(flat[at]) + (2**32 if limits.bits > 32 else 0),
        "wraps_to_legal_negative": int(flat[at]) - (2**32 if limits.bits > 32 else 0),
    }[kind]
    return flat.reshape(legal.shape)


def applies(kind: str, dtype: str, shape: Shape) -> bool:
    """Say whether a kind has a meaning for indices of a dtype and shape: without elements all kinds are one, and only int64 can wrap."""
    if 0 in shape:
        return kind == "in_range"
    return not kind.startswith("wraps") or dtype == "int64"


def out_of_range(values: Array, sizes: int | NDArray[np.int64]) -> bool:
    """Say whether any index lies outside [-size, size - 1]."""
    wide = values.astype(np.int64)
    return bool(wide.size) and bool(np.any((wide >= sizes) | (wide < np.negative(sizes))))
