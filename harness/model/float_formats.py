"""Binary floating-point formats by their numbers: precision, range, spacing; and their values as float64,
which holds each of them.

IEEE 754-2019, table 3.2 for float16, float32 and float64; bfloat16 is float32 cut to 8 significant bits. Minifloats:
ONNX, "Float stored in 8 bits" and "Float stored in 4 bits", the tables of formats and of Cast.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array, DType

Float64 = NDArray[np.float64]
Rounding = Literal["up", "down", "nearest"]
_SCALE = "float8e8m0"
_BITS, _NUMBERS = np.dtype(np.int64), np.dtype(np.float64)
_EXPONENT = np.array(0x7FF << 52, np.int64)
"""The bits of float64's exponent. By themselves they are 2**floor(log2 |x|), 0 for a subnormal, and infinity for
infinities and NaNs. An array, as all operands of `spacing` are: NumPy would convert a scalar each time."""


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
        step, quantum = _steps(self)
        held = np.asarray(values, _NUMBERS)
        found = np.asarray(held.view(_BITS) & _EXPONENT).view(_NUMBERS)
        np.multiply(found, step, out=found)
        return np.maximum(found, quantum, out=found)

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


@cache
def _steps(form: Format) -> tuple[Float64, Float64]:
    """Return the spacing at 1, and that around zero."""
    return np.array(2.0 ** (1 - form.precision)), np.array(form.quantum)


FORMATS: dict[str, Format] = {
    f.dtype: f
    for f in (
        Format("float16", 11, -14, 15),
        Format("bfloat16", 8, -126, 127),
        Format("float32", 24, -126, 127),
        Format("float64", 53, -1022, 1023),
    )
}


class FloatBits(NamedTuple):
    """The bits of a binary float as unsigned integers of its width: the sign, infinity, and the quiet bit of NaN."""

    sign: np.unsignedinteger
    infinity: np.unsignedinteger
    quiet: np.unsignedinteger

    def are_nan(self, bits: Array) -> NDArray[np.bool_]:
        """Say of bits which are those of a NaN."""
        return np.asarray((bits & ~self.sign) > self.infinity)


@cache
def float_bits(entry: DType) -> FloatBits:
    """Return the bits of a float type."""
    assert entry.mantissa is not None
    width = np.dtype(f"u{entry.itemsize}").type
    sign = 1 << (entry.itemsize * 8 - 1)
    return FloatBits(
        width(sign),
        width((sign - 1) >> entry.mantissa << entry.mantissa),
        width(1 << (entry.mantissa - 1)),
    )


def bits_of(array: Array, entry: DType) -> Array:
    """View elements as unsigned integers of the same width."""
    return np.ascontiguousarray(array).reshape(-1).view(f"u{entry.itemsize}").reshape(array.shape)


class Minifloat(NamedTuple):
    """A float of at most 8 bits: its bits, those of the significand, the bias, the pattern of the largest number and,
    of the positive sign, those of infinity and NaN; None where it has none."""

    dtype: str
    bits: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None

    @property
    def sign(self) -> int:
        """The bit of the sign; beyond all patterns where numbers have none."""
        return 1 << self.bits - (self.dtype != _SCALE)

    @property
    def signed_zero(self) -> bool:
        """Whether the pattern of -0 is a zero: in types of "uz" it is NaN."""
        return self.nan != self.sign

    def magnitudes(self, count: int) -> Float64:
        """Return what the patterns from 0 on would be without infinity and NaN."""
        exponents, fractions = np.divmod(np.arange(count), 1 << self.mantissa)
        normal = (exponents > 0) | (self.dtype == _SCALE)
        whole = fractions * 2.0**-self.mantissa + normal
        return np.asarray(np.ldexp(whole, np.maximum(exponents, np.where(normal, 0, 1)) - self.bias))

    def encoded(self, values: Float64, saturate: bool) -> Array:
        """Round to the nearest number, of two equally near ones to the even pattern; beyond the largest give it,
        or, without `saturate`, infinity or NaN."""
        grid = self.magnitudes(self.largest + 2)
        between = (grid[:-1] + grid[1:]) / 2
        size = np.abs(values)
        code = np.searchsorted(between, size)
        code += (code % 2 == 1) & (size == between[np.minimum(code, self.largest)])
        beyond = self.infinity if self.infinity is not None else self.nan
        over = self.largest if saturate or beyond is None else beyond
        none = self.largest if self.nan is None else self.nan
        code = np.where(code > self.largest, over, code)
        code = np.where(np.isnan(values), none, code)
        negative = (
            np.signbit(values) & (self.signed_zero | (code != 0)) & ~(np.isnan(values) & (self.nan is None))
        )
        return np.asarray(np.where(negative, code | self.sign, code), np.uint8)


MINIFLOATS: dict[str, Minifloat] = {
    f.dtype: f
    for f in (
        Minifloat("float8e4m3fn", 8, 3, 7, 0x7E, None, 0x7F),
        Minifloat("float8e4m3fnuz", 8, 3, 8, 0x7F, None, 0x80),
        Minifloat("float8e5m2", 8, 2, 15, 0x7B, 0x7C, 0x7E),
        Minifloat("float8e5m2fnuz", 8, 2, 16, 0x7F, None, 0x80),
        Minifloat("float4e2m1", 4, 1, 1, 0x07, None, None),
        Minifloat(_SCALE, 8, 0, 127, 0xFE, None, 0xFF),
    )
}


@cache
def minifloat_values(dtype: str) -> Float64:
    """Return the number of every pattern of a minifloat, in their order."""
    form = MINIFLOATS[dtype]
    signed = form.sign < 1 << form.bits
    found = form.magnitudes(1 << form.bits - signed)
    found[form.largest + 1 :] = np.nan
    if form.infinity is not None:
        found[form.infinity] = np.inf
    found = np.concatenate([found, -found]) if signed else found
    if form.nan is not None:
        found[form.nan] = np.nan
    found.flags.writeable = False
    return found


def encode_minifloat(dtype: str, values: Float64, saturate: bool = True, rounding: Rounding = "up") -> Array:
    """Round float64 values to a minifloat, by ONNX's tables of Cast; `rounding` is that of powers of two alone,
    which have no sign: a negative number has no meaning there."""
    if dtype != _SCALE:
        return MINIFLOATS[dtype].encoded(values, saturate)
    powers = minifloat_values(dtype)[:-1]
    size = np.clip(np.where(np.isnan(values), 1.0, values), powers[0], powers[-1])
    above = np.searchsorted(powers, size)
    below = np.searchsorted(powers, size, "right") - 1
    nearest = np.where(size - powers[below] < powers[above] - size, below, above)
    code = {"up": above, "down": below, "nearest": nearest}[rounding]
    none = np.isnan(values) | ((size != values) & (not saturate))
    return np.asarray(np.where(none, 0xFF, code), np.uint8)


def decode(dtype: str, array: Array) -> Float64:
    """Widen the stored elements of a float dtype, or of an integer one whose values float64 holds, to
    float64."""
    if dtype in MINIFLOATS:
        return minifloat_values(dtype).take(array, mode="wrap")
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return np.asarray((np.asarray(array).astype(np.uint32) << 16).view(np.float32), np.float64)
        return np.asarray(array).astype(np.float64)


def encode(dtype: str, values: Any) -> Array:
    """Return numbers in the storage of a dtype, rounded to a float one; bits of NaNs are those of the quiet NaN.
    A minifloat takes the largest number for what lies beyond."""
    if dtype not in FORMATS and dtype not in MINIFLOATS:
        return np.asarray(values).astype(DTYPES[dtype].storage)
    if dtype in MINIFLOATS:
        return encode_minifloat(dtype, np.asarray(values, np.float64))
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            near = FORMATS[dtype].rounded(np.asarray(values, np.float64))
            return np.asarray((near.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        return np.asarray(values, np.float64).astype(DTYPES[dtype].storage)
