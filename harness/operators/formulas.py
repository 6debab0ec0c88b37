"""Makes an oracle from a formula: defines what the formula receives, and how its results are judged.

A formula is a function of arrays. It receives the inputs that are present by position, or, if one of its
parameters has the ONNX name of an input, those that it names; a variadic input is a list under its formal
name. It receives the attributes that it names, with ONNX's defaults; `call` gives it the whole call. It
returns an array, or a tuple with one array per output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import MINIFLOATS, decode
from harness.operators.base import Call, Oracle
from harness.operators.binary_floats import decode_bfloat16, encode_bfloat16
from harness.operators.bounded import Bounded, number
from harness.operators.bounded import arithmetic as declared

Formula = Callable[..., Any]
Limits = tuple[float, float] | Callable[..., tuple[Any, Any]]
"""The least and the greatest result of a function, the same everywhere or by the elements of its inputs."""


class Either:
    """The result of a formula where each element may be that of any of a few arrays, as the zeros of both signs often
    may."""

    def __init__(self, *choices: Array) -> None:
        self.choices = choices


def zeros_of_either_sign(
    found: Array, taken: Array, axes: tuple[int, ...], keepdims: bool = False
) -> Array | Either:
    """Return what is chosen of elements along axes; one that is zero may have the sign of any zero that it was chosen
    from."""
    if found.dtype.kind != "f":
        return found
    negative, positive = (
        ((taken == 0) & (np.signbit(taken) == sign)).any(axis=axes, keepdims=keepdims)
        for sign in (True, False)
    )
    zero, kind = found == 0, found.dtype.type
    return Either(np.where(zero & positive, kind(0), found), np.where(zero & negative, kind(-0.0), found))


class FormulaError(ValueError):
    """A formula gave no result of the call, but another number of outputs, or another element type than ONNX infers."""


@dataclass(frozen=True, slots=True)
class FormulaOracle:
    """The oracle of a formula. `way` says what the formula does to its inputs: it `moved` their elements, whatever
    those are, `decided` by them without rounding, or rounds, so that its results are `bounded`."""

    formula: Formula
    way: Literal["moved", "decided", "bounded"]
    limits: Limits | None = None

    def __call__(self, call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        found = self.given(call, inputs, partial(self.taken, arithmetic=arithmetic))
        expected = tuple(self.expected(dtype, one) for dtype, one in zip(call.outputs, found, strict=True))
        if self.limits is None or not isinstance(expected[0], Approx):
            return expected
        limits = self.limits
        return (
            msgspec.structs.replace(
                expected[0],
                limits=limits(*map(values, inputs.values())) if callable(limits) else limits,
            ),
            *expected[1:],
        )

    def given(self, call: Call, inputs: Mapping[str, Any], taken: Callable[[Any], Any]) -> Sequence[Any]:
        """Return the results of the formula, one for each output of the call; `taken` makes its argument of an input."""
        with np.errstate(all="ignore"):
            positional, named = arguments(parameters(self.formula), call, inputs, taken)
            return results(self.formula(*positional, **named), call)

    def taken(self, tensor: Tensor, arithmetic: str) -> Any:
        """Return what the formula receives of an input."""
        if self.way == "bounded" and DTYPES[tensor.dtype].is_float:
            return number(tensor, declared(arithmetic, tensor.dtype))
        return values(tensor) if self.way == "decided" else tensor.array

    def expected(self, dtype: str, result: Any) -> Expected:
        """Return the expected output, of the result of the formula for it."""
        if isinstance(result, Bounded):
            return result.stored(dtype)
        kept: Callable[[str, Array], Array] = _as_it_is if self.way == "moved" else stored
        if isinstance(result, Either):
            return OneOf(tuple(_tensor(dtype, kept(dtype, _array(dtype, array))) for array in result.choices))
        return Exact(_tensor(dtype, kept(dtype, _array(dtype, result))))


def moved(formula: Formula) -> Oracle:
    """Make the oracle of a formula that moves elements without looking at them: it works on their bits,
    bfloat16 as uint16."""
    return FormulaOracle(formula, "moved")


def decided(formula: Formula) -> Oracle:
    """Make the oracle of a formula that compares, chooses or counts without rounding: bfloat16 as float32,
    which holds all its values."""
    return FormulaOracle(formula, "decided")


def bounded(formula: Formula, limits: Limits | None = None) -> Oracle:
    """Make the oracle of a formula that rounds: floats carry a bound on the error of the declared arithmetic,
    integers wrap as NumPy's do.

    The result is held to that bound where it is a float that was computed, to the bit otherwise. No rounding excuses
    an element of the first output beyond `limits`, which every element type holds exactly.
    """
    return FormulaOracle(formula, "bounded", limits)


def between_zero_and_itself(x: Array) -> tuple[Array, Array]:
    """Return the limits of a function that is x times something from 0 to 1."""
    return np.minimum(x, 0), np.maximum(x, 0)


def _as_it_is(_dtype: str, array: Array) -> Array:
    return array


def values(tensor: Tensor) -> Array:
    """Return a tensor's elements as numbers: bfloat16 widened to float32, minifloats to float64."""
    if tensor.dtype in MINIFLOATS:
        return decode(*tensor)
    return decode_bfloat16(tensor.array) if tensor.dtype == "bfloat16" else tensor.array


