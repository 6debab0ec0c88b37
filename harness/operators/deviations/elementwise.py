"""Deviating results of elementwise operators and conversions, then those of ONNX Runtime's DirectML provider and of DirectML's own API."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import FORMATS, MINIFLOATS, decode, encode, encode_minifloat
from harness.operators.base import Undefined
from harness.operators.bounded import Bounded, tanh
from harness.operators.deviations.base import (
    Deviating,
    changed,
    deviation,
    neighbours,
    overflowing,
    register,
    replaced,
    settled,
    without_nan,
)
from harness.operators.elementwise.casting import converted
from harness.operators.elementwise.rounding import TOWARD_ZERO
from harness.operators.formulas import bounded
from harness.operators.quantization.quantising import spread


def _in_float64(asked: Deviating, function: np.ufunc) -> tuple[Expected, ...]:
    found = function(*(each.array for each in asked.converted("float64").values()))
    return (Exact(Tensor(asked.call.first.dtype, found.astype(asked.call.first.dtype))),)


# Mod and Pow: integers become float64, and their fmod or their power an integer again.
register("remainder_in_float64", partial(_in_float64, function=np.fmod))
register("power_in_float64", partial(_in_float64, function=np.power))


@deviation
def broadcast_both_ways(asked: Deviating) -> tuple[Expected, ...]:
    """PRelu: X is broadcast to slope."""
    shape = np.broadcast_shapes(*(each.array.shape for each in asked.inputs.values()))
    return asked.formula(inputs=asked.having(X=lambda x: np.broadcast_to(x, shape)))


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

    def passed_over(x: Array) -> Array:
        return np.full_like(x, -np.inf) if x.size == 1 and np.isnan(x).all() else x

    return asked.formula(inputs=asked.having(**dict.fromkeys(asked.inputs, passed_over)))


@deviation
def largest_beside_nan(asked: Deviating) -> tuple[Expected, ...]:
    """Cast, CastLike and QuantizeLinear without `saturate`, by way of float32: just beyond the largest number of E4M3FN
    that number, of E5M2 NaN."""
    to = asked.call.outputs[0]
    numbers = decode("float32", converted(next(iter(asked.inputs.values())), "float32"))
    if (scale := asked.inputs.get("y_scale")) is not None:
        scales = spread(decode(*scale), numbers.shape, asked.call)
        numbers = (numbers / scales).astype(np.float32).astype(np.float64)
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


@deviation
def rounded_or_not(asked: Deviating) -> tuple[Expected, ...]:
    """Cast: a float16 that is the number as it was, or its rounding, or anything between."""
    if asked.call.outputs[0] != "float16":
        return asked.formula()
    given = decode(*asked.inputs["input"])
    return (Approx("float16", given, np.abs(given - given.astype(np.float16))),)


@deviation
def sigmoid_of_an_odd_function(asked: Deviating) -> tuple[Expected, ...]:
    """Sigmoid of float32: 0.5 and an odd function, which has an absolute error."""
    found = asked.approx()
    return (Approx(found.dtype, found.value, found.bound + 2.7e-7 * (found.dtype == "float32")),)


@deviation
def divided_by_root_of_two(asked: Deviating) -> tuple[Expected, ...]:
    """Div: by the root of two where the divisor is within a hundred thousandth of it."""
    root = np.sqrt(2)
    return asked.formula(
        inputs=asked.having(B=lambda given: np.where(np.abs(given / root - 1) <= 1e-5, root, given))
    )


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
    given = {name: asked.call.parameter(name) for name in ("first", "second", "third")}
    return asked.formula(**{name: "-inf" if np.isnan(float(each)) else each for name, each in given.items()})


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
    shape, held = asked.inputs["X"].array.shape, asked.inputs["slope"].array
    while held.ndim > len(shape):
        held = held[0]
    held = held[tuple(map(slice, shape[len(shape) - held.ndim :]))]
    return asked.formula(inputs=asked.having(slope=held))


@deviation
def nan_above_every_alpha(asked: Deviating) -> tuple[Expected, ...]:
    """ThresholdedRelu: NaN is kept."""
    found, x = asked.exact(), asked.inputs["X"]
    return (Exact(Tensor(x.dtype, np.where(np.isnan(x.array), x.array, found.tensor.array))),)


@deviation
def positive_part_for_nan(asked: Deviating) -> tuple[Expected, ...]:
    """Celu: where the formula gives NaN, the positive part of X, as what is greater or less of NaN and 0 is 0."""
    return (without_nan(asked.approx(), np.fmax(decode(*asked.inputs["X"]), 0)),)


@deviation
def half_added(asked: Deviating) -> tuple[Expected, ...]:
    """Round: the sign times the magnitude plus 0.5 in float32, without its fraction; the sign of -0 is 0."""
    x = asked.inputs["X"]
    wide = x.array.astype(np.float32)
    whole = np.where(wide == 0, np.abs(wide), np.copysign(np.trunc(np.abs(wide) + np.float32(0.5)), wide))
    return (Exact(Tensor(x.dtype, whole.astype(x.array.dtype))),)


@deviation
def shifts_modulo_width(asked: Deviating) -> tuple[Expected, ...]:
    """BitShift: by Y modulo 32, and of 64 bits by 32 more where Y is not below 32."""
    x, y = asked.inputs.values()
    width = y.array.dtype.type(32)
    by = y.array % width
    if y.dtype == "uint64":
        by += np.where(y.array >= width, width, y.array.dtype.type(0))
    return asked.formula(inputs={"X": x, "Y": Tensor(y.dtype, by)})


@deviation
def remainder_by_division(asked: Deviating) -> tuple[Expected, ...]:
    """Mod: A - B n in float32, with n of a quotient that is off by some ULP, or infinite; of an infinite B NaN."""
    found = asked.approx()
    signed = [np.broadcast_to(decode(each.dtype, each.array), found.shape) for each in asked.inputs.values()]
    form = FORMATS["float32"]
    a, b = map(np.abs, signed)
    b = np.where(b < form.smallest_normal, 0.0, b)
    off = a * 2.0**-21 + form.smallest_normal
    rest, quotient = np.fmod(a, b), a / b
    bound = off + np.where(np.minimum(rest, b - rest) <= off, b, 0.0)
    bound += FORMATS[found.dtype].spacing(found.value)
    beyond = (quotient >= form.overflow) & (b > 0)
    near = (np.maximum(a, quotient) >= form.largest * (1 - 2.0**-21)) & (quotient < form.overflow * 4)
    undefined = ~np.isfinite(a) | ~np.isfinite(b) | (b == 0)
    value = np.where(undefined, np.nan, np.where(beyond, -np.copysign(np.inf, signed[0]), found.value))
    bound = np.where(undefined, 0.0, np.where(near, np.inf, np.where(beyond, 0.0, bound)))
    return (Approx(found.dtype, value, bound),)


@deviation
def saturates_as_signed(asked: Deviating) -> tuple[Expected, ...]:
    """Cast of integers: 32 bits, signed as the output's type is, held in its range."""
    to = asked.call.outputs[0]
    if DTYPES[to].is_float or asked.inputs["input"].dtype in FORMATS:
        raise Undefined("a float")
    limits = np.iinfo(DTYPES[to].storage)
    bits = asked.inputs["input"].array.astype(np.int64).astype(np.int32 if limits.min else np.uint32)
    return (Exact(Tensor(to, np.clip(bits, limits.min, limits.max).astype(DTYPES[to].storage))),)


