"""An implementation at its worst: operands anywhere within their bounds, results as far off as the declared
arithmetic lets them be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from harness.model.float_formats import FORMATS, Float64
from harness.operators.bounded import Arithmetic, Bounded

Random = np.random.Generator
_DOUBLE = FORMATS["float64"]


def values(rng: Random, arithmetic: Arithmetic, count: int, *, special: bool = True) -> Float64:
    """Draw values of the working type: of every size, zeros, subnormals, neighbours of overflow, and
    infinities and NaN if `special`."""
    form = arithmetic.form
    exponents = rng.choice(
        [
            rng.uniform(form.min_exponent - form.precision, form.max_exponent + 1, count),
            rng.uniform(-4, 4, count),
        ]
    )
    drawn = rng.choice([-1.0, 1.0], count) * rng.uniform(1, 2, count) * np.exp2(exponents - 1)
    odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        form.largest,
        -form.largest,
        form.smallest_normal,
        form.quantum,
        *([np.inf, -np.inf, np.nan] if special else []),
    ]
    places = rng.random(count) < 0.1
    drawn[places] = rng.choice(odd, int(places.sum()))
    return np.where(np.isfinite(drawn), form.rounded(np.clip(drawn, -form.largest, form.largest)), drawn)


def numbers(rng: Random, arithmetic: Arithmetic, count: int, *, special: bool = True) -> Bounded:
    """Draw values with errors: none, relative ones of every size, some larger than the value, and some
    without a claim."""
    value = values(rng, arithmetic, count, special=special)
    with np.errstate(all="ignore"):
        relative = np.exp2(rng.uniform(-60, 2, count)) * np.abs(value)
    error = np.choose(
        rng.integers(0, 4, count),
        [np.zeros(count), relative, relative, rng.choice([0.0, np.inf], count, p=[0.8, 0.2])],
    )
    error = np.where(np.isfinite(value), error, 0.0)
    if arithmetic.flush:  # what `number` and every operation see to
        with np.errstate(all="ignore"):
            error = np.where(
                np.abs(value) - error < arithmetic.form.smallest_normal,
                np.maximum(error, np.abs(value)),
                error,
            )
    return Bounded(value, error, arithmetic)


def within(rng: Random, x: Bounded) -> Iterator[Float64]:
    """Give values that an implementation may have for a number: ends of its interval, points inside,
    infinities where it may overflow."""
    finite = np.where(np.isfinite(x.error), x.error, np.abs(x.value) + 1)
    with np.errstate(all="ignore"):
        over = np.isfinite(x.value) & (np.abs(x.value) + x.error >= x.arithmetic.overflow)
        for share in (-1.0, 1.0, 0.0, rng.uniform(-1, 1, x.shape)):
            held = np.where(np.isfinite(x.value), x.value + share * finite, x.value)
            held = np.where(np.abs(held - x.value) > finite, np.nextafter(held, x.value), held)
            yield np.where(np.abs(held) >= x.arithmetic.overflow, np.copysign(np.inf, held), held)
        yield np.where(over, np.copysign(np.inf, x.value), x.value)
        yield np.where(np.isinf(x.error), np.nan, x.value)


def worst(rng: Random, exact: Float64, arithmetic: Arithmetic, own: Float64 | float) -> Iterator[Float64]:
    """Give results as an implementation may return them: off by `own`, flushed, overflowed."""
    with np.errstate(all="ignore"):
        for share in (-1.0, 0.0, 1.0):
            found = np.where(np.isfinite(exact), exact + share * own, exact)
            found = np.where(np.abs(found) >= arithmetic.overflow, np.copysign(np.inf, found), found)
            yield found
            if arithmetic.flush:
                yield np.where(np.abs(found) < arithmetic.form.smallest_normal, 0.0, found)


def outside(found: Float64, x: Bounded) -> Float64:
    """Return the places where a result is not within a number's bound."""
    with np.errstate(all="ignore"):
        slack = 2.0**-40 * x.error + 8 * (_DOUBLE.ulp(found) + _DOUBLE.ulp(x.value))  # of the check itself
        same = (found == x.value) | (np.isnan(found) & np.isnan(x.value))
        near = np.abs(found - x.value) <= x.error + slack
        over = np.isinf(found) & (np.copysign(1.0, found) * x.value + x.error >= x.arithmetic.overflow)
    return np.flatnonzero(~(same | near | over | np.isinf(x.error)))


def survives(
    rng: Random, operands: tuple[Bounded, ...], f: Callable[..., Any], result: Bounded, own: Float64 | float
) -> None:
    """Assert that no implementation within the operands' bounds and its own error leaves the result's
    bound."""
    for _ in range(3):
        for held in zip(*(within(rng, x) for x in operands), strict=True):
            others = next(zip(*(within(rng, x) for x in operands), strict=True))
            chosen = [np.where(rng.random(a.shape) < 0.5, a, b) for a, b in zip(held, others, strict=True)]
            with np.errstate(all="ignore"):
                exact = np.asarray(f(*chosen))
            for found in worst(rng, exact, result.arithmetic, own):
                wrong = outside(found, result)
                assert not wrong.size, _told(operands, chosen, found, result, wrong)


def _told(
    operands: tuple[Bounded, ...], chosen: list[Float64], found: Float64, result: Bounded, wrong: Float64
) -> str:
    i = wrong[0]
    shown = [
        f"{c.flat[i]!r} for {x.value.flat[i]!r} ± {x.error.flat[i]!r}"
        for x, c in zip(operands, chosen, strict=True)
    ]
    return f"{wrong.size} outside: {shown} gives {found.flat[i]!r}, not {result.value.flat[i]!r} ± {result.error.flat[i]!r}"
