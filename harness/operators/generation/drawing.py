"""Operators that draw their results, for which ONNX promises a law, not values.

A graph of one has a second node with another seed, `output_other`, and where a seed is given a third with the
same, `output_again`, whose elements are to be the same to the bit. How a law is judged, `laws` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.dtypes import Array, type_of_number
from harness.model.expected import Expected, OfLaw
from harness.model.float_formats import decode, encode
from harness.operators.base import Call, Family, Operator, Shape, ValueKind, value_kinds
from harness.operators.generation.laws import Bernoulli, Law, Multinomial, Normal, Uniform, doubtful, related

# RandomNormal, RandomNormalLike:   each element of the normal law of mean and scale
# RandomUniform, RandomUniformLike: each element of the uniform law from low to high
# Bernoulli:   each element 1 with the probability that the input has there, else 0
# Multinomial: each element of a row the class c with the probability exp(input[row, c]) / sum(exp(input[row]))

_FLOATS = ("float16", "float32", "float64", "bfloat16")
_BFLOAT16_SINCE = 22
_APART = 1000
"""The other seed is so much larger: ONNX does not say that neighbouring seeds are any different."""
_ENOUGH = 64
"""Of so many elements that are drawn from a continuous law, no two outputs are equal."""


@dataclass(frozen=True)
class Judge:
    """Judges one output of a graph: `role` is 0 of the tested node's, 1 of that with another seed, 2 of that with the
    same."""

    law: Law
    dtype: str
    role: int

    def __call__(self, actual: Tensor, outputs: Sequence[Tensor]) -> str | None:
        """Name the fault of an output, beside the graph's others."""
        if self.role == 2 and outputs:
            same = actual.array.tobytes() == outputs[0].array.tobytes()
            return None if same else "a node with the same seed drew other elements"
        values = decode(*actual)
        if wrong := doubtful(self.law, values):
            return wrong
        if self.role == 1 and outputs:
            first = decode(*outputs[0])
            differs = isinstance(self.law, (Normal, Uniform)) and self.law.varies and values.size >= _ENOUGH
            if differs and (values == first).all():
                return "a node with another seed drew the same elements"
            return related(self.law, first, values)
        return None


@dataclass(frozen=True)
class LawOracle:
    """The oracle of a law, which `of` makes of a call and its inputs."""

    of: Callable[[Call, Mapping[str, Tensor]], Law]

    def __call__(self, call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        law, dtype = self.of(call, inputs), call.outputs[0]
        found = []
        for role in range(len(call.outputs)):
            values = law.sample(np.random.default_rng(role % 2), _shape(call))
            found.append(OfLaw(Tensor(dtype, encode(dtype, values)), Judge(law, dtype, role), str(law)))
        return tuple(found)


def _shape(call: Call) -> Shape:
    given = call.attributes.get("shape")
    if isinstance(given, tuple):
        return tuple(int(str(each)) for each in given)
    count = call.attributes.get("sample_size")
    if not call.inputs:
        return ()
    return (*call.first.shape[:1], int(str(count))) if count is not None else call.first.shape


def _of_numbers(kind: type[Normal | Uniform], *names: str) -> LawOracle:
    """Return the oracle of a law of two attributes."""
    return LawOracle(lambda call, _: kind(call.outputs[0], *(float(call.parameter(each)) for each in names)))


def _of_chances(kind: type[Bernoulli | Multinomial]) -> LawOracle:
    """Return the oracle of a law of the elements of the input."""
    return LawOracle(lambda _, inputs: kind(decode(*inputs["input"])))


class Seeded(Family):
    """A law with a seed."""

    def twins(self, operator: Operator, attributes: Mapping[str, Value]) -> tuple[Mapping[str, Value], ...]:
        """A node with another seed, and one with the same; without a seed another node alone."""
        seed = attributes.get("seed")
        return (
            (attributes,) if seed is None else ({**attributes, "seed": float(str(seed)) + _APART}, attributes)
        )

    def output_count(self, operator: Operator, call: Call) -> int:
        """One of each node."""
        return 3 if "seed" in call.attributes else 2

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Each node gives the same shape."""
        return (_shape(call),) * 3

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """The type that `dtype` names, or that of the input."""
        known = type_of_number(call.attributes.get("dtype"))
        return (known or (call.first.dtype if call.inputs else "float32"),) * 3

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The type of the output is one that may be drawn, and the law is one."""
        (dtype, *_) = self.output_dtypes(operator, call)
        allowed, asked = operator.options, call.attributes.get("dtype")
        unknown = asked is not None and type_of_number(asked) is None
        early = dtype == "bfloat16" and allowed == _FLOATS and call.opset < _BFLOAT16_SINCE
        return "dtype is a type of the output" if unknown or early or dtype not in allowed else None


class Choosing(Seeded):
    """A law whose probabilities are elements of the input."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"input": value_kinds("chances", "alike", "certain")}
    """Probabilities, or their logarithms in rows: any, all alike, and such that nothing is left to chance."""

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose probabilities in [0, 1], of Multinomial their logarithms in [-2, 1]."""
        dtype, shape = call.first
        shares = raw / 2.0**32
        if "sample_size" in call.attributes:
            shares = shares * 3 - 2
            if kind == "alike":
                shares = np.broadcast_to(shares[:1], shape)
            if kind == "certain" and raw.size:
                shares = np.where(shares == shares.max(-1, keepdims=True), 200.0, -200.0)
        elif kind == "alike":
            shares = np.full(shape, 0.25)
        elif kind == "certain":
            shares = np.round(shares)
        return encode(dtype, np.array(shares)).reshape(shape)


def _no_rows(call: Call) -> str | None:
    if len(call.first.shape) != 2:
        return "the input has 2 dimensions"
    if not call.first.shape[1]:
        return "there is a class"
    size = call.attributes["sample_size"]
    return None if isinstance(size, int) and size >= 1 else "sample_size is above 0"


def _no_law(call: Call) -> str | None:
    if not all(isfinite(call.parameter(name, 0.0)) for name in ("mean", "scale", "low", "high", "seed")):
        return "what is drawn of a law, or by a seed, that is not finite"
    shape = call.attributes.get("shape")
    if isinstance(shape, tuple) and any(int(each) < 0 for each in shape):
        return "no extent is below 0"
    if call.parameter("scale", 1.0) < 0:
        return "no standard deviation is below 0"
    if call.parameter("low", 0.0) > call.parameter("high", 1.0):
        return "low is the lower boundary"
    return None


DRAWING, CHOOSING = Seeded(), Choosing()
_NORMAL, _UNIFORM = _of_numbers(Normal, "mean", "scale"), _of_numbers(Uniform, "low", "high")
_ANY = (*_FLOATS, *(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)), "bool")
OPERATORS = (
    Operator("RandomNormal", DRAWING, _NORMAL, _no_law, options=_FLOATS),
    Operator("RandomNormalLike", DRAWING, _NORMAL, _no_law, options=_FLOATS),
    Operator("RandomUniform", DRAWING, _UNIFORM, _no_law, options=_FLOATS),
    Operator("RandomUniformLike", DRAWING, _UNIFORM, _no_law, options=_FLOATS),
    Operator("Bernoulli", CHOOSING, _of_chances(Bernoulli), options=_ANY),
    Operator("Multinomial", CHOOSING, _of_chances(Multinomial), _no_rows, options=("int32", "int64")),
)