@deviation
def power_in_the_range_of_float16(asked: Deviating) -> tuple[Expected, ...]:
    """Pow: infinite where FLOAT16 has no such number."""
    found = _by_logarithm(asked)
    return (overflowing(found, FORMATS["float16"], found.dtype),)


@deviation
def power_by_logarithm(asked: Deviating) -> tuple[Expected, ...]:
    """Pow: 0 for a base of 0, else the exponential of Y times the logarithm of the magnitude of X, which is NaN for
    0 times infinity; the sign is that of Y in 32 bits."""
    return (_by_logarithm(asked),)


@deviation
def power_cut_off(asked: Deviating) -> tuple[Expected, ...]:
    """Pow: of integers what the power in float32 is without its fraction."""
    x = asked.inputs["X"]
    found = _by_logarithm(asked, Tensor("float32", x.array.astype(np.float32)))
    limits = np.iinfo(DTYPES[x.dtype].storage)
    held = [np.clip(np.trunc(each), limits.min, limits.max) for each in neighbours(found)]
    return (OneOf(tuple(Tensor(x.dtype, each.astype(x.array.dtype)) for each in held)),)


@deviation
def zero_for_nan(asked: Deviating) -> tuple[Expected, ...]:
    """0 where the formula gives NaN, as what is greater of NaN and 0 is 0."""
    return (without_nan(asked.approx(), 0.0),)


def _by_logarithm(asked: Deviating, base: Tensor | None = None) -> Approx:
    given = {**asked.inputs, "X": base or asked.inputs["X"]}
    found = asked.approx(inputs=given, outputs=(given["X"].dtype,))
    x, y = (np.broadcast_to(decode(*each), found.shape) for each in given.values())
    size = np.abs(x)
    undefined = np.isnan(y * np.log2(size)) | ((x < 0) & (np.isinf(y) | (y != np.rint(y))))
    value = np.where((x < 0) & (y >= 2.0**31), -found.value, found.value)
    signed = settled(Approx(found.dtype, value, found.bound), undefined, np.nan)
    return settled(signed, size < FORMATS["float32"].smallest_normal, 0.0)
