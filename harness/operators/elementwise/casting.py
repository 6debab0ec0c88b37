"""Cast, CastLike and BitCast: elements in another type, by their value or by their bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, ClassVar, Literal
from typing import cast as as_type

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array, Limits, type_of_number
from harness.model.expected import Exact, Expected, OneOf
from harness.model.float_formats import FORMATS, MINIFLOATS, Rounding, decode, encode, encode_minifloat
from harness.operators import elements
from harness.operators.base import (
    Call,
    DirectmlCall,
    Entropy,
    Operator,
    Relation,
    Shape,
    Undefined,
    ValueKind,
    one_to_one,
)
from harness.operators.bounded import arithmetic, number
from harness.operators.computing import Computing
from harness.operators.formulas import moved

# Cast:     output = the value of input in the type `to`: a float to the nearest of the type, halves to even, beyond its range to infinity;
#           a float to an integer toward zero; an integer to an integer modulo 2 ** bits; anything to bool by != 0; bool to 0 and 1;
#           text to what it spells, numbers to text that spells them; to a float of at most 8 bits the same but beyond its range, by
#           `saturate`: the largest number, or infinity or NaN, as ONNX's tables say
# CastLike: the same, with the type of a second input
# BitCast:  the bits of input, read as elements of a type that is as wide


def cast(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Cast by the formula above; a number that a narrower float type would flush may become zero."""
    source, to = inputs["input"], call.outputs[0]
    with np.errstate(all="ignore"):
        if to == "string" != source.dtype:
            return (OneOf(_spelled(source)),)
        found = Tensor(to, _to_minifloat(source, to, call) if to in MINIFLOATS else converted(source, to))
    if not (DTYPES[source.dtype].is_float and DTYPES[to].is_float):
        return (Exact(found),)
    taken = number(source, arithmetic(declared, source.dtype, flush=None if to != source.dtype else False))
    lost = np.where(taken.error > 0, 0.0, 1.0)
    if arithmetic(declared, to).flush:
        lost = np.where(np.abs(decode(to, found.array)) < FORMATS[to].smallest_normal, 0.0, lost)
    flushed = encode(to, np.where(lost == 0, np.copysign(0.0, taken.value), decode(to, found.array)))
    return (OneOf((found, Tensor(to, np.where(lost == 0, flushed, found.array)))),)


def _to_minifloat(source: Tensor, to: str, call: Call) -> Array:
    """Return elements as a float of at most 8 bits, rounded once."""
    if source.dtype == to:
        return source.array
    numbers = decode("float64", converted(source, "float64"))
    if to == "float8e8m0" and np.signbit(numbers).any():
        raise Undefined("a negative number, or -0, as a power of two")
    rounding = call.attributes.get("round_mode", "up")
    return encode_minifloat(
        to, numbers, bool(call.attributes.get("saturate", 1)), as_type(Rounding, rounding)
    )


def _spelled(source: Tensor) -> tuple[Tensor, ...]:
    """Return the shortest texts that spell numbers without an exponent: those of floats with a fraction or without."""
    entry = DTYPES[source.dtype]
    numbers = source.array if entry.storage[0] in "fiu" and not entry.is_minifloat else decode(*source)
    found = []
    trims: tuple[Literal["-", "0"], ...] = ("-", "0") if entry.is_float or entry.is_minifloat else ("-",)
    for trim in trims:
        texts = np.empty(numbers.size, object)
        texts[:] = [
            np.format_float_positional(each, trim=trim) if numbers.dtype.kind == "f" else str(each)
            for each in numbers.reshape(-1)
        ]
        found.append(Tensor("string", texts.reshape(numbers.shape)))
    return tuple(found)


def converted(source: Tensor, to: str) -> Array:
    """Return elements in another type."""
    given, wanted = DTYPES[source.dtype], DTYPES[to]
    array = source.array
    if source.dtype == to:
        return array
    if source.dtype == "string":
        numbers = np.array([float(text) for text in array.reshape(-1).tolist()]).reshape(array.shape)
        return encode(to, numbers) if wanted.is_float else _whole(array, wanted.storage)
    if given.is_float or given.is_minifloat:
        numbers = decode(source.dtype, array)
        if wanted.is_float:
            return encode(to, numbers)
        return np.asarray(numbers != 0) if to == "bool" else wanted.wrapped(np.trunc(numbers))
    if wanted.is_float:
        return _rounded(array, to)
    return np.asarray(array != 0) if to == "bool" else wanted.wrapped(array)


NUMERALS = ValueKind("numerals")
"""Text that spells numbers which the type has: with and without a sign, zeros before them, a fraction and an
exponent, and of float types the words for infinities and NaN."""
_REAL = (
    *("0", "-0", "1", "-1", "+1", "3.25", "-0.5", "+2.75", "007", "-012.5", "0.0625", "1000", "1e2", "1E2"),
    *("2.5e-1", "-1.5E+1", "+1e+0", "25e-2", "INF", "+INF", "-INF", "NaN", "inf", "+Inf", "-inf", "nan"),
)


BORDERS = ValueKind("borders")
"""Of the numbers of a narrower float every one, what lies halfway between two, and the next to both sides; then
beyond its range; each of both signs."""


