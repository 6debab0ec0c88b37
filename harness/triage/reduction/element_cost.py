"""The plainest elements of a tensor, and how far others are from these: what reducing makes smaller."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.case import Tensor, TensorValue
from harness.model.dtypes import DTYPES, Array

ELEMENTWISE = 256
"""Elements are made simpler one by one only in tensors of at most so many; a larger tensor counts as plain or
not."""


def plain(dtype: str, shape: tuple[int, ...], *, payload: bool) -> Array:
    """Return the plainest elements: zeros, or for a tensor whose elements are only moved its positions, which
    show where each went."""
    entry = DTYPES[dtype]
    count = int(np.prod(shape, dtype=np.int64))
    numbers = np.arange(count) % 100 if payload else np.zeros(count, np.int64)
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = [str(number) if payload else "" for number in numbers]
        return array.reshape(shape)
    if dtype == "bfloat16":
        return np.asarray((numbers.astype("f4").view("u4") >> np.uint32(16)).astype("u2")).reshape(shape)
    if dtype == "bool":
        numbers = numbers % 2
    if entry.narrow:
        return entry.wrapped(numbers).reshape(shape)
    return numbers.astype(entry.storage).reshape(shape)


def tensor_cost(tensor: Tensor, *, payload: bool) -> int:
    """Return how far a tensor's elements are from the plainest ones."""
    usual = plain(tensor.dtype, tensor.array.shape, payload=payload)
    if tensor.array.size > ELEMENTWISE:
        same = (
            np.array_equal(tensor.array, usual)
            if tensor.dtype == "string"
            else tensor.array.tobytes() == usual.tobytes()
        )
        return 0 if same else 1
    return sum(
        0 if _same(a, b) else 1 + element_cost(tensor.dtype, a)
        for a, b in zip(tensor.array.reshape(-1), usual.reshape(-1), strict=True)
    )


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, str) else bool(a.tobytes() == b.tobytes())


def value_cost(value: Any) -> int:
    """Return how far the value of an attribute is from the plainest: by magnitude, the bits of a float, the
    length of a list."""
    if isinstance(value, int):
        return 2 * abs(value) + (value < 0)
    if isinstance(value, float):
        return element_cost("float64", np.float64(value))
    if isinstance(value, TensorValue):
        return len(value.elements)
    return sum(1 + value_cost(each) for each in value) if isinstance(value, tuple) else 0


def element_cost(dtype: str, scalar: Any) -> int:
    """Return how far one element is from the plainest: 0 for 0 and "", then by magnitude, length or the bits
    that a float needs."""
    entry = DTYPES[dtype]
    if dtype == "string":
        return 2 * sum(1 + (ord(c) > 0x7E) for c in str(scalar)) + sum(c != "a" for c in str(scalar))
    if dtype == "bool":
        return int(scalar)
    if entry.is_integer or entry.is_minifloat:
        return 2 * abs(int(scalar)) + (int(scalar) < 0)
    if not entry.is_float:
        return int(scalar != 0) + int(scalar.tobytes() != np.zeros((), entry.storage).tobytes())
    bits = int(np.asarray(scalar).view(f"u{entry.itemsize}"))
    assert entry.mantissa is not None
    sign, exponent, fraction = float_parts(bits, entry.itemsize * 8, entry.mantissa)
    if bits == 0:
        return 0
    bias = (1 << (entry.itemsize * 8 - 2 - entry.mantissa)) - 1
    length = entry.mantissa - ((fraction & -fraction).bit_length() - 1) if fraction else 0
    return 1 + 3 * length + 2 * abs(exponent - bias) + sign


def float_parts(bits: int, width: int, mantissa: int) -> tuple[int, int, int]:
    """Return sign, biased exponent and fraction of a binary float."""
    return (
        bits >> (width - 1),
        bits >> mantissa & ((1 << (width - 1 - mantissa)) - 1),
        bits & ((1 << mantissa) - 1),
    )
