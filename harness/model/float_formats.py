"""Binary floating-point formats by their numbers: precision, range, spacing; and their values as float64,
which holds each of them.

IEEE 754-2019, table 3.2 for float16, float32 and float64; bfloat16 is float32 cut to 8 significant bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array

Float64 = NDArray[np.float64]
_EXPONENT = np.int64(0x7FF << 52)
"""The bits of float64's exponent. By themselves they are 2**floor(log2 |x|), 0 for a subnormal, and infinity for
infinities and NaNs."""


def greatest(magnitudes: Float64) -> float:
    """Return the greatest of numbers that are not negative: NaN where any is, 0 of none."""
    return float(np.maximum.reduce(magnitudes, axis=None, initial=0.0))


class Format(NamedTuple):
    """One format: significant bits with the implied one, and the exponents of its smallest and largest normal
    powers of two."""

    dtype: str
    precision: int
    min_exponent: int
    max_exponent: int

    @property
    def unit(self) -> float:
        """Unit roundoff: the largest relative error of rounding to nearest."""
        return 2.0**-self.precision

    @property
    def smallest_normal(self) -> float:
        return 2.0**self.min_exponent

    @property
    def quantum(self) -> float:
        """Smallest subnormal, which is also the spacing around zero."""
        return 2.0 ** (self.min_exponent - self.precision + 1)

    @property
    def largest(self) -> float:
        """Largest finite value."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.max_exponent

    @property
    def overflow(self) -> float:
        """Magnitude from which rounding to nearest gives an infinity; of float64 infinity, since sums in it
        overflow by that rule."""
        return (2.0 - 2.0**-self.precision) * 2.0**self.max_exponent

    def ulp(self, values: Float64) -> Float64:
        """Return the spacing of the format at each value, as if its range had no upper end; infinite for
        infinities, NaN for NaN."""
        spacing = self.spacing(values)
        if greatest(spacing) == np.inf:
            spacing = np.where(spacing == np.inf, np.abs(values), spacing)
        return spacing

    def spacing(self, values: Float64) -> Float64:
        """Return the same, but that it is infinite for NaN too: for those who look at finite numbers alone."""
        held = np.asarray(values, np.float64)
        found = np.asarray(held.view(np.int64) & _EXPONENT).view(np.float64)
        found *= 2.0 ** (1 - self.precision)
        return np.maximum(found, self.quantum, out=found)

    def rounded(self, values: Float64) -> Float64:
        """Round to the nearest value of the format, of two equally near ones to the even one; beyond its
        range to an infinity."""
        if self.dtype == "float64":
            return values
        with np.errstate(all="ignore"):
            spacing = self.spacing(values)
            near = np.where(np.isfinite(values), np.rint(values / spacing) * spacing, values)
            near = np.where(near == 0, np.copysign(0.0, values), near)
            return np.where(np.abs(near) > self.largest, np.copysign(np.inf, values), near)


FORMATS: dict[str, Format] = {
    f.dtype: f
    for f in (
        Format("float16", 11, -14, 15),
        Format("bfloat16", 8, -126, 127),
        Format("float32", 24, -126, 127),
        Format("float64", 53, -1022, 1023),
    )
}


def decode(dtype: str, array: Array) -> Float64:
    """Widen the stored elements of a float dtype, or of an integer one whose values float64 holds, to
    float64."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return np.asarray((np.asarray(array).astype(np.uint32) << 16).view(np.float32), np.float64)
        return np.asarray(array).astype(np.float64)


def encode(dtype: str, values: Float64) -> Array:
    """Round float64 values to a float dtype and return them in its storage; bits of NaNs are those of the
    quiet NaN."""
    near = FORMATS[dtype].rounded(np.asarray(values, np.float64))
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return np.asarray((near.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        return near.astype(DTYPES[dtype].storage)
