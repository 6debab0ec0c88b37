"""Checks of GatherND that are missing or too lenient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import Array
from tests.mutants import Call, Mutant
from tests.mutants.moving import accepts as accepting

NAME = "GatherND"
accepts = partial(accepting, NAME)


def batch_of(call: Call) -> int:
    return call.case.attributes.get("batch_dims", 0)


def ranked(call: Call) -> bool:
    return len(call.shapes[0]) > 0 and len(call.shapes[1]) > 0


def unequal(call: Call) -> bool:
    batch = batch_of(call)
    return batch > 0 and ranked(call) and call.shapes[0][:batch] != call.shapes[1][:batch]


def _bounds(call: Call, bad: Callable[[Array, NDArray[np.int64]], Array]) -> bool:
    data, index = call.shapes
    batch = batch_of(call)
    legal_shapes = (
        data and index and 0 <= batch < min(len(data), len(index)) and data[:batch] == index[:batch]
    )
    if (
        not legal_shapes
        or not 1 <= index[-1] <= len(data) - batch
        or call.inputs[1].dtype != "int64"
        or call.inputs[0].dtype == "bfloat16"
    ):
        return False
    return not np.any(bad(call.inputs[1].array, np.array(data[batch : batch + index[-1]], np.int64)))


def outside_by_tuple(call: Call) -> Array | None:
    """Mark the indices that are out of range, [tuples, coordinates]; None where something else is wrong, or
    nothing."""
    if _bounds(call, lambda i, s: (i >= s) | (i < -s)) or not _bounds(call, lambda i, s: np.zeros(1, bool)):
        return None
    index = call.inputs[1].array
    sizes = np.array(call.shapes[0][batch_of(call) :][: index.shape[-1]], np.int64)
    return np.asarray((index >= sizes) | (index < -sizes)).reshape(-1, index.shape[-1])


def mutants() -> Iterator[Mutant]:
    """Yield what is accepted although it is an error."""
    outside = lambda i, s: (i >= s) | (i < -s)  # noqa: E731
    checks: dict[str, Callable[[Array, NDArray[np.int64]], Array]] = {
        "any index": lambda i, s: np.zeros(1, bool),
        "an index of s": lambda i, s: (i > s) | (i < -s),
        "an index of -s-1": lambda i, s: (i >= s) | (i < -s - 1),
        "an index below -s": lambda i, s: i >= s,
        "an index from s on": lambda i, s: i < -s,
        "an index that 32 bits make legal": lambda i, s: outside(i.astype(np.int32), s),
        "an index outside in the last coordinate": lambda i, s: (
            outside(i, s)[..., :-1] if i.shape[-1] > 1 else outside(i, s)
        ),
        "an index outside in the first coordinate": lambda i, s: (
            outside(i, s)[..., 1:] if i.shape[-1] > 1 else outside(i, s)
        ),
        "an index outside in a later tuple": lambda i, s: outside(i, s).reshape(-1)[: i.shape[-1]],
        "an offset inside of data": lambda i, s: outside(i, s) & (np.abs(i) > 60),
        "the largest and smallest integers": lambda i, s: (
            outside(i, s) & (np.abs(i) < 2**62) & (i > -(2**62))
        ),
    }
    for name, bad in checks.items():
        yield accepts(name, lambda call, b=bad: _bounds(call, b), ("dml",))
    every = lambda i, s: np.zeros(1, bool)  # noqa: E731
    yield accepts(
        "an index outside in a batch", lambda call: batch_of(call) > 0 and _bounds(call, every), ("dml",)
    )
    yield accepts(
        "an index outside in slices",
        lambda call: call.shapes[1][-1:] < (len(call.shapes[0]),) and _bounds(call, every),
        ("dml",),
    )
    yield accepts(
        "an index outside in strings",
        lambda call: call.inputs[0].dtype == "string" and _bounds(call, every),
        ("dml",),
    )
    long = lambda call: ranked(call) and call.shapes[1][-1] > len(call.shapes[0]) - batch_of(call)  # noqa: E731
    yield accepts("a tuple too long", lambda call: long(call) and batch_of(call) == 0)
    yield accepts(
        "a tuple too long by the batch",
        lambda call: long(call) and batch_of(call) > 0 and call.shapes[1][-1] <= len(call.shapes[0]),
    )
    yield accepts("an empty tuple", lambda call: ranked(call) and call.shapes[1][-1] == 0, ("cpu", "dml"))
    yield accepts("unequal batches", lambda call: unequal(call) and not long(call))
    yield accepts(
        "unequal second batches", lambda call: unequal(call) and call.shapes[0][0] == call.shapes[1][0]
    )
    yield accepts("a batch of one for several", lambda call: unequal(call) and call.shapes[1][0] == 1)
    yield accepts("batch_dims of -1", lambda call: batch_of(call) == -1)
    yield accepts(
        "batch_dims of the rank", lambda call: ranked(call) and batch_of(call) == min(map(len, call.shapes))
    )
    yield accepts("batch_dims that 32 bits make legal", lambda call: batch_of(call) > 2**31)
    yield accepts("indices of another type", lambda call: call.inputs[1].dtype != "int64")
    yield accepts("data of rank 0", lambda call: not call.shapes[0])
    yield accepts("indices of rank 0", lambda call: not call.shapes[1])
