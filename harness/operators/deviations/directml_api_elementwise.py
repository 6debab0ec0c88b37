"""What DirectML's own API gives of elementwise operators."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import FORMATS, decode
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, changed, deviation, neighbours, overflowing


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
    return (
        Approx(
            found.dtype, value, np.where(undefined, 0.0, np.where(near, np.inf, np.where(beyond, 0.0, bound)))
        ),
    )


@deviation
def saturates_as_signed(asked: Deviating) -> tuple[Expected, ...]:
    """Cast of integers: 32 bits, signed as the output's type is, held in its range."""
    to = asked.call.outputs[0]
    if DTYPES[to].is_float or asked.inputs["input"].dtype in FORMATS:
        raise Undefined("a float")
    limits = np.iinfo(DTYPES[to].storage)
    bits = asked.inputs["input"].array.astype(np.int64).astype(np.int32 if limits.min else np.uint32)
    return (Exact(Tensor(to, np.clip(bits, limits.min, limits.max).astype(DTYPES[to].storage))),)


# What the operator's formula makes of a call, whatever rule the call breaks.
changed("by_its_own_formula")


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
    return (
        OneOf(
            tuple(
                Tensor(x.dtype, np.clip(np.trunc(each), limits.min, limits.max).astype(x.array.dtype))
                for each in neighbours(found)
            )
        ),
    )


@deviation
def zero_for_nan(asked: Deviating) -> tuple[Expected, ...]:
    """0 where the formula gives NaN, as what is greater of NaN and 0 is 0."""
    found = asked.approx()
    return (Approx(found.dtype, np.nan_to_num(found.value, posinf=np.inf, neginf=-np.inf), found.bound),)


def _by_logarithm(asked: Deviating, base: Tensor | None = None) -> Approx:
    given = {**asked.inputs, "X": base or asked.inputs["X"]}
    found = asked.approx(inputs=given, outputs=(given["X"].dtype,))
    x, y = (np.broadcast_to(decode(*each), found.shape) for each in given.values())
    size = np.abs(x)
    undefined = np.isnan(y * np.log2(size)) | ((x < 0) & (np.isinf(y) | (y != np.rint(y))))
    value = np.where((x < 0) & (y >= 2.0**31), -found.value, found.value)
    zero = size < FORMATS["float32"].smallest_normal
    value = np.where(zero, 0.0, np.where(undefined, np.nan, value))
    return Approx(found.dtype, value, np.where(zero | undefined, 0.0, found.bound))
