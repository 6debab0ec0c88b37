"""How the elements of a tensor lie in its buffer: sizes, strides, and the size of the buffer
(DML_BUFFER_TENSOR_DESC).

Strides count elements. Where elements share a place, because a stride is 0, the first of them holds for all,
so that a case's input is what its buffer says.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.operators.base import Shape
from harness.operators.broadcasting import offsets, packed

_HOLE = 0x55
"""Every byte of a buffer that holds no element: a large index, and no usual value of data."""
_PADDING = 3


def _broadcast(sizes: Shape) -> Shape:
    """Let the first dimension that has several elements repeat one."""
    first = next((place for place, size in enumerate(sizes) if size > 1), 0)
    inner = packed((*sizes[:first], 1, *sizes[first + 1 :]))
    return (*inner[:first], 0, *inner[first + 1 :])


LAYOUTS: dict[str, Callable[[Shape], Shape | None]] = {
    "packed": lambda _sizes: None,
    "explicit": packed,
    "padded": lambda sizes: packed((*sizes[:-1], sizes[-1] + _PADDING)),
    "stepped": lambda sizes: tuple(2 * stride for stride in packed(sizes)),
    "transposed": lambda sizes: packed(sizes[::-1])[::-1],
    "broadcast": _broadcast,
    "broadcast_last": lambda sizes: (*packed((*sizes[:-1], 1))[:-1], 0),
    "zero": lambda sizes: (0,) * len(sizes),
}
"""Strides by name: packed (none given), explicit (the packed ones written out), padded (3 elements after each
row), stepped (every second element), transposed (the first dimension innermost), broadcast and broadcast_last
(the first dimension that has several elements, or the last one, has stride 0), zero (every stride is 0: one
element)."""


def elements(sizes: Shape, strides: Shape | None) -> int:
    """Return how many elements the buffer spans: one behind the largest offset."""
    if strides is None:
        return prod(sizes)
    return (
        0 if 0 in sizes else 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    )


def buffer_bytes(dtype: str, sizes: Shape, strides: Shape | None) -> int:
    """Return TotalTensorSizeInBytes: the least size, rounded up to 4 bytes (DMLCalcBufferTensorSize in
    DirectML's helper functions)."""
    return elements(sizes, strides) * DTYPES[dtype].itemsize + 3 & ~3


def lay_out(tensor: Tensor, sizes: Shape, strides: Shape) -> tuple[Tensor, Tensor]:
    """Return (the tensor as its buffer holds it, the flat buffer); `sizes` are the tensor's shape with
    leading 1s."""
    array = tensor.array
    at = offsets(sizes, strides).reshape(array.shape)
    count = elements(sizes, strides)
    flat: Array = (
        np.full(count * array.dtype.itemsize, _HOLE, np.uint8).view(array.dtype)
        if array.dtype != bool
        else np.zeros(count, bool)
    )
    flat[at.reshape(-1)[::-1]] = array.reshape(-1)[::-1]
    return Tensor(tensor.dtype, flat[at]), Tensor(tensor.dtype, flat)
