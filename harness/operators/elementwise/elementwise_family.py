"""The family of elementwise operators: each element of the output from the elements of the inputs at its
place, after broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode
from harness.operators import broadcasting
from harness.operators.base import (
    Call,
    CallTensor,
    DirectmlCall,
    Entropy,
    Family,
    Operator,
    Relation,
    Shape,
    ValueKind,
    value_kinds,
    variadic,
)
from harness.operators.binary_floats import halfway_values, patterns_of, special_patterns
from harness.operators.computing import Computing

_LISTS = ("nans", "infinities", "zeros")
FLOAT_KINDS = value_kinds("ordinary", "random", "specials", "halves", "subnormal", "patterns", *_LISTS)
"""Ways to choose floats: ordinary, uniform in -100..100; random, any bit pattern; specials and halves, lists
that `natural_shape` holds whole; subnormal, random nonzero subnormals; patterns, every bit pattern of a
16-bit type, in order; nans, infinities, zeros, nothing but these."""


def floats(kind: str, dtype: str, shape: Shape, entropy: Entropy) -> Array:
    """Choose floats by kind, repeated or cut to the shape."""
    count = prod(shape)
    storage = np.dtype(DTYPES[dtype].storage)
    if kind in ("random", "subnormal"):
        drawn = np.frombuffer(entropy, f"<u{storage.itemsize}", count)
        if kind == "subnormal":
            drawn = _subnormal(drawn, dtype)
        return np.array(drawn.view(storage).reshape(shape))
    if kind == "ordinary":
        quarters = np.frombuffer(entropy, "<u4", count) % 801
        return encode(dtype, quarters / 4.0 - 100.0).reshape(shape)
    if kind in _LISTS:
        listed = patterns_of(kind, dtype)
        return np.asarray(listed[np.frombuffer(entropy, "<u4", count) % listed.size].reshape(shape))
    if kind == "patterns":
        whole = (
            np.arange(1 << (8 * storage.itemsize), dtype=f"<u{storage.itemsize}")
            if storage.itemsize == 2
            else None
        )
        if whole is None:
            raise ValueError("only 16-bit types have few enough bit patterns")
        return np.resize(whole, shape).view(storage)
    return np.resize(special_patterns(dtype) if kind == "specials" else halfway_values(dtype), shape)


def _subnormal(drawn: NDArray[np.generic], dtype: str) -> NDArray[np.generic]:
    mantissa = DTYPES[dtype].mantissa
    assert mantissa is not None
    width = drawn.dtype.itemsize * 8
    kept = drawn & drawn.dtype.type((1 << mantissa) - 1 | 1 << (width - 1))
    return np.asarray(kept | drawn.dtype.type(1))


class Rounded(Family):
    """One input of floats, chosen for what rounding may get wrong; one output of its shape."""

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Floats."""
        return FLOAT_KINDS

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Only 16-bit types have few enough patterns for all of them."""
        return kind != "patterns" or DTYPES[call.inputs[name].dtype].itemsize == 2

    def natural_shape(self, operator: Operator, kind: str, dtype: str) -> Shape | None:
        """The shape in which a kind's list of values stands once."""
        if kind == "specials":
            return (special_patterns(dtype).size,)
        if kind == "halves":
            return (halfway_values(dtype).size,)
        return (1 << 16,) if kind == "patterns" and DTYPES[dtype].itemsize == 2 else None

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose floats by kind."""
        return floats(kind, *call.inputs[name], entropy)


class Elementwise(Computing):
    """Any number of inputs that are broadcast together, one output.

    `options` may be a function of a call that gives the further members of the DirectML operator.
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "*": (*broadcasting.RELATIONS, "of", "count", "others")
    }
    lowers, lowers_broken = "", True
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"others": (*broadcasting.RELATIONS, "last_higher")}

    def shape(
        self, operator: Operator, name: str, relation: Relation, call: Call
    ) -> Shape | tuple[Shape, ...] | None:
        """Derive the shape of a further input from the first one's by a word of `broadcasting.RELATIONS`; of
        a variadic one, all shapes, where by `last_higher` the last one alone is higher than the first."""
        if isinstance(relation, str):
            return broadcasting.related(relation, call.first.shape)
        if "of" not in relation:
            return call.first.shape
        last = relation.get("count", 2) - 1

        def other(word: str, first: Shape, place: int) -> Shape | None:
            word = ("higher" if place == last else "same") if word == "last_higher" else word
            return broadcasting.related(word, first)

        return variadic(relation, other)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Shapes that cannot be broadcast."""
        return None if broadcasting.broadcast(call.shapes) is not None else "the shapes can be broadcast"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape that the inputs have together."""
        return (broadcasting.broadcast(call.shapes) or call.first.shape,)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The inputs with strides of 0 where they are broadcast, and the members that the operator adds."""
        attributes = {} if operator.options is None else operator.options(call)
        return broadcast_call(candidate, call, attributes, constants=operator.constants)


def broadcast_call(
    candidate: str,
    call: Call,
    attributes: Mapping[str, Any] = MappingProxyType({}),
    *,
    constants: Container[str] = (),
) -> DirectmlCall | None:
    """Return the DirectML call whose tensors are the inputs, but for those in `constants`; None for more of
    them than it has tensors."""
    inputs = {name: given for name, given in call.inputs.items() if name not in constants}
    names = _MEMBERS_OF.get(candidate, _MEMBERS.get(len(inputs), ()))
    wide = broadcasting.broadcast([given.shape for given in inputs.values()])
    if not inputs or len(names) != len(inputs) or wide is None:
        return None
    tensors = {
        member: CallTensor(name, given.dtype, wide, broadcasting.strides(given.shape, wide))
        for member, (name, given) in zip(names, inputs.items(), strict=True)
    }
    tensors["OutputTensor"] = CallTensor(0, call.outputs[0], wide)
    return DirectmlCall(candidate, tensors, 1, attributes)


def decides(choice: Callable[[Call], str | None]) -> Callable[[str | None, Call], DirectmlCall | None]:
    """Make the lowering of an operator whose call decides the DirectML operator, or that there is none."""

    def lowered(candidate: str | None, call: Call) -> DirectmlCall | None:
        chosen = choice(call)
        return None if chosen is None or candidate not in (None, chosen) else broadcast_call(chosen, call)

    return lowered


def alike_before_8(call: Call) -> str | None:
    """Rule of variadic operators: version 6 does not broadcast."""
    return "the inputs have one shape" if call.opset < 8 and len(set(call.shapes)) > 1 else None


def of_two(chosen: str) -> Callable[[str | None, Call], DirectmlCall | None]:
    """Make the lowering of a variadic operator: DirectML's takes two tensors."""
    return decides(lambda call: chosen if len(call.inputs) == 2 else None)


_MEMBERS = {1: ("InputTensor",), 2: ("ATensor", "BTensor"), 3: ("ConditionTensor", "ATensor", "BTensor")}
_MEMBERS_OF = {
    "DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU": ("InputTensor", "SlopeTensor"),
    "DML_OPERATOR_ELEMENT_WISE_POW": ("InputTensor", "ExponentTensor"),
}
"""The tensors of a DirectML operator by their number, and of those that call them otherwise."""
ELEMENTWISE = Elementwise()
