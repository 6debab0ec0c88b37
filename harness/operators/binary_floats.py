"""Binary floating-point types by their bits: special values, and the values around which rounding
goes wrong (IEEE 754)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode, float_bits


def decode_bfloat16(bits: Array) -> NDArray[np.float32]:
    """Widen bfloat16 bits (uint16) to the float32 of the same value."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def encode_bfloat16(values: Array) -> NDArray[np.uint16]:
    """Narrow float32 values that bfloat16 holds exactly to bfloat16 bits; raise ValueError for any other
    value."""
    wide = np.asarray(values, np.float32).view(np.uint32)
    if np.any((wide & 0xFFFF != 0) & ~np.isnan(values)):
        raise ValueError("a value is not representable in bfloat16")
    return (wide >> 16).astype(np.uint16)


def _layout(dtype: str) -> tuple[int, int, str]:
    """Return width and explicit significand bits, and the unsigned integer type of the same width."""
    entry = DTYPES[dtype]
    assert entry.mantissa is not None
    return entry.itemsize * 8, entry.mantissa, f"u{entry.itemsize}"


@lru_cache(maxsize=8)
def special_patterns(dtype: str) -> Array:
    """Both signs of: zero, infinity, NaNs (quiet and signalling, several payloads), the smallest and largest
    subnormal and normal, ±1."""
    width, mantissa, unsigned = _layout(dtype)
    exponent = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    quiet = 1 << (mantissa - 1)
    one = ((1 << (width - 2 - mantissa)) - 1) << mantissa
    patterns = [
        *(0, 1, (1 << mantissa) - 1, 1 << mantissa, one, exponent - 1, exponent),
        *(
            exponent | quiet,
            exponent | quiet | 1,
            exponent | quiet | (quiet - 1),
            exponent | 1,
            exponent | (quiet - 1),
        ),
    ]
    both = [p | sign for p in patterns for sign in (0, 1 << (width - 1))]
    return np.array(both, unsigned).view(DTYPES[dtype].storage)


@lru_cache(maxsize=64)
def patterns_of(kind: str, dtype: str) -> Array:
    """Return the special patterns that are `nans`, `infinities`, `subnormals` or `zeros`."""
    return np.asarray(special_patterns(dtype)[sorts(dtype)[kind]])


def sorts(dtype: str) -> dict[str, NDArray[np.bool_]]:
    """Say which special patterns are `nans`, `infinities`, `subnormals` or `zeros`."""
    _, mantissa, unsigned = _layout(dtype)
    sign, infinity, _ = float_bits(DTYPES[dtype])
    magnitude = special_patterns(dtype).view(unsigned) & ~sign
    return {
        "nans": magnitude > infinity,
        "infinities": magnitude == infinity,
        "subnormals": (magnitude != 0) & (magnitude < 1 << mantissa),
        "zeros": magnitude == 0,
    }


@lru_cache(maxsize=8)
def halfway_values(dtype: str) -> Array:
    """Both signs of k + 0.5 for small k, around every power of two, and the last 32 below the precision
    limit; integers at the limit.

    With p significant bits the largest halfway value is 2**(p-1) - 0.5; from 2**(p-1) on every value is an
    integer. Each value stands between its two neighbours in the type.
    """
    width, mantissa, unsigned = _layout(dtype)
    p = mantissa + 1
    limit = 2 ** (p - 1)
    halves = {k + 0.5 for k in range(min(17, limit // 2))}
    halves |= {2.0**e + d for e in range(p - 1) for d in (-0.5, 0.5) if 2.0**e + d < limit}
    halves |= {limit - k - 0.5 for k in range(min(32, limit // 2))}
    whole = {float(n) for e in (p - 2, p - 1, p) for n in (2**e - 1, 2**e, 2**e + 1) if n <= limit * 2}
    bits = encode(dtype, np.array(sorted(halves | whole))).view(unsigned).astype(np.uint64)
    near = np.unique(np.concatenate([bits - 1, bits, bits + 1])).astype(unsigned)
    sign = np.array(1, unsigned) << (width - 1)
    return np.concatenate([near, near | sign]).view(DTYPES[dtype].storage)
