"""Deviating results of elementwise operators and conversions."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Exact, Expected, OneOf
from harness.model.float_formats import MINIFLOATS, decode, encode_minifloat
from harness.operators.base import Undefined
from harness.operators.bounded import Bounded, tanh
from harness.operators.deviations.base import Deviating, changed, deviation, register, replaced
from harness.operators.elementwise.casting import converted
from harness.operators.elementwise.round import TOWARD_ZERO
from harness.operators.formulas import bounded


def _in_float64(asked: Deviating, function: np.ufunc) -> tuple[Expected, ...]:
    found = function(*(each.array for each in asked.converted("float64").values()))
    return (Exact(Tensor(asked.call.first.dtype, found.astype(asked.call.first.dtype))),)


# Mod and Pow: integers become float64, and their fmod or their power an integer again.
register("remainder_in_float64", partial(_in_float64, function=np.fmod))
register("power_in_float64", partial(_in_float64, function=np.power))


@deviation
def broadcast_both_ways(asked: Deviating) -> tuple[Expected, ...]:
    """PRelu: X is broadcast to slope."""
    x, slope = asked.inputs.values()
    shape = np.broadcast_shapes(x.array.shape, slope.array.shape)
    return asked.formula(inputs={"X": Tensor(x.dtype, np.broadcast_to(x.array, shape)), "slope": slope})


@deviation
def shrunk_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Shrink: input, what is compared and what is added in float32."""
    dtype = asked.call.first.dtype
    return (Exact(Tensor(dtype, shrunk(asked).astype(dtype))),)


def shrunk(asked: Deviating) -> Array:
    """Return what the formula of Shrink gives in float32."""
    bias, lambd = (np.float32(asked.call.parameter(name)) for name in ("bias", "lambd"))
    x = asked.inputs["input"].array.astype(np.float32)
    return np.asarray(np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.float32(0))))


@deviation
def floor_in_32_bits(asked: Deviating) -> tuple[Expected, ...]:
    """Round toward zero, and halves away from it, composed of a Floor that gives -2**31 from 2**31 on and of NaN, in
    whole vectors of the processor alone."""
    exact = asked.exact()
    x = asked.inputs["X"]
    magnitude = np.abs(x.array.astype(np.float32))
    floor = np.where(magnitude < 2.0**31, np.floor(magnitude), np.float32(-(2.0**31)))
    step = (magnitude - floor >= 0.5) if asked.call.variant != TOWARD_ZERO else np.False_
    found = (np.where(x.array < 0, np.float32(-1), np.float32(1)) * (floor + step)).astype(x.array.dtype)
    return (OneOf((exact.tensor, Tensor(x.dtype, found))),)


# Gelu by tanh: 2 / pi and 0.044715 are those of float32.
def _gelu_by_narrow_constants(x: Bounded) -> Bounded:
    # 0.5 * x * (1 + tanh(sqrt(float32(2 / pi)) * (x + float32(0.044715) * x^3)))
    root, factor = math.sqrt(np.float32(2 / math.pi)), float(np.float32(0.044715))
    return x * 0.5 * (tanh((x + x * x * x * factor) * root) + 1.0)


replaced("gelu_by_constants_of_float32", bounded(_gelu_by_narrow_constants))

_BESIDE = {"float8e4m3fn": (480, 496, 0x7E), "float8e5m2": (61440, 65536, 0x7F)}
"""From what number to below what other the kernel gives which pattern."""


@deviation
def rounded_twice(asked: Deviating) -> tuple[Expected, ...]:
    """Cast: rounded to float32 first, and that to the type that is asked for."""
    narrow = {name: Tensor("float32", converted(each, "float32")) for name, each in asked.inputs.items()}
    return asked.formula(inputs=narrow)


@deviation
def greatest_without_a_number_that_is_nan(asked: Deviating) -> tuple[Expected, ...]:
    """Max: a NaN that is an operand of one element is passed over."""
    held = {
        name: Tensor(each.dtype, np.full_like(each.array, -np.inf))
        if each.array.size == 1 and np.isnan(each.array).all()
        else each
        for name, each in asked.inputs.items()
    }
    return asked.formula(inputs=held)


@deviation
def largest_beside_nan(asked: Deviating) -> tuple[Expected, ...]:
    """Cast, CastLike and, by one scale for all, QuantizeLinear without `saturate`, by way of float32: just beyond the
    largest number of E4M3FN that number, of E5M2 NaN."""
    to = asked.call.outputs[0]
    numbers = decode("float32", converted(next(iter(asked.inputs.values())), "float32"))
    if (scale := asked.inputs.get("y_scale")) is not None:
        if scale.array.size != 1:
            raise Undefined("several scales")
        numbers = (numbers / decode(*scale).reshape(())).astype(np.float32).astype(np.float64)
    found = encode_minifloat(to, numbers, saturate=False)
    lower, upper, pattern = _BESIDE[to]
    sign = np.where(np.signbit(numbers), MINIFLOATS[to].sign, 0)
    beside = (np.abs(numbers) >= lower) & (np.abs(numbers) < upper)
    return (Exact(Tensor(to, np.where(beside, pattern | sign, found).astype(np.uint8))),)


@deviation
def halves_away_from_zero(asked: Deviating) -> tuple[Expected, ...]:
    """Cast and CastLike: the nearest integer, halves away from zero, of which the lowest bits are kept."""
    to = DTYPES[asked.call.outputs[0]]
    numbers = decode("float32", converted(asked.inputs["input"], "float32"))
    nearest = np.trunc(numbers + np.copysign(0.5, numbers))
    return (Exact(Tensor(to.name, to.wrapped(nearest))),)


# CastLike: as if no `round_mode` were given.
changed("powers_rounded_up", round_mode="up")


@deviation
def limited_by_numbers(asked: Deviating) -> tuple[Expected, ...]:
    """Clip: a limit that is NaN is none."""
    numbers = {
        name: each for name, each in asked.inputs.items() if name == "input" or not np.isnan(decode(*each))
    }
    return asked.formula(inputs=numbers)
