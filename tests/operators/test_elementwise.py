"""Elementwise operators against loops that do for one element what the ONNX operator specification says of
it."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.operators import OPERATORS, broadcasting
from harness.operators.base import TensorType
from harness.specs.sweeps.calls import make_call
from tests.sampled import one_of

OPSET = 28
INT8 = tuple(range(-128, 128))


def expected(
    name: str, *inputs: Array, opset: int = OPSET, arithmetic: str = "ieee", **attributes: Any
) -> Expected:
    """Ask an operator's oracle."""
    operator = OPERATORS[name]
    names = (
        [f"data_0.{n}" for n in range(len(inputs))]
        if name in ("Max", "Min", "Sum", "Mean")
        else [f"in{n}" for n in range(len(inputs))]
    )
    if name == "Clip":
        names = ["input", "min", "max"][: len(inputs)]
    given = {key: Tensor(array.dtype.name, array) for key, array in zip(names, inputs, strict=True)}
    types = {key: TensorType(tensor.dtype, tensor.array.shape) for key, tensor in given.items()}
    call = make_call(operator, opset, types, attributes, {})
    return operator.oracle(call, given, arithmetic)[0]


def exact(name: str, *inputs: Array, opset: int = OPSET, **attributes: Any) -> list[Any]:
    found = expected(name, *inputs, opset=opset, **attributes)
    assert isinstance(found, Exact)
    return list(found.tensor.array.reshape(-1).tolist())


def wrapped(value: int) -> int:
    return (value + 128) % 256 - 128


def shifted(x: int, y: int, direction: str) -> int:
    if not 0 <= y < 8:
        return -1 if direction == "RIGHT" and x < 0 else 0
    return wrapped(x << y) if direction == "LEFT" else x >> y


BINARY: dict[str, Callable[[int, int], Any]] = {
    "Add": lambda a, b: wrapped(a + b),
    "Sub": lambda a, b: wrapped(a - b),
    "Mul": lambda a, b: wrapped(a * b),
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
    "Equal": lambda a, b: a == b,
    "Greater": lambda a, b: a > b,
    "GreaterOrEqual": lambda a, b: a >= b,
    "Less": lambda a, b: a < b,
    "LessOrEqual": lambda a, b: a <= b,
    "Max": max,
    "Min": min,
}


@pytest.mark.parametrize("name", one_of(4, BINARY))
def test_every_pair_of_int8_comes_out_as_the_loop_says(name: str) -> None:
    a, b = (np.array(values, np.int8) for values in zip(*product(INT8, INT8), strict=True))
    assert exact(name, a, b) == [BINARY[name](x, y) for x, y in product(INT8, INT8)]


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_and_quotients_of_int8(fmod: int) -> None:
    pairs = [(x, y) for x, y in product(INT8, INT8) if y and (x, y) != (-128, -1)]
    a, b = (np.array(values, np.int8) for values in zip(*pairs, strict=True))
    assert exact("Mod", a, b, fmod=fmod) == [int(math.fmod(x, y)) if fmod else x % y for x, y in pairs]
    assert exact("Div", a, b) == [int(x / y) for x, y in pairs]


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_of_int8_by_every_amount(direction: str) -> None:
    a, b = (np.array(values, np.int8) for values in zip(*product(INT8, INT8), strict=True))
    assert exact("BitShift", a, b, direction=direction) == [
        shifted(x, y, direction) for x, y in product(INT8, INT8)
    ]


def test_operands_are_broadcast_as_a_loop_over_places_broadcasts_them() -> None:
    shapes = [(), (1,), (3,), (1, 3), (2, 1), (2, 3), (4, 1, 3), (4, 2, 1), (0, 3), (1, 1, 1)]
    rng = np.random.default_rng(1)
    for first, second in product(shapes, shapes):
        wide = broadcasting.broadcast((first, second))
        if wide is None:
            continue
        a, b = (rng.integers(-50, 50, shape).astype(np.int32) for shape in (first, second))
        found = expected("Sub", a, b)
        assert isinstance(found, Exact)
        assert found.tensor.array.shape == wide
        for place in np.ndindex(*wide):
            operands = [
                array[
                    tuple(
                        0 if extent == 1 else i
                        for i, extent in zip(place[len(wide) - array.ndim :], array.shape, strict=True)
                    )
                ]
                for array in (a, b)
            ]
            assert found.tensor.array[place] == operands[0] - operands[1]


def test_a_zero_of_either_sign_is_right_where_zeros_of_both_compete() -> None:
    zeros, other = np.array([0.0, -0.0, -0.0, 1.0], np.float32), np.array([-0.0, 0.0, -0.0, 0.0], np.float32)
    found = expected("Max", zeros, other)
    assert isinstance(found, OneOf)
    signs = [np.signbit(candidate.array).tolist() for candidate in found.candidates]
    assert signs == [[False, False, True, False], [True, True, True, False]]
    relu = expected("Relu", np.array([-0.0, -1.0], np.float32))
    assert isinstance(relu, OneOf)
    assert [np.signbit(candidate.array).tolist() for candidate in relu.candidates] == [
        [False, False],
        [True, False],
    ]


def test_a_clip_without_limits_holds_infinities_to_the_greatest_number() -> None:
    found = expected("Clip", np.array([np.inf, -np.inf, 2.5], np.float32))
    assert isinstance(found, OneOf)
    most = float(np.finfo(np.float32).max)
    assert found.candidates[0].array.tolist() == [most, -most, 2.5]


