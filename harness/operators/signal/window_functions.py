"""HannWindow, HammingWindow and BlackmanWindow: sums of cosines, of a length that is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import pi
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES
from harness.model.expected import Expected, OneOf
from harness.operators.base import Call, Operator, Shape
from harness.operators.bounded import arithmetic as declared
from harness.operators.bounded import cos, number
from harness.operators.computing import Computing

# y[n] = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), with N = size, or size - 1 where periodic is 0; of integers cut off, as
#   the function's Cast does it
#   Hann: 1 / 2, 1 / 2, 0; Hamming: 25 / 46, 21 / 46, 0; Blackman: 0.42, 0.5, 0.08


class Terms(NamedTuple):
    """The factors of a window."""

    constant: float
    once: float
    twice: float = 0.0


def window(terms: Terms, call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
    """Evaluate the formula above, by angles within two turns."""
    del inputs  # known before a run: the call has it
    size, dtype = int(call.parameter("size")), call.outputs[0]
    period = size if call.parameter("periodic") else size - 1
    used = declared(arithmetic, dtype if DTYPES[dtype].is_float else "float32")
    with np.errstate(all="ignore"):
        n = number(np.arange(size), used)
        y = terms.constant - cos(n * (2 * pi) / float(period)) * terms.once
        y = y + cos(n * (4 * pi) / float(period)) * terms.twice if terms.twice else y
        if DTYPES[dtype].is_float:
            return (y.stored(dtype),)
        near = (np.trunc(y.value + sign * y.error) for sign in (-1, 1))
        return (OneOf(tuple(Tensor(dtype, each.astype(DTYPES[dtype].storage)) for each in near)),)


def unlike_datatype(call: Call) -> str | None:
    """Return the rule that output_datatype breaks."""
    found = BY_ONNX_NUMBER.get(call.parameter("output_datatype"))
    allowed = found is not None and not found.narrow and (found.is_float or found.is_integer)
    return None if allowed else "output_datatype is a numeric type"


class Typed(Computing):
    """Operators whose output has the type that output_datatype names."""

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """The type that output_datatype names."""
        found = BY_ONNX_NUMBER.get(call.parameter("output_datatype"))
        return (found.name if found else "float32",)


class Windowing(Typed):
    """One number."""

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Lengths."""
        return [1, 2, 5, 10]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """A scalar, and a type that there is."""
        if call.first.shape:
            return "size is a scalar"
        if int(call.parameter("size")) < 0:
            return "size is 0 or more"
        return unlike_datatype(call)

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[size]."""
        return ((max(0, int(call.parameter("size"))),) if not call.first.shape else (1,),)


WINDOWING = Windowing()
TERMS = {
    "HannWindow": Terms(0.5, 0.5),
    "HammingWindow": Terms(25 / 46, 21 / 46),
    "BlackmanWindow": Terms(0.42, 0.5, 0.08),
}
OPERATORS = tuple(
    Operator(name, WINDOWING, partial(window, terms), constants={"size": 0}) for name, terms in TERMS.items()
)
