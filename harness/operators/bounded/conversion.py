"""Converts numbers with a bound to another working type of the same declared arithmetic, as Cast does, by
either of two formulas."""

from __future__ import annotations

import numpy as np

from harness.model.float_formats import FORMATS
from harness.operators.bounded.arithmetic import arithmetic
from harness.operators.bounded.number import Bounded, settle


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
