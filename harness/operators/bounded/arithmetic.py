"""Declared arithmetics: how far the operations of an implementation may lie from the exact result
(`data/arithmetics.yaml`), and each function, for arguments in a range and results up to a size.

An arithmetic is chosen by name and element type. Operations round to its working type. Sums, products of many
and dot products are accumulated in its accumulator, which for 16-bit types is float32 unless the looser one,
the working type itself, is requested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from harness.model.dtypes import DTYPES
from harness.model.float_formats import FORMATS, Float64, Format
from harness.model.reference.feature_levels import load

FILE = "arithmetics.yaml"


class Claim(NamedTuple):
    """The declared error of one function for arguments x in [low, high]; the terms are summed.

    `ulp` and `ulp_per_argument` (times |x|) are in units of the last place of the result's type, `relative`
    and `relative_per_argument` (times |x|) in parts of the result, `absolute` in its unit.
    """

    ulp: float = 0.0
    ulp_per_argument: float = 0.0
    relative: float = 0.0
    relative_per_argument: float = 0.0
    absolute: float = 0.0
    low: float = -math.inf
    high: float = math.inf


class Functions(NamedTuple):
    """A table of functions and the type whose ULP it speaks of; with `extra` ULP of the working type for
    rounding to that once more."""

    form: Format
    table: Mapping[str, tuple[Claim, ...]]
    extra: float = 0.0


class Arithmetic(NamedTuple):
    """One declared arithmetic for one working type.

    `operations` is the error of add, subtract, multiply and of conversions in ULP; `flush` says that
    subnormals of the working type may be taken for zero. `accumulator` is what sums are held in,
    `accumulator_flush` the same of its subnormals. In `EXACT` nothing errs.
    """

    name: str
    form: Format
    operations: float
    flush: bool
    accumulator: Format
    accumulator_flush: bool
    functions: Functions

    @property
    def errs(self) -> bool:
        return self.operations > 0

    @property
    def overflow(self) -> float:
        """Magnitude from which an intermediate result may be infinite."""
        return self.form.overflow if self.errs else math.inf


NAMES = ("ieee", "opencl", "vulkan", "d3d")

EXACT = Arithmetic(
    "exact", FORMATS["float64"], 0.0, False, FORMATS["float64"], False, Functions(FORMATS["float64"], {})
)
"""Real numbers: what a formula's bound is in this arithmetic is the error of the float64 reference alone."""


@cache
def arithmetic(
    name: str, dtype: str, accumulator: str | None = None, flush: bool | None = None
) -> Arithmetic:
    """Return a declared arithmetic that works in `dtype`.

    `accumulator` is a float type, by default float32 for the 16-bit types and `dtype` for the others;
    `flush=False` is for an implementation that is known to keep subnormals. Raises KeyError for a name or
    type that is not there.
    """
    entry = load(FILE)[name]
    form = FORMATS[dtype]
    held = FORMATS[accumulator or ("float32" if form.precision < 24 else dtype)]
    if held.precision < form.precision:
        raise ValueError(f"{held.dtype} cannot accumulate {dtype}")
    lost = frozenset(entry["flush"] if flush is None else DTYPES if flush else ())
    return Arithmetic(
        name,
        form,
        float(entry["operations"]),
        dtype in lost,
        held,
        held.dtype in lost,
        _functions(entry["functions"], form, entry["operations"]),
    )


def sources() -> dict[str, tuple[str, dict[str, str]]]:
    """Return the title and the sources of each arithmetic."""
    return {name: (entry["title"], dict(entry["sources"])) for name, entry in load(FILE).items()}


def _functions(tables: Mapping[str, Any], form: Format, operations: float) -> Functions:
    own = tables.get(form.dtype, tables.get("any"))
    if own is not None:
        return Functions(form, {name: _pieces(entry) for name, entry in own.items()})
    if form.precision > FORMATS["float32"].precision:
        return Functions(form, {})
    return Functions(
        FORMATS["float32"],
        {name: _pieces(entry) for name, entry in tables["float32"].items()},
        float(operations),
    )


def _pieces(entry: Any) -> tuple[Claim, ...]:
    if isinstance(entry, list):
        return tuple(piece for each in entry for piece in _pieces(each))
    if not isinstance(entry, dict):
        return (Claim(ulp=float(entry)),)
    terms = {name: float(number) for name, number in entry.items() if name != "within"}
    low, high = map(float, entry.get("within", (-math.inf, math.inf)))
    return (Claim(**terms, low=low, high=high),)


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
