"""The declared arithmetics: numbers as published, each with its source, and what is claimed where."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.model.float_formats import FORMATS
from harness.operators.bounded import EXACT, NAMES, arithmetic, number, sources
from harness.operators.bounded.arithmetic import Claim, declared


def test_each_arithmetic_names_its_sources() -> None:
    assert tuple(sources()) == NAMES
    for title, said in sources().values():
        assert title
        assert {"operations", "functions"} <= set(said)
        assert all(len(text) > 40 for text in said.values())


@pytest.mark.parametrize(
    ("name", "dtype", "function", "argument", "size", "error"),
    [
        ("opencl", "float32", "exp", 1.0, 2.0, 3 * 2.0**-22),
        ("opencl", "float32", "exp", 1.0, 1.9, 3 * 2.0**-23),
        ("opencl", "float32", "sin", 1e30, 1.0, 4 * 2.0**-23),
        ("opencl", "float32", "tanh", 1.0, 0.7, 5 * 2.0**-24),
        ("opencl", "float32", "erf", 1.0, 0.8, 16 * 2.0**-24),
        ("opencl", "float32", "pow", 2.0, 8.0, 16 * 2.0**-20),
        ("opencl", "float16", "exp", 1.0, 2.0, 2 * 2.0**-9),
        ("opencl", "float64", "sqrt", 2.0, 1.4, 0.5 * 2.0**-52),
        ("opencl", "bfloat16", "exp", 1.0, 2.0, 3 * 2.0**-22 + 0.5 * 2.0**-6),
        ("ieee", "float16", "log", 2.0, 0.7, 0.5 * 2.0**-11),
        ("ieee", "float32", "erf", 1.0, 0.8, math.inf),
        ("vulkan", "float32", "exp", -10.0, 1.0, 23 * 2.0**-23),
        ("vulkan", "float32", "log", 1.5, 0.4, 2.0**-21),
        ("vulkan", "float32", "log", 4.0, 1.4, 3 * 2.0**-23),
        ("vulkan", "float32", "sin", 3.0, 0.1, 2.0**-11),
        ("vulkan", "float32", "sin", 3.2, 0.1, math.inf),
        ("vulkan", "float16", "cos", 3.0, 1.0, 2.0**-7),
        ("vulkan", "float32", "div", 2.0**127, 1.0, math.inf),
        ("d3d", "float32", "sin", 314.0, 0.1, 0.0008),
        ("d3d", "float32", "sin", 315.0, 0.1, math.inf),
        ("d3d", "float32", "rsqrt", 4.0, 0.5, 2.0**-22),
        ("d3d", "float32", "exp2", 4.0, 16.0, 2.0**-17),
        ("d3d", "float32", "sqrt", 4.0, 2.0, 2.0**-22),
        ("d3d", "float32", "log2", 1.0, 0.0, 2.0**-21),
        ("d3d", "float32", "log2", 8.0, 3.0, 3 * 2.0**-21),
        ("d3d", "float64", "exp", 1.0, 2.0, math.inf),
    ],
)
def test_published_numbers(
    name: str, dtype: str, function: str, argument: float, size: float, error: float
) -> None:
    found = declared(function, np.array(argument), np.array(0.0), np.array(size), arithmetic(name, dtype))
    assert float(found) == pytest.approx(error, rel=1e-6)


def test_an_interval_has_the_largest_error_of_the_ranges_it_meets() -> None:
    kind = arithmetic("vulkan", "float32")
    near = declared(
        "log", np.array([0.4, 0.4, 3.1]), np.array([0.05, 0.2, 0.1]), np.array([1.0, 1.0, 0.1]), kind
    )
    assert near.tolist() == [3 * 2.0**-23, max(3 * 2.0**-23, 2.0**-21), 3 * 2.0**-27]
    assert np.isinf(declared("sin", np.array(3.1), np.array(0.1), np.array(1.0), kind))


def test_operations_and_subnormals() -> None:
    assert {name: arithmetic(name, "float32").operations for name in NAMES} == {
        "ieee": 0.5,
        "opencl": 0.5,
        "vulkan": 1.0,
        "d3d": 1.0,
    }
    flushing = {(name, dtype) for name in NAMES for dtype in FORMATS if arithmetic(name, dtype).flush}
    both = {(name, dtype) for name in ("opencl", "vulkan") for dtype in ("float16", "bfloat16", "float32")}
    assert flushing == both | {("d3d", "float32"), ("d3d", "bfloat16")}
    assert not arithmetic("opencl", "float32", flush=False).flush
    assert arithmetic("ieee", "float32", flush=True).flush


def test_accumulators() -> None:
    assert {dtype: arithmetic("opencl", dtype).accumulator.dtype for dtype in FORMATS} == {
        "float16": "float32",
        "bfloat16": "float32",
        "float32": "float32",
        "float64": "float64",
    }
    assert arithmetic("opencl", "float16", "float16").accumulator.dtype == "float16"
    for unknown in (("metal", "float32"), ("ieee", "int8"), ("ieee", "float32", "int32")):
        with pytest.raises(KeyError):
            arithmetic(*unknown)


def test_exact_arithmetic_errs_nowhere() -> None:
    assert not EXACT.errs
    assert not declared("anything", np.array(1.0), np.array(0.5), np.array(2.0), EXACT)
    assert Claim() == Claim(0.0, 0.0, 0.0, 0.0, 0.0, -math.inf, math.inf)


def test_inherited_functions_follow_their_formula() -> None:
    """Vulkan declares tanh by sinh and cosh: near 0 the difference of exponentials loses its digits, and the
    bound says so."""
    kind = arithmetic("vulkan", "float32")
    found = np.tanh(number(np.array([1e-6, 1.0]), kind))
    assert found.value.tolist() == np.tanh([1e-6, 1.0]).tolist()
    assert found.error[0] > 1e-7
    assert found.error[1] < 1e-5
    assert np.isinf(
        np.arccos(number(np.array([0.5]), kind)).error
    ).all()  # atan2 is not among the functions here


def test_stored_adds_the_conversion() -> None:
    x = number(np.array([1.5, 1.1, 3e38, 1e5]), arithmetic("ieee", "float32"))
    same, narrow = x.stored("float32"), x.stored("float16")
    assert same.bound[0] == 0
    assert narrow.bound[:2].tolist() == pytest.approx([2.0**-11, 2.0**-11], rel=1e-3)
    assert narrow.value.tolist() == same.value.tolist()
    wide = (x * x).stored("bfloat16")
    assert wide.value[2] - wide.bound[2] > FORMATS["bfloat16"].largest  # an infinity is required
    vague = np.exp(number(np.array([50.0]), arithmetic("ieee", "float32")))
    vague.error[:] = 1e39
    assert np.isinf(vague.stored("float32").bound).all()  # a bound that no number leaves
