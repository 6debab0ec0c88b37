"""What is given in place of an operator's result, element by element."""

from __future__ import annotations

import math

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Exact, Expected, OneOf
from harness.operators.bounded import Bounded, tanh
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.elementwise.round import TOWARD_ZERO
from harness.operators.formulas import bounded


@deviation
def remainder_in_float64(asked: Deviating) -> tuple[Expected, ...]:
    """Mod: integers become float64, and their fmod an integer again."""
    dtype = asked.call.first.dtype
    with np.errstate(all="ignore"):
        found = np.fmod(*(each.array.astype(np.float64) for each in asked.inputs.values()))
        return (Exact(Tensor(dtype, found.astype(asked.call.first.dtype))),)


@deviation
def power_in_float64(asked: Deviating) -> tuple[Expected, ...]:
    """Pow: integers become float64, and their power an integer again."""
    dtype = asked.call.first.dtype
    x, y = (each.array.astype(np.float64) for each in asked.inputs.values())
    with np.errstate(all="ignore"):
        return (Exact(Tensor(dtype, np.power(x, y).astype(dtype))),)


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
    bias, lambd = (np.float32(asked.call.parameter(name)) for name in ("bias", "lambd"))
    with np.errstate(all="ignore"):
        x = asked.inputs["input"].array.astype(np.float32)
        found = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.float32(0)))
        return (Exact(Tensor(dtype, found.astype(dtype))),)


@deviation
def floor_in_32_bits(asked: Deviating) -> tuple[Expected, ...]:
    """Round toward zero, and halves away from it, composed of a Floor that gives -2**31 from 2**31 on and of NaN, in
    whole vectors of the processor alone."""
    exact = asked.exact()
    x = asked.inputs["X"]
    magnitude = np.abs(x.array.astype(np.float32))
    with np.errstate(all="ignore"):
        floor = np.where(magnitude < 2.0**31, np.floor(magnitude), np.float32(-(2.0**31)))
        step = (magnitude - floor >= 0.5) if asked.call.variant != TOWARD_ZERO else np.False_
        found = (np.where(x.array < 0, np.float32(-1), np.float32(1)) * (floor + step)).astype(x.array.dtype)
    return (OneOf((exact.tensor, Tensor(x.dtype, found))),)


@deviation
def gelu_by_constants_of_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Gelu by tanh: 2 / pi and 0.044715 are those of float32."""
    return bounded(_gelu_by_narrow_constants)(asked.call, asked.inputs, asked.arithmetic)


def _gelu_by_narrow_constants(x: Bounded) -> Bounded:
    # 0.5 * x * (1 + tanh(sqrt(float32(2 / pi)) * (x + float32(0.044715) * x^3)))
    root, factor = math.sqrt(np.float32(2 / math.pi)), float(np.float32(0.044715))
    return x * 0.5 * (tanh((x + x * x * x * factor) * root) + 1.0)
