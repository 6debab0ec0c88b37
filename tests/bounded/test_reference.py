"""The float64 reference against mpmath: the reference's own part of a bound, which is all of it in exact
arithmetic, is honest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from harness.model.float_formats import FORMATS
from harness.operators.bounded import EXACT, Bounded, arithmetic, erf, log2, number, power, rsqrt, sigmoid
from harness.operators.normalization.layer_norms import layer_norm
from harness.operators.normalization.norms import log_softmax, softmax
from harness.operators.reduction.cumulative import cumulative_sum
from harness.operators.reduction.reductions import l2, log_sum_exp, mean

mpmath.mp.prec = 200
RNG = np.random.default_rng(11)
ANY = np.concatenate(
    [
        RNG.standard_normal(150) * 10.0 ** RNG.integers(-8, 3, 150),
        [0.0, 1.0, -1.0, 0.5, 709.0, -745.0, 1e-300, 5e-324],
    ]
)
LARGE = np.concatenate(
    [
        ANY,
        RNG.uniform(-1e15, 1e15, 50),
        [1e22, 6381956970095103 * 2.0**797, np.pi, np.pi / 2, 355.0, 3 * np.pi],
    ]
)
POSITIVE = np.abs(np.concatenate([ANY, 1 + RNG.standard_normal(50) * 1e-9, RNG.uniform(0, 1e300, 20)]))
UNIT = np.concatenate([np.clip(ANY, -1, 1), np.nextafter([1.0, -1.0], 0.0)])

FUNCTIONS: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "exp": (np.exp, mpmath.exp, ANY),
    "exp2": (np.exp2, lambda x: mpmath.power(2, x), ANY),
    "expm1": (np.expm1, lambda x: mpmath.expm1(x), ANY),
    "log": (np.log, mpmath.log, POSITIVE[POSITIVE > 0]),
    "log2": (log2, lambda x: mpmath.log(x, 2), POSITIVE[POSITIVE > 0]),
    "log1p": (np.log1p, mpmath.log1p, POSITIVE),
    "sqrt": (np.sqrt, mpmath.sqrt, POSITIVE),
    "rsqrt": (rsqrt, lambda x: 1 / mpmath.sqrt(x), POSITIVE[POSITIVE > 0]),
    "reciprocal": (lambda x: 1.0 / x, lambda x: 1 / x, ANY[ANY != 0][:-1]),
    "sin": (np.sin, mpmath.sin, LARGE),
    "cos": (np.cos, mpmath.cos, LARGE),
    "tan": (np.tan, mpmath.tan, LARGE),
    "asin": (np.arcsin, mpmath.asin, UNIT),
    "acos": (np.arccos, mpmath.acos, UNIT),
    "atan": (np.arctan, mpmath.atan, LARGE),
    "sinh": (np.sinh, mpmath.sinh, ANY),
    "cosh": (np.cosh, mpmath.cosh, ANY),
    "tanh": (np.tanh, mpmath.tanh, ANY),
    "asinh": (np.arcsinh, mpmath.asinh, LARGE),
    "acosh": (np.arccosh, mpmath.acosh, 1 + POSITIVE),
    "atanh": (np.arctanh, mpmath.atanh, UNIT[np.abs(UNIT) < 1]),
    "erf": (erf, mpmath.erf, ANY),
    "sigmoid": (sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), ANY),
    "x**2.7": (
        lambda x: power(x, 2.7),
        lambda x: mpmath.power(x, mpmath.mpf(2.7)),
        POSITIVE[(POSITIVE > 0) & (POSITIVE < 1e100)],
    ),
}


def honest(found: Bounded, true: Any) -> None:
    """Assert |true - value| <= error for each element, in mpmath; the error with what `stored` widens it by
    for its own rounding."""
    limit = mpmath.mpf(FORMATS["float64"].largest)
    for value, error, exact in zip(
        found.value.flat, found.error.flat, np.asarray(true, object).flat, strict=True
    ):
        if abs(exact) > limit:
            assert error > 0
            assert abs(value) == float(limit)
        else:
            assert abs(mpmath.mpf(float(value)) - exact) <= mpmath.mpf(float(error)) * (
                1 + mpmath.mpf(2) ** -40
            ), (
                value,
                error,
                mpmath.nstr(exact, 25),
            )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_reference(name: str) -> None:
    f, true, arguments = FUNCTIONS[name]
    found = f(number(arguments, EXACT))
    honest(found, [true(mpmath.mpf(float(x))) for x in arguments])
    normal = (np.abs(found.value) > 1e-290) & (np.abs(found.value) < 1e290)
    assert (found.error[normal] <= 40 * np.spacing(np.abs(found.value[normal]))).all()  # and not merely wide


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numbers_with_errors(name: str) -> None:
    """The true function anywhere in the argument's interval lies within the bound."""
    f, true, arguments = FUNCTIONS[name]
    for scale in (2.0**-50, 2.0**-24, 2.0**-8):
        error = np.abs(arguments) * scale
        found = f(Bounded(arguments, error, EXACT))
        known = np.isfinite(found.error) & np.isfinite(found.value)
        for share in (-1, 0, 1):
            held = [
                mpmath.mpf(float(x)) + share * mpmath.mpf(float(e))
                for x, e in zip(arguments[known], error[known], strict=True)
            ]
            honest(Bounded(found.value[known], found.error[known], EXACT), [true(x) for x in held])
        if scale < 2.0**-40:
            assert known.mean() > 0.5


