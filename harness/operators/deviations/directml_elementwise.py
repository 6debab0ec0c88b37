"""What ONNX Runtime's DirectML provider gives of elementwise operators and conversions."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected
from harness.model.float_formats import FORMATS, decode, encode
from harness.operators.deviations.base import Deviating, deviation


@deviation
def holds_below_max_first(asked: Deviating) -> tuple[Expected, ...]:
    """Clip: min(input, max), then the greater of that and min."""
    low, high = asked.inputs["min"], asked.inputs["max"]
    return asked.formula(
        inputs={**asked.inputs, "max": Tensor(high.dtype, np.maximum(low.array, high.array))}
    )


@deviation
def detects_both_infinities(asked: Deviating) -> tuple[Expected, ...]:
    """IsInf: as if both infinities were asked for."""
    return asked.formula(detect_negative=1, detect_positive=1)


@deviation
def float16_toward_zero(asked: Deviating) -> tuple[Expected, ...]:
    """Cast and CastLike to float16: rounded toward zero, beyond the range to the largest number."""
    source = asked.inputs["input"]
    numbers = _numbers(source)
    found = encode("float16", numbers)
    away = np.abs(decode("float16", found)) > np.abs(numbers)
    bits = found.view(np.uint16)
    return (Exact(Tensor("float16", np.where(away, bits - np.uint16(1), bits).view(found.dtype))),)


@deviation
def positive_whole_part(asked: Deviating) -> tuple[Expected, ...]:
    """Cast and CastLike to bool: True from 1 on, as an unsigned integer is not 0."""
    return (Exact(Tensor("bool", _numbers(asked.inputs["input"]) >= 1)),)


@deviation
def saturates(asked: Deviating) -> tuple[Expected, ...]:
    """Cast and CastLike of integers: held in the range of the output's type; where that is unsigned, the 32 bits
    are those of an unsigned integer before."""
    to = asked.call.outputs[0]
    limits = np.iinfo(DTYPES[to].storage)
    numbers = asked.inputs["input"].array.astype(np.int64)
    held = np.clip(numbers if limits.min else numbers % 2**32, limits.min, limits.max)
    return (Exact(Tensor(to, held.astype(DTYPES[to].storage))),)


@deviation
def shrinks_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Shrink of integers: the formula in float32, the result converted back."""
    source, limit, bias = (
        asked.inputs["input"],
        *map(np.float32, map(asked.call.parameter, ("lambd", "bias"))),
    )
    x = source.array.astype(np.float32)
    found = np.where(x < -limit, x + bias, np.where(x > limit, x - bias, np.float32(0)))
    limits = np.iinfo(source.array.dtype)
    held = np.clip(found.astype(np.float64), limits.min, limits.max)
    return (Exact(Tensor(source.dtype, held.astype(source.array.dtype))),)


@deviation
def remainder_of_rounded_quotient(asked: Deviating) -> tuple[Expected, ...]:
    """Mod: A - B * trunc(A / B) in float32, which errs by as much as the rounding of A does."""
    a, b = np.broadcast_arrays(*map(_numbers, asked.inputs.values()))
    largest = FORMATS["float32"].largest
    with np.errstate(all="ignore"):
        value = np.where(np.abs(a / b) > largest, -np.copysign(np.inf, a), np.fmod(a, b))
        value = np.where(np.isinf(b) | (b == 0) | ~np.isfinite(a), np.nan, value)
        bound = np.where(np.isfinite(value), np.abs(a) * 2.0**-22 + np.abs(b), 0.0)
        bound = np.where(np.isfinite(value) & (np.abs(a) > largest / 2), np.inf, bound)
    return (Approx(asked.call.outputs[0], value, bound),)


@deviation
def power_beyond_float16(asked: Deviating) -> tuple[Expected, ...]:
    """Pow: infinite from where float16 rounds to infinity."""
    (found,) = asked.formula()
    assert isinstance(found, Approx)
    beyond = np.abs(found.value) >= FORMATS["float16"].largest
    value = np.where(beyond, np.copysign(np.inf, found.value), found.value)
    return (Approx(found.dtype, value, np.where(beyond, 0.0, found.bound)),)


def _numbers(tensor: Tensor) -> Array:
    return (
        decode(tensor.dtype, tensor.array)
        if DTYPES[tensor.dtype].is_float
        else tensor.array.astype(np.float64)
    )
