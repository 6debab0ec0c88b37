"""Compares an output with the expected one: shape, dtype, then bytes where bits are expected; equal bytes end
the comparison.

By element: NaN equals any NaN whatever its payload, and nothing else; infinities equal themselves; the sign
of zero matters; integers, bool and strings are exact. Finite floats are measured in units of the last place:
the distance of their ordered-integer views, in which neighbouring floats are neighbouring integers and -0.0
lies one below 0.0 (Dawson, "Comparing Floating Point Numbers").

Where a bound is expected, an element is right if it lies within the bound of the value; see
`expected.Approx`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array, DType
from harness.model.expected import Approx, Exact, Expected, OfLaw, OneOf
from harness.model.float_formats import FORMATS, Float64, bits_of, decode, encode, float_bits
from harness.model.result import Accuracy, Diff


class OutputComparison(NamedTuple):
    """How an output differs from the expected one, None if it does not, and how close it comes to the bound,
    if there is one."""

    diff: Diff | None
    accuracy: Accuracy | None = None


@overload
def compare(expected: Tensor, actual: Tensor) -> Diff | None: ...
@overload
def compare(expected: Expected, actual: Tensor, outputs: Sequence[Tensor] = ()) -> OutputComparison: ...
def compare(
    expected: Expected | Tensor, actual: Tensor, outputs: Sequence[Tensor] = ()
) -> OutputComparison | Diff | None:
    """Compare an output with the expected one; a bare tensor is compared without a bound. Drawn elements are judged
    together with all `outputs` of their graph."""
    if isinstance(expected, Tensor):
        return _against(expected, actual)
    if isinstance(expected, Exact):
        return OutputComparison(_against(expected.tensor, actual))
    if expected.dtype != actual.dtype or expected.shape != actual.array.shape:
        return OutputComparison(_another_kind(expected.dtype, expected.shape, actual))
    if isinstance(expected, OfLaw):
        size, wrong = actual.array.size, expected.judge(actual, outputs)
        return OutputComparison(None if wrong is None else Diff(None, size, size, None, expected.says, wrong))
    if isinstance(expected, Approx):
        return _within(expected, actual)
    return OutputComparison(_among(expected, actual))


def _against(expected: Tensor, actual: Tensor) -> Diff | None:
    if expected.dtype != actual.dtype or expected.array.shape != actual.array.shape:
        return _another_kind(expected.dtype, expected.array.shape, actual)
    if expected.dtype != "string" and expected.array.tobytes() == actual.array.tobytes():
        return None
    wrong = differing(expected, actual)
    if not wrong.any():
        return None
    first = _first(wrong)
    apart = ulps(expected, actual)
    return Diff(
        max_ulp=None if apart is None or not apart.size else int(apart.max()),
        differing=int(np.count_nonzero(wrong)),
        total=wrong.size,
        first_index=first,
        expected=write_at(expected.dtype, expected.array, first),
        actual=write_at(actual.dtype, actual.array, first),
    )


def _another_kind(dtype: str, shape: tuple[int, ...], actual: Tensor) -> Diff:
    size = int(np.prod(shape, dtype=int))
    return Diff(None, size, size, None, _described(dtype, shape), describe(actual))


def _first(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong.reshape(-1))), wrong.shape))


def _among(expected: OneOf, actual: Tensor) -> Diff | None:
    """Compare with candidates; distances are those to the nearest candidate."""
    candidates = expected.candidates
    wrong = np.logical_and.reduce([differing(candidate, actual) for candidate in candidates])
    if not wrong.any():
        return None
    first = _first(wrong)
    rows = [Tensor(actual.dtype, tensor.array[wrong]) for tensor in (*candidates, actual)]
    measured = [found for row in rows[:-1] if (found := distances(row, rows[-1])) is not None]
    nearest = np.minimum.reduce(measured) if measured else np.zeros(0, np.uint64)
    nearest = nearest[nearest != NO_DISTANCE]
    written = dict.fromkeys(write_at(c.dtype, c.array, first) for c in candidates)
    return Diff(
        max_ulp=int(nearest.max()) if nearest.size else None,
        differing=int(np.count_nonzero(wrong)),
        total=wrong.size,
        first_index=first,
        expected=" or ".join(written),
        actual=write_at(actual.dtype, actual.array, first),
    )


def errors(expected: Approx, actual: Tensor) -> tuple[Float64, NDArray[np.bool_]]:
    """Return the distance of each element from its value, and which are outside their bound; dtype and shape
    are those expected.

    The distance is 0 where value and element are the same infinity or both NaN, and infinite where only one
    of them is finite or a number.
    """
    form, value, bound = FORMATS[expected.dtype], expected.value, expected.bound
    found = decode(actual.dtype, actual.array)
    with np.errstate(all="ignore"):
        apart = np.abs(found - value)
        same = (found == value) | (np.isnan(found) & np.isnan(value))
        apart = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
        overflowed = (
            np.isinf(found) & np.isfinite(value) & (np.copysign(1.0, found) * value + bound >= form.overflow)
        )
        wrong = ~((apart <= bound) | overflowed)
        if expected.limits is not None:
            wrong |= ((found < expected.limits[0]) | (found > expected.limits[1])) & np.isfinite(bound)
    return apart, np.asarray(wrong)


def _within(expected: Approx, actual: Tensor) -> OutputComparison:
    apart, wrong = errors(expected, actual)
    accuracy = _accuracy(expected, apart)
    if not wrong.any():
        return OutputComparison(None, accuracy)
    first = _first(wrong)
    near = Tensor(expected.dtype, encode(expected.dtype, expected.value))
    chosen = np.isfinite(expected.bound) & ~_is_nan(near.array, DTYPES[near.dtype])
    units = ulps(Tensor(near.dtype, near.array[chosen]), Tensor(actual.dtype, actual.array[chosen]))
    error, largest = float(apart[first]), float(apart[wrong].max())
    diff = Diff(
        max_ulp=None if units is None or not units.size else int(units.max()),
        differing=int(np.count_nonzero(wrong)),
        total=wrong.size,
        first_index=first,
        expected=write_bounded(float(expected.value[first]), float(expected.bound[first]))
        + _broken_limits(expected, actual, first),
        actual=write_at(actual.dtype, actual.array, first),
        error=error if np.isfinite(error) else None,
        bound=float(expected.bound[first]),
        largest_error=largest if np.isfinite(largest) else None,
    )
    return OutputComparison(diff, accuracy)


def _accuracy(expected: Approx, apart: Float64) -> Accuracy:
    claimed = np.isfinite(expected.bound)
    measured = claimed & np.isfinite(apart) & np.isfinite(expected.value)
    error, bound = apart[measured], expected.bound[measured]
    with np.errstate(all="ignore"):
        ratios = np.where(error == 0, 0.0, error / bound)
        units = error / FORMATS[expected.dtype].ulp(expected.value[measured])
    return Accuracy(
        ratio=min(float(ratios.max(initial=0.0)), sys.float_info.max),
        ulp=min(float(units.max(initial=0.0)), sys.float_info.max),
        unclaimed=int(np.count_nonzero(~claimed)),
        compared=apart.size,
    )


def _broken_limits(expected: Approx, actual: Tensor, at: tuple[int, ...]) -> str:
    """Write the limits of an element that is beyond them: ` within [-1, 1]`."""
    if expected.limits is None:
        return ""
    least, most = (float(np.broadcast_to(each, expected.shape)[at]) for each in expected.limits)
    inside = least <= float(decode(actual.dtype, actual.array)[at]) <= most
    return "" if inside else f" within [{least:.9g}, {most:.9g}]"


def write_bounded(value: float, bound: float) -> str:
    """Write a value with its bound: `0.1234567890123 ± 3.1e-09`; the value has more digits than any type that
    it is held against."""
    return f"{value:.17g} ± {bound:.3g}"


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
    bits = np.asarray(bits_of(a, dtype) != bits_of(b, dtype))
    if dtype.is_float:
        bits &= ~(_is_nan(a, dtype) & _is_nan(b, dtype))
    if dtype.is_minifloat:
        bits &= ~(np.isnan(decode(dtype.name, a)) & np.isnan(decode(dtype.name, b)))
    return bits


def ulps(expected: Tensor, actual: Tensor) -> NDArray[np.uint64] | None:
    """Return the distances of all pairs of finite elements in units of the last place; None for types without
    one."""
    found = distances(expected, actual)
    return None if found is None else found[found != NO_DISTANCE]


NO_DISTANCE = np.uint64((1 << 64) - 1)
"""Larger than any distance of finite values."""


def distances(expected: Tensor, actual: Tensor) -> NDArray[np.uint64] | None:
    """Return the distance of each pair in units of the last place, `NO_DISTANCE` where an element is not
    finite."""
    dtype = DTYPES[expected.dtype]
    if not dtype.is_float:
        return None
    finite = _is_finite(expected.array, dtype) & _is_finite(actual.array, dtype)
    a, b = _ordered(expected.array, dtype), _ordered(actual.array, dtype)
    return np.where(finite, np.where(a > b, a - b, b - a), NO_DISTANCE)


def describe(tensor: Tensor) -> str:
    """Write dtype and shape: `float32[2,3]`."""
    return _described(tensor.dtype, tensor.array.shape)


def _described(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def write_at(dtype: str, array: Array, place: Any) -> str:
    """Write the element of an array at a place; a bool whose byte is neither 0 nor 1 with that byte, which
    NumPy's scalars lose."""
    byte = int(array.view(np.uint8)[place]) if dtype == "bool" else 0
    return f"True (0x{byte:02x})" if byte > 1 else write_element(dtype, array[place])


