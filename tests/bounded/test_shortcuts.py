"""Shortcuts of bounds: operands without infinities, exact arguments and far distances have the bounds of the general
rules, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.model.float_formats import FORMATS
from harness.operators.bounded import Bounded, arithmetic
from harness.operators.bounded.arithmetic import NAMES
from harness.operators.image import resampling

DTYPES = tuple(FORMATS)


def _numbers(seed: str, dtype: str, name: str) -> Bounded:
    random = np.random.default_rng(list(seed.encode()))
    value = np.concatenate([random.standard_normal(40) * 8, random.integers(-9, 9, 40), [0.0, -0.0, 1e-40]])
    error = np.where(random.random(value.size) < 0.5, 0.0, np.abs(value) * 1e-3)
    return Bounded(value, error, arithmetic(name, dtype))


def _with(x: Bounded, value: float, error: float) -> Bounded:
    return Bounded(np.append(x.value, value), np.append(x.error, error), x.arithmetic)


def _same(found: Bounded, wanted: Bounded) -> None:
    assert found.value.tobytes() == wanted.value.tobytes()
    assert found.error.tobytes() == wanted.error.tobytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide])
def test_finite_operands(operation: Callable[[Any, Any], Bounded], dtype: str, name: str) -> None:
    x, y = _numbers("x", dtype, name), _numbers("y", dtype, name)
    _same(operation(x, y), operation(_with(x, np.inf, 0.0), _with(y, 1.0, 0.0))[:-1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", [np.exp, np.sqrt, np.tanh, np.arctan])
def test_exact_arguments(function: Callable[[Any], Bounded], name: str) -> None:
    given = _numbers("x", "float32", name)
    x = Bounded(np.abs(given.value), np.zeros(given.shape), given.arithmetic)
    _same(function(x), function(_with(x, 0.5, 0.125))[:-1])


@pytest.mark.parametrize("constant", [2.0, 0.1, 0.0, -0.0, 1e-45, np.inf, np.nan])
def test_constants_are_what_arrays_of_them_are(constant: float) -> None:
    x = _numbers("x", "float32", "opencl")
    for _ in range(2):  # the second time it is remembered
        _same(x * constant, x * np.full(x.shape, constant))
        _same(constant - x, np.full(x.shape, constant) - x)


@pytest.mark.parametrize("filter_", [resampling.linear, resampling.cubic(-0.5), resampling.cubic(-0.75)])
def test_far_distances(filter_: resampling.Filter) -> None:
    random = np.random.default_rng(3)
    value = np.concatenate([random.random(200) * 6, np.arange(0, 4, 0.25)]).reshape(8, 27)
    error = np.where(random.random(value.shape) < 0.5, 0.0, random.random(value.shape) * 0.1)
    distance = Bounded(value, error, arithmetic("opencl", "float32"))
    _same(resampling._filtered(distance, filter_), filter_(distance))


@pytest.mark.parametrize("dtype", DTYPES)
def test_spacings_are_those_of_frexp(dtype: str) -> None:
    form, powers = FORMATS[dtype], np.ldexp(1.0, np.arange(-1074, 1024))
    values = np.concatenate(
        [powers, -powers, np.nextafter(powers, 0), np.nextafter(powers, 1e308), [0.0, -0.0]]
    )
    _, exponents = np.frexp(values)
    lowest = form.min_exponent - form.precision + 1
    wanted = np.ldexp(1.0, np.maximum(np.where(values == 0, lowest, exponents - form.precision), lowest))
    assert form.ulp(values).tobytes() == wanted.tobytes()
    assert np.isinf(form.ulp(np.array([np.inf, -np.inf, 1.0]))).tolist() == [True, True, False]
    assert np.isnan(form.ulp(np.array(np.nan)))
