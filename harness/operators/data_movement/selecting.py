"""Operators whose elements decide the size of the output: Compress, NonZero, Unique; and ReverseSequence,
whose lengths are elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators import elements
from harness.operators.base import (
    UNKNOWN,
    Call,
    CallTensor,
    DirectmlCall,
    Family,
    Operator,
    Relation,
    Shape,
    ValueKind,
    value_kinds,
)
from harness.operators.computing import Computing
from harness.operators.data_movement.moving import rank, wrong_axis
from harness.operators.formulas import decided, moved

# Compress:        the slices along the axis, or the elements, at which condition holds; what lies beyond its length is left out
# NonZero:         Y[:, n] = the coordinates of the n-th element that is not 0, in row-major order
# Unique:          Y[indices[..]..] = X; Y sorted, or in the order of first occurrence
# ReverseSequence: Y[t, b] = input[len_b - 1 - t, b] where t < len_b, else input[t, b]


def compress(input: Array, condition: Array, axis: int | None = None) -> Array:
    """Select by the formula above."""
    data, along = (input.reshape(-1), 0) if axis is None else (input, axis)
    return np.take(data, np.flatnonzero(condition[: data.shape[along]]), along)


def nonzero(X: Array) -> Array:  # noqa: N803 - as ONNX calls it
    """Find the elements other than 0; a scalar has no coordinates, so that its output is (0, N)."""
    if not X.ndim:
        return np.zeros((0, int(bool(X))), np.int64)
    return np.stack(np.nonzero(X)).astype(np.int64)


def unique(X: Array, sorted: int, axis: int | None = None) -> tuple[Array, ...]:  # noqa: N803 - as ONNX calls it
    """Find what there is, with the places of first occurrence, of each element among what there is, and how
    often."""
    _, ranks = np.unique(X.reshape(-1), return_inverse=True)  # texts by their order, which NumPy wants
    _, first, inverse, counts = np.unique(ranks.reshape(X.shape), True, True, True, axis=axis)
    order = np.arange(len(first)) if sorted else np.argsort(first)
    back = np.argsort(order)
    values = np.take(X, first[order], axis)
    return (
        values,
        first[order].astype(np.int64),
        back[inverse.reshape(-1)].astype(np.int64),
        counts[order].astype(np.int64),
    )


def reverse_sequence(input: Array, sequence_lens: Array, time_axis: int, batch_axis: int) -> Array:
    """Turn the first elements of each sequence round."""
    data = np.moveaxis(input, (time_axis, batch_axis), (0, 1)).copy()
    for batch, length in enumerate(sequence_lens.tolist()):
        data[:length, batch] = data[:length, batch][::-1]
    return np.moveaxis(data, (0, 1), (time_axis, batch_axis))


def _axis(call: Call) -> int | None:
    axis = call.attributes.get("axis")
    assert axis is None or isinstance(axis, int)
    return axis


class Selecting(Computing):
    """Data of which some elements are given, as many as it turns out."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"condition": ("length",)}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """The length of a condition: that of the axis, or shorter, longer, none."""
        length = relation.get("length", "same") if isinstance(relation, Mapping) else "same"
        data, axis = call.first.shape, _axis(call)
        extent = int(np.prod(data)) if axis is None else data[axis] if -len(data) <= axis < len(data) else 1
        return (
            {"same": extent, "shorter": max(0, extent - 1), "longer": extent + 3, "none": 0}[str(length)],
        )

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Elements by what they mean: some are alike, some are 0."""
        return (*elements.ELEMENT_KINDS[1:3], elements.ELEMENT_KINDS[0], *elements.ELEMENT_KINDS[3:])

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the type; those without numbers have one kind."""
        return elements.applies(kind, call.inputs[name].dtype) or kind == "integers"

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules on the axis and the condition."""
        axis = _axis(call)
        if axis is not None and (wrong := wrong_axis(call, axis, rank(call))):
            return wrong
        if "condition" not in call.inputs:
            return None
        if not rank(call):
            return "rank r >= 1"
        length = call.inputs["condition"].shape
        if len(length) != 1:
            return "condition has one dimension"
        extent = int(np.prod(call.first.shape)) if axis is None else call.first.shape[axis]
        return "condition is no longer than the axis" if length[0] > extent else None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """All extents but one."""
        data, axis = call.first.shape, _axis(call)
        if operator.name == "NonZero":
            return ((len(data), UNKNOWN),)
        one: Shape = (UNKNOWN,)
        inverse = int(np.prod(data))
        if axis is not None and -len(data) <= axis < len(data):
            one = (*data[: axis % len(data)], UNKNOWN, *data[axis % len(data) + 1 :])
            inverse = data[axis]
        return (one,) if len(call.outputs) <= 1 else (one, (UNKNOWN,), (inverse,), (UNKNOWN,))


WITHIN = "lengths within the time axis"
LENGTHS = (*value_kinds("any_length", "full", "one"), ValueKind("too_long", breaks=WITHIN))


class Reversing(Family):
    """Sequences of their own lengths, in batches."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"sequence_lens": LENGTHS}
    lowers = "DML_OPERATOR_REVERSE_SUBSEQUENCES"

    def shape(self, operator: Operator, name: str, relation: object, call: Call) -> Shape | None:
        """Return the shape of sequence_lens: a length for each sample of the batch."""
        return (call.first.shape[self.axes(call)[1]],) if self._wrong_axes(call) is None else (1,)

    def axes(self, call: Call) -> tuple[int, int]:
        """Return time and batch axis."""
        time, batch = call.parameter("time_axis", 0), call.parameter("batch_axis", 1)
        return time, batch

    def _wrong_axes(self, call: Call) -> str | None:
        if rank(call) < 2:
            return "rank r >= 2"
        return (
            None if sorted(self.axes(call)) == [0, 1] else "batch_axis and time_axis are 0 and 1, or 1 and 0"
        )

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose lengths within the time axis."""
        extent = call.first.shape[self.axes(call)[0]] if self._wrong_axes(call) is None else 1
        alike = {"full": extent, "one": min(1, extent), "too_long": extent + 1}
        return raw * 0 + alike[kind] if kind in alike else raw % (extent + 1)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules on rank, axes and the number of lengths."""
        wrong = self._wrong_axes(call)
        if wrong:
            return wrong
        extents = tuple(call.first.shape[axis] for axis in self.axes(call))
        if call.shapes[1] != (extents[1],):
            return "as many lengths as batches"
        return None

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Lengths from 0 to the extent of the time axis."""
        lengths, extent = inputs["sequence_lens"].array, call.first.shape[self.axes(call)[0]]
        return WITHIN if np.any((lengths < 0) | (lengths > extent)) else None

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Lengths have a dimension of 1 at the time axis, and at all that follow both."""
        shape, (time, batch) = call.first.shape, self.axes(call)
        lengths = tuple(extent if axis == batch else 1 for axis, extent in enumerate(shape))
        if 0 in shape or any(extent != 1 for extent in shape[2:]):
            return None
        tensors = {
            "InputTensor": CallTensor("input", *call.first),
            "SequenceLengthsTensor": CallTensor("sequence_lens", "int64", lengths),
            "OutputTensor": CallTensor(0, *call.first),
        }
        return DirectmlCall(candidate, tensors, len(shape), {"Axis": time}, ("Axis",))


SELECTING = Selecting()
OPERATORS = (
    Operator("Compress", SELECTING, moved(compress)),
    Operator("NonZero", SELECTING, decided(nonzero)),
    Operator("Unique", SELECTING, decided(unique)),
    Operator("ReverseSequence", Reversing(), moved(reverse_sequence)),
)
