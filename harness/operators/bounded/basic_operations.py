"""Sum, difference, product, quotient, negation, magnitude, larger and smaller of two, conversion to another working type,
as Cast does: how errors and infinities propagate through each."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.float_formats import FORMATS, Float64
from harness.operators.bounded.arithmetic import arithmetic, declared
from harness.operators.bounded.number import (
    Bounded,
    Mask,
    basic,
    implements,
    in_order,
    may_overflow,
    ordinary,
    same,
    settle,
    surely_nan,
    whole,
)


def _nonfinite(*operands: Bounded) -> Mask:
    """Say where an operand is infinite or NaN by its value."""
    masks = np.broadcast_arrays(*(~np.isfinite(operand.value) for operand in operands))
    return np.asarray(np.logical_or.reduce(masks))


def _shown(value: Float64, spread: Float64, overflow: float, sign: Float64) -> Mask:
    """Say where a result may be the infinity of a sign by its own value and error."""
    return np.asarray(sign * value + spread >= overflow)


# |(x^ + y^) - (x + y)| <= ex + ey
@implements(np.add)
@np.errstate(all="ignore")
def add(x: Any, y: Any) -> Bounded:
    x, y = same(x, y)
    value, spread = x.value + y.value, x.error + y.error
    integers = whole(x) & whole(y)
    if ordinary(x) and ordinary(y):
        return basic(value, spread, x.arithmetic, None, integers)
    limit = x.arithmetic.overflow
    over_x, over_y = may_overflow(x), may_overflow(y)
    sign_x, sign_y = np.sign(x.value), np.sign(y.value)
    hidden = (over_x & ~_shown(value, spread, limit, sign_x)) | (
        over_y & ~_shown(value, spread, limit, sign_y)
    )
    hidden |= (
        (over_x | np.isinf(x.value)) & (over_y | np.isinf(y.value)) & (sign_x != sign_y) & (over_x | over_y)
    )
    spread = np.where(surely_nan(x, y), 0.0, np.where(hidden, np.inf, spread))
    return basic(value, spread, x.arithmetic, _nonfinite(x, y), integers)


@implements(np.subtract)
def subtract(x: Any, y: Any) -> Bounded:
    x, y = same(x, y)
    return add(x, negative(y))


# |x^ y^ - x y| <= |x| ey + |y| ex + ex ey
@implements(np.multiply)
@np.errstate(all="ignore")
def multiply(x: Any, y: Any) -> Bounded:
    x, y = same(x, y)
    value, integers = x.value * y.value, whole(x) & whole(y)
    if ordinary(x) and ordinary(y):
        return basic(value, _product_spread(x, y, value), x.arithmetic, None, integers)
    spread = _times(x.value, y.error) + _times(y.value, x.error) + x.error * y.error
    over = may_overflow(x) | may_overflow(y)
    zero = (np.abs(x.value) <= x.error) | (np.abs(y.value) <= y.error) | (x.value == 0) | (y.value == 0)
    hidden = over & (zero | (np.abs(value) + spread < x.arithmetic.overflow))
    infinite = np.isinf(x.value) | np.isinf(y.value)
    hidden |= infinite & (x.error + y.error > 0) & zero  # infinity times what may be zero
    spread = np.where(infinite & ~hidden & np.isfinite(x.error + y.error), 0.0, spread)
    spread = np.where(surely_nan(x, y), 0.0, np.where(hidden, np.inf, spread))
    return basic(value, spread, x.arithmetic, _nonfinite(x, y), integers)


def _product_spread(x: Bounded, y: Bounded, value: Float64) -> Float64:
    """Return what the errors of ordinary operands do to their product; an exact one adds no terms."""
    if not np.count_nonzero(y.error):
        return np.abs(y.value) * x.error if np.count_nonzero(x.error) else np.zeros(value.shape)
    spread = np.abs(x.value) * y.error
    return spread + np.abs(y.value) * x.error + x.error * y.error if np.count_nonzero(x.error) else spread


def _times(value: Float64, error: Float64) -> Float64:
    """|value| times an error; an exact operand has no error however large the other is."""
    return np.where(error == 0, 0.0, np.abs(value) * error)


# |x^ / y^ - x / y| <= (ex + |x / y| ey) / (|y| - ey)
@implements(np.divide)
@np.errstate(all="ignore")
def divide(x: Any, y: Any) -> Bounded:
    x, y = same(x, y)
    value = np.divide(x.value, y.value)
    least = np.abs(y.value) - y.error
    spread = (x.error + _times(value, y.error)) / least
    spread = np.where((x.error == 0) & (y.error == 0), 0.0, np.where(least > 0, spread, np.inf))
    calm, zero = ordinary(x) and ordinary(y), y.value == 0
    if not calm:
        spread = _of_infinities(x, y, value, spread)
    own = declared("div", np.abs(y.value), y.error, np.abs(value) + spread, x.arithmetic)
    given = None if calm and not zero.any() else _nonfinite(x, y) | zero
    return settle(in_order(value) if given is None else value, spread, x.arithmetic, own, 0.5, given)


def _of_infinities(x: Bounded, y: Bounded, value: Float64, spread: Float64) -> Float64:
    """Return what the errors of operands that are, or may be, infinite do to a quotient."""
    over_x, over_y = may_overflow(x), may_overflow(y)
    spread = np.where(
        over_y & np.isfinite(x.value), np.maximum(spread, np.abs(value)), spread
    )  # x / infinity = 0
    spread = np.where(np.isinf(y.value) & np.isfinite(x.value) & np.isfinite(x.error + y.error), 0.0, spread)
    hidden = over_x & (over_y | (np.abs(value) + spread < x.arithmetic.overflow))
    hidden |= (over_x & np.isinf(y.value)) | (over_y & np.isinf(x.value))
    return np.where(surely_nan(x, y), 0.0, np.where(hidden, np.inf, spread))


@implements(np.negative)
def negative(x: Bounded) -> Bounded:
    return Bounded(-x.value, x.error, x.arithmetic)


@implements(np.absolute, np.fabs)
def absolute(x: Bounded) -> Bounded:
    return Bounded(np.abs(x.value), x.error, x.arithmetic)


# max(x - ex, y - ey) <= max(x^, y^) <= max(x + ex, y + ey); NaN where either is NaN
@implements(np.maximum)
@np.errstate(all="ignore")
def maximum(x: Any, y: Any) -> Bounded:
    x, y = same(x, y)
    value = np.maximum(x.value, y.value)
    spread = np.maximum(
        np.maximum(x.value + x.error, y.value + y.error) - value,
        value - np.maximum(x.value - x.error, y.value - y.error),
    )
    unknown = (np.isinf(x.error) | np.isinf(y.error)) & ~surely_nan(x, y)
    spread = np.where(unknown, np.inf, np.where(np.isfinite(value), spread, 0.0))
    return Bounded(value, spread, x.arithmetic)


@implements(np.minimum)
def minimum(x: Any, y: Any) -> Bounded:
    x, y = same(x, y)
    return negative(maximum(negative(x), negative(y)))


implements(np.positive)(lambda x: x)
implements(np.square)(lambda x: multiply(x, x))
implements(np.reciprocal)(lambda x: divide(1.0, x))


@np.errstate(all="ignore")
def converted(x: Bounded, dtype: str) -> Bounded:
    """Return x in another type: rounded to it where the type does not hold it."""
    a, form = x.arithmetic, FORMATS[dtype]
    if not a.errs or form == a.form:
        return x
    target = arithmetic(a.name, dtype, flush=None if a == arithmetic(a.name, a.form.dtype) else a.flush)
    size = np.abs(x.value) + x.error
    held = (x.error == 0) & (form.rounded(x.value) == x.value)
    wider = form.precision >= a.form.precision
    own = np.where(held | wider | ~np.isfinite(size), 0.0, a.operations * form.ulp(size))
    return settle(x.value, x.error, target, own, 0.0, ~np.isfinite(x.value))


@np.errstate(all="ignore")
def either(x: Bounded, y: Bounded) -> Bounded:
    """Return a number whose bound covers both operands, the results of two ways to evaluate one formula of which
    neither is prescribed."""
    apart = np.where(
        (x.value == y.value) | (np.isnan(x.value) & np.isnan(y.value)), 0.0, np.abs(x.value - y.value)
    )
    error = np.maximum(x.error, apart + y.error)
    return Bounded(x.value, np.where(np.isnan(error), np.inf, error), x.arithmetic)
