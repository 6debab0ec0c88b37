"""Declared distance of one function of an arithmetic from its exact result, for arguments in a range and
results up to a size."""

from __future__ import annotations

import numpy as np

from harness.model.float_formats import Float64
from harness.operators.bounded.arithmetic import Arithmetic


def has(name: str, arithmetic: Arithmetic) -> bool:
    """Say whether an arithmetic's table has a function."""
    return not arithmetic.errs or name in arithmetic.functions.table


def declared(name: str, argument: Float64, error: Float64, size: Float64, arithmetic: Arithmetic) -> Float64:
    """Return the declared error of a function at `argument` ± `error` whose result's magnitude is at most
    `size`.

    Infinite where the table has no such function or claims nothing for an argument in that range; 0 in exact
    arithmetic.
    """
    if not arithmetic.errs:
        return np.zeros(np.shape(size))
    form, table, extra = arithmetic.functions
    low, high, most = argument - error, argument + error, np.abs(argument) + error
    unit = form.spacing(size)
    found = np.full(np.shape(size), -np.inf)
    claims = table.get(name, ())
    for claim in claims:
        here = (claim.ulp + _of(claim.ulp_per_argument, most)) * unit
        if claim.relative or claim.relative_per_argument:
            here = here + (claim.relative + _of(claim.relative_per_argument, most)) * size
        found = np.where(
            (low <= claim.high) & (high >= claim.low), np.maximum(found, here + claim.absolute), found
        )
    outside = (low < min((c.low for c in claims), default=np.inf)) | (
        high > max((c.high for c in claims), default=-np.inf)
    )
    found = np.where(
        outside | (found < 0),
        np.inf,
        found + extra * arithmetic.form.spacing(size + np.where(np.isfinite(found), found, 0)),
    )
    return np.where(np.isfinite(size), found, 0.0)


def _of(factor: float, magnitude: Float64) -> Float64 | float:
    return factor * magnitude if factor else 0.0
