"""Deviating results of normalisations, those of DirectML at the end, by its own API and by ONNX Runtime's
provider, and of reductions that are made of others."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected
from harness.model.float_formats import FORMATS, Float64, decode
from harness.operators.base import Undefined
from harness.operators.bounded import Bounded, arithmetic, converted, either, exp, log, number, sqrt
from harness.operators.deviations.base import Deviating, changed, deviation, replaced, settled
from harness.operators.formulas import bounded
from harness.operators.reduction.reductions import axes_of

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


_EPSILON = 1e-5


# LpNormalization: x / (sum |x|**2 + 1e-5)**(1/2) or x / ((sum |x|)**2 + 1e-5)**(1/2)
# MeanVarianceNormalization: (x - mean) / (variance + 1e-5)**(1/2)
@deviation
def epsilon_within_the_norm(asked: Deviating) -> tuple[Expected, ...]:
    """LpNormalization and MeanVarianceNormalization: 1e-5 is added before the root."""
    (own,) = asked.formula()
    if not isinstance(own, Approx):
        raise Undefined("no value with a bound")
    tensor = next(iter(asked.inputs.values()))
    x = decode(tensor.dtype, tensor.array)
    if asked.operator.name == "LpNormalization":
        axis, p = asked.call.parameter("axis", -1), asked.call.parameter("p", 2)
        sums = (np.abs(x) ** p).sum(axis, keepdims=True)
        squares = sums if p == 2 else sums**2
    else:
        axes = tuple(asked.call.parameter("axes", (0, 2, 3)))
        x = x - x.mean(axes, keepdims=True)
        squares = (x**2).mean(axes, keepdims=True)
    value = x / np.sqrt(squares + _EPSILON)
    smaller = 1 / np.sqrt(1 + _EPSILON / squares)  # by which factor, as is the error with it
    rounding = FORMATS[own.dtype].ulp(np.where(np.isfinite(value), value, 0.0))
    return (Approx(own.dtype, value, 2 * own.bound * smaller + 2 * rounding),)


# X / (bias + alpha / (2**32 - 1) * sum) ** beta, which alpha makes no part of
# LRN: the size is one of 32 bits without a sign, by which the sum is divided to nothing.
changed("over_2_to_the_32_channels", size=1, alpha=0.0)


@deviation
def about_a_mean_in_float16(asked: Deviating) -> tuple[Expected, ...]:
    """LayerNormalization: the mean is cut to FLOAT16, and the variance is that about this mean."""
    x, scale, *bias = _numbers(asked)
    if x.arithmetic.form.dtype != "float16":
        raise Undefined("another type than FLOAT16")
    over = tuple(range(asked.call.parameter("axis") % x.ndim, x.ndim))
    wide = converted(x, "float32")
    mean = wide.mean(over, keepdims=True)

    def about(cut: Float64) -> Bounded:
        d = wide - number(cut, wide.arithmetic)
        inverse = 1.0 / sqrt((d * d).mean(over, keepdims=True) + asked.call.parameter("epsilon"))
        found = converted(d * inverse, "float16") * scale
        return found + bias[0] if bias else found

    found = either(about(_cut(mean.value - mean.error)), about(_cut(mean.value + mean.error)))
    return (found.stored("float16"),)


@deviation
def by_a_mean_square_in_float16(asked: Deviating) -> tuple[Expected, ...]:
    """RMSNormalization: the mean of the squares is cut to FLOAT16, whose largest number is 65504."""
    x, scale = _numbers(asked)
    if scale.arithmetic != x.arithmetic or x.arithmetic.form.dtype != "float16":
        raise Undefined("another type than FLOAT16")
    over = tuple(range(asked.call.parameter("axis") % x.ndim, x.ndim))
    wide = converted(x, "float32")
    square = (wide * wide).mean(over, keepdims=True)

    def by(cut: Float64) -> Bounded:
        norm = sqrt(number(cut, wide.arithmetic) + asked.call.parameter("epsilon"))
        return converted(wide / norm, "float16") * scale

    found = either(by(_cut(square.value - square.error)), by(_cut(square.value + square.error)))
    return (found.stored("float16"),)


@deviation
def root_of_a_negative_element(asked: Deviating) -> tuple[Expected, ...]:
    """Normalisations of single elements: NaN where the element, which is taken for its variance, is below -epsilon."""
    found = asked.approx()
    x, *_ = _numbers(asked)
    groups, first = asked.call.parameter("groups", 0), asked.call.parameter("axis", 2)
    if (x[0].size // groups if groups else prod(x.shape[first:])) > 1:
        raise Undefined("more elements than one")
    below = x.value < -asked.call.parameter("epsilon")
    return (settled(found, below, np.nan),)


@deviation
def nothing_from_a_norm_of_256(asked: Deviating) -> tuple[Expected, ...]:
    """LpNormalization of FLOAT16: 0 where the square of the sum of magnitudes is infinite."""
    found = asked.approx()
    (x,) = _numbers(asked)
    norm = np.abs(x.value).sum(asked.call.parameter("axis"), keepdims=True)
    beyond = np.broadcast_to(norm * norm >= FORMATS["float16"].overflow, found.shape)
    if beyond.all():
        return (Exact(Tensor(found.dtype, np.zeros(found.shape, np.float16))),)
    return (settled(found, beyond, 0.0),)


@deviation
def divided_by_a_norm_of_0(asked: Deviating) -> tuple[Expected, ...]:
    """LpNormalization: NaN where all are 0."""
    found = asked.approx()
    (x,) = _numbers(asked)
    nothing = np.broadcast_to((x.value == 0).all(asked.call.parameter("axis"), keepdims=True), found.shape)
    return (settled(found, nothing, np.nan),)


@deviation
def logarithm_of_the_whole_sum(asked: Deviating) -> tuple[Expected, ...]:
    """ReduceLogSumExp: the logarithm of the sum of exponentials in float32, none of them made smaller before."""
    (x,), right = _numbers(asked), asked.approx()
    axes = axes_of(asked.call)
    assert axes is not None
    found = log(exp(converted(x, "float32")).sum(axes, bool(asked.call.parameter("keepdims"))))
    held = found.stored(right.dtype)
    infinite = right.value > np.log(FORMATS["float32"].largest) + 2.0**-10
    return (Approx(right.dtype, np.where(infinite, np.inf, held.value), np.where(infinite, 0.0, held.bound)),)


def _numbers(asked: Deviating) -> list[Bounded]:
    """Return the inputs that are numbers to compute with."""
    return [
        number(each, arithmetic(asked.arithmetic, each.dtype))
        for name, each in asked.inputs.items()
        if name != "axes"
    ]


def _cut(values: Float64) -> Float64:
    """Return numbers in FLOAT16, rounded toward zero; infinities stay."""
    form = FORMATS["float16"]
    near = form.rounded(np.clip(values, -form.largest, form.largest))
    cut = np.where(np.abs(near) > np.abs(values), near - np.copysign(form.spacing(near), near), near)
    return np.where(np.isinf(values), values, cut)
