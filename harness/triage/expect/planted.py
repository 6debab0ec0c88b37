"""Other wrong outputs: what a target could give in place of what it gives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Expected, nearest
from harness.model.float_formats import FORMATS, decode, encode
from harness.model.wrong_elements import WrongElements

Outputs = tuple[Tensor, ...]


def planted(outputs: Outputs, expected: tuple[Expected, ...] | None) -> Iterator[tuple[str, Outputs]]:
    """Yield outputs that differ from those given, each with its name.

    The first output of whose elements something is claimed changes: every element, one element, one NaN, the other
    sign, ten times the difference from what is expected, another rank, another element type. Elements of which nothing
    is claimed stay. A change that leaves the elements as they are, or that the type cannot hold, is left out; a NaN
    stays a NaN whatever its bits are.
    """
    matched = expected if expected is not None and len(expected) == len(outputs) else (None,) * len(outputs)
    claimed = [_claimed(each, wanted) for each, wanted in zip(outputs, matched, strict=True)]
    place = next((n for n, each in enumerate(claimed) if each.any()), None)
    if place is None:
        return
    given = outputs[place]
    for name, array in _values(given, matched[place]):
        elements = array.astype(given.array.dtype).reshape(given.array.shape)
        changed = Tensor(given.dtype, np.where(claimed[place], elements, given.array))
        if not _same(changed, given):
            yield name, (*outputs[:place], changed, *outputs[place + 1 :])
    other = "int32" if given.dtype != "int32" else "float32"
    for name, tensor in (
        ("another rank", Tensor(given.dtype, given.array[None])),
        ("another type", Tensor(other, np.zeros(given.array.shape, DTYPES[other].storage))),
    ):
        yield name, (*outputs[:place], tensor, *outputs[place + 1 :])


def _claimed(given: Tensor, wanted: Expected | None) -> NDArray[np.bool_]:
    """Return of which elements something is claimed."""
    if isinstance(wanted, Approx) and wanted.bound.shape == given.array.shape:
        return np.isfinite(wanted.bound)
    return np.ones(given.array.shape, bool)


def _same(one: Tensor, other: Tensor) -> bool:
    """Say whether two tensors of one type hold the same values, signs of zeros included."""
    left, right = _numbers(one), _numbers(other)
    if left.dtype.kind not in "fc":
        return bool(np.array_equal(left, right))
    signs = np.signbit(left.real) == np.signbit(right.real)
    return bool((np.isnan(left) & np.isnan(right) | (left == right) & signs).all())


def _values(given: Tensor, wanted: Expected | None) -> Iterator[tuple[str, Array]]:
    """Yield the elements changed in value."""
    dtype = given.dtype
    numbers = _numbers(given)
    with np.errstate(all="ignore"):
        other = _other(numbers)
        yield "every element", _stored(dtype, other)
        one = numbers.copy()
        one[-1] = other[-1]
        yield "one element", _stored(dtype, one)
        if DTYPES[dtype].is_float:
            nan = numbers.copy()
            nan[len(nan) // 2] = np.nan
            if not np.isnan(numbers[len(nan) // 2]):
                yield "NaN", _stored(dtype, nan)
        if numbers.dtype.kind in "if":
            yield "another sign", _stored(dtype, np.where(numbers == 0, numbers, -numbers))
            if wanted is not None and (wanted.dtype, wanted.shape) == (dtype, given.array.shape):
                right = _numbers(nearest(wanted))
                wrong = WrongElements(wanted, given).places.reshape(-1)
                far = wrong & np.isfinite(numbers) & np.isfinite(right)
                away = np.where(far, right + 10 * (numbers - right), numbers)
                yield "ten times the difference", _stored(dtype, away.astype(numbers.dtype))


def _numbers(tensor: Tensor) -> Array:
    """Return the elements in a row, floats as float64."""
    array = decode(tensor.dtype, tensor.array) if tensor.dtype in FORMATS else tensor.array
    return array.reshape(-1)


def _stored(dtype: str, numbers: Array) -> Array:
    return encode(dtype, numbers) if dtype in FORMATS else numbers


def _other(numbers: Array) -> Array:
    """Return another value for each element."""
    if numbers.dtype.kind == "O":
        return np.array([f"{text}?" for text in numbers], object)
    if numbers.dtype == np.bool_:
        return ~numbers
    if numbers.dtype.kind in "iu":
        return numbers * 3 + 7
    changed = np.where(np.isfinite(numbers), numbers * 3 + 7, 1)
    return np.where(changed == numbers, 1, changed).astype(numbers.dtype)
