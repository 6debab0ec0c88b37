"""Float types by their bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from harness.model.dtypes import DTYPES
from harness.model.float_formats import encode
from harness.operators.binary_floats import (
    decode_bfloat16,
    encode_bfloat16,
    halfway_values,
    special_patterns,
)

FLOATS = ("float16", "bfloat16", "float32", "float64")
MAXIMA = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}


def values(dtype: str, storage: np.ndarray) -> list[float]:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return (decode_bfloat16(storage) if dtype == "bfloat16" else storage).astype(np.float64).tolist()


def test_bfloat16_round_trip() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    assert encode_bfloat16(decode_bfloat16(bits)).tolist() == bits.tolist()


@pytest.mark.parametrize("value", [1.00001, 3.4028235e38, 1e-45])
def test_bfloat16_refuses_what_it_does_not_hold(value: float) -> None:
    with pytest.raises(ValueError, match="not representable in bfloat16"):
        encode_bfloat16(np.array([1.0, value], np.float32))


def test_encode_bfloat16_rounds_to_nearest_even() -> None:
    for value in [
        *np.random.default_rng(1).uniform(-200, 200, 500).tolist(),
        1 + 2**-8,
        1 + 3 * 2**-8,
        1 + 2**-8 + 2**-20,
    ]:
        narrowed = Fraction(float(decode_bfloat16(encode("bfloat16", np.array([value])))[0]))
        exact = Fraction(float(np.float32(value)))
        unit = Fraction(2) ** (math.frexp(value)[1] - 8)
        wanted = round(exact / unit) * unit  # half to even
        assert narrowed == wanted, value


@pytest.mark.parametrize("dtype", FLOATS)
def test_specials(dtype: str) -> None:
    found = values(dtype, special_patterns(dtype))
    finite = [v for v in found if math.isfinite(v)]
    assert {math.copysign(1, v) for v in finite if v == 0} == {1.0, -1.0}
    assert {math.inf, -math.inf, 1.0, -1.0, MAXIMA[dtype], -MAXIMA[dtype]} <= set(found)
    assert sum(map(math.isnan, found)) == 10
    assert len(np.unique(special_patterns(dtype).view(f"u{DTYPES[dtype].itemsize}"))) == len(found)


@pytest.mark.parametrize("dtype", FLOATS)
def test_halfway_values(dtype: str) -> None:
    found = set(values(dtype, halfway_values(dtype)))
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    limit = 2.0**mantissa
    assert {0.5, -0.5, 1.5, 2.5, limit - 0.5, -(limit - 0.5), limit, limit + 1} <= found
    if dtype == "float32":
        assert {float(np.nextafter(np.float32(0.5), np.float32(n))) for n in (0, 1)} <= found
