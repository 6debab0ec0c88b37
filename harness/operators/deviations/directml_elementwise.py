"""What ONNX Runtime's DirectML provider gives of elementwise operators and conversions."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected
from harness.model.float_formats import FORMATS, decode, encode
from harness.operators.deviations.base import Deviating, changed, deviation
from harness.operators.deviations.elementwise import shrunk


@deviation
def holds_below_max_first(asked: Deviating) -> tuple[Expected, ...]:
    """Clip: min(input, max), then the greater of that and min."""
    low = asked.inputs["min"].array
    return asked.formula(inputs=asked.having(max=lambda high: np.maximum(low, high)))


@deviation
def gelu_by_erf(asked: Deviating) -> tuple[Expected, ...]:
    """Gelu: by erf, whatever approximate says. Direct3D states no error of erf; results of float32 lie within 1.85 times
    what OpenCL's erf allows, so they are given twice that."""
    found = asked._replace(arithmetic="opencl").approx(approximate="none")
    return (Approx(found.dtype, found.value, np.asarray(2 * found.bound), found.limits),)


# ThresholdedRelu: a threshold that is NaN lets all elements pass.
changed("passes_all", alpha=float("-inf"))


# IsInf: as if both infinities were asked for.
changed("detects_both_infinities", detect_negative=1, detect_positive=1)


@deviation
def float16_toward_zero(asked: Deviating) -> tuple[Expected, ...]:
    """Cast and CastLike to float16: rounded toward zero, beyond the range to the largest number."""
    source = asked.inputs["input"]
    numbers = decode(*source)
    found = encode("float16", numbers)
    away = np.abs(decode("float16", found)) > np.abs(numbers)
    bits = found.view(np.uint16)
    return (Exact(Tensor("float16", np.where(away, bits - np.uint16(1), bits).view(found.dtype))),)


@deviation
def positive_whole_part(asked: Deviating) -> tuple[Expected, ...]:
    """Cast and CastLike to bool: True from 1 on, as an unsigned integer is not 0."""
    return (Exact(Tensor("bool", decode(*asked.inputs["input"]) >= 1)),)


@deviation
def cast_as_alone(asked: Deviating) -> tuple[Expected, ...]:
    """Cast: to bool, to float16, or from negative numbers to unsigned integers as the provider converts them."""
    source, to = asked.inputs["input"].dtype, asked.call.outputs[0]
    if to == "bool":
        return positive_whole_part(asked)
    if to == "float16" and source != "float16":
        return float16_toward_zero(asked)
    if to.startswith("uint") and DTYPES[source].is_float:
        return asked.formula(inputs=asked.having(input=lambda given: np.maximum(given, 0)))
    return asked.formula()


def _bounds_of_clip(asked: Deviating) -> tuple[float, float]:
    """Return the least and the greatest number that ReluClip's Clip lets through."""
    largest = FORMATS[asked.inputs["X"].dtype].largest
    given = asked.call.parameter
    clipped = (*given("clipped"), "", "")
    least = given("low" if clipped[1] else "least")
    most = given("high" if clipped[2] else "most")
    return -largest if least in ("", None) else float(least), largest if most in ("", None) else float(most)


def _bounded(asked: Deviating, of_nothing: float, low: float, high: float) -> tuple[Expected, ...]:
    """Return the positive part of X, of which NaN is `of_nothing`, below `high`, then above `low`; then, of two outputs, that
    part itself."""
    x = asked.inputs["X"]
    part = np.maximum(np.nan_to_num(decode(*x), nan=of_nothing, posinf=np.inf, neginf=-np.inf), 0)
    held = np.maximum(np.minimum(part, high), low)
    return tuple(Approx(x.dtype, each, np.zeros(part.shape)) for each in (held, part))[
        : len(asked.call.outputs)
    ]


@deviation
def clips_what_relu_gives(asked: Deviating) -> tuple[Expected, ...]:
    """Relu and Clip: NaN is 0 behind Relu, and Clip's max comes first."""
    return _bounded(asked, 0.0, *_bounds_of_clip(asked))


@deviation
def clips_at_once(asked: Deviating) -> tuple[Expected, ...]:
    """Relu and Clip as one Clip, whose min is not below 0 and whose max comes first, also of NaN."""
    low, high = _bounds_of_clip(asked)
    return _bounded(asked, np.inf, max(low, 0.0), high)


@deviation
def drops_nan(asked: Deviating) -> tuple[Expected, ...]:
    """ConstantSharing: what is greater of NaN and a number is the number."""

    def least(name: str) -> Value:
        given: Value = asked.call.parameter(name)
        return "-inf" if np.isnan(float(given)) else given  # type: ignore[arg-type]

    return asked.formula(first=least("first"), second=least("second"), third=least("third"))


@deviation
def shrinks_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Shrink of integers: the formula in float32, the result converted back."""
    source = asked.inputs["input"]
    limits = np.iinfo(source.array.dtype)
    held = np.clip(shrunk(asked).astype(np.float64), limits.min, limits.max)
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


@deviation
def nan_above_every_alpha(asked: Deviating) -> tuple[Expected, ...]:
    """ThresholdedRelu: NaN is kept."""
    found, x = asked.exact(), asked.inputs["X"]
    return (Exact(Tensor(x.dtype, np.where(np.isnan(x.array), x.array, found.tensor.array))),)


@deviation
def positive_part_for_nan(asked: Deviating) -> tuple[Expected, ...]:
    """Celu: where the formula gives NaN, the positive part of X, as what is greater or less of NaN and 0 is 0."""
    found, x = asked.approx(), asked.inputs["X"]
    value = np.where(np.isnan(found.value), np.fmax(decode(*x), 0), found.value)
    return (Approx(found.dtype, value, found.bound),)
