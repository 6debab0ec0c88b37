from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.dtypes import DTYPES
from harness.specs.reading.literals import LiteralError, infer_shape, to_array


def bits(dtype: str, values: Any) -> list[str]:
    array = to_array(dtype, values)
    return [f"{pattern:0{2 * array.itemsize}x}" for pattern in array.view(f"u{array.itemsize}").tolist()]


def test_floats_mean_what_they_say() -> None:
    values = [1, -0.0, "-0.0", "inf", "-inf", math.inf, "nan", math.nan, "0x7fc00001", "0x80000000", 0.1]
    assert bits("float32", values) == (
        [
            "3f800000",
            "80000000",
            "80000000",
            "7f800000",
            "ff800000",
            "7f800000",
            "7fc00000",
            "7fc00000",
            "7fc00001",
            "80000000",
            "3dcccccd",
        ]
    )
    assert bits("float16", [65504, 5.960464477539063e-08, "0xfe01", 0.1]) == ["7bff", "0001", "fe01", "2e66"]
    assert bits("float64", [2**53, "0x7ff0000000000001", 0.1]) == [
        "4340000000000000",
        "7ff0000000000001",
        "3fb999999999999a",
    ]
    assert bits("bfloat16", [1, -2.5, "nan", "-inf", "-0.0", "0x7f81", 2.0**127]) == [
        "3f80",
        "c020",
        "7fc0",
        "ff80",
        "8000",
        "7f81",
        "7f00",
    ]


def test_integers() -> None:
    assert to_array("int8", [-128, 127, "0xff"]).tolist() == [-128, 127, -1]
    assert to_array("uint64", [0, 2**64 - 1]).tolist() == [0, 2**64 - 1]
    assert to_array("int64", -(2**63)).tolist() == -(2**63)


def test_others() -> None:
    strings = to_array("string", [["no", ""], ["é", "0x1"]])
    assert strings.dtype == object
    assert strings.tolist() == [["no", ""], ["é", "0x1"]]
    assert to_array("bool", [True, False]).tolist() == [True, False]
    assert to_array("complex64", ["1-2j", 3, "2j"]).tolist() == [1 - 2j, 3 + 0j, 2j]
    zeros = to_array("complex128", ["-0-0j"])
    assert zeros.view("f8").tobytes() == np.array([-0.0, -0.0]).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_storage_dtype_and_empty_tensors(dtype: str) -> None:
    assert to_array(dtype, (), (0, 3)).shape == (0, 3)
    assert to_array(dtype, (), (0, 3)).dtype == np.dtype(DTYPES[dtype].storage)


def test_shapes() -> None:
    assert to_array("int8", [1, 2, 3, 4], (2, 2)).tolist() == [[1, 2], [3, 4]]
    assert to_array("int8", [[1, 2], [3, 4]], (2, 2)).tolist() == [[1, 2], [3, 4]]
    assert to_array("int8", 5).shape == ()
    assert to_array("int8", [5], ()).shape == ()
    assert to_array("int8", [[], []]).shape == (2, 0)


@pytest.mark.parametrize(
    ("dtype", "values", "shape", "path", "what"),
    [
        ("int8", [1, 128], None, (1,), "128 is outside int8's -128..127"),
        ("uint8", [[1], [-1]], None, (1, 0), "-1 is outside uint8's 0..255"),
        ("int32", [1, 2.0], None, (1,), "2.0 is not an integer, as int32 needs"),
        ("int32", [math.nan], None, (0,), "nan is not an integer, as int32 needs"),
        ("int32", [True], None, (0,), "true is not an integer, as int32 needs"),
        ("bool", [1], None, (0,), "1 is not a bool; write true or false"),
        ("string", [1.5], None, (0,), "1.5 is not text; quote it"),
        ("float16", [65520], None, (0,), "65520 is not in the range of float16"),
        ("float16", [2049], None, (0,), "2049 is not exact in float16"),
        ("float32", [1e-60], None, (0,), "1e-60 is not in the range of float32"),
        ("float64", [2**53 + 1], None, (0,), "the integer 9007199254740993 is not exact in float64"),
        ("bfloat16", [0.1], None, (0,), "0.1 is not exact in bfloat16"),
        ("bfloat16", [257], None, (0,), "257 is not exact in bfloat16"),
        ("float16", ["0x10000"], None, (0,), "the bit pattern 0x10000 does not fit the 16 bits of float16"),
        ("int8", [1, 2, 3], (2, 2), (), "the values have shape [3], not [2, 2]"),
        ("int8", [[1], [2, 3]], None, (1,), "ragged: shape [2] beside [1]"),
        ("int8", [], (1 << 30, 0), (), "1,073,741,824 elements are above the limit of 16,777,216 per tensor"),
        ("complex64", ["1e300j"], None, (0,), "1e+300 is not in the range of complex64"),
    ],
)
def test_what_is_not_a_tensor(dtype: str, values: Any, shape: Any, path: tuple[int, ...], what: str) -> None:
    with pytest.raises(LiteralError) as raised:
        to_array(dtype, values, shape)
    assert raised.value.problems == ((path, what),)


def test_every_wrong_element_is_named() -> None:
    with pytest.raises(LiteralError) as raised:
        to_array("float16", [1e9, "x", 1, "0xfffff", None])
    assert [path for path, _ in raised.value.problems] == [(0,), (1,), (3,), (4,)]


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_float32_is_exact(values: list[float]) -> None:
    got, wanted = to_array("float32", values), np.array(values, "f4")
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    assert got[~np.isnan(got)].tobytes() == wanted[~np.isnan(wanted)].tobytes()


@given(st.integers(0, 0xFFFF))
def test_bfloat16_bits_survive(pattern: int) -> None:
    assert to_array("bfloat16", [f"0x{pattern:04x}"]).tolist() == [pattern]
    value = float(np.array([pattern << 16], "u4").view("f4")[0])
    if not math.isnan(value):
        assert to_array("bfloat16", [value]).tolist() == [pattern]


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["nan", "0x7f", "1j", "", "x"])
    | st.just({}),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=10,
)


@given(
    st.sampled_from(sorted(DTYPES)), ANY, st.none() | st.lists(st.integers(-2, 2**40), max_size=3).map(tuple)
)
def test_anything_is_an_array_or_a_literal_error(dtype: str, values: Any, shape: Any) -> None:
    try:
        array = to_array(dtype, values, shape)
    except LiteralError:
        return
    assert array.dtype == np.dtype(DTYPES[dtype].storage)
    assert array.shape == (infer_shape(values) if shape is None else shape)
