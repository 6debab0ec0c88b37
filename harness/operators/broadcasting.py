"""Multidirectional broadcasting (ONNX, docs/Broadcasting.md): which shapes fit together, how they are
related, and the resulting shape; and the strides with which tensors are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.operators.base import Shape

RELATIONS = (
    "same", "scalar", "one", "row", "column", "first_only", "ones", "lower", "higher", "spread", "between", "unlike",
)  # fmt: skip
"""The shape of a further input for the first one's (a, b, c): same; scalar (); one (1,); row (c,); column (a,
b, 1); first_only (a, 1, 1); ones (1, 1, 1); lower (b, c); higher (2, a, b, c); spread: 3 for each dimension
of 1 and 1 for every other; between: (a, 1, c); unlike: one that cannot be broadcast."""


def related(relation: str, first: Shape) -> Shape | None:
    """Return the shape of an input by its relation to the first one's; None where it has none of its own."""
    rank = len(first)
    if relation == "same":
        return first
    if relation == "scalar":
        return () if rank else None
    if relation == "one":
        return (1,)
    if relation == "higher":
        return (2, *first)
    if not rank:
        return None
    return {
        "row": first[-1:],
        "column": (*first[:-1], 1),
        "first_only": first[:1] + (1,) * (rank - 1),
        "ones": (1,) * rank,
        "lower": first[1:],
        "spread": tuple(3 if extent == 1 else 1 for extent in first),
        "between": tuple(1 if place % 2 else extent for place, extent in enumerate(first))
        if rank > 2
        else None,
        "unlike": (*first[:-1], first[-1] + 2) if first[-1] > 1 else None,
    }[relation]


def broadcast(shapes: Sequence[Shape]) -> Shape | None:
    """Return the shape that inputs of these shapes have together; None where they cannot be broadcast."""
    found = []
    for together in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        extents = {*together} - {1}
        if len(extents) > 1:
            return None
        found.append(extents.pop() if extents else 1)
    return tuple(found[::-1])


def strides(shape: Shape, wide: Shape) -> tuple[int, ...] | None:
    """Return the strides, in elements, with which a packed tensor is read as one of a wider shape; None where
    it is that shape."""
    if shape == wide:
        return None
    padded = (1,) * (len(wide) - len(shape)) + shape
    steps = zip(padded, wide, packed(padded), strict=True)
    return tuple(step if extent == out else 0 for extent, out, step in steps)


def packed(sizes: Shape) -> Shape:
    """Return the strides of elements in row-major order without gaps."""
    return tuple(prod(sizes[place + 1 :]) for place in range(len(sizes)))


def offsets(sizes: Shape, strides: Shape) -> NDArray[np.int64]:
    """Return where each element lies in a buffer, in elements; the array has the tensor's sizes."""
    total = np.zeros(sizes, np.int64)
    for place, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        total += (np.arange(size, dtype=np.int64) * stride).reshape((size,) + (1,) * (len(sizes) - place - 1))
    return total
