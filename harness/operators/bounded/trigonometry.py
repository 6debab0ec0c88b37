"""sin, cos and tan of the float64 reference, within 3 ULP for every argument, and erf.

The C library's and NumPy's err by more for large arguments near multiples of pi / 2 (cos(6381956970095103 *
2**797): 8 ULP in glibc 2.36, 14 for its tan). An argument from 2**20 on is therefore reduced exactly, in
integers, before the C library is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from harness.model.float_formats import Float64

_BITS = 1300
"""Fraction bits of pi / 2: 1,024 for the largest quotient, the rest for what is left of an argument next to a
multiple."""
_LARGE = 2.0**20


@cache
def _half_pi() -> int:
    """Return pi / 2 times 2**_BITS, by Machin's formula: pi / 4 = 4 arctan(1 / 5) - arctan(1 / 239)."""
    guard = 64

    def arctan_of_inverse(n: int) -> int:
        power = total = (1 << (_BITS + guard)) // n
        divisor, sign = 1, 1
        while power:
            power //= n * n
            divisor, sign = divisor + 2, -sign
            total += sign * (power // divisor)
        return total

    return (2 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))) >> guard


def _reduced(x: float) -> tuple[int, float]:
    """Return the quadrant, 0 to 3, and x minus the nearest multiple of pi / 2, correctly rounded."""
    numerator, denominator = x.as_integer_ratio()
    half = _half_pi()
    quotient, rest = divmod((numerator << _BITS) // denominator + half // 2, half)
    return quotient % 4, (rest - half // 2) / (1 << _BITS)


def _sin_behind(x: float, quadrants: int) -> float:
    """Return the sine of x and some quadrants more."""
    quadrant, rest = _reduced(x)
    found = math.cos(rest) if (quadrant + quadrants) % 2 else math.sin(rest)
    return -found if (quadrant + quadrants) % 4 >= 2 else found


def _sin(x: float) -> float:
    return math.sin(x) if abs(x) < _LARGE else _sin_behind(x, 0)


def _cos(x: float) -> float:
    return math.cos(x) if abs(x) < _LARGE else _sin_behind(x, 1)


def _tan(x: float) -> float:
    if abs(x) < _LARGE:
        return math.tan(x)
    quadrant, rest = _reduced(x)
    return -1 / math.tan(rest) if quadrant % 2 else math.tan(rest)


def _each(f: Callable[[float], float], values: Any) -> Float64:
    """Apply a function to each finite element; the others become NaN."""
    array = np.asarray(values, np.float64)
    return np.array(
        [f(v) if math.isfinite(v) else math.nan for v in array.reshape(-1).tolist()], np.float64
    ).reshape(array.shape)


def sin(values: Any) -> Float64:
    return _each(_sin, values)


def cos(values: Any) -> Float64:
    return _each(_cos, values)


def tan(values: Any) -> Float64:
    return _each(_tan, values)


def erf(values: Any) -> Float64:
    return np.where(np.isinf(values), np.sign(values), _each(math.erf, values))
