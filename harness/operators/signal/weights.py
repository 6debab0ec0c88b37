"""Weights of signals and spectra. HannWindow, HammingWindow and BlackmanWindow: sums of cosines, of a length that is given.
MelWeightMatrix: triangles over the bins of a spectrum, equally wide on the mel scale."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import expm1, floor, log, log1p, pi
from typing import NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES, Array, type_of_number
from harness.model.expected import Exact, Expected, OneOf
from harness.operators.base import Call, Operator, Shape, Undefined
from harness.operators.bounded import arithmetic as declared
from harness.operators.bounded import cos, number, where
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
        return (type_of_number(call.parameter("output_datatype")) or "float32",)


def _no_length(call: Call) -> str | None:
    if call.first.shape:
        return "size is a scalar"
    return "size is 0 or more" if int(call.parameter("size")) < 0 else unlike_datatype(call)


def _length(call: Call) -> tuple[Shape, ...]:
    return ((max(0, int(call.parameter("size"))),) if not call.first.shape else (1,),)


# mel(f) = 2595 log10(1 + f / 700); edge[n] = floor((dft_length + 1) hertz(low + n (high - low) / (num_mel_bins + 2)) / sample_rate)
# output[j, i] = (j - edge[i]) / (edge[i+1] - edge[i])         edge[i] <= j <= edge[i+1], 1 at edge[i+1]
#                (edge[i+2] - j) / (edge[i+2] - edge[i+1])     edge[i+1] <= j < edge[i+2]
# The text has the scale alone; the rest is that of its backend test and of ONNX's reference.

INPUTS = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
_MARGIN = 1e-3
"""How far an edge lies from the next bin, in bins: float32 decides it everywhere."""


def mel_weight_matrix(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
    """Make the matrix by the formula above; Undefined where rounding decides into which bin an edge falls."""
    del inputs  # known before a run: the call has them
    bins, edges = _shape(call)[0], _edges(call)
    j = np.arange(bins)[:, None]
    left, centre, right = (np.array(edges[n : n + len(edges) - 2]) for n in range(3))
    rising, falling = (j >= left) & (j <= centre) & (centre > left), (j > centre) & (j < right)
    over = np.where(rising, j - left, np.where(falling, right - j, 0))
    under = np.where(rising, centre - left, np.where(falling, right - centre, 1))
    over = np.where(j == centre, under, over)
    dtype = call.outputs[0]
    if not DTYPES[dtype].is_float:
        return (Exact(Tensor(dtype, (over // under).astype(DTYPES[dtype].storage))),)
    used = declared(arithmetic, dtype)
    ratio = number(over.astype(float), used) / number(under.astype(float), used)
    whole: Array = np.asarray((over == 0) | (over == under))
    return (where(whole, (over > 0).astype(float), ratio).stored(dtype),)


def _edges(call: Call) -> list[int]:
    count, length, rate, lower, upper = (call.parameter(name) for name in INPUTS)
    low, high = (2595 * log1p(edge / 700) / log(10) for edge in (lower, upper))
    found = []
    for n in range(count + 2):
        hertz = 700 * expm1((low + n * (high - low) / (count + 2)) / 2595 * log(10))
        place = (length + 1) * hertz / rate
        if round(place) and abs(place - round(place)) < _MARGIN:
            raise Undefined("an edge so near to a bin that rounding decides")
        found.append(floor(place))
    return found


def _shape(call: Call) -> Shape:
    return (int(call.parameter("dft_length")) // 2 + 1, int(call.parameter("num_mel_bins")))


class MelWeighting(Typed):
    """Five numbers that are known before a run."""

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Scalars, and a type that there is."""
        if any(call.shapes):
            return "the inputs are scalars"
        if min(_shape(call)) < 0:
            return "lengths are not negative"
        rate, lower, upper = (call.parameter(name) for name in INPUTS[2:])
        if not (rate > 0 and 0 <= lower <= upper <= rate / 2):
            return "edges from 0 to half of sample_rate, the lower first"
        return unlike_datatype(call)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[dft_length // 2 + 1, num_mel_bins]."""
        return (_shape(call),)


TYPED = Typed()
TERMS = {
    "HannWindow": Terms(0.5, 0.5),
    "HammingWindow": Terms(25 / 46, 21 / 46),
    "BlackmanWindow": Terms(0.42, 0.5, 0.08),
}
OPERATORS = (
    *(
        Operator(
            name,
            TYPED,
            partial(window, terms),
            _no_length,
            constants={"size": 0},
            outputs=_length,
            domains={"size": lambda _: (1, 2, 5, 10)},
        )
        for name, terms in TERMS.items()
    ),
    Operator("MelWeightMatrix", MelWeighting(), mel_weight_matrix, constants=dict.fromkeys(INPUTS, 0)),
)
