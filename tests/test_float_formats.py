"""The formats against NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from harness.model.dtypes import DTYPES
from harness.model.float_formats import FORMATS, decode, encode

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
