"""Compares the bits of NaNs: sign, quiet bit and payload. The verdict takes all NaNs as equal."""

from __future__ import annotations

from functools import cache

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, DType
from harness.model.result import NanBits


def nan_bits(expected: Tensor, actual: Tensor) -> NanBits | None:
    """Return what became of the NaNs that an output has where they are expected; None where it has none, or
    the type knows none.

    The most significant bit of the mantissa is the quiet one (IEEE 754-2019, 6.2.1): a signalling NaN is
    quieted where that bit alone is new.
    """
    entry = DTYPES[actual.dtype]
    if entry.mantissa is None or expected.dtype != actual.dtype or not actual.array.size:
        return None
    if expected.array.shape != actual.array.shape:
        return None
    if actual.array.dtype.kind == "f" and not np.count_nonzero(np.isnan(actual.array)):
        return None
    sign, infinity, quiet = _parts(entry)
    found = _unsigned(actual, entry.itemsize)
    are_nan = (found & ~sign) > infinity
    if not np.count_nonzero(are_nan):
        return None
    wanted = _unsigned(expected, entry.itemsize)
    both = ((wanted & ~sign) > infinity) & are_nan
    if not both.any():
        return None
    wanted, found = wanted[both], found[both]
    kept = int(np.count_nonzero(wanted == found))
    quieted = int(np.count_nonzero((wanted != found) & (wanted | quiet == found)))
    return NanBits(actual.dtype, kept, quieted, wanted.size - kept - quieted)


def signalling(tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Say of each element of a tensor, in its shape, whether it is a signalling NaN; of no type but floats is any."""
    entry = DTYPES[tensor.dtype]
    if entry.mantissa is None or not entry.is_float:
        return np.zeros(tensor.array.shape, bool)
    sign, infinity, quiet = _parts(entry)
    found = _unsigned(tensor, entry.itemsize)
    signals = ((found & ~sign) > infinity) & (found & quiet == 0)
    return np.asarray(signals, bool).reshape(tensor.array.shape)


@cache
def _parts(entry: DType) -> tuple[np.unsignedinteger, np.unsignedinteger, np.unsignedinteger]:
    """Return the sign bit, infinity and the quiet bit of a float as unsigned integers of its width."""
    assert entry.mantissa is not None
    width = np.dtype(f"u{entry.itemsize}").type
    sign = 1 << (entry.itemsize * 8 - 1)
    return (
        width(sign),
        width((sign - 1) >> entry.mantissa << entry.mantissa),
        width(1 << (entry.mantissa - 1)),
    )


def _unsigned(tensor: Tensor, itemsize: int) -> np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]]:
    """View elements as unsigned integers of their width."""
    return np.ascontiguousarray(tensor.array).reshape(-1).view(f"u{itemsize}")
