"""Mistakes of Round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import encode
from harness.operators.binary_floats import decode_bfloat16
from tests.mutants import Call, Mutant
from tests.mutants.blocks import of_blocks
from tests.mutants.moving import altered, of_sizes, of_state, refused, where

NAME = "Round"
Rounding = Callable[[Array], Array]


def rounding(
    name: str, change: Rounding, dtypes: tuple[str, ...] = ("float32", "float16", "float64"), enough: int = 2
) -> Iterator[Mutant]:
    """Yield a mutant for each element type that rounds in another way; bfloat16 is computed in float32."""
    for dtype in dtypes:

        def kernel(call: Call, dtype: str = dtype) -> Array:
            right = call.right()
            if call.inputs[0].dtype != dtype or call.case.options.variant is not None:
                return right
            x = call.inputs[0].array
            if dtype == "bfloat16":
                return encode(dtype, np.asarray(change(decode_bfloat16(x))))
            return np.asarray(change(x))

        yield Mutant(
            f"{NAME}: {dtype}: {name}",
            NAME,
            kernel,
            enough,
            {"bfloat16": ("cpu", "dml"), "float64": ("dml",)}.get(dtype, ()),
        )


def half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), x.dtype), x), whole)


def half_down(x: Array) -> Array:
    whole = np.floor(x)
    return np.where(x - whole > 0.5, whole + x.dtype.type(1), whole)


def half_odd(x: Array) -> Array:
    whole = np.rint(x)
    return np.where(
        np.abs(x - np.trunc(x)) == 0.5, np.trunc(x) + np.floor(x) - whole + np.ceil(x) - np.trunc(x), whole
    )


def half_zero(x: Array) -> Array:
    return np.where(np.abs(x - np.trunc(x)) == 0.5, np.trunc(x), np.rint(x))


def magic(exponent: int, signed: bool = False) -> Rounding:
    """Add and subtract a power of two, whose last place is 1."""

    def change(x: Array) -> Array:
        big = x.dtype.type(2.0**exponent)
        if signed:
            big = np.copysign(big, x)
        return (x + big) - big

    return change


def magic_guarded(x: Array) -> Array:
    limit = {2: 10, 4: 23, 8: 52}[x.itemsize]
    big = x.dtype.type(2.0**limit)
    return np.where(np.abs(x) < big, (x + big) - big, x)


def through_integer(dtype: str) -> Rounding:
    """Round, then pass through an integer type, whose limits hold what lies beyond."""

    def change(x: Array) -> Array:
        limits = np.iinfo(dtype)
        y = np.rint(x).astype(np.float64)
        held = np.clip(
            np.nan_to_num(y, nan=0.0, posinf=float(limits.max), neginf=float(limits.min)),
            float(limits.min),
            float(limits.max),
        )
        return held.astype(x.dtype)

    return change


def of_rounding() -> Iterator[Mutant]:
    """Other rules of rounding, and shortcuts."""
    every = ("float32", "float16", "float64", "bfloat16")
    yield from rounding("halves go away from zero", half_away, every)
    yield from rounding("halves go up: floor(x + 0.5)", lambda x: np.floor(x + x.dtype.type(0.5)), every)
    yield from rounding("halves go down: ceil(x - 0.5)", lambda x: np.ceil(x - x.dtype.type(0.5)), every)
    yield from rounding("halves go to minus infinity", half_down)
    yield from rounding("halves go to zero", half_zero)
    yield from rounding("halves go to odd", half_odd)
    yield from rounding("the fraction is dropped", np.trunc)
    yield from rounding("floor", np.floor)
    yield from rounding("ceil", np.ceil)
    yield from rounding("nothing is rounded", lambda x: x)
    yield from rounding(
        "halves to even only below 8", lambda x: np.where(np.abs(x) < 8, np.rint(x), half_away(x))
    )
    yield from rounding(
        "halves to even only below 100", lambda x: np.where(np.abs(x) < 100, np.rint(x), half_away(x))
    )
    yield from rounding("halves to even only above 0", lambda x: np.where(x > 0, np.rint(x), half_away(x)))
    yield from rounding("even is found by a remainder of x, not of |x|", lambda x: _even_by_remainder(x))
    yield from rounding(
        "adding 0.5 where no half",
        lambda x: np.where(np.abs(x - np.trunc(x)) == 0.5, np.rint(x), np.floor(x + x.dtype.type(0.5))),
    )
    yield from rounding(
        "0.49999997 rounds up",
        lambda x: np.where(
            np.abs(x) == np.nextafter(x.dtype.type(0.5), x.dtype.type(0)),
            np.copysign(x.dtype.type(1), x),
            np.rint(x),
        ),
    )
    yield from rounding(
        "halves by a tolerance of 1e-6",
        lambda x: np.where(np.abs(np.abs(x - np.trunc(x)) - 0.5) < 1e-6, half_away(x), np.rint(x)),
        ("float32", "float64"),
    )
    yield from rounding("the sign of zero is lost", lambda x: np.rint(x) + x.dtype.type(0), every)
    yield from rounding(
        "the sign of a zero result is lost, not that of -0",
        lambda x: np.where((x != 0) & (np.rint(x) == 0), x.dtype.type(0), np.rint(x)),
    )
    yield from rounding("-0 becomes 0", lambda x: np.where(x == 0, x.dtype.type(0), np.rint(x)))
    yield from rounding(
        "-0.5 becomes 0", lambda x: np.where(x == x.dtype.type(-0.5), x.dtype.type(0), np.rint(x))
    )
    yield from rounding(
        "every zero result is negative", lambda x: np.where(np.rint(x) == 0, x.dtype.type(-0.0), np.rint(x))
    )
    yield from rounding(
        "subnormals become 0",
        lambda x: np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), np.rint(x)),
    )
    yield from rounding("NaN becomes 0", lambda x: np.where(np.isnan(x), x.dtype.type(0), np.rint(x)), every)
    yield from rounding(
        "NaN becomes infinity", lambda x: np.where(np.isnan(x), x.dtype.type(np.inf), np.rint(x))
    )
    yield from rounding(
        "infinity becomes NaN", lambda x: np.where(np.isinf(x), x.dtype.type(np.nan), np.rint(x)), every
    )
    yield from rounding(
        "infinity becomes the largest number",
        lambda x: np.where(np.isinf(x), np.copysign(np.finfo(x.dtype).max, x), np.rint(x)),
    )
    yield from rounding("infinity loses its sign", lambda x: np.where(np.isinf(x), np.abs(x), np.rint(x)))
    yield from rounding(
        "the largest number becomes infinity",
        lambda x: np.where(np.abs(x) == np.finfo(x.dtype).max, x * x.dtype.type(2), np.rint(x)),
    )
    for integer in ("int8", "int16", "int32", "int64"):
        yield from rounding(
            f"passes through {integer}",
            through_integer(integer),
            tuple(
                t
                for t in ("float32", "float16", "float64")
                if (t, integer) not in {("float16", "int32"), ("float16", "int64")}
            ),
        )
    yield from rounding("infinity and NaN pass through int32", through_integer("int32"), ("float16",))
    for exponent, dtype in ((10, "float16"), (23, "float32"), (52, "float64")):
        yield from rounding("adds the limit of precision", magic(exponent), (dtype,))
        yield from rounding(
            "adds the limit of precision with the sign of x", magic(exponent, signed=True), (dtype,)
        )
        yield from rounding(
            "adds one and a half times the limit",
            lambda x, e=exponent: (x + x.dtype.type(1.5 * 2.0**e)) - x.dtype.type(1.5 * 2.0**e),
            (dtype,),
        )
        yield from rounding(
            "numbers from half the limit are left alone",
            lambda x, e=exponent: np.where(np.abs(x) >= 2.0 ** (e - 1), x, np.rint(x)),
            (dtype,),
        )
        yield from rounding(
            "the last half below the limit is left alone",
            lambda x, e=exponent: np.where(np.abs(x) >= 2.0**e - 1, x, np.rint(x)),
            (dtype,),
        )
        yield from rounding(
            "numbers from the limit lose their last bit",
            lambda x, e=exponent: np.where(np.abs(x) >= 2.0**e, np.rint(x / 2) * 2, np.rint(x)),
            (dtype,),
        )
    yield from rounding("adds the limit of precision below it", magic_guarded)
    yield from rounding(
        "passes through float32", lambda x: np.rint(x.astype("f4")).astype(x.dtype), ("float64",)
    )
    yield from rounding(
        "passes through float16", lambda x: np.rint(x.astype("f2")).astype(x.dtype), ("float32", "float64")
    )
    yield from rounding(
        "passes through bfloat16",
        lambda x: np.rint(decode_bfloat16(encode("bfloat16", x))).astype(x.dtype),
        ("float32", "float16"),
    )
    yield from rounding(
        "adds 0.5 in float32",
        lambda x: np.floor(x.astype("f4") + np.float32(0.5)).astype(x.dtype),
        ("float16",),
    )
    yield from rounding(
        "is kept to 3 decimals before",
        lambda x: np.rint(np.rint(x.astype("f8") * 1000) / 1000).astype(x.dtype),
    )


def _even_by_remainder(x: Array) -> Array:
    """Take floor(x), odd where its C remainder by 2 is 1: below 0 it is -1."""
    down = np.floor(x)
    fraction = x - down
    odd = np.fmod(down, x.dtype.type(2)) == 1
    return np.where(fraction == 0.5, np.where(odd, down + x.dtype.type(1), down), np.rint(x))


def of_calls() -> Iterator[Mutant]:
    """Empty tensors, ranks, aliasing."""
    yield refused("empty tensors", NAME, lambda call: 0 in call.shapes[0])
    yield refused("rank 0", NAME, lambda call: call.shapes[0] == ())
    yield altered(
        "an empty output loses its shape", NAME, lambda out, call: out if out.size else out.reshape(0)
    )
    yield altered("rank 0 becomes rank 1", NAME, lambda out, call: out if out.ndim else out.reshape(1))
    for dtype in ("float32", "float16", "float64"):
        elsewhere = ("dml",) if dtype == "float64" else ()
        same = lambda call, d=dtype: call.case.options.in_place and call.inputs[0].dtype == d  # noqa: E731
        yield altered(f"{dtype} in place is wrong from element 4 on", NAME, where(same, 4), 2, elsewhere)
        yield altered(
            f"{dtype} in place is left alone",
            NAME,
            lambda out, call, s=same: call.inputs[0].array if s(call) else out,
            2,
            elsewhere,
        )
    for variant in ("toward_zero", "halves_away_from_zero"):
        yield altered(
            f"{variant} is nearest even",
            NAME,
            lambda out, call, v=variant: _plain(call) if call.case.options.variant == v else out,
        )


def _plain(call: Call) -> Array:
    x = call.inputs[0].array
    return (
        encode("bfloat16", np.rint(decode_bfloat16(x)))
        if call.inputs[0].dtype == "bfloat16"
        else np.asarray(np.rint(x))
    )


def mutants() -> Iterator[Mutant]:
    """Yield all mistakes of Round."""
    yield from of_rounding()
    yield from of_calls()
    yield from of_sizes(
        NAME, (4, 16, 64, 256, 1024, 4096, 32767, 65535, 65536), (2, 4, 8, 16, 32, 64, 256, 1024)
    )
    yield from of_state(NAME)
    for elements in (2, 65_000):
        yield from of_blocks(NAME, lambda call: max(prod(call.shapes[0]), 1), elements)
