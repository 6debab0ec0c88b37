"""Mistakes of GatherND."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array
from tests.mutants import Call, Mutant
from tests.mutants import gather_nd_checks as checks
from tests.mutants.blocks import of_blocks, of_late_checks
from tests.mutants.elements import of_moving
from tests.mutants.gather_nd_checks import batch_of
from tests.mutants.moving import altered, refused, where

NAME = "GatherND"
Index = NDArray[np.int64]
Sizes = tuple[int, ...]


def gather(
    data: Array, coordinates: Index, batch: int, scale: Sizes | None = None, between: int | None = None
) -> Array:
    """Gather slices by coordinates from 0; `scale` are other extents for offsets, `between` another distance
    of batches, in slices."""
    width = coordinates.shape[-1]
    rest = data.shape[batch + width :]
    inside = data.shape[batch : batch + width]
    shape = coordinates.shape[:-1] + rest
    if not data.size:
        return np.zeros(shape, data.dtype)
    flat = np.zeros(coordinates.shape[:-1], np.int64)
    for n, extent in enumerate(inside if scale is None else scale):
        flat = flat * extent + np.clip(coordinates[..., n], 0, inside[n] - 1)
    if batch:
        number = np.arange(prod(data.shape[:batch])).reshape(data.shape[:batch] + (1,) * (flat.ndim - batch))
        flat = flat + number * (prod(inside) if between is None else between)
    rows = data.reshape((-1, *rest))
    return np.asarray(rows[np.asarray(flat).reshape(-1) % len(rows)].reshape(shape))


def parts(call: Call) -> tuple[Array, Index, int, NDArray[np.int64]]:
    """Return data, indices, batch_dims and the extents that a tuple indexes; refuse what is invalid."""
    call.refuse()
    data, index = (tensor.array for tensor in call.inputs)
    batch = batch_of(call)
    return data, index, batch, np.array(data.shape[batch : batch + index.shape[-1]], np.int64)


def legal(index: Index, sizes: NDArray[np.int64]) -> Index:
    return np.where(index < 0, index + sizes, index)


Coordinates = Callable[[Index, NDArray[np.int64], int, Call], Index]


def indexed(name: str, coordinates: Coordinates, enough: int = 2) -> Mutant:
    """Make a mutant that takes other coordinates for a tuple."""

    def kernel(call: Call) -> Array:
        data, index, batch, sizes = parts(call)
        return gather(data, coordinates(index, sizes, batch, call), batch)

    return Mutant(f"{NAME}: {name}", NAME, kernel, enough)


def negative_only(holds: Callable[[Index, NDArray[np.int64], int, Call], object]) -> Coordinates:
    return lambda i, s, b, c: np.where(np.asarray(holds(i, s, b, c), bool), legal(i, s), i)


def of_index() -> Iterator[Mutant]:
    """Negative coordinates and the types of indices."""
    place = lambda i: np.arange(i.shape[-1]).reshape((1,) * (i.ndim - 1) + (-1,))  # noqa: E731
    for name, holds in {
        "no coordinate": lambda i, s, b, c: False,
        "the first coordinate": lambda i, s, b, c: place(i) == 0,
        "the last coordinate": lambda i, s, b, c: place(i) == i.shape[-1] - 1,
        "the first two coordinates": lambda i, s, b, c: place(i) < 2,
        "the first four coordinates": lambda i, s, b, c: place(i) < 4,
        "tuples of one": lambda i, s, b, c: i.shape[-1] == 1,
        "tuples of several": lambda i, s, b, c: i.shape[-1] > 1,
        "full tuples": lambda i, s, b, c: i.shape[-1] == len(c.shapes[0]) - b,
        "slices": lambda i, s, b, c: i.shape[-1] < len(c.shapes[0]) - b,
        "no batch": lambda i, s, b, c: b == 0,
        "one batch dimension at most": lambda i, s, b, c: b <= 1,
        "data of rank 1": lambda i, s, b, c: len(c.shapes[0]) == 1,
        "data up to rank 4": lambda i, s, b, c: len(c.shapes[0]) <= 4,
        "indices up to rank 2": lambda i, s, b, c: i.ndim <= 2,
        "indices from rank 2": lambda i, s, b, c: i.ndim >= 2,
        "variable indices": lambda i, s, b, c: c.case.options.initializer != "indices",
        "constant indices": lambda i, s, b, c: c.case.options.initializer == "indices",
        "variable data": lambda i, s, b, c: c.case.options.initializer != "data",
        "static shapes": lambda i, s, b, c: c.case.options.shapes == "static",
        "symbolic shapes": lambda i, s, b, c: c.case.options.shapes == "symbolic",
        "the first tuple": lambda i, s, b, c: (np.arange(i.size) < i.shape[-1]).reshape(i.shape),
        "extents up to 256": lambda i, s, b, c: s <= 256,
        "elements of 4 bytes": lambda i, s, b, c: DTYPES[c.inputs[0].dtype].itemsize == 4,
        "elements of 8 bytes": lambda i, s, b, c: DTYPES[c.inputs[0].dtype].itemsize == 8,
        "elements of 1 and 2 bytes": lambda i, s, b, c: DTYPES[c.inputs[0].dtype].itemsize in (1, 2),
    }.items():
        yield indexed(f"below 0 counts from the end for {name} alone", negative_only(holds))
    yield indexed("below 0 counts from the end but one", lambda i, s, b, c: np.where(i < 0, i + s - 1, i))
    yield indexed(
        "below 0 wraps by the first extent", lambda i, s, b, c: np.where(i < 0, i + c.shapes[0][0], i)
    )
    yield indexed(
        "below 0 wraps by the last extent", lambda i, s, b, c: np.where(i < 0, i + c.shapes[0][-1], i)
    )
    yield indexed(
        "below 0 wraps by extents from 0 in a batch",
        lambda i, s, b, c: np.where(i < 0, i + np.array(c.shapes[0][: i.shape[-1]]), i),
    )
    yield indexed("below 0 is taken as positive", lambda i, s, b, c: np.abs(i))
    yield indexed("tuples are read backwards", lambda i, s, b, c: legal(i, s)[..., ::-1])
    yield indexed(
        "the last coordinate is ignored",
        lambda i, s, b, c: legal(i, s) * (place(i) < max(i.shape[-1] - 1, 1)),
    )
    yield indexed(
        "coordinates from the fifth on are ignored", lambda i, s, b, c: legal(i, s) * (place(i) < 4)
    )
    yield indexed(
        "coordinates from the eighth on are ignored", lambda i, s, b, c: legal(i, s) * (place(i) < 7)
    )
    yield indexed(
        "the last of a dimension is out of reach",
        lambda i, s, b, c: np.minimum(legal(i, s), np.maximum(s - 2, 0)),
    )
    yield indexed("tuples are read in a row of four", lambda i, s, b, c: _stepped(legal(i, s), 4))
    yield indexed(
        "tuples are read by the rank of data", lambda i, s, b, c: _stepped(legal(i, s), len(c.shapes[0]))
    )
    yield indexed("low words of indices are read in a row", _low_words)
    yield indexed("low words of indices are taken as uint32", lambda i, s, b, c: i & 0xFFFFFFFF)
    for dtype in ("int8", "uint8", "int16", "uint16", "float16"):
        yield indexed(
            f"indices pass through {dtype}",
            lambda i, s, b, c, d=dtype: legal(i.astype(d).astype(np.int64), s),
        )


def _stepped(coordinates: Index, step: int) -> Index:
    """Read tuples that begin every `step` coordinates, and end with the buffer."""
    width = coordinates.shape[-1]
    if not coordinates.size:
        return coordinates
    rows = np.arange(coordinates.size // width)[:, None] * step + np.arange(width)
    return coordinates.reshape(-1)[np.minimum(rows, coordinates.size - 1)].reshape(coordinates.shape)


def _low_words(index: Index, sizes: NDArray[np.int64], batch: int, call: Call) -> Index:
    words = np.ascontiguousarray(index).view(np.int32).reshape(-1)[: index.size]
    return legal(words.astype(np.int64).reshape(index.shape), sizes)


def of_shape() -> Iterator[Mutant]:
    """Strides, batches and ranks."""

    def scaled(name: str, scale: Callable[[Call], Sizes]) -> Mutant:
        def kernel(call: Call) -> Array:
            data, index, batch, sizes = parts(call)
            return gather(data, legal(index, sizes), batch, scale(call))

        return Mutant(f"{NAME}: {name}", NAME, kernel)

    def batched(name: str, between: Callable[[Call], int]) -> Mutant:
        def kernel(call: Call) -> Array:
            data, index, batch, sizes = parts(call)
            return gather(data, legal(index, sizes), batch, None, between(call))

        return Mutant(f"{NAME}: {name}", NAME, kernel)

    inside = lambda call: call.shapes[0][batch_of(call) : batch_of(call) + call.shapes[1][-1]]  # noqa: E731
    yield scaled(
        "offsets are those of the first extents, batches forgotten",
        lambda call: call.shapes[0][: call.shapes[1][-1]],
    )
    yield scaled("offsets are those of the last extents", lambda call: call.shapes[0][-call.shapes[1][-1] :])
    yield scaled("offsets are those of the extents before", lambda call: (1, *inside(call)[:-1]))
    yield scaled("offsets of columns are those of rows", lambda call: inside(call)[::-1])
    yield batched("batch_dims is ignored", lambda call: 0)
    yield batched("batches are as far apart as the tuple's first extent", lambda call: inside(call)[0])
    yield batched("batches are one slice apart", lambda call: 1)
    yield batched(
        "batches are as far apart as all slices",
        lambda call: prod(call.shapes[0][: batch_of(call) + call.shapes[1][-1]]),
    )

    def one_batch(call: Call, dimension: int) -> Array:
        data, index, batch, sizes = parts(call)
        if batch <= dimension:
            return call.right()
        number = np.arange(data.shape[dimension]) * 0
        return gather(np.take(data, number, dimension), legal(index, sizes), batch)

    yield Mutant(f"{NAME}: only the first batch dimension counts", NAME, lambda call: one_batch(call, 1))
    yield Mutant(
        f"{NAME}: only the last of two batch dimensions counts",
        NAME,
        lambda call: one_batch(call, 0) if batch_of(call) > 1 else call.right(),
    )
    yield Mutant(f"{NAME}: the third batch dimension is forgotten", NAME, lambda call: one_batch(call, 2))

    def sliced(name: str, change: Callable[[Array, int], Array]) -> Mutant:
        def kernel(call: Call) -> Array:
            out = call.right()
            size = prod(call.shapes[0][batch_of(call) + call.shapes[1][-1] :])
            return change(out.reshape(-1, size), size).reshape(out.shape) if size > 1 and out.size else out

        return Mutant(f"{NAME}: {name}", NAME, kernel)

    yield sliced("only the first element of a slice is copied", lambda rows, n: np.repeat(rows[:, :1], n, 1))
    yield sliced(
        "the last element of a slice is forgotten",
        lambda rows, n: np.concatenate([rows[:, :-1], rows[:, :1]], 1),
    )
    yield sliced(
        "slices are written behind one another by one element", lambda rows, n: np.roll(rows.reshape(-1), 1)
    )
    yield sliced("every slice is the first", lambda rows, n: np.repeat(rows[:1], len(rows), 0))
    for width in (4, 16, 64, 256, 1024, 65535):
        yield sliced(
            f"a slice's elements from {width} on are forgotten",
            lambda rows, n, w=width: np.where(np.arange(n) < w, rows, rows[:, :1]),
        )
    situations: dict[str, Callable[[Sizes, Sizes, int], bool]] = {
        "indices of rank 1": lambda d, i, b: len(i) == 1,
        "indices of rank 3 or more": lambda d, i, b: len(i) > 2,
        "indices of rank 5 or more": lambda d, i, b: len(i) > 4,
        "indices of rank above data's": lambda d, i, b: len(i) > len(d),
        "output of rank 5 or more": lambda d, i, b: len(i) - 1 + len(d) - b - i[-1] > 4,
        "output of rank 7 or more": lambda d, i, b: len(i) - 1 + len(d) - b - i[-1] > 6,
        "tuples of more than 4": lambda d, i, b: i[-1] > 4,
        "tuples of more than 6": lambda d, i, b: i[-1] > 6,
        "a batch of 1": lambda d, i, b: b > 0 and prod(d[:b]) == 1,
        "a batch and one tuple in it": lambda d, i, b: b > 0 and prod(i[b:-1]) == 1,
        "a batch and several tuples": lambda d, i, b: b > 0 and prod(i[b:-1]) > 1,
        "a batch and slices": lambda d, i, b: b > 0 and i[-1] < len(d) - b,
        "a batch and full tuples": lambda d, i, b: b > 0 and i[-1] == len(d) - b,
        "a batch and data of rank 6 or more": lambda d, i, b: b > 0 and len(d) > 5,
        "an extent above 255": lambda d, i, b: max(d[b : b + i[-1]]) > 255,
        "an extent above 32767": lambda d, i, b: max(d[b : b + i[-1]]) > 32767,
        "an extent above 65535": lambda d, i, b: max(d[b : b + i[-1]]) > 65535,
        "slices above 65535": lambda d, i, b: prod(d[b + i[-1] :]) > 65535,
    }
    for name, holds in situations.items():
        related = lambda call, h=holds: h(*call.shapes, batch_of(call))  # noqa: E731
        yield altered(f"wrong for {name}", NAME, where(related))
    for limit in (4, 5, 6, 8):

        def leading(call: Call, limit: int = limit) -> Array:
            data, index, batch, sizes = parts(call)
            extra = len(call.shapes[0]) - limit
            if batch or extra <= 0:
                return call.right()
            return gather(data, legal(index, sizes) * (np.arange(index.shape[-1]) >= extra), batch)

        yield Mutant(
            f"{NAME}: only the last {limit} dimensions of data count",
            NAME,
            leading,
            2,
            ("dml",) if limit == 8 else (),
        )
    scalar = lambda call: len(call.shapes[1]) == 1 and call.shapes[1][0] == len(call.shapes[0])  # noqa: E731
    yield altered(
        "an output of rank 0 has rank 1",
        NAME,
        lambda out, call: out.reshape(1) if scalar(call) else out,
        2,
        ("dml",),
    )
    yield refused("indices without elements", NAME, lambda call: 0 in call.shapes[1])
    yield refused("data without elements", NAME, lambda call: 0 in call.shapes[0])
    yield refused(
        "slices without elements",
        NAME,
        lambda call: 0 in call.shapes[0][batch_of(call) + call.shapes[1][-1] :],
    )
    yield refused("empty batches", NAME, lambda call: 0 in call.shapes[0][: batch_of(call)])


def _constants_by_the_first_dimensions(call: Call) -> Array:
    data, index, batch, sizes = parts(call)
    if call.case.options.initializer == "indices" and batch:
        sizes = np.array(data.shape[: index.shape[-1]], np.int64)
    return gather(data, legal(index, sizes), batch)


def mutants() -> Iterator[Mutant]:
    """Yield all mistakes of GatherND."""
    yield from of_index()
    yield from of_shape()
    yield from checks.mutants()
    yield from of_moving(NAME)
    yield Mutant(
        f"{NAME}: constants below 0 in a batch count from the first dimensions",
        NAME,
        _constants_by_the_first_dimensions,
    )
    for elements in (
        2,
        52_500,
    ):  # ONNX Runtime shares slices from 210,000 bytes, strings, or coordinates of tuples on
        yield from of_blocks(NAME, lambda call: prod(call.shapes[1][:-1]), elements)
    yield from of_late_checks(NAME, checks.outside_by_tuple, 210_000)
    yield altered(
        "strings from 210,000 on: the second half has the first one's offsets",
        NAME,
        lambda out, call: (
            np.resize(out[: len(out) // 2], out.shape)
            if call.inputs[0].dtype == "string" and out.size >= 210_000
            else out
        ),
        1,
        ("dml",),
    )
    yield altered(
        "batches from 210,000 coordinates on: a block counts batches from 0",
        NAME,
        lambda out, call: (
            np.concatenate((out[:1], out[:-1]))
            if batch_of(call) and call.inputs[1].array.size >= 210_000
            else out
        ),
        1,
    )
