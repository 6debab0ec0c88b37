"""Deviating results of normalisations and reductions, of operators along an axis, and of sums of products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected, nearest
from harness.model.float_formats import FORMATS, Float64, decode
from harness.operators.base import Undefined
from harness.operators.bounded import Bounded, arithmetic, converted, either, exp, log, number, sqrt, where
from harness.operators.deviations.base import Deviating, changed, deviation, low_bits, replaced, settled
from harness.operators.formulas import bounded
from harness.operators.products.convolving import TRANSPOSED
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
    own = asked.approx()
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


_LARGEST = float(np.finfo(np.float16).max)


@deviation
def about_a_mean_in_float16(asked: Deviating) -> tuple[Expected, ...]:
    """LayerNormalization: the mean is cut to FLOAT16, and the variance is that about this mean, 65504 at the most."""
    x, scale, *bias = _numbers(asked)
    if x.arithmetic.form.dtype != "float16":
        raise Undefined("another type than FLOAT16")
    over = tuple(range(asked.call.parameter("axis") % x.ndim, x.ndim))
    wide = converted(x, "float32")

    def about(mean: Bounded) -> Bounded:
        d = wide - mean
        variance = (d * d).mean(over, keepdims=True)
        held = where(variance.value > _LARGEST, np.full(variance.shape, _LARGEST), variance)
        inverse = 1.0 / sqrt(held + asked.call.parameter("epsilon"))
        found = converted(d * inverse, "float16") * scale
        return found + bias[0] if bias else found

    return _by_cut(wide.mean(over, keepdims=True), about)


@deviation
def by_a_mean_square_in_float16(asked: Deviating) -> tuple[Expected, ...]:
    """RMSNormalization: the mean of the squares is cut to FLOAT16, whose largest number is 65504."""
    x, scale = _numbers(asked)
    if scale.arithmetic != x.arithmetic or x.arithmetic.form.dtype != "float16":
        raise Undefined("another type than FLOAT16")
    over = tuple(range(asked.call.parameter("axis") % x.ndim, x.ndim))
    wide = converted(x, "float32")

    def by(square: Bounded) -> Bounded:
        return converted(wide / sqrt(square + asked.call.parameter("epsilon")), "float16") * scale

    return _by_cut((wide * wide).mean(over, keepdims=True), by)


def _by_cut(statistic: Bounded, formula: Callable[[Bounded], Bounded]) -> tuple[Expected, ...]:
    """Return what a formula gives of a statistic that is cut to FLOAT16, at either end of its bound."""
    ends = (_cut(statistic.value + sign * statistic.error) for sign in (-1, 1))
    return (either(*(formula(number(each, statistic.arithmetic)) for each in ends)).stored("float16"),)


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
    infinite = right.value > np.log(FORMATS["float32"].largest) + 2.0**-10
    return (settled(found.stored(right.dtype), infinite, np.inf),)


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


@deviation
def nothing_reduced(asked: Deviating) -> tuple[Expected, ...]:
    """Reductions of no elements: axes from the end reduce nothing; where there are no others the output has the shape of
    data."""
    (dtype,) = asked.call.outputs
    front = [axis for axis in asked.call.parameter("axes") or () if axis >= 0]
    if front:
        return asked.formula(constants={"axes": np.array(front)})
    return (Exact(Tensor(dtype, np.zeros(asked.call.first.shape, DTYPES[dtype].storage))),)


# Of axis the lower 32 bits count.
changed("axis_in_32_bits", axis=lambda asked: int(low_bits(np.array(asked.call.parameter("axis")))))


@deviation
def maximum_without_nan(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign: the maximum begins with the least finite number, and NaN is none."""
    (expected,) = asked.formula()
    found = nearest(expected)
    array = np.where(np.isnan(found.array), np.finfo(found.array.dtype).min, found.array)
    return (Exact(Tensor(found.dtype, array)),)


# TopK: of K the lower 32 bits count.
changed("k_in_32_bits", {"K": low_bits})


# Losses: any reduction but none and mean is sum.
changed("summed", reduction="sum")


# Gemm: C in place of beta * C.
changed("whole_bias", beta=1.0)


# ConvTranspose: SAME stands for the pads that it takes away; where there are none, the output ends with what is added.
changed("same_as_pads", auto_pad="NOTSET", pads=lambda asked: TRANSPOSED.window(asked.call).pads)


@deviation
def nan_passed_over(asked: Deviating) -> tuple[Expected, ...]:
    """Maxima and minima: NaN is -inf, of ReduceMin inf, and of MaxRoiPool the least finite number."""
    name, x = next(iter(asked.inputs.items()))
    least = {"ReduceMin": np.inf, "MaxRoiPool": np.finfo(x.array.dtype).min}.get(asked.operator.name, -np.inf)
    passed = np.where(np.isnan(x.array), least, x.array).astype(x.array.dtype)
    return asked.formula(inputs=asked.having(**{name: passed}))