def exact(array: Any) -> Any:
    """Convert to mpmath's numbers."""
    return np.vectorize(lambda v: mpmath.mpf(float(v)), otypes=[object])(array)


MP_EXP, MP_LOG, MP_SQRT = (np.vectorize(f, otypes=[object]) for f in (mpmath.exp, mpmath.log, mpmath.sqrt))


def test_formulas_of_the_reference() -> None:
    """Whole operators: float64 against mpmath, where cancellation and large arguments make it hard."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((6, 9)) * 10.0 ** rng.integers(-3, 3, (6, 9))
    n, m = number(x, EXACT), exact(x)
    e = MP_EXP(m)
    total = e.sum(1, keepdims=True)
    honest(softmax(n, 1), e / total)
    honest(log_softmax(n, 1), m - MP_LOG(total))
    honest(log_sum_exp(n, (1,), True), MP_LOG(total))
    honest(n.sum(1), m.sum(1))
    honest(mean(n, (1,), False), m.sum(1) / 9)
    honest(n.prod(1), m.prod(1))
    honest(l2(n, (1,), False), MP_SQRT((m * m).sum(1)))
    honest(cumulative_sum(n, 1, False, False), np.cumsum(m, axis=1))
    honest(n @ n.T, m.dot(m.T))
    shifted = x * 1e-3 + 1e6  # the mean is a million deviations away
    scale, bias, m = rng.standard_normal(9), rng.standard_normal(9), exact(shifted)
    d = m - m.sum(1, keepdims=True) / 9
    wanted = d / MP_SQRT((d * d).sum(1, keepdims=True) / 9 + mpmath.mpf(1e-5)) * exact(scale) + exact(bias)
    given = (number(each, EXACT) for each in (shifted, scale, bias))
    found, _, _ = layer_norm(*given, axis=1, epsilon=1e-5, stash_type=11)
    honest(found, wanted)
    assert found.error.max() < 1e-3


def test_float64_has_the_reference_twice() -> None:
    """A float64 output: the implementation's rounding and the reference's own."""
    x = np.array([0.1, 1.7])
    found = number(x, arithmetic("ieee", "float64")) + 0.3
    assert found.error.tolist() == np.spacing(x + 0.3).tolist()
    assert (number(x, EXACT) + 0.3).error.tolist() == (np.spacing(x + 0.3) / 2).tolist()
