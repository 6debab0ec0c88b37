"""The bases of families that compute: their numeric inputs are chosen by meaning (`elements`), with three kinds more for
those that sum or multiply along axes."""

from __future__ import annotations

from math import prod

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode
from harness.operators import elements
from harness.operators.base import Call, Entropy, Family, Operator, ValueKind, all_axes, value_kinds


class Computing(Family):
    """Operators that compute with every input but those that decide shapes."""

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Elements by what they mean; an input whose elements decide shapes is written out."""
        return super().kinds(operator, name) or (() if name in operator.constants else elements.ELEMENT_KINDS)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input's type."""
        return (
            name in self.own or name in operator.constants or elements.applies(kind, call.inputs[name].dtype)
        )

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind."""
        if name in self.own:
            return super().generate(operator, kind, name, call, entropy)
        return elements.choose(kind, *call.inputs[name], entropy)


def lengths(kind: str, raw: Array, most: int) -> Array:
    """Choose lengths from 1 to the most, all of them the most (`full`) or 1 (`one`), or the first one 0 (`none`), one too many
    (`too_long`) or -1 (`negative_length`)."""
    found = 1 + raw % max(1, most)
    if kind in ("full", "one"):
        found = found * 0 + (most if kind == "full" else 1)
    elif kind != "any_length":
        found[:1] = {"none": 0, "too_long": most + 1, "negative_length": -1}[kind]
    return np.asarray(found)


OFFSET, NEAR_ONE, FAR, WIDE = _ADDED = value_kinds("offset", "near_one", "far", "wide")
"""offset: near 1000, at most 4 off in halves (integers: near 100), so that a mean is far greater than the
deviation and an exponential overflows; near_one: of both signs, a few 128ths off 1, so that a product of many
neither overflows nor vanishes (integers: 1 and -1); far: near 4096, at most a half off in sixteenths, so that
float32 has no difference between the mean of the squares and the square of the mean (integers: as offset); wide: of both
signs, up to 1024 in steps of 8, so that float16 does not hold the mean of their squares (integers: as offset)."""


class Conditioned(Computing):
    """Operators whose precision depends on how elements lie to each other."""

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """The usual ones, and those above."""
        usual = super().kinds(operator, name)
        return (*usual, *_ADDED) if usual and name not in self.own else usual

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input's type."""
        dtype = DTYPES[call.inputs[name].dtype]
        if kind in {each.name for each in _ADDED}:
            return dtype.is_float or dtype.is_integer
        return super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind."""
        if kind not in {each.name for each in _ADDED}:
            return super().generate(operator, kind, name, call, entropy)
        dtype, shape = call.inputs[name]
        raw = np.frombuffer(entropy, "<u4", prod(shape))
        entry = DTYPES[dtype]
        if kind != NEAR_ONE.name:
            steps, (about, parts) = raw % 17 - 8.0, (1000, 2) if kind == OFFSET.name else (4096, 16)
            chosen: Array = about + steps / parts if entry.is_float else 100 + steps
            if kind == WIDE.name and entry.is_float:
                chosen = 8 * (raw % 257 - 128.0)
        else:
            sign = 1.0 - 2.0 * (raw >> 16 & 1)
            if dtype.startswith("u"):
                sign = np.abs(sign)
            chosen = sign * (1 + (raw % 9 - 4.0) / 128) if entry.is_float else sign
        return encode(dtype, chosen).reshape(shape)


class AlongAxis(Conditioned):
    """One input, one axis, an output of its shape."""

    domain = all_axes

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range."""
        rank, axis = len(call.first.shape), call.parameter("axis", 0)
        axis = axis[0] if isinstance(axis, tuple) else axis
        return None if -rank <= axis < rank else "axis in [-r, r-1]"


ALONG_AXIS = AlongAxis()
