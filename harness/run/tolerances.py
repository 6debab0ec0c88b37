"""Expected outputs as one tensor with the `rtol` and `atol` by which other test runners compare.

NumPy's `assert_allclose` accepts |actual - expected| <= atol + rtol * |expected|. Of the pairs that accept
whatever the oracle does, the one is taken that accepts least beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected, OfLaw, nearest
from harness.model.float_formats import FORMATS, Float64, decode

_SLACK = 4
"""Roundings of the comparison itself, in the type of the output."""


class Tolerance(NamedTuple):
    """The tensors to expect and one tolerance for all of them; `looseness` is the largest ratio of the tolerance to
    the oracle's bound, 1 where both are equal."""

    tensors: tuple[Tensor, ...]
    rtol: float
    atol: float
    looseness: float


class NoTolerance(ValueError):
    """No `rtol` and `atol` accept what the oracle does; the message says why."""


def tolerance(expected: Sequence[Expected]) -> Tolerance:
    """Return the tolerance of all outputs of a case; raise NoTolerance."""
    tensors = tuple(map(nearest, expected))
    parts = [_needed(each, tensor) for each, tensor in zip(expected, tensors, strict=True)]
    sizes = np.concatenate([np.zeros(0), *(size for size, _ in parts)])
    needed = np.concatenate([np.zeros(0), *(need for _, need in parts)])
    if not needed.any():
        return Tolerance(tensors, 0.0, 0.0, 1.0)
    rtol, atol = _least(sizes, needed)
    bounded = needed > 0
    accepted = atol + rtol * sizes[bounded]
    return Tolerance(tensors, rtol, atol, float(np.max(accepted / needed[bounded])))


def _needed(expected: Expected, tensor: Tensor) -> tuple[Float64, Float64]:
    """Return the magnitudes of an output's elements and how far an actual one may lie from each."""
    if isinstance(expected, Exact):
        return np.zeros(0), np.zeros(0)
    if isinstance(expected, OfLaw):
        raise NoTolerance("the elements are drawn")
    if isinstance(expected, Approx):
        if not np.isfinite(expected.bound).all():
            raise NoTolerance("nothing is claimed of some elements")
        finite = np.isfinite(expected.value)
        if np.any(
            np.abs(expected.value[finite]) + expected.bound[finite] >= FORMATS[expected.dtype].overflow
        ):
            raise NoTolerance("an element may also be infinite")
        written = decode(expected.dtype, tensor.array)[finite]
        off = np.abs(written - expected.value[finite]) + expected.bound[finite]
        return np.abs(written), _widened(expected.dtype, off)
    if DTYPES[expected.dtype].is_float:
        written, *others = (decode(expected.dtype, each.array) for each in expected.candidates)
    elif DTYPES[expected.dtype].is_integer:
        written, *others = (each.array.astype(np.float64) for each in expected.candidates)
    else:
        raise NoTolerance("one of several results, which are no numbers")
    off = np.zeros(written.shape)
    for other in others:
        same = (other == written) | (np.isnan(other) & np.isnan(written))
        with np.errstate(invalid="ignore"):
            off = np.maximum(off, np.where(same, 0.0, np.abs(other - written)))
    if not np.isfinite(off).all():
        raise NoTolerance("one of several results, of which not all are finite")
    return np.abs(written[off > 0]).reshape(-1), _widened(expected.dtype, off[off > 0])


def _widened(dtype: str, off: Float64) -> Float64:
    """Return distances with room for the rounding of the comparison."""
    if dtype not in FORMATS:
        return off.reshape(-1)
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    return np.asarray(off.reshape(-1) * (1 + _SLACK * 2.0**-mantissa))


def _least(sizes: Float64, needed: Float64) -> tuple[float, float]:
    """Return rtol, at most 1, and atol that accept least: what rtol leaves uncovered, atol takes."""
    ratios = np.divide(needed, sizes, out=np.zeros(sizes.shape), where=sizes >= needed)
    positive = needed > 0

    def accepted(rtol: float, atol: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.sum((atol + rtol * sizes[positive]) / needed[positive]))

    choices = np.unique([0.0, *np.quantile(ratios, np.linspace(0, 1, 65))])
    pairs = [(float(rtol), float(max(np.max(needed - rtol * sizes), 0.0))) for rtol in choices]
    return min(pairs, key=lambda pair: accepted(*pair))