ACTIVATIONS: dict[str, tuple[Callable[[float], float], dict[str, Any]]] = {
    "Sigmoid": (lambda x: 1 / (1 + math.exp(-x)), {}),
    "Softplus": (lambda x: math.log1p(math.exp(x)), {}),
    "Softsign": (lambda x: x / (1 + abs(x)), {}),
    "Elu": (lambda x: x if x >= 0 else 2 * math.expm1(x), {"alpha": 2.0}),
    "Selu": (lambda x: 3 * x if x > 0 else 3 * 2 * math.expm1(x), {"alpha": 2.0, "gamma": 3.0}),
    "Celu": (lambda x: max(0, x) + min(0, 0.5 * math.expm1(x / 0.5)), {"alpha": 0.5}),
    "Gelu": (lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))), {}),
    "HardSigmoid": (lambda x: max(0, min(1, 0.25 * x + 0.5)), {"alpha": 0.25, "beta": 0.5}),
    "HardSwish": (lambda x: x * max(0, min(1, x / 6 + 0.5)), {}),
    "LeakyRelu": (lambda x: x if x >= 0 else 0.25 * x, {"alpha": 0.25}),
    "Mish": (lambda x: x * math.tanh(math.log1p(math.exp(x))), {}),
    "Swish": (lambda x: x / (1 + math.exp(-2 * x)), {"alpha": 2.0}),
    "Shrink": (lambda x: x + 0.5 if x < -1 else x - 0.5 if x > 1 else 0.0, {"lambd": 1.0, "bias": 0.5}),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_what_their_formula_gives_one_by_one(name: str) -> None:
    formula, attributes = ACTIVATIONS[name]
    x = np.array([*np.linspace(-20, 20, 161), -1e-3, 1e-3, -1.0, 1.0], np.float64)
    found = expected(name, x, **attributes)
    assert isinstance(found, Approx)
    wanted = np.array([formula(float(value)) for value in x])
    assert np.abs(found.value - wanted).max() < 4e-14
    assert np.isfinite(found.bound).all() or name == "Gelu"  # erf: no table of the arithmetic has it


def test_softplus_does_not_overflow_where_its_formula_does() -> None:
    for arithmetic in ("ieee", "opencl", "d3d"):
        found = expected(
            "Softplus", np.array([200.0, -200.0, np.inf, -np.inf], np.float32), arithmetic=arithmetic
        )
        assert isinstance(found, Approx)
        assert found.value[[0, 2, 3]].tolist() == [200.0, np.inf, 0.0]
        assert found.bound[0] < 1e-4


def test_an_attribute_has_the_float32_value_that_a_model_holds() -> None:
    found = expected("LeakyRelu", np.array([-1.0]), alpha=0.1)
    assert isinstance(found, Approx)
    assert found.value.tolist() == [-float(np.float32(0.1))]


def test_powers_of_integers_are_exact() -> None:
    x, y = np.array([[-3], [2], [0]], np.int64), np.array([0, 1, 5, 13], np.float32)
    assert exact("Pow", x, y) == [int(base) ** int(power) for base in (-3, 2, 0) for power in (0, 1, 5, 13)]


def test_a_power_that_is_no_integer_leaves_the_others_exact() -> None:
    x, y = np.array([3037000499, 2], np.int64), np.array([2, 0.5], np.float32)
    assert exact("Pow", x, y) == [3037000499**2, 1]


def test_a_power_between_two_integers_of_float64_may_be_either() -> None:
    bases = np.array([9, 9, 27, 2**62 + 1, 1, -1, 2], np.int64)
    found = expected("Pow", bases, np.array([-2.46e-17, 0.5, 1 / 3, 0.5, 0.1, -3, -1], np.float64))
    assert isinstance(found, OneOf)
    each = zip(*(each.array.tolist() for each in found.candidates), strict=True)
    assert [sorted(set(one)) for one in each] == [[0, 1], [3], [2, 3], [2**31 - 1, 2**31], [1], [-1], [0]]


def test_nothing_is_claimed_of_an_odd_exponent_that_float64_makes_even() -> None:
    exponents = np.array([2**53 + 1, 2**54, -(2**63) + 1, 3], np.int64)
    found = expected("Pow", np.full(4, -1.0, np.float32), exponents)
    assert isinstance(found, Approx)
    assert np.isfinite(found.bound).tolist() == [False, True, False, True]
    assert found.value[[1, 3]].tolist() == [1, -1]


def test_a_signalling_nan_is_not_what_pow_makes_1_of() -> None:
    quiet, signalling = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7F800001))
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    for x, y, claimed in (
        (quiet, zero, True),
        (signalling, zero, False),
        (one, quiet, True),
        (one, signalling, False),
    ):
        found = expected("Pow", x, y)
        assert isinstance(found, Approx)
        assert (float(found.value[0]), bool(np.isfinite(found.bound[0]))) == (1.0, claimed)
    assert np.isnan(expected("Pow", signalling, one).value[0])  # type: ignore[union-attr]


def test_infinities_are_found_by_sign() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)
    assert exact("IsInf", x, detect_negative=0) == [True, False, False, False]
    assert exact("IsInf", x, detect_positive=0) == [False, True, False, False]
    assert exact("IsNaN", x) == [False, False, True, False]