def write_element(dtype: str, element: Any) -> str:
    """Write one element so that two different ones look different: floats with their bits."""
    entry = DTYPES[dtype]
    if entry.storage == "O":
        return repr(str(element)[:200])
    if not (entry.is_float or entry.is_minifloat):
        return str(element)
    bits = int(np.asarray(element).view(f"u{entry.itemsize}"))
    value = np.asarray(bits << 16, np.uint32).view(np.float32) if dtype == "bfloat16" else np.asarray(element)
    value = decode(dtype, value) if entry.is_minifloat else value
    return f"{value!s} (0x{bits:0{entry.width // 4}x})"


def _parts(array: Array) -> Array:
    """View complex elements as pairs of floats on a new last axis."""
    whole = np.ascontiguousarray(array)
    return whole.reshape(-1).view(f"f{whole.itemsize // 2}").reshape((*array.shape, 2))


def _is_nan(array: Array, dtype: DType) -> NDArray[np.bool_]:
    return float_bits(dtype).are_nan(bits_of(array, dtype))


def _is_finite(array: Array, dtype: DType) -> NDArray[np.bool_]:
    sign, infinity, _ = float_bits(dtype)
    return np.asarray((bits_of(array, dtype) & ~sign) < infinity)


def _ordered(array: Array, dtype: DType) -> NDArray[np.uint64]:
    """Map floats to unsigned integers in their order: flip all bits of negative ones, the sign bit of the
    others."""
    bits = bits_of(array, dtype).astype(np.uint64)
    width = dtype.itemsize * 8
    sign = np.uint64(1 << (width - 1))
    mask = np.uint64((1 << width) - 1)
    return np.asarray(np.where(bits & sign != 0, bits ^ mask, bits | sign), np.uint64)
