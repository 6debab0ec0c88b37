"""The kinds of input: of elements, of shapes and of presence of an input, of numbers of an attribute, of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import numpy as np

from harness.model.case import Case, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.onnx_schemas import operator_schema

FLOATS = ("NaN first", "NaN last", "NaN everywhere", "inf", "-inf", "-0", "subnormal", "largest", "fine")
INTEGERS = ("least", "greatest")
EMPTY = ("none in 0", "none in 1", "none in 2", "none in 3")
EXTENTS = {f"over {extent}": extent for extent in (16, 64, 256, 1024)}
RANKS = ("scalar", "rank 5")
SHAPES = (*RANKS, *EXTENTS)
INITIALIZER = "initializer"
LEFT_OUT = "left out"
GIVEN = (INITIALIZER, LEFT_OUT)
IN_MODES = ("NaN first", "inf", "-inf", "-0", *INTEGERS)
"""The kinds of elements that each mode of an operator gets: `Mode`."""
NARROW = tuple(name for name, entry in DTYPES.items() if entry.narrow)
UNDECLARED = "undeclared"
SESSIONS = ("after same", "after larger", "after smaller", UNDECLARED)
NUMBERS: Mapping[str, Callable[[int], int]] = {
    "zero": lambda _: 0,
    "negative": lambda _: -1,
    "33 bits": lambda held: held + 2**32,
}
"""The kinds of numbers of attributes, each with what stands in place of a valid number. A target that cuts 33 bits to 32 sees
the valid number."""
FLOAT_ATTRIBUTES = {"NaN first": np.nan, "inf": np.inf, "-inf": -np.inf, "zero": 0.0, "negative": -1.0}
"""The kinds that an attribute of one float has, valid where no rule forbids them."""
KINDS = (*FLOATS, *INTEGERS, *NARROW, *EMPTY, *SHAPES, *GIVEN, *NUMBERS, *SESSIONS)
Cell = tuple[str, str]
"""An input, an attribute or nothing, and a kind."""
Mode = tuple[str, str | int]
"""An attribute and its value, where it is text, or an integer that is 0 or 1."""


def modes_of(case: Case) -> Iterator[Mode]:
    """Yield the modes of a case; of an attribute that is left out its default."""
    for name, attribute in operator_schema(case.operator, case.opset).attributes.items():
        value = case.attributes.get(name, attribute.default)
        if isinstance(value, str) or (isinstance(value, int) and value in (0, 1)):
            yield name, value


@lru_cache(maxsize=64)
def _patterns(dtype: str) -> tuple[int, int, int]:
    """Return of a float type the bits of infinity and of the least normal number, and those beyond 10 bits of the
    significand, which TF32 and float16 lack."""
    entry = DTYPES[dtype]
    assert entry.mantissa is not None
    least = 1 << entry.mantissa
    return (1 << (entry.itemsize * 8 - 1)) - least, least, (1 << max(0, entry.mantissa - 10)) - 1


def kinds_of(dtype: str, array: Array) -> Iterator[str]:
    """Yield the kinds of elements that a tensor has."""
    entry, flat = DTYPES[dtype], array.reshape(-1)
    if not flat.size:
        return
    if entry.is_integer:
        yield from (kind for kind, edge in zip(INTEGERS, entry.limits[:2], strict=True) if edge in flat)
    if not entry.is_float:
        return
    infinity, least, low = _patterns(dtype)
    bits = flat.view(f"u{entry.itemsize}")
    sign = bits.dtype.type(1 << (entry.itemsize * 8 - 1))
    size = bits & ~sign
    nan = size > infinity
    found = (
        bool(nan[0] and not nan.all()),
        bool(nan[-1] and not nan.all()),
        nan.all(),
        infinity in bits,
        infinity | int(sign) in bits,
        sign in bits,
        ((size > 0) & (size < least)).any(),
        infinity - 1 in size,
        ((size >= least) & (size < infinity - 1) & (size & bits.dtype.type(low) > 0)).any(),
    )
    yield from (kind for kind, has in zip(FLOATS, found, strict=True) if has)


def holding(kind: str, dtype: str, array: Array) -> Array | None:
    """Return a tensor changed to have a kind of elements, None where its type has none or it has no element."""
    entry = DTYPES[dtype]
    if not array.size or not (entry.is_float if kind in FLOATS else entry.is_integer):
        return None
    made: Array = np.array(array)  # of an element as well
    if kind in INTEGERS:
        made.flat[0] = dict(zip(INTEGERS, entry.limits[:2], strict=True))[kind]
        return made
    infinity, least, low = _patterns(dtype)
    sign = 1 << (entry.itemsize * 8 - 1)
    nan = infinity + least // 2
    patterns = nan, nan, nan, infinity, infinity | sign, sign, 1, infinity - 1, infinity // 2 | low
    made.reshape(-1)[_PLACES.get(kind, slice(1))] = np.array(
        patterns[FLOATS.index(kind)], f"u{entry.itemsize}"
    ).view(entry.storage)
    return made


_PLACES = {"NaN last": slice(-1, None), "NaN everywhere": slice(None)}


def numbers_of(value: Value) -> Iterator[str]:
    """Yield the kinds of numbers that a value of an attribute has."""
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, int | float):
            held = each == 0, each < 0, isinstance(each, int) and each >= 2**31
            yield from (kind for kind, has in zip(NUMBERS, held, strict=True) if has)
    if isinstance(value, float) and not np.isfinite(value):
        yield "NaN first" if np.isnan(value) else "inf" if value > 0 else "-inf"
