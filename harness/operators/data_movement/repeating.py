"""Expand and Tile: repeat elements."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.model.dtypes import Array
from harness.operators import broadcasting
from harness.operators.base import Call, DirectmlCall, Operator, Shape, one_to_one
from harness.operators.data_movement.moving import IDENTITY, rank
from harness.operators.data_movement.reshaping import MOVING
from harness.operators.formulas import moved

# Expand: the input, broadcast together with a tensor of the shape that is given
# Tile:   output[i_0, i_1, ...] = input[i_0 % d_0, i_1 % d_1, ...]


def expand(input: Array, shape: Array) -> Array:
    """Broadcast both ways: where shape has 1, the input's dimension stays."""
    return np.broadcast_to(input, np.broadcast_shapes(input.shape, tuple(map(int, shape))))


def tile(input: Array, repeats: Array) -> Array:
    """Repeat along each dimension."""
    return np.tile(input, repeats)


def _cannot_expand(call: Call) -> str | None:
    shape = call.parameter("shape")
    if not isinstance(shape, tuple):
        return "shape has one dimension"
    if any(extent < 0 for extent in shape):
        return "dimensions are not negative"
    fitting = broadcasting.broadcast((call.first.shape, shape)) is not None
    return None if fitting else "the shapes can be broadcast"


def _shapes(call: Call) -> Iterable[tuple[int, ...]]:
    """Its own; 3 where it has 1; a dimension more before it; ones; fewer dimensions; nothing at all; 0 in
    place of 1."""
    data = call.first.shape
    spread = tuple(3 if extent == 1 else extent for extent in data)
    none = tuple(0 if extent == 1 else extent for extent in data)
    tried = [data, spread, (2, *spread), (1,) * len(data), spread[1:], (), none, (2, 1, *(1 for _ in data))]
    return list(dict.fromkeys(tried))


def _stretched(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    """Copy, the input read with strides of 0."""
    strides = broadcasting.strides(call.first.shape, outputs[0])
    return one_to_one(IDENTITY, {}, call, outputs[0], outputs[0], strides)


def _cannot_tile(call: Call) -> str | None:
    repeats = call.parameter("repeats")
    if not isinstance(repeats, tuple) or len(repeats) != rank(call):
        return "as many repeats as dimensions"
    return "repeats are not negative" if any(count < 0 for count in repeats) else None


def _repeats(call: Call) -> Iterable[tuple[int, ...]]:
    """Once; twice along the last, the first, every dimension; three times along the first; different ones;
    not at all."""
    count = rank(call)
    ones = (1,) * count
    tried = [
        ones,
        (*ones[1:], 2),
        (2, *ones[1:]),
        (3, *ones[1:]),
        (*ones[1:], 5),
        tuple(2 - n % 2 for n in range(count)),
        (*ones[1:], 0),
    ]
    return [each for each in dict.fromkeys(tried) if len(each) == count]


def _tiled(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    repeats = (
        call.parameter("repeats") or ()
    )  # of a scalar: the lowering adds the dimension that DirectML needs
    made = one_to_one("DML_OPERATOR_TILE", {"Repeats": repeats}, call, outputs[0])
    return made._replace(per_dimension={"Repeats": 1})


OPERATORS = (
    Operator(
        "Expand",
        MOVING,
        moved(expand),
        _cannot_expand,
        constants={"shape": 1},
        domains={"shape": _shapes},
        options=_stretched,
    ),
    Operator(
        "Tile",
        MOVING,
        moved(tile),
        _cannot_tile,
        constants={"repeats": 1},
        domains={"repeats": _repeats},
        options=_tiled,
    ),
)
