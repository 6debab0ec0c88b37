"""Operators with an input of indices: how the indices are chosen and when they are out of range.

An index i into a dimension of size s is legal when -s <= i <= s - 1 (ONNX, GatherElements and GatherND).
`sizes` is the size of the indexed dimension, or one size per coordinate of an index tuple, broadcast along
the last axis of the indices. Operators that write to the named places have
kinds that name no place twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.operators.base import Call, CallTensor, Entropy, Family, Operator, Shape, ValueKind, value_kinds
from harness.operators.binary_floats import patterns_of, special_patterns
from harness.operators.elements import choose

RANGE = "index values within [-s, s-1]"
"""The rule that an index breaks."""

INDEX_KINDS = (
    *value_kinds("in_range", "repeated", "first", "last"),
    *value_kinds("negative", "mixed", "boundary", negative=True),
    ValueKind("above", breaks=RANGE),
    ValueKind("below", negative=True, breaks=RANGE),
    ValueKind("far_above", breaks=RANGE),
    ValueKind("far_below", negative=True, breaks=RANGE),
    ValueKind("wraps_to_legal", breaks=RANGE),
    ValueKind("wraps_to_legal_negative", negative=True, breaks=RANGE),
)
"""in_range: 0..s-1; repeated: one legal index everywhere; first, last: 0, s-1; negative: -s..-1; mixed: both
signs; boundary: -s, -1, 0, s-1. Invalid, in one element of otherwise legal ones: above: s; below: -s-1;
far_*: the extreme of the index type (for uint64 2**63 - 1); wraps_to_legal*: a legal index plus or minus
2**32 (an implementation that truncates to 32 bits reads a wrong element instead of refusing; 64 bits
only)."""

_BELOW_ZERO = frozenset(kind.name for kind in INDEX_KINDS if kind.negative)


def indices(kind: str, dtype: str, shape: Shape, sizes: int | NDArray[np.int64], entropy: Entropy) -> Array:
    """Choose indices of `shape` by kind, which must apply to them; in an empty dimension, where none is
    legal, as if it had one element.

    `sizes` is the size of the indexed dimension, or an array of one size per coordinate, int64, along the
    last axis.
    """
    count = prod(shape)
    sizes = max(sizes, 1) if isinstance(sizes, int) else np.maximum(sizes, 1)
    raw = np.frombuffer(entropy, "<u4", count).astype(np.int64)
    if not isinstance(sizes, int):
        raw = raw.reshape(-1, sizes.size)
    if kind == "boundary":
        chosen = _boundary(raw, sizes)
    elif kind == "first":
        chosen = raw * 0
    elif kind == "last":
        chosen = raw * 0 + (sizes - 1)
    else:
        chosen = raw % sizes
        if kind == "negative":
            chosen -= sizes
        elif kind == "mixed":
            chosen -= sizes * (raw >> 31)
        elif kind == "repeated":
            chosen[:] = chosen[:1]
        elif kind != "in_range":
            chosen = _with_one_illegal(kind, chosen, sizes, dtype, int(raw.flat[0]))
    return chosen.reshape(shape).astype(DTYPES[dtype].storage, copy=False)


def _boundary(raw: NDArray[np.int64], sizes: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Choose one of 0, s-1, -1, -s for each element."""
    pick = raw >> 30
    if isinstance(sizes, int):
        return np.asarray(np.array((0, sizes - 1, -1, -sizes))[pick], np.int64)
    edges = np.stack((0 * sizes, sizes - 1, 0 * sizes - 1, -sizes))
    return np.take_along_axis(edges, pick, axis=0)


def _with_one_illegal(
    kind: str, legal: NDArray[np.int64], sizes: int | NDArray[np.int64], dtype: str, pick: int
) -> NDArray[np.int64]:
    flat = legal.reshape(-1)
    limits = np.iinfo(DTYPES[dtype].storage)
    at = pick % flat.size
    size = sizes if isinstance(sizes, int) else int(sizes[at % sizes.size])
    wrap = 2**32 if limits.bits > 32 else 0
    flat[at] = {
        "above": size,
        "below": -size - 1,
        "far_above": min(int(limits.max), 2**63 - 1),
        "far_below": int(limits.min),
        "wraps_to_legal": int(flat[at]) + wrap,
        "wraps_to_legal_negative": int(flat[at]) - wrap,
    }[kind]
    return flat


def applies(kind: str, dtype: str, shape: Shape) -> bool:
    """Say whether a kind has a meaning for indices of a dtype and shape.

    Without elements all kinds are one, only 64 bits can wrap, and unsigned types hold no negative index.
    """
    if 0 in shape:
        return kind == "in_range"
    if dtype in ("uint32", "uint64") and kind in _BELOW_ZERO:
        return False
    return not kind.startswith("wraps") or dtype in ("int64", "uint64")


def out_of_range(values: Array, sizes: int | NDArray[np.int64]) -> bool:
    """Say whether any index lies outside [-size, size - 1]."""
    if values.dtype.kind == "u":
        return bool(values.size) and bool(np.any(values >= np.asarray(sizes, np.uint64)))
    wide = values.astype(np.int64)
    return bool(wide.size) and bool(np.any((wide >= sizes) | (wide < np.negative(sizes))))


