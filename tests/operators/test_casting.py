"""Casts against exact rational arithmetic, quantisation against its formula element by element."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.expected import Approx, OneOf, nearest
from harness.operators import OPERATORS
from harness.operators.base import TensorType
from harness.operators.casting import converted
from harness.specs.calls import make_call


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
    types = {name: TensorType(tensor.dtype, tensor.array.shape) for name, tensor in inputs.items()}
    call = make_call(OPERATORS["DequantizeLinear"], 21, types, {"axis": 0, "block_size": 2}, {})
    (found,) = OPERATORS["DequantizeLinear"].oracle(call, inputs, "ieee")
    assert isinstance(found, Approx)
    assert found.value.tolist() == [1.0, 2.0, 4.0, 6.0, 0.0]


def test_a_requantised_number_at_a_tie_may_go_either_way() -> None:
    inputs = {
        "a": Tensor("uint8", np.array([[3]], np.uint8)), "a_scale": Tensor("float32", np.array(1 / 3, np.float32)),
        "a_zero_point": Tensor("uint8", np.array(0, np.uint8)), "b": Tensor("uint8", np.array([[5]], np.uint8)),
        "b_scale": Tensor("float32", np.array(0.5, np.float32)), "b_zero_point": Tensor("uint8", np.array(0, np.uint8)),
        "y_scale": Tensor("float32", np.array(1.0, np.float32)), "y_zero_point": Tensor("uint8", np.array(7, np.uint8)),
    }  # fmt: skip
    types = {name: TensorType(tensor.dtype, tensor.array.shape) for name, tensor in inputs.items()}
    call = make_call(OPERATORS["QLinearMatMul"], 10, types, {}, {})
    (found,) = OPERATORS["QLinearMatMul"].oracle(call, inputs, "ieee")
    assert isinstance(found, OneOf)
    assert {int(each.array[0, 0]) for each in found.candidates} == {9, 10}
    assert nearest(found).dtype == "uint8"
