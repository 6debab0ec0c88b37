"""Kinds of elements that are meaningful for any operator that computes with them, by element type.

ordinary: multiples of 1/4 in -100..100, for integers all in -100..100 (unsigned: 0..200); integers: whole
numbers in -8..8 (0..16), whose sums and products stay exact in every type; unit: in -1..1; positive: above 0,
to 100; normal: any bit pattern but NaNs and subnormals; specials: zeros of both signs, infinities, ones, the
largest and the smallest normal numbers, for integers their limits and neighbours; nans: specials and NaNs
with payloads; subnormal: subnormals of both signs, beside zeros; fine: any float in -20..20; close: eight
neighbours of both signs, which a narrower type takes for one another: integers from 2**53 on, in 32 bits from
2**24 and in 16 from 2**11, floats from 1; scattered: integers, of which one at least, and one in 32, is NaN,
infinite or -0, and in every second tensor the first or the last.

Kinds for operators that integers overflow or forbid: terms, half of the range about 0, of which two can be
added; upper, for unsigned integers the upper half, of which a term can be subtracted; factors, of half as
many bits, of which two can be multiplied; negatable: specials without the least integer; nonzero; shifts: 0
up to the number of bits, exclusive; digits: 0..9. Floats are ordinary there, but for negatable (specials),
nonzero and digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array, DType, Limits
from harness.model.float_formats import encode, minifloat_values
from harness.operators.base import Entropy, Shape, value_kinds
from harness.operators.binary_floats import sorts, special_patterns

_KINDS = (
    "ordinary", "integers", "unit", "positive", "normal", "specials", "nans", "subnormal", "fine", "close",
    "scattered",
)  # fmt: skip
_FITTING = ("terms", "upper", "factors", "negatable", "nonzero", "shifts", "digits", "least", "greatest")
ELEMENT_KINDS = value_kinds(*_KINDS, *_FITTING)
_FLOATS_ONLY = frozenset(("nans", "subnormal", "fine", "scattered"))
ALPHABET = (
    "",
    "a",
    "B",
    "\u00e9",
    "\u4e2d",
    "\U0001f600",
    " ",
    "\0",
    "'",
    "longer text, so that it is not stored in place",
)
"""What strings are made of, wherever elements are chosen for a case; a text of C ends at the zero."""
_TEXTS = np.array([[f"{text}{number}" for number in range(8)] for text in ALPHABET], object)


def applies(kind: str, dtype: str) -> bool:
    """Say whether a kind has a meaning for an element type: bool, text and complex numbers have one kind."""
    entry = DTYPES[dtype]
    if entry.is_float:
        return kind != "shifts"
    if entry.is_minifloat:
        return kind in ("ordinary", "positive", "specials", "nans")
    if entry.narrow and kind == "close":
        return False
    return kind == "ordinary" if not entry.is_integer else kind not in _FLOATS_ONLY


def displaced(tensor: Tensor) -> Tensor:
    """Return a tensor with each element at the place of the next, or one more where all are the same: the default of
    an overridable input of a graph."""
    array = tensor.array
    moved = np.roll(array, 1)
    if np.array_equal(moved, array) and array.dtype.kind in "iuf":
        moved = (array + 1).astype(array.dtype)
    return tensor._replace(array=moved)


def choose(kind: str, dtype: str, shape: Shape, entropy: Entropy) -> Array:
    """Choose elements by kind; KeyError for an unknown one. `entropy` holds for each element its width, at
    least 4 bytes."""
    entry, count = DTYPES[dtype], prod(shape)
    raw = np.frombuffer(entropy, "<u4", count)
    if dtype == "bool":
        return np.asarray((raw & 1) == 1).reshape(shape)
    if dtype == "string":
        return np.asarray(_TEXTS[raw % len(ALPHABET), raw >> 8 & 7]).reshape(shape)
    if entry.is_float:
        return _FLOATS[kind](raw, dtype, entropy).reshape(shape)
    if entry.is_integer:
        found = _integers(kind, raw, entry, entropy).reshape(shape)
        return entry.wrapped(found) if entry.narrow else found
    if entry.is_minifloat:
        return _minifloats(kind, raw, dtype).reshape(shape)
    return ((raw % 201) - 100.0 + 1j * ((raw >> 8) % 201 - 100.0)).astype(entry.storage).reshape(shape)


def _minifloats(kind: str, raw: NDArray[np.uint32], dtype: str) -> Array:
    """Numbers of a float of at most 8 bits; special ones are patterns in order, so that 256 elements
    are all, from the second on, so that one more is no zero."""
    patterns = np.arange(1 << DTYPES[dtype].narrow, dtype=np.uint8)
    numbers = minifloat_values(dtype)
    if kind == "nans":
        return patterns[np.arange(1, raw.size + 1) % patterns.size]
    if kind == "specials":
        return patterns[~np.isnan(numbers)][np.arange(1, raw.size + 1) % np.count_nonzero(~np.isnan(numbers))]
    some = patterns[(np.abs(numbers) <= 100) & ((numbers > 0) | (kind != "positive"))]
    return np.asarray(some[raw % some.size])


def _range(raw: NDArray[np.uint32], least: float, steps: int, step: float) -> NDArray[np.float64]:
    return np.asarray(least + step * (raw % steps), np.float64)


def _normal(raw: NDArray[np.uint32], dtype: str, entropy: Entropy) -> Array:
    """Any bits whose exponent is neither the least nor the greatest."""
    entry = DTYPES[dtype]
    assert entry.mantissa is not None
    unsigned = f"<u{entry.itemsize}"
    bits = np.frombuffer(entropy, unsigned, raw.size).copy()
    width = entry.itemsize * 8
    top = (1 << (width - 1 - entry.mantissa)) - 1
    exponent = (bits >> np.array(entry.mantissa, unsigned)) & np.array(top, unsigned)
    bits[exponent == 0] ^= np.array(1 << entry.mantissa, unsigned)
    bits[exponent == top] ^= np.array(1 << (entry.mantissa + 1), unsigned)
    return np.asarray(bits.view(entry.storage))


@lru_cache(maxsize=32)
def _listed(dtype: str, nans: bool, subnormals: bool) -> Array:
    patterns, held = special_patterns(dtype), sorts(dtype)
    if subnormals:
        return np.asarray(patterns[held["subnormals"] | held["zeros"]])
    return np.asarray(patterns[~held["subnormals"] & (nans | ~held["nans"])])


def _ordinary(raw: NDArray[np.uint32], dtype: str, entropy: Entropy) -> Array:
    del entropy
    return encode(dtype, _range(raw, -100.0, 801, 0.25))


def _close(raw: NDArray[np.uint32], dtype: str) -> Array:
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    return encode(dtype, np.copysign(1.0 + (raw % 8) * 2.0**-mantissa, (raw >> 16 & 1) - 0.5))


def _infinite(raw: NDArray[np.uint32], dtype: str, sign: float) -> Array:
    infinity = encode(dtype, np.full(raw.shape, sign * np.inf))
    bits = infinity.view(f"u{DTYPES[dtype].itemsize}")
    return np.asarray((bits - (raw % 8 == 0)).astype(bits.dtype).view(infinity.dtype))


def _scattered(raw: NDArray[np.uint32], dtype: str) -> Array:
    """Small whole numbers, among which one element at least, and one in 32, is NaN, infinite or -0, and in every second
    tensor the first or the last one NaN."""
    values = _range(raw, -8.0, 17, 1.0)
    odd = raw >> 8 & 31 == 0
    odd[raw[:1] % max(1, raw.size)] = True
    values[odd] = np.array([np.nan, np.inf, -np.inf, -0.0])[raw[odd] >> 16 & 3]
    if raw.size and raw[0] >> 24 & 1:
        values[-(raw[0] >> 25 & 1).astype(int)] = np.nan
    return encode(dtype, values)


_FLOATS: dict[str, Callable[[NDArray[np.uint32], str, Entropy], Array]] = {
    "ordinary": _ordinary,
    "integers": lambda raw, dtype, _: encode(dtype, _range(raw, -8.0, 17, 1.0)),
    "unit": lambda raw, dtype, _: encode(dtype, _range(raw, -1.0, 257, 1 / 128)),
    "positive": lambda raw, dtype, _: encode(dtype, _range(raw, 0.125, 800, 0.125)),
    "normal": _normal,
    "specials": lambda raw, dtype, _: _listed(dtype, False, False)[raw % _listed(dtype, False, False).size],
    "nans": lambda raw, dtype, _: _listed(dtype, True, False)[raw % _listed(dtype, True, False).size],
    "subnormal": lambda raw, dtype, _: _listed(dtype, False, True)[raw % _listed(dtype, False, True).size],
    "fine": lambda raw, dtype, _: encode(dtype, raw * (40.0 / 2**32) - 20.0),
    "close": lambda raw, dtype, _: _close(raw, dtype),
    "scattered": lambda raw, dtype, _: _scattered(raw, dtype),
    "terms": _ordinary,
    "upper": _ordinary,
    "factors": _ordinary,
    "negatable": lambda raw, dtype, _: _listed(dtype, False, False)[raw % _listed(dtype, False, False).size],
    "nonzero": lambda raw, dtype, _: encode(
        dtype, np.copysign(_range(raw, 0.25, 400, 0.25), (raw >> 16 & 1) - 0.5)
    ),
    "digits": lambda raw, dtype, _: encode(dtype, _range(raw, 0.0, 10, 1.0)),
    "least": lambda raw, dtype, _: _infinite(raw, dtype, -1.0),
    "greatest": lambda raw, dtype, _: _infinite(raw, dtype, 1.0),
}


def _integers(kind: str, raw: NDArray[np.uint32], entry: DType, entropy: Entropy) -> Array:
    storage, limits = entry.storage, entry.limits
    wide = raw.astype(np.int64)
    if kind in _OF_BITS:
        bits = np.frombuffer(entropy, storage, len(raw))
        return np.asarray(_OF_BITS[kind](bits, Limits(*limits[:2], 8 * entry.itemsize)))
    if kind in ("specials", "negatable"):
        low, high, half = limits.min, limits.max, limits.max // 2
        edges = [low, low + 1, high - 1, high, 0, 1, half, half + 1]
        listed = np.array([*edges, *((-1, -2) if limits.min else (2, 3))], storage)
        listed = listed[1:] if kind == "negatable" and limits.min else listed
        return np.asarray(listed[raw % listed.size])
    if kind in ("least", "greatest"):
        edge, beside = (limits.min, limits.min + 1) if kind == "least" else (limits.max, limits.max - 1)
        return np.where(raw % 8 == 0, np.array(beside, storage), np.array(edge, storage))
    if kind == "shifts":
        return (raw % limits.bits).astype(storage)
    if kind == "close":
        found = (1 << _CLOSE[limits.bits]) + wide % 8
        return np.where((raw >> 16 & 1 == 1) & (limits.min < 0), -found, found).astype(storage)
    least, steps = {
        "ordinary": (-100, 201),
        "integers": (-8, 17),
        "unit": (-1, 3),
        "positive": (1, 100),
        "digits": (0, 10),
    }[kind]
    if limits.min == 0 and least < 0:
        least = 0
    return (least + wide % steps).astype(storage)


_CLOSE = {8: 6, 16: 11, 32: 24, 64: 53}
"""By bits, the power of 2 from which a narrower type, float16, float32 or float64, lacks integers."""
_OF_BITS: dict[str, Callable[[Array, Limits], Array]] = {
    "normal": lambda bits, _: bits,
    "terms": lambda bits, _: bits >> 1,
    "upper": lambda bits, limits: bits >> 1 if limits.min else (bits >> 1) + (limits.max // 2 + 1),
    "factors": lambda bits, limits: bits >> (limits.bits // 2),
    "nonzero": lambda bits, _: np.where(bits == 0, bits.dtype.type(1), bits),
}
