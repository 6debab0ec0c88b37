"""GatherElements: picks one element of `data` per element of `indices`, along one axis (ONNX GatherElements,
versions 11 and 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import gt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import Array
from harness.operators.base import Call, Choice, DirectmlCall, Operator, Relation, Shape, all_axes
from harness.operators.broadcasting import offsets, packed
from harness.operators.data_movement.indexing import AXES, RANGE, Indexing, axis_at, axis_words, indexed
from harness.operators.formulas import moved

# out[i, j, k] = data[indices[i, j, k], j, k]   axis = 0
# out[i, j, k] = data[i, indices[i, j, k], k]   axis = 1
# out[i, j, k] = data[i, j, indices[i, j, k]]   axis = 2        (an index below 0 counts from the end: index + size)


def formula(data: Array, indices: Array, axis: int) -> Array:
    """Gather by the formula above: data [d...], indices [i...] of the same rank; the output has the shape of
    indices, the dtype of data."""
    axis %= data.ndim
    elsewhere, stride = _offsets(data.shape, indices.shape, axis)
    # index + size for a negative one, since -size <= index < size
    along = indices.astype(np.int64, copy=False) % max(data.shape[axis], 1)
    return np.asarray(data.reshape(-1)[elsewhere + along * stride])


@lru_cache(maxsize=4096)
def _offsets(data: Shape, index: Shape, axis: int) -> tuple[NDArray[np.int64], int]:
    """Return for each output position the flat offset of data[i, j, k] with the axis coordinate 0, and the
    axis' stride, in elements."""
    strides = packed(data)  # of which indices of fewer dimensions, though they break a rule, take the first
    return offsets(index, (*strides[:axis], 0, *strides[axis + 1 :])[: len(index)]), strides[axis]


EXTENTS = ("none", "one", "fewer", "same", "more", "narrow", "wide", "fewer_dimensions", "more_dimensions")


OFF_THE_AXIS = "IndicesTensor: the sizes must match InputTensor.Sizes for every dimension except Axis"
"""A sentence of DML_GATHER_ELEMENTS_OPERATOR_DESC; ONNX allows fewer there."""


class GatherElementsFamily(Indexing):
    """Indices of the rank of data; along the axis they have any extent, elsewhere at most that of data."""

    domain = all_axes
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"indices": ("extent",)}
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"extent": EXTENTS}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of indices by `extent`.

        Along the axis: none 0, one 1, fewer s-1, same s, more s+2. Elsewhere as data; with `narrow` one less
        there (ONNX allows it, the DirectML document does not), with `wide` one more (no data element is
        defined for it: invalid). With `fewer_dimensions` the first is missing, with `more_dimensions` a 1
        stands before it: invalid too.
        """
        first = call.first.shape
        rank, axis = len(first), call.parameter("axis")
        assert not isinstance(relation, str)
        extent = relation.get("extent", "same")
        if not -rank <= axis < rank:
            return first
        axis %= rank
        size = first[axis]
        if extent == "more_dimensions":
            return (1, *first)
        if extent == "fewer_dimensions":
            return first[1:]
        along = dict(zip(EXTENTS, (0, 1, size - 1, size, size + 2, size, size), strict=False))[str(extent)]
        others = {"narrow": -1, "wide": 1}.get(str(extent), 0)
        if along < 0 or (others and rank == 1):
            return None
        shape = tuple(along if d == axis else n + others for d, n in enumerate(first))
        return None if min(shape) < 0 else shape

    def positions(self, operator: Operator, name: str) -> Mapping[str, bool]:
        """Where an axis is, and which relations are legal."""
        extents = {word: EXTENTS.index(word) < EXTENTS.index("wide") for word in EXTENTS}
        return {"axis": AXES, "extent": extents}.get(name, {})

    def position(self, operator: Operator, name: str, word: str, call: Call) -> Choice | None:
        """The axis that a word stands for; an extent is one itself."""
        return axis_at(word, len(call.first.shape)) if name == "axis" else word

    def shown(self, operator: Operator, call: Call) -> Mapping[str, Iterable[str]]:
        """Where the axis is, and the relation of indices to data."""
        data, index = call.shapes[:2]
        axis = call.parameter("axis")
        found = {"axis": axis_words(axis, len(data))}
        if len(index) != len(data):
            return {**found, "extent": ["more_dimensions" if len(index) > len(data) else "fewer_dimensions"]}
        if not -len(data) <= axis < len(data):
            return {**found, "extent": ["same"] if data == index else []}
        axis %= len(data)
        along, size = index[axis], data[axis]
        others = [(n, m) for d, (n, m) in enumerate(zip(data, index, strict=True)) if d != axis]
        relations = {
            "none": along == 0,
            "one": along == 1,
            "fewer": along < size,
            "same": along == size,
            "more": along > size,
            "narrow": any(m < n for n, m in others),
            "wide": any(m > n for n, m in others),
        }
        return {**found, "extent": [word for word, holds in relations.items() if holds]}

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules of ONNX GatherElements on ranks, axis and extents."""
        data, index = call.shapes[:2]
        axis = call.parameter("axis")
        if len(data) < 1 or len(index) < 1:
            return "rank r >= 1"
        if len(data) != len(index):
            return "data and indices have the same rank"
        if not -len(data) <= axis < len(data):
            return "axis in [-r, r-1]"
        axis %= len(data)
        if 0 in index:
            return None
        larger = list(map(gt, index, data))
        larger[axis] = False
        if True in larger:
            return "indices are no larger than data off the axis: the formula reads data there"
        if data[axis] == 0:
            return RANGE
        return None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of indices."""
        return (call.shapes[1],)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Lower to DML_OPERATOR_GATHER_ELEMENTS: each tensor keeps its rank, since equal ranks are a rule of
        both specifications."""
        data, index = call.shapes
        axis = call.parameter("axis")
        return DirectmlCall(
            candidate or "DML_OPERATOR_GATHER_ELEMENTS",
            indexed(call, index),
            1,
            {"Axis": axis + len(data) if axis < 0 else axis},
            ("Axis",),
            forbidden=None if _alike_off_the_axis(data, index, axis) else OFF_THE_AXIS,
        )


def _alike_off_the_axis(data: Shape, index: Shape, axis: int) -> bool:
    """Say whether all dimensions but the axis are as large in both; of other ranks, which break another rule,
    nothing is said."""
    if len(data) != len(index) or not data:
        return True
    axis %= len(data)
    return data[:axis] == index[:axis] and data[axis + 1 :] == index[axis + 1 :]


OPERATOR = Operator("GatherElements", GatherElementsFamily(), moved(formula))
