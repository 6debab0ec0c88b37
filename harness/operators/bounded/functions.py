"""Functions of one number, and powers: the value in float64, the effect of the argument's error, and the
declared error of the function.

A function that is monotone over the argument's interval lies between its values at the interval's ends,
infinities included; so do its errors. Other functions have their own rule. What a table inherits from a
formula is evaluated by that formula.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

from harness.model.float_formats import Float64, greatest
from harness.operators.bounded import trigonometry
from harness.operators.bounded.arithmetic import declared, has
from harness.operators.bounded.basic_operations import absolute, multiply
from harness.operators.bounded.number import (
    REFERENCE,
    Bounded,
    Mask,
    implements,
    may_overflow,
    same,
    settle,
    surely_nan,
)

Evaluate = Callable[[Any], Any]

REFERENCE_ULP = 4.0
"""Error of the float64 functions of the reference: NumPy's vectorised ones are within 4 ULP (NEP 38), those
of the C library within 2 (glibc manual, Errors in Math Functions), those of `trigonometry` within 3."""


def _rsqrt(values: Float64) -> Float64:
    return np.asarray(1 / np.sqrt(values))


FORMULAS: dict[str, Callable[[Bounded], Bounded]] = {
    "sqrt": lambda x: 1.0 / rsqrt(x),
    "rsqrt": lambda x: 1.0 / sqrt(x),
    "expm1": lambda x: exp(x) - 1.0,
    "log1p": lambda x: log(1.0 + x),
    "tan": lambda x: sin(x) / cos(x),
    "sinh": lambda x: (exp(x) - exp(-x)) * 0.5,
    "cosh": lambda x: (exp(x) + exp(-x)) * 0.5,
    "tanh": lambda x: sinh(x) / np.cosh(x),
    "asinh": lambda x: log(x + sqrt(x * x + 1.0)),
    "acosh": lambda x: log(x + sqrt(x * x - 1.0)),
    "atanh": lambda x: log((1.0 + x) / (1.0 - x)) * 0.5,
    "asin": lambda x: arctan(x / sqrt(1.0 - x * x)),
}
"""Formulas by which a function is inherited (Vulkan specification, Precision of GLSL.std.450 Instructions);
expm1, log1p: definition."""


@np.errstate(all="ignore")
def _inherited(name: str, x: Bounded, value: Float64) -> Bounded:
    """Evaluate an inherited function by its formula, about the value of the function itself; no claim where
    there is no formula."""
    formula = FORMULAS.get(name)
    if (
        formula is None
        or (name == "sqrt" and not has("rsqrt", x.arithmetic))
        or (name == "rsqrt" and not has("sqrt", x.arithmetic))
    ):
        return Bounded(value, np.full(value.shape, np.inf), x.arithmetic)
    found = formula(x)
    apart = np.where(found.value == value, 0.0, np.abs(found.value - value))
    error = found.error + apart
    error = np.where(
        np.isnan(error), np.where(np.isnan(found.value) & np.isnan(value), found.error, np.inf), error
    )
    return Bounded(np.where(np.isinf(value), found.value, value), error, x.arithmetic)


# f(x - e) <= f(x^) <= f(x + e) where f rises, and the other way round where it falls
@np.errstate(all="ignore")
def monotone(
    x: Bounded, name: str, f: Evaluate, *, pole: bool = False, reference: float = REFERENCE_ULP
) -> Bounded:
    """Apply a function that is monotone over its domain; `pole` says that its infinities at finite arguments
    are poles, not overflow."""
    value = np.asarray(f(x.value))
    if not has(name, x.arithmetic):
        return _inherited(name, x, value)
    over = may_overflow(x)
    spread = np.zeros(value.shape)
    if x.error.any() or over.any():
        spread = _between_ends(x, value, f, over, reference)
    own = declared(name, x.value, x.error, np.abs(value) + spread, x.arithmetic)
    return settle(value, spread, x.arithmetic, own, reference, ~np.isfinite(x.value) | pole)


def _between_ends(x: Bounded, value: Float64, f: Evaluate, over: Mask, reference: float) -> Float64:
    """Return how far the values of a monotone function at the ends of an argument's interval lie from its
    value."""
    low = np.where(over & (x.value < 0), -np.inf, _outward(x.value, -x.error))
    high = np.where(over & (x.value > 0), np.inf, _outward(x.value, x.error))
    spread = np.zeros(value.shape)
    for end in (low, high):
        there = np.asarray(f(end))
        apart = np.abs(there - value)
        if isnan(greatest(apart)):  # of infinities and NaNs alike, or not
            apart = np.where((there == value) | (np.isnan(there) & np.isnan(value)), 0.0, apart)
        spread = np.maximum(
            spread, apart + np.where((end == x.value) | (x.error == 0), 0.0, reference * REFERENCE.ulp(there))
        )
    spread = np.where(
        np.isinf(x.error) | (np.isnan(value) & (x.error >= np.abs(x.value)) & (x.error > 0)), np.inf, spread
    )
    return np.where(np.isnan(spread), np.where(np.isinf(value) & (x.error == 0), 0.0, np.inf), spread)


def _outward(value: Float64, error: Float64) -> Float64:
    """Add an error to a value and round away from the value."""
    return np.where(error == 0, value, np.nextafter(value + error, np.copysign(np.inf, error)))


# |sin x^ - sin x| <= min(e, 2), and so for cos
@np.errstate(all="ignore")
def _wave(x: Bounded, name: str, f: Evaluate) -> Bounded:
    value = np.asarray(f(x.value))
    spread = np.where(may_overflow(x) | np.isinf(x.error), np.inf, np.minimum(x.error, 2.0))
    own = declared(name, x.value, x.error, np.minimum(np.abs(value) + spread, 1.0), x.arithmetic)
    return settle(value, spread, x.arithmetic, own, REFERENCE_ULP, ~np.isfinite(x.value))


# |tan x^ - tan x| = |sin(x^ - x) / (cos x cos x^)| <= e / (|cos x| (|cos x| - e))
@implements(np.tan)
@np.errstate(all="ignore")
def tan(x: Bounded) -> Bounded:
    value = np.asarray(trigonometry.tan(x.value))
    if not has("tan", x.arithmetic):
        return _inherited("tan", x, value)
    near = np.abs(trigonometry.cos(x.value)) * (1 - 2.0**-48)
    spread = np.where(
        x.error == 0, 0.0, np.where(near > x.error, x.error / (near * (near - x.error)), np.inf)
    )
    spread = np.where(may_overflow(x), np.inf, spread)
    own = declared("tan", x.value, x.error, np.abs(value) + spread, x.arithmetic)
    return settle(value, spread, x.arithmetic, own, REFERENCE_ULP, ~np.isfinite(x.value))


@implements(np.cosh)
@np.errstate(all="ignore")
def cosh(x: Bounded) -> Bounded:
    """cosh is even and rises with |x|, whose interval may be cut at 0."""
    if not has("cosh", x.arithmetic):
        return _inherited("cosh", x, np.asarray(np.cosh(x.value)))
    return monotone(absolute(x), "cosh", lambda v: np.cosh(np.maximum(v, 0.0)))


# x**y is monotone in x and in y, so that its extremes over intervals of both stand at their corners
@implements(np.power)
@np.errstate(all="ignore")
def power(x: Any, y: Any) -> Bounded:
    """x**y; a square is a product, and where 0 or a change of sign lies within an error nothing is
    claimed."""
    if isinstance(x, Bounded) and np.isscalar(y) and y == 2:
        return multiply(x, x)
    x, y = same(x, y)
    value = np.asarray(_raised(x.value, y.value))
    certain = (x.error == 0) & (y.error == 0)
    spread = np.zeros(value.shape)
    for a in (_outward(x.value, -x.error), _outward(x.value, x.error)):
        for b in (_outward(y.value, -y.error), _outward(y.value, y.error)):
            there = _raised(a, b)
            spread = np.maximum(
                spread,
                np.where(there == value, 0.0, np.abs(there - value) + REFERENCE_ULP * REFERENCE.ulp(there)),
            )
    whole_power = (y.error == 0) & (np.rint(y.value) == y.value)
    inside = (np.abs(x.value) > x.error) & ((x.value > 0) | whole_power)
    nan = surely_nan(x) & ~(np.abs(y.value) <= y.error) | surely_nan(y) & ~(np.abs(x.value - 1) <= x.error)
    open_ = ~(inside & ~may_overflow(x) & ~may_overflow(y))
    spread = np.where(certain | nan, 0.0, np.where(open_, np.inf, spread))
    own = _power_error(x, y, np.abs(value) + spread)
    given = ~np.isfinite(x.value) | ~np.isfinite(y.value) | (x.value == 0) | np.isnan(value)
    return settle(value, spread, x.arithmetic, own, REFERENCE_ULP, given)


def _raised(x: Float64, y: Float64) -> Float64:
    """x**y by IEEE 754-2019, 9.2.1: NumPy takes the square root where the one exponent is 0.5, which is -0 of -0 and NaN
    of -inf."""
    return np.power(np.where((y == 0.5) & ((x == 0) | np.isinf(x)), np.abs(x), x), y)


def _power_error(x: Bounded, y: Bounded, size: Float64) -> Float64:
    """Return the declared error of pow, or that of the formula from which it is inherited: exp2(y log2
    |x|)."""
    if has("pow", x.arithmetic):
        base = np.where(np.isnan(x.value), 1.0, x.value)  # pow(NaN, 0) is 1, and any other power of it NaN
        return declared("pow", base, x.error, size, x.arithmetic)
    found = exp2(multiply(y, log2(absolute(x))))
    apart = np.abs(found.value - np.power(np.abs(x.value), y.value))
    return np.where(np.isfinite(size), found.error + apart, 0.0)


# 1 / (1 + exp(-x))
def sigmoid(x: Bounded) -> Bounded:
    return 1.0 / (1.0 + exp(-x))


def _named(
    name: str, f: Evaluate, *, pole: bool = False, reference: float = REFERENCE_ULP
) -> Callable[[Bounded], Bounded]:
    rule = implements(f) if isinstance(f, np.ufunc) else implements()
    return rule(lambda x: monotone(x, name, f, pole=pole, reference=reference))


exp: Callable[[Bounded], Bounded] = _named("exp", np.exp)
exp2 = _named("exp2", np.exp2)
expm1 = _named("expm1", np.expm1)
log: Callable[[Bounded], Bounded] = _named("log", np.log, pole=True)
log2 = _named("log2", np.log2, pole=True)
log1p = _named("log1p", np.log1p, pole=True)
sqrt: Callable[[Bounded], Bounded] = _named("sqrt", np.sqrt, reference=0.5)
rsqrt: Callable[[Bounded], Bounded] = _named("rsqrt", _rsqrt, pole=True)
erf = _named("erf", trigonometry.erf)
arcsin = _named("asin", np.arcsin)
arccos = _named("acos", np.arccos)
arctan: Callable[[Bounded], Bounded] = _named("atan", np.arctan)
sinh: Callable[[Bounded], Bounded] = _named("sinh", np.sinh)
tanh = _named("tanh", np.tanh)
arcsinh = _named("asinh", np.arcsinh)
arccosh = _named("acosh", np.arccosh)
arctanh = _named("atanh", np.arctanh, pole=True)
sin: Callable[[Bounded], Bounded] = implements(np.sin)(lambda x: _wave(x, "sin", trigonometry.sin))
cos: Callable[[Bounded], Bounded] = implements(np.cos)(lambda x: _wave(x, "cos", trigonometry.cos))
