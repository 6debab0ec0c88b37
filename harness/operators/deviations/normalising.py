"""Deviating results of normalisations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.model.expected import Approx, Expected
from harness.operators.bounded import Bounded, converted, number
from harness.operators.deviations.base import Deviating, changed, deviation, replaced
from harness.operators.formulas import bounded

# BatchNormalization: 1 / sqrt(-inf) is 0, as that of inf is.
changed("roots_of_either_infinity", epsilon=np.inf)


@deviation
def statistics_by_float16(asked: Deviating) -> tuple[Expected, ...]:
    """LayerNormalization of float16: Mean and InvStdDev are rounded to float16."""
    y, *statistics = asked.formula()
    return (y, *(_by_float16(each) for each in statistics))


def _by_float16(found: Expected) -> Expected:
    assert isinstance(found, Approx)
    ends = [(found.value + sign * found.bound).astype(np.float16).astype(np.float64) for sign in (-1, 1)]
    return Approx(found.dtype, (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2)


@deviation
def axes_that_there_are(asked: Deviating) -> tuple[Expected, ...]:
    """MeanVarianceNormalization: an axis that X does not have is left out."""
    rank = len(asked.call.first.shape)
    return asked.formula(axes=tuple(axis for axis in asked.call.parameter("axes") if -rank <= axis < rank))


_LEAST = float(np.float32(1e-20))


@deviation
def sum_of_exponentials_above_zero(asked: Deviating) -> tuple[Expected, ...]:
    """LogSoftmax: a sum of exponentials that is not at least 1e-20, or NaN, counts as 1e-20; the maximum passes over
    each NaN but the first element."""
    x = asked.inputs["input"].array
    axis = asked.call.parameter("axis")
    line = (
        x.reshape(prod(x.shape[: axis % x.ndim]), -1) if asked.call.opset < 13 else np.moveaxis(x, axis, -1)
    )
    greatest = line[..., :1]
    for place in range(1, line.shape[-1]):
        each = line[..., place : place + 1]
        greatest = np.where(each > greatest, each, greatest)
    total = np.exp(line - greatest).sum(-1, keepdims=True)
    total = np.where(total >= _LEAST, total, _LEAST)
    found = line - greatest - np.log(total)
    found = found.reshape(x.shape) if asked.call.opset < 13 else np.moveaxis(found, -1, axis)
    spread = np.abs(np.where(np.isfinite(found), found, 0.0))
    return (Approx("float64", found, 8 * np.spacing(np.maximum(spread, 64.0))),)


# LayerNormalization: mean and variance step by step in float32, m += (x - m) / n and s += (x - m before) (x - m).
def _by_running_mean(
    x: Bounded, scale: Bounded, bias: Bounded | None = None, *, axis: int, epsilon: float
) -> Any:
    wide = converted(x, "float32")
    elements = wide.value.astype(np.float32).reshape(*x.shape[: axis % x.ndim], -1)
    mean = squares = np.zeros(elements.shape[:-1], np.float32)
    for count in range(1, elements.shape[-1] + 1):
        apart = elements[..., count - 1] - mean
        mean = mean + apart / np.float32(count)
        squares = squares + apart * (elements[..., count - 1] - mean)
    inverse = 1 / np.sqrt(squares.astype(np.float64) / elements.shape[-1] + epsilon)
    kept = (*elements.shape[:-1], *(1,) * (x.ndim - elements.ndim + 1))
    held_mean, held_inverse = (
        number(each.astype(np.float64).reshape(kept), wide.arithmetic) for each in (mean, inverse)
    )
    y = converted((wide - held_mean) * held_inverse, x.arithmetic.form.dtype) * scale
    return (y if bias is None else y + bias), held_mean, held_inverse


replaced("running_mean", bounded(_by_running_mean))
