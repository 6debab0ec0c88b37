"""Checks of GatherElements that are missing or too lenient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from harness.model.dtypes import Array
from tests.mutants import Call, Mutant
from tests.mutants.moving import accepts as accepting

NAME = "GatherElements"
accepts = partial(accepting, NAME)


def _bounds(call: Call, bad: Callable[[Array, int, int], Array]) -> bool:
    data, index = call.shapes
    axis = call.case.attributes.get("axis", 0)
    if (
        len(data) != len(index)
        or not data
        or not -len(data) <= axis < len(data)
        or call.inputs[1].dtype not in ("int32", "int64")
    ):
        return False
    axis %= len(data)
    wide = any(i > d for n, (d, i) in enumerate(zip(data, index, strict=True)) if n != axis)
    return not wide and not np.any(bad(call.inputs[1].array.astype(np.int64), data[axis], axis))


def outside_by_row(call: Call) -> Array | None:
    """Mark the indices that are out of range, [rows, elements]; None where something else is wrong, or
    nothing."""
    if _bounds(call, lambda i, s, a: (i >= s) | (i < -s)) or not _bounds(
        call, lambda i, s, a: np.zeros(1, bool)
    ):
        return None
    index = call.inputs[1].array
    size = call.shapes[0][call.case.attributes.get("axis", 0)]
    return np.asarray((index >= size) | (index < -size)).reshape(-1, index.shape[-1])


def mutants() -> Iterator[Mutant]:
    """Yield what is accepted although it is an error."""
    outside = lambda i, s: (i >= s) | (i < -s)  # noqa: E731
    checks: dict[str, Callable[[Array, int, int], Array]] = {
        "any index": lambda i, s, a: np.zeros(1, bool),
        "an index of s": lambda i, s, a: (i > s) | (i < -s),
        "an index of -s-1": lambda i, s, a: (i >= s) | (i < -s - 1),
        "an index below -s": lambda i, s, a: i >= s,
        "an index from s on": lambda i, s, a: i < -s,
        "an index that 32 bits make legal": lambda i, s, a: outside(i.astype(np.int32), s),
        "an index outside anywhere but at first": lambda i, s, a: outside(i.reshape(-1)[:1], s),
        "an index outside at the end": lambda i, s, a: outside(i.reshape(-1)[:-1], s),
        "an index outside in a later row": lambda i, s, a: outside(i.reshape(-1)[: i.shape[-1]], s),
        "an index below the size of data": lambda i, s, a: (i >= s * 12) | (i < -s),
        "an index outside on an inner axis": lambda i, s, a: outside(i, s) & (a == 0),
        "an index outside on axis 0": lambda i, s, a: outside(i, s) & (a != 0),
        "the largest and smallest integers": lambda i, s, a: outside(i, s) & (np.abs(i) < 2**31 - 1),
    }
    for name, bad in checks.items():
        yield accepts(name, lambda call, b=bad: _bounds(call, b), ("dml",))
    yield accepts(
        "an index outside of int32",
        lambda call: call.inputs[1].dtype == "int32" and _bounds(call, lambda i, s, a: np.zeros(1, bool)),
        ("dml",),
    )
    yield accepts(
        "an index outside in strings",
        lambda call: call.inputs[0].dtype == "string" and _bounds(call, lambda i, s, a: np.zeros(1, bool)),
        ("dml",),
    )
    yield accepts("indices of lower rank", lambda call: len(call.shapes[1]) < len(call.shapes[0]))
    yield accepts("indices of higher rank", lambda call: len(call.shapes[1]) > len(call.shapes[0]) > 0)
    yield accepts("an axis of r", lambda call: call.case.attributes.get("axis", 0) == len(call.shapes[0]) > 0)
    yield accepts(
        "an axis of -r-1", lambda call: call.case.attributes.get("axis", 0) == -len(call.shapes[0]) - 1
    )
    yield accepts(
        "an axis that 32 bits make legal",
        lambda call: abs(call.case.attributes.get("axis", 0)) > 2**31,
        ("dml",),
    )
    yield accepts(
        "indices larger off the axis", lambda call: len(call.shapes[0]) == len(call.shapes[1]) and _wide(call)
    )
    yield accepts("indices of another type", lambda call: call.inputs[1].dtype not in ("int32", "int64"))
    yield accepts(
        "an index into an empty axis",
        lambda call: len(call.shapes[0]) == len(call.shapes[1]) and 0 in call.shapes[0],
        ("dml",),
    )


def _wide(call: Call) -> bool:
    axis = call.case.attributes.get("axis", 0)
    rank = len(call.shapes[0])
    return -rank <= axis < rank and any(
        i > d for n, (d, i) in enumerate(zip(*call.shapes, strict=True)) if n != axis % rank
    )
