"""Compares an output with the oracle's, bit for bit: shape, dtype, then bytes; equal bytes end it.

By element: NaN equals any NaN whatever its payload, and nothing else; infinities equal themselves; the sign of zero matters; integers, bool
and strings are exact. Finite floats are measured in units of the last place: the distance of their ordered-integer views, in which
neighbouring floats are neighbouring integers and -0.0 lies one below 0.0 (Dawson, "Comparing Floating Point Numbers").
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.dtypes import DTYPES, Array, DType
from harness.records import Diff, Tensor


def compare(expected: Tensor, actual: Tensor) -> Diff | None:
    """Return how `actual` differs from `expected`, None if it does not."""
    if expected.dtype != actual.dtype or expected.array.shape != actual.array.shape:
        return Diff(None, expected.array.size, expected.array.size, None, describe(expected), describe(actual))
    if expected.dtype != "string" and expected.array.tobytes() == actual.array.tobytes():
        return None
    wrong = differing(expected, actual)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong.reshape(-1))), wrong.shape))
    distances = ulps(expected, actual)
    return Diff(
        max_ulp=None if distances is None or not distances.size else int(distances.max()),
        differing=count,
        total=wrong.size,
        first_index=first,
        expected=write_element(expected.dtype, expected.array[first]),
        actual=write_element(actual.dtype, actual.array[first]),
    )


def differing(expected: Tensor, actual: Tensor) -> NDArray[np.bool_]:
    """Return which elements of two tensors of one dtype and shape differ."""
    dtype = DTYPES[expected.dtype]
    a, b = expected.array, actual.array
    if dtype.storage == "O":
        return np.asarray(a != b, np.bool_).reshape(a.shape)
    if dtype.storage[0] == "c":
        part = "float32" if dtype.itemsize == 8 else "float64"
        pairs = (Tensor(part, _parts(a)), Tensor(part, _parts(b)))
        return np.asarray(differing(*pairs).any(axis=-1))
    bits = np.asarray(_bits(a, dtype) != _bits(b, dtype))
    if dtype.is_float:
        bits &= ~(_is_nan(a, dtype) & _is_nan(b, dtype))
    return bits


def ulps(expected: Tensor, actual: Tensor) -> NDArray[np.uint64] | None:
    """Return the distances of all pairs of finite elements in units of the last place; None for types without one."""
    dtype = DTYPES[expected.dtype]
    if not dtype.is_float:
        return None
    finite = _is_finite(expected.array, dtype) & _is_finite(actual.array, dtype)
    a = _ordered(expected.array[finite], dtype)
    b = _ordered(actual.array[finite], dtype)
    return np.where(a > b, a - b, b - a)


def describe(tensor: Tensor) -> str:
    """Write dtype and shape: `float32[2,3]`."""
    return f"{tensor.dtype}[{','.join(map(str, tensor.array.shape))}]"


def write_element(dtype: str, element: Any) -> str:
    """Write one element so that two different ones look different: floats with their bits."""
    entry = DTYPES[dtype]
    if entry.storage == "O":
        return repr(str(element)[:200])
    if not entry.is_float:
        return str(element)
    bits = int(np.asarray(element).view(f"u{entry.itemsize}"))
    value = np.asarray(bits << 16, np.uint32).view(np.float32) if dtype == "bfloat16" else np.asarray(element)
    return f"{value!s} (0x{bits:0{entry.itemsize * 2}x})"


def _parts(array: Array) -> Array:
    """View complex elements as pairs of floats on a new last axis."""
    whole = np.ascontiguousarray(array)
    return whole.reshape(-1).view(f"f{whole.itemsize // 2}").reshape((*array.shape, 2))


def _bits(array: Array, dtype: DType) -> Array:
    """View elements as unsigned integers of the same width."""
    return np.ascontiguousarray(array).reshape(-1).view(f"u{dtype.itemsize}").reshape(array.shape)


def _magnitude(array: Array, dtype: DType) -> tuple[Array, int]:
    """Return the bits without the sign, and the bits of infinity."""
    assert dtype.mantissa is not None
    width = dtype.itemsize * 8
    infinity = ((1 << (width - 1 - dtype.mantissa)) - 1) << dtype.mantissa
    return _bits(array, dtype) & np.array((1 << (width - 1)) - 1, f"u{dtype.itemsize}"), infinity


def _is_nan(array: Array, dtype: DType) -> NDArray[np.bool_]:
    magnitude, infinity = _magnitude(array, dtype)
    return np.asarray(magnitude > infinity)


def _is_finite(array: Array, dtype: DType) -> NDArray[np.bool_]:
    magnitude, infinity = _magnitude(array, dtype)
    return np.asarray(magnitude < infinity)


def _ordered(array: Array, dtype: DType) -> NDArray[np.uint64]:
    """Map floats to unsigned integers in their order: flip all bits of negative ones, the sign bit of the others."""
    bits = _bits(array, dtype).astype(np.uint64)
    width = dtype.itemsize * 8
    sign = np.uint64(1 << (width - 1))
    mask = np.uint64((1 << width) - 1)
    return np.asarray(np.where(bits & sign != 0, bits ^ mask, bits | sign), np.uint64)
