"""Gather: slices of `data` along one axis, one for each index (ONNX Gather, versions 1, 11 and 13)."""

from __future__ import annotations

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, Shape, all_axes
from harness.operators.data_movement.indexing import RANGE, Indexing, indexed
from harness.operators.data_movement.moving import axis_of, wrong_axis
from harness.operators.formulas import moved

# output[o..., i..., s...] = data[o..., indices[i...], s...]
#
# o: the coordinates of data before the axis; s: those after it; i: all coordinates of indices. An index below
# 0 counts from the end.


def formula(data: Array, indices: Array, axis: int) -> Array:
    """Gather by the formula above; the output has shape data.shape[:axis] + indices.shape + data.shape[axis +
    1:]."""
    return np.asarray(np.take(data, indices, axis))


class GatherFamily(Indexing):
    """Indices of any shape into one axis of data."""

    domain = all_axes

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules of ONNX Gather on rank and axis."""
        data, index = call.shapes
        if not data:
            return "rank r >= 1"
        axis = axis_of(call)
        if wrong := wrong_axis(call, axis, len(data), since=1):
            return wrong
        return RANGE if data[axis] == 0 and 0 not in index else None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """data_shape[:axis] ++ indices_shape ++ data_shape[axis + 1:]."""
        data, index = call.shapes
        axis = axis_of(call) % max(len(data), 1)
        return (data[:axis] + index + data[axis + 1 :],)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Lower to DML_OPERATOR_GATHER: all tensors have one DimensionCount, IndexDimensions are those of
        indices that count."""
        if self.broken_rule(operator, call) not in (None, RANGE):
            return None
        data, index = call.shapes
        (output,) = self.output_shapes(operator, call)
        count = max(len(data), len(index), len(output), 1)
        members = {"Axis": axis_of(call) % len(data) + count - len(data), "IndexDimensions": len(index)}
        return DirectmlCall("DML_OPERATOR_GATHER", indexed(call, output), count, members, ("Axis",))


OPERATOR = Operator("Gather", GatherFamily(), moved(formula))
