"""Shapes by rank and size, for sweeps that cover the two as factors of their own."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from harness.operators.base import Shape

_FEW, _BATCHES, _LARGE, _VECTOR = 4096, 64, 65535, 4
SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "none": ((0,), (0, 3), (2, 0, 3), (2, 0, 1, 3), (2, 1, 0, 2, 3), (1, 2, 0, 1, 2, 3), (2, 1, 1, 0, 2, 1, 3),
             (1, 2, 1, 0, 2, 1, 1, 3), (2, 1, 2, 1, 0, 1, 2, 1, 3)),
    "one": tuple((1,) * rank for rank in range(10)),
    "odd": ((7,), (3, 5), (3, 2, 5), (2, 3, 2, 5), (2, 1, 3, 2, 3), (2, 1, 2, 3, 1, 3), (1, 2, 3, 1, 2, 1, 3),
            (2, 1, 2, 1, 3, 2, 1, 3), (2, 1, 2, 1, 1, 3, 1, 2, 3)),
    "whole": ((64,), (4, 16), (2, 4, 8), (2, 3, 2, 8), (2, 1, 2, 3, 8), (2, 1, 2, 3, 1, 8), (1, 2, 3, 1, 2, 1, 8),
              (2, 1, 2, 1, 3, 2, 1, 8), (2, 1, 2, 1, 1, 3, 1, 2, 8)),
    "many": ((130,), (67, 3), (66, 2, 3), (65, 2, 2, 3), (65, 2, 1, 2, 3), (65, 1, 2, 2, 1, 3), (65, 2, 1, 2, 1, 1, 3),
             (65, 2, 1, 1, 2, 1, 1, 3), (65, 2, 1, 1, 2, 1, 1, 1, 3)),
    "large": ((70001,), (257, 301), (3, 257, 101), (2, 3, 129, 101), (2, 129, 1, 3, 101), (2, 129, 1, 3, 1, 101),
              (2, 1, 129, 3, 1, 1, 101), (2, 1, 129, 1, 3, 1, 1, 101), (2, 1, 129, 1, 1, 3, 1, 1, 101)),
}  # fmt: skip
"""By size, the shape of each rank: without an element, of one, of a few whose rows are no multiple of 4 (where a
rest remains after vectors) or are one, of more than 64 in the first dimension, of more than 16 bits count."""
RANK, SIZE = "rank", "size"
KEYS = {RANK: tuple(map(str, range(10))), SIZE: tuple(SHAPES)}
"""The keys of the first input's shape in a covering sweep, with their levels."""


def shape_of(rank: int, size: str) -> Shape | None:
    """Return the shape of a rank and a size; None where there is none."""
    return next((shape for shape in SHAPES[size] if len(shape) == rank), None)


def sizes_of(shape: Shape) -> list[str]:
    """Return the sizes that a shape has; several may hold."""
    count = prod(shape)
    few = 1 < count <= _FEW
    holds = {
        "none": count == 0,
        "one": count == 1,
        "odd": few and shape[-1] % _VECTOR != 0,
        "whole": few and shape[-1] % _VECTOR == 0,
        "many": bool(count and shape) and shape[0] > _BATCHES,
        "large": count > _LARGE,
    }
    return [size for size, true in holds.items() if true]
