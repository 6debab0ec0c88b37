"""What is given in place of elements in another type."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Exact, Expected
from harness.model.float_formats import MINIFLOATS, decode, encode_minifloat
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.elementwise.casting import converted

_BESIDE = {"float8e4m3fn": (480, 496, 0x7E), "float8e5m2": (61440, 65536, 0x7F)}
"""From what number to below what other the kernel gives which pattern."""


@deviation
def rounded_twice(asked: Deviating) -> tuple[Expected, ...]:
    """Cast: rounded to float32 first, and that to the type that is asked for."""
    narrow = {name: Tensor("float32", converted(each, "float32")) for name, each in asked.inputs.items()}
    return asked.formula(inputs=narrow)


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


@deviation
def powers_rounded_up(asked: Deviating) -> tuple[Expected, ...]:
    """CastLike: as if no `round_mode` were given."""
    return asked.formula(round_mode="up")
