"""Casts against exact rational arithmetic, quantisation against its formula element by element."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_cast import cast_to

from harness.compile.protos import tensor_of
from harness.model.case import Tensor
from harness.model.diff import differing
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Expected, OneOf, nearest
from harness.model.float_formats import decode, encode
from harness.operators.base import Undefined
from harness.operators.elementwise.casting import converted
from tests.calling import expected


@pytest.mark.parametrize("to", ["float16", "float32"])
def test_integers_of_64_bits_are_rounded_once(to: str) -> None:
    numbers = [
        2**53 + 1,
        2**60 + 2**36 + 1,
        2**60 + 2**36,
        -(2**60) - 2**36 - 1,
        2**62 - 1,
        2049,
        2051,
        0,
        2**24 + 1,
    ]
    found = converted(Tensor("int64", np.array(numbers, np.int64)), to)
    for number, each in zip(numbers, found.tolist(), strict=True):
        if np.isinf(each):
            assert abs(number) >= 65520
            continue
        kind = np.dtype(to).type
        for other in (np.nextafter(kind(each), kind(np.inf)), np.nextafter(kind(each), kind(-np.inf))):
            if np.isfinite(other):
                assert abs(Fraction(each) - number) <= abs(Fraction(float(other)) - number)


def test_float64_is_rounded_to_float16_once() -> None:
    found = converted(Tensor("float64", np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11])), "float16")
    assert found.tolist() == [1 + 2.0**-10, 1.0]


def test_integers_keep_their_low_bits() -> None:
    found = converted(Tensor("int32", np.array([300, -1, 2**31 - 1], np.int32)), "uint8")
    assert found.tolist() == [44, 255, 255]


def test_dequantised_blocks_have_their_own_scale() -> None:
    x = np.array([1, 2, 3, 4, 5], np.uint8)
    scale, zero = np.array([1.0, 2.0, 4.0], np.float32), np.array([0, 1, 5], np.uint8)
    inputs = {
        "x": Tensor("uint8", x),
        "x_scale": Tensor("float32", scale),
        "x_zero_point": Tensor("uint8", zero),
    }
    (found,) = expected("DequantizeLinear", 21, inputs, {"axis": 0, "block_size": 2})
    assert isinstance(found, Approx)
    assert found.value.tolist() == [1.0, 2.0, 4.0, 6.0, 0.0]


def test_a_requantised_number_at_a_tie_may_go_either_way() -> None:
    inputs = {
        "a": Tensor("uint8", np.array([[3]], np.uint8)), "a_scale": Tensor("float32", np.array(1 / 3, np.float32)),
        "a_zero_point": Tensor("uint8", np.array(0, np.uint8)), "b": Tensor("uint8", np.array([[5]], np.uint8)),
        "b_scale": Tensor("float32", np.array(0.5, np.float32)), "b_zero_point": Tensor("uint8", np.array(0, np.uint8)),
        "y_scale": Tensor("float32", np.array(1.0, np.float32)), "y_zero_point": Tensor("uint8", np.array(7, np.uint8)),
    }  # fmt: skip
    (found,) = expected("QLinearMatMul", 10, inputs)
    assert isinstance(found, OneOf)
    assert {int(each.array[0, 0]) for each in found.candidates} == {9, 10}
    assert nearest(found).dtype == "uint8"


def cast(source: Tensor, to: str, **attributes: int | str) -> Expected:
    (found,) = expected("Cast", 25, {"input": source}, {"to": DTYPES[to].onnx, **attributes})
    return found


NARROW = [name for name, entry in DTYPES.items() if entry.narrow and name != "float8e8m0"]


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("to", NARROW)
@pytest.mark.parametrize("source", ["float32", "int8", *NARROW])
def test_narrow_types_are_cast_as_by_onnx(source: str, to: str, saturate: int) -> None:
    patterns = np.arange(1 << (DTYPES[source].narrow or 8))
    array = (
        np.array([-8, -7.5, -2, -1.75, -0.5, 0, 0.5, 1, 1.5, 1.75], np.float32)
        if source == "float32"
        else DTYPES[source].wrapped(patterns)
    )
    if DTYPES[to].is_integer and not DTYPES[source].is_integer:  # undefined beyond the range
        numbers = decode(source, array)
        limits = DTYPES[to].limits
        array = array[(np.trunc(numbers) >= limits.min) & (np.trunc(numbers) <= limits.max)]
    if source == to == "float8e5m2":  # its infinities are no conversion's
        array = array[np.isfinite(decode(source, array))]
    found = nearest(cast(Tensor(source, array), to, saturate=saturate))
    native = onnx.helper.tensor_dtype_to_np_dtype(DTYPES[source].onnx)
    given = (
        array.view(native) if DTYPES[source].is_minifloat else array
    )  # ml_dtypes has no other pairs of 4 and 2 bits
    wanted = tensor_of(DTYPES[to].onnx, cast_to(given, DTYPES[to].onnx, bool(saturate)))
    if DTYPES[source].is_minifloat and to == "float4e2m1":  # NaN of either sign is 6
        found, wanted = (Tensor(to, each.array[~np.isnan(decode(source, array))]) for each in (found, wanted))
    assert not differing(wanted, found).any()


def test_text_is_the_shortest_that_spells_a_number() -> None:
    found = cast(Tensor("float32", np.array([0.1, -2.0, 314.15625], np.float32)), "string")
    assert isinstance(found, OneOf)
    assert [each.array.tolist() for each in found.candidates] == [
        ["0.1", "-2", "314.15625"],
        ["0.1", "-2.0", "314.15625"],
    ]
    (found,) = cast(Tensor("int4", np.array([-8, 7], np.int8)), "string").candidates
    assert found.array.tolist() == ["-8", "7"]


def test_no_negative_number_is_a_power_of_two() -> None:
    with pytest.raises(Undefined):
        cast(Tensor("float32", np.array([1, -1], np.float32)), "float8e8m0")


def quantised(x: Tensor, scale: float, to: str, zero: float | None = None, **attributes: int) -> Expected:
    inputs = {"x": x, "y_scale": Tensor("float32", np.array(scale, np.float32))}
    if zero is None:
        attributes = {"output_dtype": DTYPES[to].onnx, **attributes}
    else:
        entry = DTYPES[to]
        inputs["y_zero_point"] = Tensor(
            to, encode(to, np.array(zero)) if entry.is_minifloat else entry.wrapped(np.array(zero))
        )
    (found,) = expected("QuantizeLinear", 25, inputs, attributes)
    return found


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("to", NARROW)
def test_numbers_are_quantised_to_narrow_types_as_by_onnx(to: str, saturate: int) -> None:
    numbers = np.array([0, 0.3, -1.5, 2.5, 7, 15.75, -9, 117, 463, 464, 480, 61440, -70000], np.float32)
    found = nearest(quantised(Tensor("float32", numbers), 1.0, to, saturate=saturate))
    node = onnx.helper.make_node(
        "QuantizeLinear", ["x", "s"], ["y"], output_dtype=DTYPES[to].onnx, saturate=saturate
    )
    (given,) = ReferenceEvaluator(node).run(None, {"x": numbers, "s": np.array(1, np.float32)})
    assert not differing(tensor_of(DTYPES[to].onnx, given), found).any()


def test_a_quotient_at_a_tie_may_go_either_way_unless_it_is_exact() -> None:
    exact = quantised(Tensor("float32", np.array([1.0625], np.float32)), 1.0, "float8e4m3fn")
    assert {int(each.array[0]) for each in exact.candidates} == {0x38}
    near = quantised(
        Tensor("float32", np.array([1.0625 * 3], np.float32)), np.float32(3 * (1 + 2**-22)), "float8e4m3fn"
    )
    assert {int(each.array[0]) for each in near.candidates} == {0x38}
    rounded = quantised(
        Tensor("float32", np.array([np.float32(1.0625 * 0.7)], np.float32)), 0.7, "float8e4m3fn"
    )
    assert {int(each.array[0]) for each in rounded.candidates} == {0x38, 0x39}


def test_a_zero_point_of_a_minifloat_is_added() -> None:
    found = quantised(Tensor("float32", np.array([-0.0, 1.0, 2.5], np.float32)), 1.0, "float8e5m2", zero=1.0)
    assert decode("float8e5m2", nearest(found).array).tolist() == [1.0, 2.0, 3.5]
    zero = quantised(Tensor("float32", np.array([-0.0], np.float32)), 1.0, "float8e5m2", zero=0.0)
    assert {int(each.array[0]) for each in zero.candidates} == {0x00, 0x80}


@pytest.mark.parametrize("dtype", NARROW)
def test_every_pattern_is_dequantised_to_its_number(dtype: str) -> None:
    patterns = DTYPES[dtype].wrapped(np.arange(1 << DTYPES[dtype].narrow))
    inputs = {"x": Tensor(dtype, patterns), "x_scale": Tensor("float32", np.array(0.5, np.float32))}
    (found,) = expected("DequantizeLinear", 25, inputs)
    native = patterns.view(onnx.helper.tensor_dtype_to_np_dtype(DTYPES[dtype].onnx)).astype(np.float64)
    assert np.array_equal(nearest(found).array, (native / 2).astype(np.float32), equal_nan=True)