def _borders(source: str, to: str) -> Array:
    form = MINIFLOATS[to]
    grid = form.magnitudes(form.largest + 2)
    middle = (grid[:-1] + grid[1:]) / 2
    plain = encode(source, np.concatenate([grid, middle, [np.inf, np.nan, 4 * grid[-1]]]))
    bits = encode(source, middle).view(f"u{DTYPES[source].itemsize}")
    near = np.concatenate([bits - 1, bits + 1]).astype(bits.dtype).view(plain.dtype)
    found = np.concatenate([plain, near])
    return found if to == "float8e8m0" else np.concatenate([found, encode(source, -decode(source, found))])


def _integers(limits: Limits) -> tuple[str, ...]:
    below = ("-1", "-7", "-007", f"{limits.min + 1}") if limits.min else ()
    return ("0", "1", "+1", "42", "007", f"+{limits.max}", f"{limits.max - 1}", f"{limits.min}", *below)


def _whole(texts: Array, storage: str) -> Array:
    return np.array([int(text) for text in texts.reshape(-1).tolist()], storage).reshape(texts.shape)


def _rounded(integers: Array, to: str) -> Array:
    """Round integers once, also of 64 bits, which float64 does not hold: the bits that it would drop become an odd
    last bit."""
    if to == "float64" or integers.dtype.itemsize < 8:
        return integers.astype(np.float64) if to == "float64" else encode(to, integers.astype(np.float64))
    near = integers.astype(np.float64)
    back = np.array([int(each) for each in near.reshape(-1).tolist()], object).reshape(integers.shape)
    apart = np.asarray(integers.astype(object) - back, np.float64)
    bits = near.view(np.int64)
    toward = np.where(
        (apart != 0) & (bits % 2 == 0), np.where((apart > 0) == (near > 0), bits + 1, bits - 1), bits
    )
    return encode(to, toward.view(np.float64))


class Casting(Computing):
    """One input; the type of the output by `to`, or that of a second input, whose shape is `scalar` or
    `vector`."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"target_type": ("scalar", "vector")}
    lowers = "DML_OPERATOR_CAST"

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """The second input's shape, which does not matter."""
        return (2,) if relation == "vector" else ()

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """By `to`."""
        to = call.attributes.get("to")
        if to is None:
            return (call.inputs["target_type"].dtype,) if "target_type" in call.inputs else ()
        return (type_of_number(to),)

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """The numbers of all types."""
        return [each for each, held in BY_ONNX_NUMBER.items() if each not in (14, 15) and not held.narrow]

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """The usual ones, numbers as text, and those around the numbers of a minifloat."""
        usual = super().kinds(operator, name)
        return (*usual, NUMERALS, BORDERS) if name == "input" and operator.options != "bits" else usual

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind; numerals are the list over again, from a place in it."""
        shape, to = call.inputs[name].shape, DTYPES[call.outputs[0]]
        if kind == BORDERS.name:
            return np.resize(_borders(call.inputs[name].dtype, to.name), shape)
        if kind != NUMERALS.name:
            return super().generate(operator, kind, name, call, entropy)
        listed = _integers(to.limits) if to.is_integer else _REAL
        places = np.arange(prod(shape)) + np.frombuffer(entropy, "<u4", 1)
        return np.array([listed[place % len(listed)] for place in places], object).reshape(shape)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Text that spells nothing is cast to text alone, floats below 0 to no unsigned integers; `specials`
        and `normal` lie beyond."""
        source, to = call.inputs[name].dtype, DTYPES[call.outputs[0]]
        if kind == NUMERALS.name:
            return name == "input" and source == "string" and to.name not in ("string", "bool")
        if kind == BORDERS.name:
            return DTYPES[source].is_float and to.is_minifloat
        if (
            name == "input"
            and "string" in (source, to.name)
            and source != to.name
            and operator.options != "bits"
        ):
            return False
        from_float = DTYPES[source].is_float or DTYPES[source].is_minifloat
        if name == "input" and to.is_integer and from_float and operator.options != "bits":
            return kind in ("positive", "specials", "normal") or (
                kind in ("ordinary", "integers", "unit") and to.limits.min < 0
            )
        return elements.applies(kind, source)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """A type there is."""
        to = call.attributes.get("to")
        if to is not None and to not in BY_ONNX_NUMBER:
            return "to is an element type"
        if operator.options == "bits" and DTYPES[call.first.dtype].width != DTYPES[call.outputs[0]].width:
            return "both types have as many bits"
        return None

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Bool is UINT8, whose numbers beyond 1 are clipped by a second operator."""
        return None if call.outputs[0] == "bool" else one_to_one(candidate, {}, call)


def bit_cast(input: Array, call: Call) -> Array:
    """Read the bits by the formula above."""
    to = DTYPES[call.outputs[0]]
    bits = np.ascontiguousarray(input).view(to.storage).reshape(input.shape)
    return to.wrapped(bits) if to.narrow else bits


CASTING = Casting()
OPERATORS = (
    Operator("Cast", CASTING, cast),
    Operator("CastLike", CASTING, cast),
    Operator("BitCast", CASTING, moved(bit_cast), options="bits"),
)
