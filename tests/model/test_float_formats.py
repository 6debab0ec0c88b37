"""The formats against NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

from harness.model.dtypes import DTYPES
from harness.model.float_formats import FORMATS, Rounding, decode, encode, encode_minifloat

NATIVE = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}


def drawn(name: str, count: int = 4000) -> np.ndarray:
    """Any finite value of any size, as float64."""
    rng = np.random.default_rng(1)
    form = FORMATS[name]
    exponents = rng.uniform(form.min_exponent - form.precision - 2, min(form.max_exponent + 3, 1023), count)
    return rng.choice([-1.0, 1.0], count) * np.exp2(exponents) * rng.uniform(1, 2, count) / 2


@pytest.mark.parametrize("name", FORMATS)
class TestFormats:
    def test_numbers(self, name: str) -> None:
        form, info = FORMATS[name], ml_dtypes.finfo(NATIVE[name])
        assert form.largest == float(info.max)
        assert form.smallest_normal == float(info.smallest_normal)
        assert form.quantum == float(info.smallest_subnormal)
        assert form.unit == float(info.eps) / 2
        assert form.precision == DTYPES[name].mantissa + 1

    def test_spacing(self, name: str) -> None:
        form = FORMATS[name]
        values = form.rounded(drawn(name))
        finite = np.abs(values[np.abs(values) < form.largest])
        bits = encode(name, finite).view(f"u{DTYPES[name].itemsize}") + 1
        above = decode(name, bits.astype(f"u{DTYPES[name].itemsize}").view(DTYPES[name].storage))
        assert np.array_equal(form.ulp(finite), above - finite)
        assert form.ulp(np.array([0.0, -0.0])).tolist() == [form.quantum] * 2

    def test_rounding(self, name: str) -> None:
        values = drawn(name)
        with np.errstate(all="ignore"):
            wanted = values.astype(NATIVE[name]).astype(np.float64)
        found = FORMATS[name].rounded(values)
        differ = found != wanted
        if name == "bfloat16":  # ml_dtypes goes through float32, twice rounded
            assert differ.mean() < 0.001
        else:
            assert not differ.any()
        assert np.array_equal(np.signbit(found), np.signbit(values))

    def test_ties_go_to_the_even_value_and_overflow_begins_half_a_spacing_beyond_the_largest(
        self, name: str
    ) -> None:
        form = FORMATS[name]
        if name != "float64":
            assert form.rounded(np.array([1 + form.unit, 1 + 3 * form.unit])).tolist() == [
                1.0,
                1 + 4 * form.unit,
            ]
            below = np.nextafter(form.overflow, 0)
            assert form.rounded(np.array([below, form.overflow, -form.overflow])).tolist() == [
                form.largest,
                np.inf,
                -np.inf,
            ]
        else:
            assert form.overflow == np.inf

    def test_storage(self, name: str) -> None:
        values = np.array(
            [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, FORMATS[name].quantum, FORMATS[name].largest]
        )
        stored = encode(name, values)
        assert stored.dtype.str[1:] == DTYPES[name].storage
        assert stored.tobytes() == values.astype(NATIVE[name]).tobytes()
        back = decode(name, stored)
        assert np.array_equal(back, values, equal_nan=True)
        assert np.array_equal(np.signbit(back), np.signbit(values))


def test_integers_are_widened() -> None:
    assert decode("int64", np.array([3, -4])).tolist() == [3.0, -4.0]


MINI = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
}
SIGNED = [name for name in MINI if name != "float8e8m0"]


def every(dtype: str) -> np.ndarray:
    """Every number of a type of 16 bits; of float32 those whose last 16 bits are 0, 1, a tie's and beside it."""
    patterns = np.arange(1 << 16, dtype=np.uint32)
    if dtype != "float32":
        return patterns.astype(np.uint16).view(NATIVE[dtype])
    return np.concatenate([patterns << 16 | low for low in (0, 1, 0x7FFF, 0x8000, 0xFFFF)]).view(np.float32)


class TestMinifloats:
    @pytest.mark.parametrize("name", MINI)
    def test_every_pattern_is_the_number_of_ml_dtypes(self, name: str) -> None:
        patterns = np.arange(1 << DTYPES[name].narrow, dtype=np.uint8)
        wanted = patterns.view(MINI[name]).astype(np.float64)
        found = decode(name, patterns)
        assert np.array_equal(found, wanted, equal_nan=True)
        assert np.array_equal(
            np.signbit(found), np.signbit(wanted) & ~np.isnan(wanted) | np.signbit(found) & np.isnan(found)
        )

    @pytest.mark.parametrize("name", SIGNED)
    @pytest.mark.parametrize("source", ["float16", "bfloat16", "float32"])
    def test_numbers_are_rounded_as_by_ml_dtypes(self, name: str, source: str) -> None:
        numbers = every(source)
        with np.errstate(all="ignore"):
            wanted = numbers.astype(MINI[name]).view(np.uint8)
            found = encode_minifloat(name, numbers.astype(np.float64), saturate=False)
        known = ~np.isnan(numbers.astype(np.float32))
        assert np.array_equal(found[known], wanted[known])
        assert np.isnan(decode(name, found[~known])).all() or name == "float4e2m1"

    @pytest.mark.parametrize("name", SIGNED)
    def test_saturated_numbers_are_those_of_onnx(self, name: str) -> None:
        numbers = every("float32")
        numbers = numbers[~np.isnan(numbers)]
        with np.errstate(all="ignore"):
            wanted = onnx.numpy_helper.saturate_cast(numbers, MINI[name]).view(np.uint8)
        found = encode_minifloat(name, numbers.astype(np.float64), saturate=True)
        assert np.array_equal(found, wanted)

    @pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
    def test_powers_of_two_are_rounded_as_onnx_rounds_them(self, rounding: Rounding) -> None:
        numbers = every("float32")
        numbers = numbers[
            np.isfinite(numbers) & (numbers >= 2.0**-126)
        ]  # of others onnx looks at the exponent alone
        wanted = onnx.numpy_helper.to_float8e8m0(numbers, saturate=True, round_mode=rounding).view(np.uint8)
        found = encode_minifloat("float8e8m0", numbers.astype(np.float64), saturate=True, rounding=rounding)
        assert np.array_equal(found, wanted)

    def test_what_lies_beyond_powers_of_two_is_none_of_them_or_the_last_one(self) -> None:
        numbers = np.array([np.inf, 3e38, 2.0**-130, 0.0, np.nan])
        saturated = encode_minifloat("float8e8m0", numbers, saturate=True, rounding="nearest")
        assert saturated.tolist() == [0xFE, 0xFE, 0, 0, 0xFF]
        assert encode_minifloat("float8e8m0", numbers, saturate=False).tolist() == [0xFF] * 5