LISTS = ("nans", "infinities", "subnormals", "zeros")
DATA_KINDS = value_kinds("specials", *LISTS)
"""Elements that a copy may get wrong: specials, zeros of both signs, infinities, NaNs with payloads, subnormals,
the limits of integers; of floats also one sort of these alone."""


def special_elements(kind: str, dtype: str, shape: Shape, entropy: Entropy) -> Array:
    """Choose such elements of any type; of a complex number both parts are such."""
    entry = DTYPES[dtype]
    raw = np.frombuffer(entropy, "<u4", prod(shape))
    if entry.is_float:
        patterns = patterns_of(kind, dtype) if kind in LISTS else special_patterns(dtype)
        return np.asarray(patterns[raw % patterns.size]).reshape(shape)
    if entry.storage in ("c8", "c16"):
        patterns = special_patterns("float32" if entry.storage == "c8" else "float64")
        parts = np.stack((raw % patterns.size, (raw >> 8) % patterns.size), axis=-1)
        return np.asarray(patterns[parts]).view(entry.storage).reshape(shape)
    return choose("specials" if entry.is_integer else "ordinary", dtype, shape, entropy)


_LEGAL = tuple(f"{word}{sign}" for sign in ("", "_negative") for word in ("first", "middle", "last"))
AXES = dict.fromkeys(_LEGAL, True) | dict.fromkeys(("above", "below", "far_above", "far_below"), False)
"""Words for an axis of rank r, and whether they are legal: a middle one is neither the first nor the last; above
is r, below -r-1, far are the ends of 32 bits."""


def axis_at(word: str, rank: int) -> int | None:
    """Return the axis that a word stands for at a rank."""
    middle = rank // 2 if rank > 2 else None
    place = word.removesuffix("_negative")
    found = {
        "first": 0 if rank else None,
        "middle": middle,
        "last": rank - 1 if rank else None,
        "above": rank,
        "below": -rank - 1,
        "far_above": 2**31 - 1,
        "far_below": -(2**31),
    }[place]
    return found if found is None or place == word else found - rank


def axis_words(axis: int, rank: int) -> list[str]:
    """Return the words that an axis is called by; the only one is the first and the last."""
    if not -rank <= axis < rank:
        near = "above" if axis > 0 else "below"
        return [near if axis in (rank, -rank - 1) else f"far_{near}"]
    sign, place = ("", axis) if axis >= 0 else ("_negative", axis + rank)
    words = {"first": place == 0, "middle": 0 < place < rank - 1, "last": place == rank - 1}
    return [f"{word}{sign}" for word, holds in words.items() if holds]


class Copying(Family):
    """Operators that copy elements, any or special ones; `own` has the kinds of the inputs that say which, or where."""

    def fills(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Return the special elements of data."""
        return () if self.kinds(operator, name) else DATA_KINDS

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for data of this type."""
        return kind not in LISTS or DTYPES[call.inputs[name].dtype].is_float

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose what `own` has kinds of, or special elements."""
        if name in self.own:
            return super().generate(operator, kind, name, call, entropy)
        return special_elements(kind, *call.inputs[name], entropy)


class Indexing(Copying):
    """Operators whose input `indices` selects along dimensions of another input; `sizes` says how many there
    are to select from."""

    def sizes(self, call: Call) -> int | NDArray[np.int64]:
        """Return the size of the indexed dimension, by default that of data along the axis, or one size per coordinate of
        an index tuple; an axis outside its domain counts as axis 0."""
        data, axis = call.first.shape, call.parameter("axis", 0)
        return data[axis if -len(data) <= axis < len(data) else 0] if data else 1

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"indices": INDEX_KINDS}

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for indices of this type and shape, or for data of this type."""
        if name != "indices":
            return super().applies(operator, kind, name, call)
        return applies(kind, *call.inputs[name])

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose indices within `sizes`, and special elements of other inputs."""
        if name != "indices":
            return super().generate(operator, kind, name, call, entropy)
        return indices(kind, *call.inputs[name], self.sizes(call), entropy)

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """The rule on index values."""
        return RANGE if out_of_range(inputs["indices"].array, self.sizes(call)) else None

    def unsigned_inputs(self, operator: Operator) -> tuple[str, ...]:
        """Indices."""
        return ("indices",)


def indexed(call: Call, output: Shape) -> dict[str, CallTensor]:
    """Return data, indices and updates, where there are some, as DirectML's operators name them, and an output of the
    type of data."""
    members = zip(("InputTensor", "IndicesTensor", "UpdatesTensor"), call.inputs.items(), strict=False)
    tensors = {member: CallTensor(name, *given) for member, (name, given) in members}
    return tensors | {"OutputTensor": CallTensor(0, call.first.dtype, output)}


DISTINCT_KINDS = (
    ValueKind("distinct"),
    *value_kinds("distinct_negative", "distinct_mixed", negative=True),
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
