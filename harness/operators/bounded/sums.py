"""Sums, means, products of many, prefix sums and sums of products, in any order, in the arithmetic's
accumulator.

gamma(n) = n u / (1 - n u) bounds n roundings in any order, fused multiply-add included (Higham, "Accuracy and
Stability", 2nd ed., lemma 3.1 and section 4.2). A sum of integers that the accumulator and the working type
hold exactly is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from harness.model.float_formats import Float64, greatest
from harness.operators.bounded.arithmetic import Arithmetic, declared
from harness.operators.bounded.basic_operations import negative
from harness.operators.bounded.number import (
    REFERENCE,
    Bounded,
    Mask,
    implements,
    in_order,
    may_overflow,
    same,
    settle,
    surely_nan,
    unknown_infinite,
    whole,
)

Bilinear = Callable[[Float64, Float64], Float64]


def gamma(count: Any, unit: float) -> Any:
    """Return the bound on the relative error of `count` roundings; infinite where they may lose
    everything."""
    lost = count * unit
    if isinstance(lost, float):
        return lost / (1 - lost) if lost < 1 else np.inf
    return np.where(lost < 1, lost / np.where(lost < 1, 1 - lost, 1.0), np.inf)


def _units(arithmetic: Arithmetic) -> float:
    """Return the largest relative error of one operation of the accumulator."""
    return 2 * arithmetic.operations * arithmetic.accumulator.unit


def _lost(arithmetic: Arithmetic) -> float:
    """Return the most that one operation of the accumulator loses by underflow."""
    held = arithmetic.accumulator
    return held.smallest_normal if arithmetic.accumulator_flush else held.quantum


def _total(
    value: Float64,
    spread: Float64,
    size: Float64,
    count: Any,
    x: Arithmetic,
    given: Mask | None,
    integers: Mask,
) -> Bounded:
    """Finish a sum of `count` roundings: its value, what operands' errors do to it, and `size`, the terms'
    magnitudes and errors summed."""
    slack = 1 + gamma(count + 2, REFERENCE.unit)  # of `size` itself
    size, spread = unknown_infinite(size) * slack, unknown_infinite(spread)
    most = greatest(size)
    own = np.zeros(value.shape)
    if x.errs:
        own = np.asarray(gamma(count, _units(x)) * size)
        own += count * _lost(x)
        reach = spread + own
        if not 2 * (most + greatest(reach)) < _limit(x):
            spread = np.where(_hidden(value, reach, size, x), np.inf, spread)
        own = own if greatest(own) < np.inf else np.where(np.isfinite(own), own, np.inf)
    terms = size if most < np.inf else np.where(np.isfinite(size), size, 0.0)
    own = own + (gamma(count, REFERENCE.unit) * terms + count * REFERENCE.quantum)
    result = settle(value, spread, x, own, 0.0, given)
    if not np.count_nonzero(integers):
        return result
    held = integers & (size <= 1 / max(x.accumulator.unit, x.form.unit))
    return Bounded(result.value, np.where(held, 0.0, result.error), x)


def _limit(x: Arithmetic) -> float:
    """Return the magnitude from which a partial sum may be infinite."""
    return min(x.accumulator.overflow, REFERENCE.largest)


def _hidden(value: Float64, reach: Float64, size: Float64, x: Arithmetic) -> Mask:
    """Say where a partial sum may overflow, as the positive or the negative terms alone tell, and either both may,
    or the sum does not show it."""
    limit = _limit(x)
    high, low = (size + value) / 2 + reach >= limit, (size - value) / 2 + reach >= limit
    hidden = (high & (low | (value + reach < limit))) | (low & (value - reach > -limit))
    return np.asarray(hidden & np.isfinite(value))


def _rounded(x: Bounded, exact: Mask | bool) -> Bounded:
    """Round an accumulated sum to the working type, unless that is the accumulator's or holds the sum exactly
    (`exact`)."""
    a = x.arithmetic
    if not a.errs or a.accumulator == a.form:
        return x
    size = np.abs(x.value) + x.error
    error = np.where(np.isfinite(size), x.error + a.operations * a.form.spacing(size), x.error)
    return Bounded(x.value, np.where(exact, x.error, error), a)


def _axes(x: Bounded, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(int(a) % max(x.ndim, 1) for a in np.atleast_1d(axis))


def _accumulated(x: Bounded, axis: Any, keepdims: bool) -> tuple[Bounded, Mask]:
    """Sum in the accumulator; returns also where that is exact."""
    axes = _axes(x, axis)
    count = prod(x.shape[a] for a in axes)
    kept: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    value = np.asarray(x.value.sum(**kept))
    magnitudes = np.abs(x.value) + x.error
    if greatest(magnitudes) < x.arithmetic.overflow:
        spread, size, given = x.error.sum(**kept), magnitudes.sum(**kept), None
    else:
        spread, size, given = _with_infinities(x, value, kept)
    integers = np.asarray(whole(x).all(**kept))
    result = _total(
        value, np.asarray(spread), np.asarray(size), max(count - 1, 0), x.arithmetic, given, integers
    )
    return result, np.asarray(integers & (result.error == 0)) | (count <= 1)


def _with_infinities(x: Bounded, value: Float64, kept: dict[str, Any]) -> tuple[Float64, Float64, Mask]:
    """Return, for a sum with terms that are or may be infinite, the effect of the terms' errors, the sum of the
    finite magnitudes, and the places with other terms."""
    over, finite = may_overflow(x), np.isfinite(x.value)
    spread = np.where(finite | np.isinf(x.error), x.error, 0.0).sum(**kept)
    size = np.where(finite, np.abs(x.value) + x.error, 0.0).sum(**kept)
    signs = [(over & (x.value * sign > 0)).any(**kept) for sign in (1, -1)]
    infinite = [(x.value == sign * np.inf).any(**kept) for sign in (1, -1)]
    mixed = (signs[0] & (signs[1] | infinite[1])) | (signs[1] & infinite[0])
    shown = [sign * value + spread >= x.arithmetic.overflow for sign in (1, -1)]
    mixed |= (signs[0] & ~shown[0]) | (signs[1] & ~shown[1])
    if x.arithmetic.errs:  # finite terms alone may overflow to the other infinity
        mixed |= (infinite[0] & _overflows(x, -1, kept)) | (infinite[1] & _overflows(x, 1, kept))
    spread = np.where(surely_nan(x).any(**kept), 0.0, np.where(mixed, np.inf, spread))
    return spread, size, np.asarray((~finite).any(**kept))


def _overflows(x: Bounded, sign: int, kept: dict[str, Any]) -> Mask:
    """Say where the finite terms of a sign may sum to an infinity."""
    counted = np.isfinite(x.value) & (x.value * sign > 0)
    most = np.where(counted, np.abs(x.value) + x.error, 0.0).sum(**kept)
    roundings = np.maximum(counted.sum(**kept) - 1, 0)
    return np.asarray(most * (1 + gamma(roundings, _units(x.arithmetic))) >= _limit(x.arithmetic))


# |s^ - sum x| <= sum e + gamma(n - 1) sum (|x| + e)
@implements(np.sum)
@np.errstate(all="ignore")
def total(x: Bounded, axis: Any = None, keepdims: bool = False, **_: Any) -> Bounded:
    return _rounded(*_accumulated(x, axis, keepdims))


# the sum divided by n, or multiplied by 1 / n, in the accumulator
@implements(np.mean)
@np.errstate(all="ignore")
def mean(x: Bounded, axis: Any = None, keepdims: bool = False, **_: Any) -> Bounded:
    count = prod(x.shape[a] for a in _axes(x, axis))
    summed, _exact = _accumulated(x, axis, keepdims)
    a = x.arithmetic
    value = summed.value / count
    spread = summed.error / count
    over = (
        np.isfinite(summed.value)
        & np.isfinite(summed.error)
        & (np.abs(summed.value) + summed.error >= a.accumulator.overflow)
        & a.errs
    )
    spread = np.where(over, np.inf, spread)
    size = np.abs(value) + spread
    own = np.zeros(value.shape)
    if a.errs:
        divided = declared(
            "div",
            np.full(value.shape, float(count)),
            np.zeros(value.shape),
            size,
            a._replace(form=a.accumulator),
        )
        table = a.functions.form
        divided = (
            divided * (a.accumulator.unit / table.unit)
            if table.precision < a.accumulator.precision
            else divided
        )
        own = np.maximum(divided, (4 * a.operations) * a.accumulator.ulp(size))
        own = np.where(np.isfinite(size), own, 0.0)
    result = settle(value, spread, a, own, 0.5, ~np.isfinite(summed.value) | (count == 0))
    return _rounded(result, np.zeros(value.shape, bool))


# |p^ - prod x| <= (1 + gamma(n - 1)) prod (|x| + e) - prod |x|, and what partial products lose that
# underflow, times the other factors
@implements(np.prod)
@np.errstate(all="ignore")
def product(x: Bounded, axis: Any = None, keepdims: bool = False, **_: Any) -> Bounded:
    axes = _axes(x, axis)
    kept: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    count = prod(x.shape[a] for a in axes)
    a = x.arithmetic
    finite = np.isfinite(x.value)
    value = np.asarray(x.value.prod(**kept))
    size = np.abs(x.value) + x.error
    most, least = size.prod(**kept), np.abs(x.value).prod(**kept)
    large, small = np.maximum(size, 1.0).prod(**kept), np.minimum(np.abs(x.value), 1.0).prod(**kept)
    certain = (x.error == 0).all(**kept)
    spread = np.where(certain, 0.0, most - least + gamma(2 * count, REFERENCE.unit) * most)
    own, reference = np.zeros(value.shape), gamma(max(count - 1, 0), REFERENCE.unit) * most
    if a.errs:
        own = gamma(max(count - 1, 0), _units(a)) * most
        own = own + np.where(small < a.accumulator.smallest_normal, count * _lost(a) * large, 0.0)
        limit = _limit(a)
        spread = np.where(
            (large >= limit) & (least * (1 - 2.0**-20) < limit) & np.isfinite(value), np.inf, spread
        )
    nonfinite = (~finite).any(**kept)
    own = np.where(np.isfinite(own), own, np.inf)
    spread = np.where(nonfinite & certain, np.where(large_finite(x, kept, a), 0.0, np.inf), spread)
    spread = np.where(surely_nan(x).any(**kept), 0.0, spread)
    result = settle(
        value, np.asarray(spread), a, np.where(nonfinite, 0.0, own + reference), 0.0, np.asarray(nonfinite)
    )
    integers = np.asarray(whole(x).all(**kept)) & (large <= 1 / max(a.accumulator.unit, a.form.unit))
    return _rounded(Bounded(result.value, np.where(integers, 0.0, result.error), a), integers | (count <= 1))


def large_finite(x: Bounded, kept: dict[str, Any], a: Arithmetic) -> Mask:
    """Say where the product of the finite factors neither overflows nor underflows in any order, so that it
    leaves infinities alone."""
    magnitude = np.where(np.isfinite(x.value), np.abs(x.value), 1.0)
    high, low = (
        np.maximum(magnitude, 1.0).prod(**kept),
        np.where(magnitude == 0, 1.0, np.minimum(magnitude, 1.0)).prod(**kept),
    )
    return np.asarray((high < a.overflow) & (low > a.form.smallest_normal))


# max (x - e) <= max x^ <= max (x + e); NaN where any is NaN
@implements(np.max, np.amax)
@np.errstate(all="ignore")
def largest(x: Bounded, axis: Any = None, keepdims: bool = False, **_: Any) -> Bounded:
    kept: dict[str, Any] = {"axis": _axes(x, axis), "keepdims": keepdims}
    value = np.asarray(x.value.max(**kept))
    spread = np.maximum((x.value + x.error).max(**kept) - value, value - (x.value - x.error).max(**kept))
    unknown = np.isinf(x.error).any(**kept) & ~surely_nan(x).any(**kept)
    return Bounded(
        value, np.asarray(np.where(unknown, np.inf, np.where(np.isfinite(value), spread, 0.0))), x.arithmetic
    )


@implements(np.min, np.amin)
def smallest(x: Bounded, axis: Any = None, keepdims: bool = False, **_: Any) -> Bounded:
    return negative(largest(negative(x), axis, keepdims))


# each prefix is a sum of its own
@implements(np.cumsum)
@np.errstate(all="ignore")
def prefix_sums(x: Bounded, axis: int, **_: Any) -> Bounded:
    length = x.shape[axis]
    over = may_overflow(x).any()
    finite = np.isfinite(x.value)
    value = np.cumsum(x.value, axis=axis)
    spread = np.cumsum(np.where(finite | np.isinf(x.error), x.error, 0.0), axis=axis)
    size = np.cumsum(np.where(finite, np.abs(x.value) + x.error, 0.0), axis=axis)
    given = np.cumsum(~finite, axis=axis) > 0
    count = np.arange(length).reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])
    if over:
        spread = np.where(np.cumsum(may_overflow(x), axis=axis) > 0, np.inf, spread)
    spread = np.where(np.cumsum(surely_nan(x), axis=axis) > 0, 0.0, spread)
    integers = np.cumsum(~whole(x), axis=axis) == 0
    return _rounded(
        result := _total(value, spread, size, count, x.arithmetic, given, integers),
        integers & (result.error == 0) | (count == 0),
    )


# |c^ - sum a b| <= sum (|a| eb + |b| ea + ea eb) + gamma(n) sum (|a| + ea)(|b| + eb)
@np.errstate(all="ignore")
def contracted(products: Bilinear, a: Bounded, b: Bounded, count: int | Float64) -> Bounded:
    """Apply a sum of `count` products for each element, linear in both operands: a matrix product, an einsum,
    a convolution. An array of counts has one for each element."""

    def f(p: Float64, q: Float64) -> Float64:
        return in_order(products(p, q))

    finite_a, finite_b = np.isfinite(a.value), np.isfinite(b.value)
    value = f(a.value, b.value)
    va, vb = (np.where(np.isfinite(v), np.abs(v), 0.0) for v in (a.value, b.value))
    size = f(va, vb)
    spread = np.zeros(value.shape)
    exact_a, exact_b = not np.count_nonzero(a.error), not np.count_nonzero(b.error)
    if not (exact_a and exact_b):
        ea, eb = (np.where(np.isfinite(e), e, 0.0) for e in (a.error, b.error))
        spread = f(ea, vb) if exact_b else f(va, eb) if exact_a else f(va, eb) + f(ea, vb) + f(ea, eb)
        open_a = np.isinf(a.error) | may_overflow(a)
        open_b = np.isinf(b.error) | may_overflow(b)
        spread = spread * (1 + gamma(count + 4, REFERENCE.unit))
        if open_a.any() or open_b.any():
            spread = np.where(_touched(f, open_a, open_b), np.inf, spread)
    given = None
    if not (finite_a.all() and finite_b.all()):
        given = _touched(f, ~finite_a, ~finite_b)
        spread = np.where(
            given & ((spread > 0) | (size >= a.arithmetic.accumulator.overflow)), np.inf, spread
        )
        spread = np.where(_touched(f, surely_nan(a), surely_nan(b)), 0.0, spread)
    integers = np.full(value.shape, all((whole(x) | ~np.isfinite(x.value)).all() for x in (a, b)))
    result = _total(value, spread, size + spread, count, a.arithmetic, given, integers)
    return _rounded(result, integers & (result.error == 0))


def _touched(f: Bilinear, a: Mask, b: Mask) -> Mask:
    """Say which results have a product with a marked element of either operand."""
    found = f(a.astype(np.float64), np.ones(b.shape)) + f(np.ones(a.shape), b.astype(np.float64))
    return np.asarray(found > 0)


@implements(np.matmul, np.dot)
def matmul(a: Any, b: Any) -> Bounded:
    a, b = same(a, b)
    return contracted(np.matmul, a, b, a.shape[-1])


@implements(np.einsum)
def einsum(subscripts: str, a: Any, b: Any, **_: Any) -> Bounded:
    """Sum products over the letters that the result lacks; explicit form (`ij,jk->ik`) of two operands,
    letters only."""
    a, b = same(a, b)
    terms, _arrow, kept = subscripts.replace(" ", "").partition("->")
    first, _comma, second = terms.partition(",")
    if (
        not _arrow
        or not (first + second + kept + "a").isalpha()
        or (len(first), len(second)) != (a.ndim, b.ndim)
    ):
        raise ValueError(f"einsum here takes two operands and explicit letters, not {subscripts!r}")
    extents = dict(zip(first + second, a.shape + b.shape, strict=True))
    count = prod(extent for letter, extent in extents.items() if letter not in kept)
    return contracted(lambda p, q: np.asarray(np.einsum(subscripts, p, q)), a, b, count)
