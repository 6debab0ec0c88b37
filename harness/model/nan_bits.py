"""Compares the bits of NaNs: sign, quiet bit and payload. The verdict takes all NaNs as equal."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.float_formats import bits_of, float_bits
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
    known, found = float_bits(entry), bits_of(actual.array, entry)
    are_nan = known.are_nan(found)
    if not np.count_nonzero(are_nan):
        return None
    wanted = bits_of(expected.array, entry)
    both = known.are_nan(wanted) & are_nan
    if not both.any():
        return None
    wanted, found = wanted[both], found[both]
    kept = int(np.count_nonzero(wanted == found))
    quieted = int(np.count_nonzero((wanted != found) & (wanted | known.quiet == found)))
    return NanBits(actual.dtype, kept, quieted, wanted.size - kept - quieted)


def signalling(tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Say of each element of a tensor, in its shape, whether it is a signalling NaN; of no type but floats is any."""
    entry = DTYPES[tensor.dtype]
    if entry.mantissa is None or not entry.is_float:
        return np.zeros(tensor.array.shape, bool)
    known, found = float_bits(entry), bits_of(tensor.array, entry)
    return np.asarray(known.are_nan(found) & (found & known.quiet == 0), bool)
