"""What ONNX Runtime's DirectML provider gives of elementwise operators and conversions."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Exact, Expected
from harness.model.float_formats import decode, encode
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
def beginning_of_slope(asked: Deviating) -> tuple[Expected, ...]:
    """PRelu: of a slope that is wider than X what begins where X does."""
    x, slope = asked.inputs["X"], asked.inputs["slope"]
    held = slope.array
    while held.ndim > x.array.ndim:
        held = held[0]
    held = held[tuple(map(slice, x.array.shape[x.array.ndim - held.ndim :]))]
    return asked.formula(inputs={"X": x, "slope": Tensor(slope.dtype, held)})


def _numbers(tensor: Tensor) -> Array:
    return (
        decode(tensor.dtype, tensor.array)
        if DTYPES[tensor.dtype].is_float
        else tensor.array.astype(np.float64)
    )
