"""Elementwise operators: each element of the output from the elements of the inputs at its place."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from harness.dtypes import DTYPES, Array
from harness.operators.base import Call, CallTensor, DirectmlCall, Entropy, Family, Operator, Shape, ValueKind
from harness.operators.binary_floats import encode, halfway_values, special_patterns

FLOAT_KINDS = tuple(map(ValueKind, ("ordinary", "random", "specials", "halves", "subnormal", "patterns")))
"""Ways to choose floats: ordinary, uniform in -100..100; random, any bit pattern; specials and halves, lists that `natural_shape` holds
whole; subnormal, random nonzero subnormals; patterns, every bit pattern of a 16-bit type, in order."""


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
        return encode(quarters / 4.0 - 100.0, dtype).reshape(shape)
    if kind == "patterns":
        whole = np.arange(1 << (8 * storage.itemsize), dtype=f"<u{storage.itemsize}") if storage.itemsize == 2 else None
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


class Unary(Family):
    """One input, one output of its shape. `options` is the DirectML operator's further members."""

    name = "unary"

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

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall:
        """One tensor in, one out."""
        assert candidate is not None
        ((name, given),) = call.inputs.items()
        tensors = {"InputTensor": CallTensor(name, *given), "OutputTensor": CallTensor(0, *given)}
        return DirectmlCall(candidate, tensors, 1, {})


UNARY = Unary()
