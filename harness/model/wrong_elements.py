"""The wrong elements of an output: expected value, actual value, and the distance between them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.diff import NO_DISTANCE, differing, distances, errors
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Expected, OneOf, nearest
from harness.model.float_formats import FORMATS, MINIFLOATS, Float64, decode, minifloat_values

WORDS = ("NaN", "inf", "-inf", "lowest", "largest", "subnormal")
"""What an element can be called, of types that hold numbers."""


class WrongElements:
    """The wrong elements of an output that has the shape and the element type that are expected.

    Arrays have shape (elements,). `expected` and `actual` are float64 for floats, numbers or texts as stored for
    other types; of a few candidates the first is meant. A complex element has no distance.
    """

    def __init__(self, expected: Expected, actual: Tensor) -> None:
        self.dtype = actual.dtype
        candidates = expected.candidates if isinstance(expected, OneOf) else (nearest(expected),)
        if isinstance(expected, Approx):
            apart, wrong = errors(expected, actual)
            self._bound: Float64 | None = expected.bound[wrong]
            self._apart: Float64 | None = apart[wrong]
        else:
            wrong = np.logical_and.reduce([differing(each, actual) for each in candidates])
            self._bound = self._apart = None
        self.places = wrong
        """Which elements of the output are wrong, in its shape."""
        found = Tensor(actual.dtype, actual.array[wrong])
        self._pairs = [(Tensor(each.dtype, each.array[wrong]), found) for each in candidates]
        self.expected = expected.value[wrong] if isinstance(expected, Approx) else _numbers(self._pairs[0][0])
        self.actual = _numbers(self._pairs[0][1])

    def __len__(self) -> int:
        return int(self.actual.size)

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """The category of each difference: `NaN` and `infinity` on one side alone, `sign of zero`, `sign`, and
        `value` for all others."""
        a, b = self.expected, self.actual
        if not self._measured:
            return np.full(len(self), "value")
        with np.errstate(all="ignore"):
            return np.select(
                [
                    np.isnan(a) | np.isnan(b),
                    (np.isinf(a) | np.isinf(b)) & (a != -b),
                    (a == 0) & (b == 0),
                    np.sign(a) * np.sign(b) < 0,
                ],
                ["NaN", "infinity", "sign of zero", "sign"],
                "value",
            )

    @cached_property
    def errors(self) -> Float64:
        """The distance of each element from the value, of the nearest candidate; NaN where one of them is not
        finite."""
        if self._apart is not None:
            return np.where(np.isfinite(self._apart), self._apart, np.nan)
        if not self._measured:
            return np.full(len(self), np.nan)
        with np.errstate(all="ignore"):
            found = [np.abs(_exact(a) - _exact(b)).astype(np.float64) for a, b in self._pairs]
        return np.asarray(np.fmin.reduce(found))

    @cached_property
    def bounds(self) -> Float64:
        """The error of each element as a multiple of its bound; NaN where it has none."""
        if self._bound is None:
            return np.full(len(self), np.nan)
        with np.errstate(all="ignore"):
            return self.errors / self._bound

    @cached_property
    def ulps(self) -> Float64:
        """The distance of each element in units of the last place; NaN where one of the two is not finite, and of
        types that have none."""
        measured = [found for pair in self._pairs if (found := distances(*pair)) is not None]
        if not measured:
            return np.full(len(self), np.nan)
        nearest_one = np.minimum.reduce(measured)
        return np.where(nearest_one == NO_DISTANCE, np.nan, nearest_one.astype(np.float64))

    def holds(self, what: float | bool | str, elements: Array) -> NDArray[np.bool_]:
        """Say which elements equal a number as their type rounds it (0 and -0 apart), a text, or a named value:
        `NaN`, `inf`, `-inf`, `lowest`, `largest`, `subnormal`."""
        if not self._measured or (isinstance(what, str) and what not in WORDS):
            return np.asarray(elements == what, np.bool_).reshape(len(self))
        with np.errstate(all="ignore"):
            if what == "NaN":
                return np.asarray(np.isnan(elements))
            if what == "subnormal":
                form = FORMATS.get(self.dtype)
                below = 0.0 if form is None else form.smallest_normal
                return np.asarray((elements != 0) & (np.abs(elements) < below))
            number = self._extreme(what) if isinstance(what, str) else what
            if self.dtype in FORMATS:
                number = float(FORMATS[self.dtype].rounded(np.array(number, np.float64)))
            same = np.asarray(elements == number)
            return same & (np.signbit(elements) == np.signbit(float(number))) if number == 0 else same

    def _extreme(self, word: str) -> float:
        if word not in ("lowest", "largest"):
            return float(word)
        form = FORMATS.get(self.dtype)
        if form is not None:
            return form.largest if word == "largest" else -form.largest
        if self.dtype in MINIFLOATS:
            numbers = minifloat_values(self.dtype)
            numbers = numbers[np.isfinite(numbers)]
            return float(numbers.max() if word == "largest" else numbers.min())
        limits = DTYPES[self.dtype].limits
        return limits.max if word == "largest" else limits.min

    @property
    def _measured(self) -> bool:
        return DTYPES[self.dtype].storage[0] not in "Oc"


def _numbers(tensor: Tensor) -> Array:
    """Return floats as float64, which holds them all, bool as 0 and 1, and elements of other types as they
    are."""
    if tensor.dtype in FORMATS or tensor.dtype in MINIFLOATS:
        return decode(tensor.dtype, tensor.array)
    return tensor.array.astype(np.uint8) if tensor.dtype == "bool" else tensor.array


def _exact(tensor: Tensor) -> Array:
    """Return numbers whose differences do not wrap: integers of Python in place of those of a width."""
    found = _numbers(tensor)
    return found if found.dtype == np.float64 else found.astype(object)