def stored(dtype: str, array: Array) -> Array:
    """Return numbers in the storage of an element type: float32 narrowed to the bits of bfloat16, exactly."""
    return encode_bfloat16(array) if dtype == "bfloat16" and array.dtype == np.float32 else array


def _array(dtype: str, result: Any) -> Array:
    """Return a result as an array, also where NumPy took the one text out of an array of objects."""
    return np.asarray(result, object) if dtype == "string" else np.asarray(result)


def _tensor(dtype: str, array: Array) -> Tensor:
    if array.dtype != storage_of(dtype):
        raise FormulaError(f"the formula gives {array.dtype} where the output is {dtype}")
    return Tensor(dtype, array)


@cache
def storage_of(dtype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of an element type."""
    return np.dtype(DTYPES[dtype].storage)


@cache
def parameters(formula: Formula) -> frozenset[str]:
    """Return the names of a formula's parameters; a function of NumPy that is written in C names none that ONNX has, and
    in some releases has no signature."""
    if isinstance(formula, np.ufunc) or formula is np.where:
        return frozenset()
    found = inspect.signature(formula).parameters.values()
    return frozenset(
        each.name for each in found if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    )


class _Taking(NamedTuple):
    """How a formula takes inputs: all by position, or by name those that `named` says, under a formal name, the
    variadic ones in a list."""

    by_position: bool
    named: tuple[tuple[str, str, bool], ...]
    call: bool


@lru_cache(maxsize=4096)
def _taking(names: frozenset[str], inputs: tuple[str, ...]) -> _Taking:
    parts = [(name, *name.partition(".")) for name in inputs]
    named = tuple((name, formal, bool(dot)) for name, formal, dot, _ in parts if formal in names)
    return _Taking(not named, named, "call" in names)


def arguments(
    names: frozenset[str], call: Call, inputs: Mapping[str, Tensor], taken: Callable[[Tensor], Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a formula by position, all inputs where none of its parameters is named after one, and
    by name: inputs, attributes that are given or have a default, and the call."""
    taking = _taking(names, tuple(inputs))
    found: dict[str, Any] = {name: value for name, value in call.attributes.items() if name in names}
    for name, formal, variadic in taking.named:
        if variadic:
            found.setdefault(formal, []).append(taken(inputs[name]))
        else:
            found[formal] = taken(inputs[name])
    if taking.call:
        found["call"] = call
    return [taken(tensor) for tensor in inputs.values()] if taking.by_position else [], found


def results(result: Any, call: Call) -> Sequence[Any]:
    """Return a formula's results, one for each output of the call; raise FormulaError for another number of
    them."""
    found = result if isinstance(result, (tuple, list)) else (result,)
    if len(found) < len(call.outputs):
        raise FormulaError(f"the formula gives {len(found)} outputs where {len(call.outputs)} are asked for")
    return found[: len(call.outputs)]
