"""GatherElements: picks one element of `data` per element of `indices`, along one axis (ONNX GatherElements, versions 11 and 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.dtypes import Array
from harness.operators.base import Attributes, Choice, DirectmlCall, Entropy, Operator, Shape, Shapes
from harness.operators.indexing import INDEX_KINDS, applies, indices, out_of_range
from harness.records import Tensor

# out[i, j, k] = data[indices[i, j, k], j, k]   axis = 0
# out[i, j, k] = data[i, indices[i, j, k], k]   axis = 1
# out[i, j, k] = data[i, j, indices[i, j, k]]   axis = 2        (an index below 0 counts from the end: index + size)


def oracle(inputs: Sequence[Tensor], attributes: Attributes, variant: str | None) -> Tensor:
    """Gather by the formula above: data [d...], indices [i...] of the same rank; the output has the shape of indices, the dtype of data."""
    del variant
    (dtype, data), (_, index) = inputs
    axis = attributes.get("axis", 0) % data.ndim
    elsewhere, stride = _offsets(data.shape, index.shape, axis)
    along = index.astype(np.int64, copy=False) % max(data.shape[axis], 1)  # index + size for a negative index, since -size <= index < size
    return Tensor(dtype, data.reshape(-1)[elsewhere + along * stride])


@lru_cache(maxsize=4096)
def _offsets(data: Shape, index: Shape, axis: int) -> tuple[NDArray[np.int64], int]:
    """Return for each output position the flat offset of data[i, j, k] with the axis coordinate 0, and the axis' stride, in elements."""
    strides = [int(np.prod(data[d + 1 :], dtype=np.int64)) for d in range(len(data))]
    total = np.zeros(index, np.int64)
    for dimension, extent in enumerate(index):
        if dimension != axis:
            steps = np.arange(extent, dtype=np.int64) * strides[dimension]
            total += steps.reshape((extent,) + (1,) * (len(index) - dimension - 1))
    return total, strides[axis]


EXTENTS = ("none", "one", "fewer", "same", "more", "narrow", "wide")


def shapes(first: Shape, chosen: Mapping[str, Choice], attributes: Attributes) -> Shapes | None:
    """Derive the shape of indices by `extent`.

    Along the axis: none 0, one 1, fewer s-1, same s, more s+2. Elsewhere as data; with `narrow` one less there (ONNX allows it, the
    DirectML document does not), with `wide` one more (no data element is defined for it: invalid).
    """
    rank = len(first)
    axis = attributes.get("axis", 0)
    extent = chosen.get("extent", "same")
    if not -rank <= axis < rank:
        return (first, first)
    axis %= rank
    size = first[axis]
    along = dict(zip(EXTENTS, (0, 1, size - 1, size, size + 2, size, size), strict=True))[str(extent)]
    others = {"narrow": -1, "wide": 1}.get(str(extent), 0)
    if along < 0 or (others and rank == 1):
        return None
    shape = tuple(along if d == axis else n + others for d, n in enumerate(first))
    return None if min(shape) < 0 else (first, shape)


def domain(attribute: str, given: Shapes) -> Iterable[int]:
    """All axes of rank r: -r to r-1."""
    del attribute
    rank = len(given[0])
    return range(-rank, rank)


def broken_rule(given: Shapes, attributes: Attributes) -> str | None:
    """Rules of ONNX GatherElements on ranks, axis and extents."""
    data, index = given
    axis = attributes.get("axis", 0)
    if len(data) < 1 or len(index) < 1:
        return "rank r >= 1"
    if len(data) != len(index):
        return "data and indices have the same rank"
    if not -len(data) <= axis < len(data):
        return "axis in [-r, r-1]"
    axis %= len(data)
    if 0 in index:
        return None
    if any(i > n for d, (i, n) in enumerate(zip(index, data, strict=True)) if d != axis):
        return "indices are no larger than data off the axis: the formula reads data there"
    if data[axis] == 0:
        return "index values within [-s, s-1]"
    return None


def broken_by_values(inputs: Sequence[Tensor], attributes: Attributes) -> str | None:
    """The rule on index values."""
    data, index = inputs[0].array, inputs[1].array
    bad = out_of_range(index, data.shape[attributes.get("axis", 0)])
    return "index values within [-s, s-1]" if bad else None


def generate(kind: str, dtype: str, given: Shapes, attributes: Attributes, entropy: Entropy) -> Array:
    """Choose indices along the axis; an axis outside its domain is drawn as axis 0."""
    data, index = given
    axis = attributes.get("axis", 0)
    return indices(kind, dtype, index, data[axis if -len(data) <= axis < len(data) else 0] if data else 1, entropy)


def directml(operator: str | None, given: Shapes, attributes: Attributes, variant: str | None) -> DirectmlCall:
    """Lower to DML_OPERATOR_GATHER_ELEMENTS: each tensor keeps its rank, since equal ranks are a rule of both specifications."""
    del variant
    data, index = given
    axis = attributes.get("axis", 0)
    return DirectmlCall(
        operator or "DML_OPERATOR_GATHER_ELEMENTS",
        ("InputTensor", "IndicesTensor"),
        (data, index, index),
        1,
        {"Axis": axis + len(data) if axis < 0 else axis},
        ("Axis",),
    )


OPERATOR = Operator(
    name="GatherElements",
    inputs=("data", "indices"),
    output="output",
    values_input="indices",
    value_kinds=INDEX_KINDS,
    choices={"indices": ("extent",)},
    extents=EXTENTS,
    shapes=shapes,
    domain=domain,
    broken_rule=broken_rule,
    broken_by_values=broken_by_values,
    generate=generate,
    oracle=oracle,
    output_shape=lambda given, _: given[1],
    directml_rank=lambda given, _: max(map(len, given)),
    directml=directml,
    applies=lambda kind, dtype, given: applies(kind, dtype, given[1]),
    directml_index="indices",
)
