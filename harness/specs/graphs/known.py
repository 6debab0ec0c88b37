"""The knowledge about a value between the nodes of a graph: a tensor's elements to the bit, or numbers
`Within` a bound; `TensorList` for the tensors of a sequence or an optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected, OfLaw, OneOf
from harness.model.float_formats import Float64, decode
from harness.operators.base import Shape
from harness.specs.graphs.pattern import Unfit

_MOST_INTEGERS = 256
"""As many integers may be admissible for one element: all of eight bits. Of more, nothing is known that is worth a test."""


class Within(NamedTuple):
    """Numbers of an element type, each within an error of its value, as an implementation may hold them."""

    dtype: str
    value: Float64
    error: Float64

    @property
    def shape(self) -> Shape:
        return self.value.shape


class Shapeless(Tensor):
    """A tensor without elements whose shape ONNX leaves open: its array has one of several shapes."""


Known = Tensor | Within


class Form(NamedTuple):
    """A tensor without its elements: `exact` where the composition may know these to the bit."""

    dtype: str
    shape: Shape
    exact: bool


class TensorList(NamedTuple):
    """The tensors of a sequence, or of an optional, which has one or none."""

    tensors: tuple[Known, ...]


Value = Known | TensorList


def shape_of(known: Known | Form) -> Shape:
    return known.array.shape if isinstance(known, Tensor) else known.shape


def known_of(expected: Expected) -> Known:
    """Return an output as the input of a further node."""
    if isinstance(expected, Exact):
        return expected.tensor
    if isinstance(expected, Approx):
        return Within(expected.dtype, expected.value, expected.bound)
    if isinstance(expected, OfLaw):
        raise Unfit("an operator whose results are drawn")
    return hull([known_of(Exact(each)) for each in expected.candidates])


def hull(known: Sequence[Known]) -> Known:
    """Return what holds all of several: the middle of where they reach, and how far that is; the first one's elements
    where they all have them, or where one is infinite or NaN, within the distance to the others."""
    first = known[0]
    if all(isinstance(each, Tensor) for each in known) and not DTYPES[first.dtype].is_float:
        arrays = [each.array for each in known if isinstance(each, Tensor)]
        if all(np.array_equal(arrays[0], each) for each in arrays[1:]):
            return first
    several = [_as_within(each) for each in known]
    with np.errstate(all="ignore"):
        values = np.stack([each.value for each in several])
        errors = np.stack([each.error for each in several])
        low, high = (values - errors).min(0), (values + errors).max(0)
        ordinary = np.isfinite(low) & np.isfinite(high) & (low < high)
        if ordinary.all():
            return Within(first.dtype, np.asarray(low / 2 + high / 2), np.asarray(high / 2 - low / 2))
        same = (values == values[0]) | (np.isnan(values) & np.isnan(values[0]))
        distances = np.abs(values - values[0])
        apart = np.where(same, 0.0, np.where(np.isnan(distances), np.inf, distances)) + errors
        return Within(
            first.dtype,
            np.asarray(np.where(ordinary, low / 2 + high / 2, values[0])),
            np.asarray(np.where(ordinary, high / 2 - low / 2, apart.max(0))),
        )


def _as_within(known: Known) -> Within:
    if isinstance(known, Within):
        return known
    return Within(known.dtype, numbers_of(known), np.zeros(known.array.shape))


def numbers_of(tensor: Tensor) -> Float64:
    if DTYPES[tensor.dtype].is_float:
        return decode(tensor.dtype, tensor.array)
    return np.asarray(tensor.array, np.float64)


def value_of(found: Value | Expected) -> Value:
    """Return an output of a node as an input of the next."""
    return found if isinstance(found, (Tensor, Within, TensorList)) else known_of(found)


def form_of(found: Value | Expected) -> tuple[str, Shape]:
    """Return the element type and the shape of a tensor."""
    known = tensor_of(value_of(found))
    return known.dtype, shape_of(known)


def tensor_of(value: Value) -> Known:
    """Return a value that is a tensor."""
    if isinstance(value, TensorList):
        raise Unfit("a sequence or an optional where a tensor is needed")
    return value


def sliced(known: Known, at: int, axis: int) -> Known:
    """Return the slice at an index of an axis."""
    if isinstance(known, Tensor):
        return Tensor(known.dtype, np.asarray(np.take(known.array, at, axis)))
    return known._replace(
        value=np.asarray(np.take(known.value, at, axis)), error=np.asarray(np.take(known.error, at, axis))
    )


def stacked(several: Sequence[Known], axis: int = 0) -> Known:
    """Return tensors of one shape as the slices of an axis."""
    if len({(each.dtype, shape_of(each)) for each in several}) > 1:
        raise Unfit("slices that are put together differ in type or shape")
    exact = [each for each in several if isinstance(each, Tensor)]
    if len(exact) == len(several):
        return Tensor(exact[0].dtype, np.stack([each.array for each in exact], axis))
    every = [_as_within(each) for each in several]
    return every[0]._replace(
        value=np.stack([each.value for each in every], axis),
        error=np.stack([each.error for each in every], axis),
    )


def expected_of(known: Known) -> Expected:
    """Return the expected result of an output."""
    if isinstance(known, Shapeless):
        raise Unfit("slices of a body that never runs have no shape")
    if isinstance(known, Tensor):
        return Exact(known)
    if DTYPES[known.dtype].is_float:
        return Approx(known.dtype, known.value, known.error)
    storage = DTYPES[known.dtype].storage
    ends = (0, 1) if known.dtype == "bool" else DTYPES[known.dtype].limits[:2]
    low, high = (
        np.ceil(known.value - known.error).clip(*ends),
        np.floor(known.value + known.error).clip(*ends),
    )
    steps = np.max(high - low, initial=0.0)
    if not steps < _MOST_INTEGERS:
        raise Unfit(f"an output of {known.dtype} may be any of more than {_MOST_INTEGERS} integers")
    found = [np.minimum(low + step, high).astype(storage) for step in range(int(steps) + 1)]
    return OneOf(tuple(Tensor(known.dtype, each) for each in found))
