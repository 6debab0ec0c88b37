"""Mistakes of GatherElements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array
from tests.mutants import Call, Mutant
from tests.mutants import gather_elements_checks as checks
from tests.mutants.blocks import of_blocks, of_late_checks
from tests.mutants.elements import of_moving
from tests.mutants.moving import altered, refused, where

NAME = "GatherElements"
Index = NDArray[np.int64]
Along = Callable[[Index, int, int, Call], Index]


def parts(call: Call) -> tuple[Array, Array, int, int]:
    """Return data, indices, the axis from 0, and the size of the axis; refuse what is invalid."""
    call.refuse()
    data, index = (tensor.array for tensor in call.inputs)
    axis = call.case.attributes.get("axis", 0) % data.ndim
    return data, index, axis, data.shape[axis]


def pick(data: Array, along: Index, axis: int) -> Array:
    """Gather by the formula; a coordinate outside `data` reads the nearest element, as a clamped read
    does."""
    if not data.size:
        return np.zeros(along.shape, data.dtype)
    coordinates = [
        np.minimum(c, n - 1) for c, n in zip(np.indices(along.shape, sparse=True), data.shape, strict=True)
    ]
    coordinates[axis] = np.clip(along, 0, data.shape[axis] - 1)
    return np.asarray(data[tuple(coordinates)])


def at_offset(data: Array, flat: Index) -> Array:
    """Read at offsets, which wrap around the end of the buffer."""
    return (
        np.asarray(data.reshape(-1)[flat % max(data.size, 1)])
        if data.size
        else np.zeros(flat.shape, data.dtype)
    )


def indexed(name: str, along: Along, enough: int = 2) -> Mutant:
    """Make a mutant that takes another position on the axis for an index."""

    def kernel(call: Call) -> Array:
        data, index, axis, size = parts(call)
        return pick(data, along(index.astype(np.int64), size, axis, call), axis)

    return Mutant(f"{NAME}: {name}", NAME, kernel, enough)


def legal(index: Index, size: int, *_: object) -> Index:
    """Return the right position."""
    return np.where(index < 0, index + size, index)


def negative_only(holds: Callable[[Index, int, int, Call], bool]) -> Along:
    """An index below 0 counts from the end only where something holds."""
    return lambda index, size, axis, call: legal(index, size) if holds(index, size, axis, call) else index


def through(dtype: str) -> Along:
    """Indices pass through a type that does not hold them all."""
    return lambda index, size, *_: legal(index.astype(dtype).astype(np.int64), size)


def _int32_unsigned(index: Index, size: int, axis: int, call: Call) -> Index:
    return legal(index, size) if call.inputs[1].dtype == "int64" else index & 0xFFFFFFFF


def _low_words_in_a_row(index: Index, size: int, axis: int, call: Call) -> Index:
    if call.inputs[1].dtype != "int64":
        return legal(index, size)
    words = np.ascontiguousarray(index).view(np.int32).reshape(-1)[: index.size].astype(np.int64)
    return legal(words.reshape(index.shape), size)


def of_index() -> Iterator[Mutant]:
    """Negative indices and the types of indices."""
    yield indexed("an index below 0 reads element 0", lambda i, *_: np.maximum(i, 0))
    for name, holds in {
        "axis 0": lambda _i, _s, axis, _c: axis == 0,
        "the last axis": lambda i, _s, axis, _c: axis == i.ndim - 1,
        "an axis below 0": lambda _i, _s, _a, call: call.case.attributes.get("axis", 0) < 0,
        "an axis from 0": lambda _i, _s, _a, call: call.case.attributes.get("axis", 0) >= 0,
        "rank 1": lambda i, *_: i.ndim == 1,
        "ranks from 2": lambda i, *_: i.ndim > 1,
        "ranks up to 4": lambda i, *_: i.ndim <= 4,
        "ranks up to 5": lambda i, *_: i.ndim <= 5,
        "equal shapes": lambda _i, _s, _a, call: call.shapes[0] == call.shapes[1],
        "indices as inputs": lambda _i, _s, _a, call: call.case.options.initializer != "indices",
        "data as input": lambda _i, _s, _a, call: call.case.options.initializer != "data",
        "static shapes": lambda _i, _s, _a, call: call.case.options.shapes == "static",
        "symbolic shapes": lambda _i, _s, _a, call: call.case.options.shapes == "symbolic",
        "int32 indices": lambda _i, _s, _a, call: call.inputs[1].dtype == "int32",
        "int64 indices": lambda _i, _s, _a, call: call.inputs[1].dtype == "int64",
        "elements of 4 and 8 bytes": lambda _i, _s, _a, call: DTYPES[call.inputs[0].dtype].itemsize in (4, 8),
        "elements of 1 and 2 bytes": lambda _i, _s, _a, call: DTYPES[call.inputs[0].dtype].itemsize in (1, 2),
        "up to 256 elements": lambda i, *_: i.size <= 256,
        "axes up to 256 long": lambda _i, size, *_: size <= 256,
    }.items():
        yield indexed(f"an index below 0 counts from the end for {name} alone", negative_only(holds))
    yield indexed(
        "an index below 0 counts from the end but one", lambda i, s, *_: np.where(i < 0, i + s - 1, i)
    )
    yield indexed("an index below 0 is taken as positive", lambda i, *_: np.abs(i))
    yield indexed(
        "an index below 0 wraps by the last extent",
        lambda i, s, a, c: np.where(i < 0, i + c.shapes[0][-1], i),
    )
    yield indexed(
        "an index below 0 wraps by the first extent",
        lambda i, s, a, c: np.where(i < 0, i + c.shapes[0][0], i),
    )
    yield indexed(
        "an index below 0 wraps by the extent of indices",
        lambda i, s, a, c: np.where(i < 0, i + c.shapes[1][a], i),
    )
    yield indexed(
        "only the first row's indices below 0 are looked at",
        lambda i, s, *_: np.where((i < 0) & _first_row(i), i + s, i),
    )
    yield indexed(
        "the last index of an axis reads the one before",
        lambda i, s, *_: np.minimum(legal(i, s), max(s - 2, 0)),
    )
    yield indexed(
        "the first index of an axis reads the one behind", lambda i, s, *_: np.maximum(legal(i, s), 1)
    )
    yield indexed("int32 indices are taken as uint32", _int32_unsigned)
    yield indexed("the low words of int64 indices are read in a row", _low_words_in_a_row)
    yield indexed(
        "the low words of int64 indices are taken as uint32",
        lambda i, s, a, c: i & 0xFFFFFFFF if c.inputs[1].dtype == "int64" else legal(i, s),
    )
    for dtype in ("int8", "uint8", "int16", "uint16", "float16"):
        yield indexed(f"indices pass through {dtype}", through(dtype))


def _first_row(index: Index) -> NDArray[np.bool_]:
    return np.arange(index.size).reshape(index.shape) < max(index.shape[-1], 1)


def on_axis(name: str, choose: Callable[[int, int], int]) -> Mutant:
    """Make a mutant that gathers along another axis."""

    def kernel(call: Call) -> Array:
        data, index, _, _ = parts(call)
        axis = min(max(choose(call.case.attributes.get("axis", 0), data.ndim), 0), data.ndim - 1)
        return pick(data, legal(index.astype(np.int64), data.shape[axis]), axis)

    return Mutant(f"{NAME}: {name}", NAME, kernel)


def of_axis() -> Iterator[Mutant]:
    """The attribute axis."""
    yield on_axis("axis is ignored", lambda axis, rank: 0)
    yield on_axis("axis is always the last", lambda axis, rank: rank - 1)
    yield on_axis("an axis below 0 is 0", lambda axis, rank: max(axis, 0))
    yield on_axis("an axis below 0 is the last", lambda axis, rank: axis if axis >= 0 else rank - 1)
    yield on_axis(
        "an axis below 0 is one too small", lambda axis, rank: axis if axis >= 0 else axis + rank - 1
    )
    yield on_axis("an axis below 0 is taken as positive", lambda axis, rank: abs(axis))
    yield on_axis(
        "axis counts in 4 dimensions",
        lambda axis, rank: axis - max(4 - rank, 0) if axis >= 0 else axis + rank,
    )
    for limit in (2, 3, 4, 5, 7):
        yield on_axis(
            f"axes from {limit} on are {limit - 1}", lambda axis, rank, n=limit: min(axis % rank, n - 1)
        )
        yield on_axis(
            f"axes below -{limit} are -{limit}",
            lambda axis, rank, n=limit: max(axis, -n) if axis < 0 else axis,
        )


def of_shape() -> Iterator[Mutant]:
    """Strides, extents and ranks."""

    def strided(choose: Callable[[Call], tuple[int, ...]]) -> Callable[[Call], Array]:
        def kernel(call: Call) -> Array:
            data, index, axis, size = parts(call)
            shape = choose(call)
            flat = np.zeros(index.shape, np.int64)
            for dimension, coordinate in enumerate(np.indices(index.shape, sparse=True)):
                value = legal(index.astype(np.int64), size) if dimension == axis else coordinate
                flat = flat + value * prod(shape[dimension + 1 :])
            return at_offset(data, flat)

        return kernel

    yield Mutant(f"{NAME}: the strides are those of indices", NAME, strided(lambda call: call.shapes[1]))
    yield Mutant(
        f"{NAME}: rows are padded to 4 elements",
        NAME,
        strided(lambda call: (*call.shapes[0][:-1], -(-call.shapes[0][-1] // 4) * 4)),
    )

    def unravelled(call: Call) -> Array:
        data, index, axis, size = parts(call)
        if not index.size or not data.size:
            return call.right()
        flat = np.arange(index.size).reshape(index.shape) % data.size
        coordinates = list(np.unravel_index(flat, data.shape))
        coordinates[axis] = legal(index.astype(np.int64), size)
        return np.asarray(data[tuple(coordinates)])

    yield Mutant(f"{NAME}: the place in the output is taken apart by the shape of data", NAME, unravelled)

    def innermost_not_reset(call: Call) -> Array:
        data, index, axis, size = parts(call)
        inner = index.shape[-1] if index.ndim else 1
        out = call.right().copy()
        if index.ndim > 2 and axis != index.ndim - 1 and data.size and out.size:
            first = legal(index.astype(np.int64), size).reshape(-1, inner)
            out = pick(data, np.roll(first, 1, 0).reshape(index.shape), axis)
        return out

    yield Mutant(f"{NAME}: the counter of rows is reset at the wrong end", NAME, innermost_not_reset)
    for limit in (4, 5, 6, 8):

        def leading(call: Call, limit: int = limit) -> Array:
            data, index, axis, size = parts(call)
            extra = data.ndim - limit
            if extra <= 0 or not data.size:
                return call.right()
            along = legal(index.astype(np.int64), size)
            coordinates: list[Array] = list(np.indices(index.shape, sparse=True))
            coordinates[:extra] = [np.zeros_like(c) for c in coordinates[:extra]]
            coordinates[axis] = along
            return np.asarray(data[tuple(coordinates)])

        yield Mutant(
            f"{NAME}: only the last {limit} dimensions count",
            NAME,
            leading,
            2,
            ("dml",) if limit == 8 else (),
        )
        holds = lambda call, n=limit: len(call.shapes[0]) > n  # noqa: E731
        yield altered(f"wrong above rank {limit}", NAME, where(holds), 2, ("dml",) if limit == 8 else ())
    extents: dict[str, Callable[[tuple[int, ...], tuple[int, ...], int], bool]] = {
        "an axis of 1 read several times": lambda d, i, a: d[a] == 1 < i[a],
        "one column": lambda d, i, a: len(d) > 1 and d[-1] == 1,
        "one row": lambda d, i, a: len(d) > 1 and d[0] == 1,
        "an axis above 127": lambda d, i, a: d[a] > 127,
        "an axis above 255": lambda d, i, a: d[a] > 255,
        "an axis above 256": lambda d, i, a: d[a] > 256,
        "an axis above 32767": lambda d, i, a: d[a] > 32767,
        "an axis above 65535": lambda d, i, a: d[a] > 65535,
        "a short axis in long data": lambda d, i, a: d[a] < 256 and prod(d) > 65535,
        "more than 65535 rows": lambda d, i, a: prod(i[:-1]) > 65535,
    }
    for name, relation in extents.items():

        def related(call: Call, relation: Callable[..., bool] = relation) -> bool:
            return relation(*call.shapes, call.case.attributes.get("axis", 0) % len(call.shapes[0]))

        yield altered(f"wrong for {name}", NAME, where(related))
    yield altered("wrong for indices narrower than data", NAME, where(_narrow), 2, ("dml",))
    yield refused("indices without elements", NAME, lambda call: 0 in call.shapes[1])
    yield refused("data without elements", NAME, lambda call: 0 in call.shapes[0])
    yield refused("an index of -s", NAME, lambda call: _any(call, lambda i, s: i == -s))
    yield refused("an index of s-1", NAME, lambda call: _any(call, lambda i, s: i == s - 1))
    empty = lambda call: np.zeros(call.shapes[0], call.inputs[0].array.dtype)  # noqa: E731
    yield altered(
        "an empty output has the shape of data", NAME, lambda out, call: out if out.size else empty(call)
    )
    yield altered(
        "an output of one element loses its dimensions",
        NAME,
        lambda out, call: out.reshape(()) if out.size == 1 else out,
    )


def _narrow(call: Call) -> bool:
    axis = call.case.attributes.get("axis", 0) % len(call.shapes[0])
    return any(i < d for n, (d, i) in enumerate(zip(*call.shapes, strict=True)) if n != axis)


def _any(call: Call, holds: Callable[[Array, int], Array]) -> bool:
    if len(call.shapes[0]) != len(call.shapes[1]) or not call.shapes[0]:
        return False
    size = call.shapes[0][call.case.attributes.get("axis", 0) % len(call.shapes[0])]
    return bool(np.any(holds(call.inputs[1].array, size)))


def mutants() -> Iterator[Mutant]:
    """Yield all mistakes of GatherElements."""
    yield from of_index()
    yield from of_axis()
    yield from of_shape()
    yield from checks.mutants()
    yield from of_moving(NAME)
    for elements in (2, 10_000):  # rows since ONNX Runtime 1.12, before from 10,000 elements of a row
        yield from of_blocks(NAME, lambda call: prod(call.shapes[1][:-1]), elements)
    yield from of_blocks(f"{NAME}", lambda call: prod(call.shapes[1]), 10_001)
    yield from of_late_checks(NAME, checks.outside_by_row, 10_000)
