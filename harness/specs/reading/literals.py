"""Converts the literal values of a spec to arrays, exactly or not at all.

What an element may be, by dtype:
    bool            true, false
    integers        an integer in range, or a bit pattern such as "0xff"
    floats          a number; .nan, .inf or "nan", "inf", "-inf", "-0.0"; a bit pattern such as "0x7fc00001"
    complex         a number, or text such as "1-2j" that Python's `complex` reads (real and imaginary part each as a float)
    string          text
A decimal number is rounded to the nearest float32, float16 or complex64, while an integer must be exact, no
finite number may become infinite and none but zero may become zero. bfloat16 takes only exact values, so that
a rounding mode never has to be guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from harness.model.dtypes import DTYPES, Array, DType
from harness.model.float_formats import decode, encode_minifloat
from harness.specs.reading.source import KeyPath, shown

MAX_ELEMENTS = 1 << 24
MAX_RANK = 32

_BITS = re.compile(r"0[xX][0-9a-fA-F]{1,32}\Z")
_NAMED = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "-0.0": -0.0}


class LiteralError(ValueError):
    """Literal values are not a tensor of the dtype; `problems` holds (path below the values, what is
    wrong)."""

    def __init__(self, problems: Sequence[tuple[KeyPath, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(what for _, what in self.problems[:3]))


class _NotAnElement(ValueError):
    """One value is not an element of the dtype."""


def shape_problem(shape: Sequence[int]) -> str | None:
    """Return the problem of a shape, too many dimensions or elements; None if there is none."""
    if len(shape) > MAX_RANK:
        return f"rank {len(shape)} is above the limit of {MAX_RANK}"
    if any(n < 0 for n in shape):
        return "a dimension must not be negative"
    # Zeros count as 1: NumPy cannot hold an empty array whose other dimensions overflow either.
    count = math.prod(max(n, 1) for n in shape)
    if count > MAX_ELEMENTS:
        return f"{count:,} elements are above the limit of {MAX_ELEMENTS:,} per tensor"
    return None


def to_array(dtype: str, values: Any, shape: Sequence[int] | None = None) -> Array:
    """Convert nested tuples or lists, or a scalar, to an array in the storage dtype of `dtype`; raise
    LiteralError.

    With a shape, `values` are nested accordingly or one flat list in row-major order; without one, the
    nesting is the shape.
    """
    nested = infer_shape(values)
    wanted = nested if shape is None else tuple(shape)
    if wrong := shape_problem(wanted):
        raise LiteralError([((), wrong)])
    if wanted != nested and not (len(nested) == 1 and nested[0] == math.prod(wanted)):
        raise LiteralError([((), f"the values have shape {list(nested)}, not {list(wanted)}")])
    leaves = list(_leaves(values, ()))
    element = DTYPES[dtype]
    if element.is_float:
        return _floats(element, leaves).reshape(wanted)
    array = np.empty(len(leaves), element.storage)
    problems = []
    for position, (path, value) in enumerate(leaves):
        try:
            array[position] = _element(element, value)
        except _NotAnElement as error:
            problems.append((path, str(error)))
    if problems:
        raise LiteralError(problems)
    return array.reshape(wanted)


def documented_array(dtype: str, given: Any) -> Array:
    """Convert a documented result: values whose nesting is the shape, or `{shape: [0, 3], values: []}` where no
    nesting can be; raise LiteralError."""
    if not isinstance(given, dict):
        return to_array(dtype, given)
    shape = given.get("shape")
    if (
        set(given) != {"shape", "values"}
        or not isinstance(shape, tuple)
        or not all(type(n) is int for n in shape)
    ):
        raise LiteralError([((), "should be values, or a mapping of shape and values")])
    return to_array(dtype, given["values"], shape)


def infer_shape(values: Any) -> tuple[int, ...]:
    """Return the shape that the nesting of the values has; raise LiteralError where it is ragged."""
    if not isinstance(values, (list, tuple)):
        return ()
    if not values:
        return (0,)
    problems = []
    shapes = [infer_shape(v) for v in values]
    for position, found in enumerate(shapes):
        if found != shapes[0]:
            problems.append(((position,), f"ragged: shape {list(found)} beside {list(shapes[0])}"))
    if problems:
        raise LiteralError(problems)
    return (len(values), *shapes[0])


def _leaves(values: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(values, (list, tuple)):
        for position, value in enumerate(values):
            yield from _leaves(value, (*path, position))
    else:
        yield path, values


def _element(dtype: DType, value: Any) -> Any:
    if dtype.name == "string":
        if not isinstance(value, str):
            raise _NotAnElement(f"{shown(value)} is not text; quote it")
        return value
    if dtype.name == "bool":
        if not isinstance(value, bool):
            raise _NotAnElement(f"{shown(value)} is not a bool; write true or false")
        return value
    if dtype.is_minifloat:
        return _minifloat(dtype, value)
    return _integer(dtype, value) if dtype.is_integer else _complex(dtype, value)


def _bits(dtype: DType, value: str) -> int:
    bits = int(value, 16)
    width = dtype.width
    if bits >> width:
        raise _NotAnElement(f"the bit pattern {value} does not fit the {width} bits of {dtype.name}")
    return bits


def _integer(dtype: DType, value: Any) -> int:
    limits = dtype.limits
    if isinstance(value, str) and _BITS.match(value):
        bits = _bits(dtype, value)
        return bits - (1 << limits.bits) if bits > limits.max else bits
    if isinstance(value, bool) or not isinstance(value, int):
        raise _NotAnElement(f"{shown(value)} is not an integer, as {dtype.name} needs")
    if not limits.min <= value <= limits.max:
        raise _NotAnElement(f"{shown(value)} is outside {dtype.name}'s {limits.min}..{limits.max}")
    return value


def _number(dtype: DType, value: Any) -> float:
    """Return the float64 nearest to a number or a named float. Errors: ValueError for any other text."""
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _NotAnElement(
            f'{shown(value)} is not a number, "nan", "inf", "-inf", "-0.0" or bits such as "0x7fc0", as {dtype.name} needs'
        )
    if isinstance(value, int) and (value.bit_length() > 1023 or int(float(value)) != value):
        raise _NotAnElement(f"the integer {shown(value)} is not exact in {dtype.name}")
    return float(value)


def _floats(dtype: DType, leaves: Sequence[tuple[KeyPath, Any]]) -> Array:
    """Convert to the storage of a float dtype; bfloat16 to its bits."""
    numbers = np.zeros(len(leaves), "f8")
    patterns: dict[int, int] = {}
    problems: list[tuple[KeyPath, str]] = []
    for position, (path, value) in enumerate(leaves):
        try:
            if isinstance(value, str) and _BITS.match(value):
                patterns[position] = _bits(dtype, value)
            else:
                numbers[position] = _number(dtype, value)
        except _NotAnElement as error:
            problems.append((path, str(error)))
    array, back = _narrow(dtype, numbers)
    for position in np.flatnonzero((back != numbers) & ~np.isnan(numbers)).tolist():
        path, value = leaves[position]
        if (
            dtype.name == "bfloat16"
            or isinstance(value, int)
            or not math.isfinite(back[position])
            or back[position] == 0
        ):
            problems.append((path, f"{shown(value)} is not {_lost(dtype, back[position])} {dtype.name}"))
    if problems:
        raise LiteralError(sorted(problems, key=lambda p: p[0]))
    bits = array.view(f"u{dtype.itemsize}")
    for position, pattern in patterns.items():
        bits[position] = pattern
    return array


def _minifloat(dtype: DType, value: Any) -> Any:
    """Return the pattern of a minifloat, which takes only numbers that it holds."""
    if isinstance(value, str) and _BITS.match(value):
        return _bits(dtype, value)
    number = np.float64(_number(dtype, value))
    pattern = encode_minifloat(dtype.name, number, saturate=False)
    held = decode(dtype.name, pattern)
    same = np.isnan(held) if np.isnan(number) else held == number and np.signbit(held) == np.signbit(number)
    if not same:
        raise _NotAnElement(f"{shown(value)} is not exact in {dtype.name}")
    return pattern


def _lost(dtype: DType, result: float) -> str:
    if not math.isfinite(result) or (result == 0 and dtype.name != "bfloat16"):
        return "in the range of"
    return "exact in"


def _narrow(
    dtype: DType, numbers: np.ndarray[Any, np.dtype[np.float64]]
) -> tuple[Array, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return numbers in the storage of a float dtype, and their rounded values as float64."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype.name != "bfloat16":
            array = numbers.astype(dtype.storage)
            return array, array.astype("f8")
        wide = numbers.astype("f4").view("u4")
        back = (wide & np.uint32(0xFFFF0000)).view("f4").astype("f8")
        return (wide >> np.uint32(16)).astype("u2"), back


def _complex(dtype: DType, value: Any) -> complex:
    part = DTYPES["float32" if dtype.name == "complex64" else "float64"]
    parts: tuple[Any, Any] = (value, 0.0)
    if isinstance(value, str) and value not in _NAMED:
        try:
            read = complex(value)
        except ValueError:
            raise _NotAnElement(f'{shown(value)} is not a complex number such as "1-2j"') from None
        parts = (read.real, read.imag)
    try:
        real, imaginary = _floats(part, [((), p) for p in parts]).tolist()
    except LiteralError as error:
        raise _NotAnElement(str(error).replace(part.name, dtype.name)) from None
    return complex(real, imaginary)
