"""GatherND: picks elements or slices of `data` by index tuples (ONNX GatherND, versions 11, 12 and 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from harness.dtypes import Array
from harness.operators.base import Attributes, Choice, DirectmlCall, Entropy, Operator, Shape, Shapes
from harness.operators.indexing import INDEX_KINDS, applies, indices, out_of_range
from harness.records import Tensor

# out[b..., o..., s...] = data[b..., *indices[b..., o..., :], s...]
#
# b: the first batch_dims coordinates; o: the remaining coordinates of indices without its last; the last axis of indices holds tuples
# of k coordinates; s: the coordinates of data that the tuple leaves. A coordinate below 0 counts from the end.


def oracle(inputs: Sequence[Tensor], attributes: Attributes, variant: str | None) -> Tensor:
    """Gather by the formula above; the output has shape indices.shape[:-1] + data.shape[batch_dims + k:], the dtype of data."""
    del variant
    (dtype, data), (_, index) = inputs
    index = index.astype(np.int64, copy=False)
    batch = attributes.get("batch_dims", 0)
    width = index.shape[-1]
    sizes = data.shape[batch : batch + width]
    rest = data.shape[batch + width :]
    flat = np.zeros(index.shape[:-1], np.int64)
    for coordinate, size in enumerate(sizes):
        flat = flat * size + index[..., coordinate] % max(size, 1)  # index + size for a negative index, since -size <= index < size
    if batch:
        batches = data.shape[:batch]
        number = np.arange(prod(batches)).reshape(batches + (1,) * (flat.ndim - batch))
        flat = flat + number * prod(sizes)
    rows = data.reshape((prod(data.shape[: batch + width]), *rest))
    return Tensor(dtype, rows[np.asarray(flat).reshape(-1)].reshape(index.shape[:-1] + rest))


def shapes(first: Shape, chosen: Mapping[str, Choice], attributes: Attributes) -> Shapes | None:
    """Derive the shape of indices: the batch dimensions of data, then `outer`, then the `tuple` length."""
    batch = attributes.get("batch_dims", 0)
    outer = chosen.get("outer", ())
    width = chosen.get("tuple", 1)
    assert isinstance(outer, tuple)
    assert isinstance(width, int)
    if not 0 <= batch < len(first):
        return (first, (*outer, width))
    return (first, (*first[:batch], *outer, width))


def domain(attribute: str, given: Shapes) -> Iterable[int]:
    """Legal values of batch_dims: 0 to min(q, r) - 1."""
    del attribute
    return range(min(map(len, given)))


def broken_rule(given: Shapes, attributes: Attributes) -> str | None:
    """Rules 1 to 4 of ONNX GatherND on ranks, batch_dims and the tuple length."""
    data, index = given
    batch = attributes.get("batch_dims", 0)
    if len(data) < 1:
        return "r >= 1"
    if len(index) < 1:
        return "q >= 1"
    if not 0 <= batch < min(len(data), len(index)):
        return "0 <= b < min(q, r)"
    if data[:batch] != index[:batch]:
        return "the first b dimensions of data and indices are equal"
    if not 1 <= index[-1] <= len(data) - batch:
        return "1 <= indices_shape[-1] <= r-b"
    if 0 not in index and 0 in data[batch : batch + index[-1]]:
        return "index values within [-s, s-1]"
    return None


def broken_by_values(inputs: Sequence[Tensor], attributes: Attributes) -> str | None:
    """Rule 5, on index values."""
    data, index = inputs[0].array, inputs[1].array
    batch = attributes.get("batch_dims", 0)
    bad = out_of_range(index, np.array(data.shape[batch : batch + index.shape[-1]], np.int64))
    return "index values within [-s, s-1]" if bad else None


def generate(kind: str, dtype: str, given: Shapes, attributes: Attributes, entropy: Entropy) -> Array:
    """Choose index tuples; coordinates for which data has no dimension are drawn as for size 1."""
    data, index = given
    batch = max(attributes.get("batch_dims", 0), 0)
    width = index[-1] if index else 1
    sizes = (list(data[batch : batch + width]) + [1] * width)[:width]
    return indices(kind, dtype, index, np.array(sizes, np.int64) if index and width else 1, entropy)


def output_shape(given: Shapes, attributes: Attributes) -> Shape:
    """indices_shape[:-1] ++ data_shape[b + k:], k the length of a tuple."""
    data, index = given
    left = max(0, attributes.get("batch_dims", 0)) + (index[-1] if index else 0)
    return index[:-1] + data[left:]


def directml_rank(given: Shapes, attributes: Attributes) -> int:
    """The largest of the ranks of data, indices and output: a DirectML call has one DimensionCount for all three."""
    return max(*map(len, given), len(output_shape(given, attributes)))


def directml(operator: str | None, given: Shapes, attributes: Attributes, variant: str | None) -> DirectmlCall:
    """Lower to DML_OPERATOR_GATHER_ND, or to DML_OPERATOR_GATHER_ND1 with its BatchDimensionCount.

    The size of the output is that of the examples in their documents, {3,4,5,6,7} by {1,2,3} to {1,2,6,7}; the formula printed above them,
    which lets InputTensor.Sizes begin at DimensionCount - indexTupleSize, would give {1,2,5,6,7}.
    """
    del variant
    data, index = given
    members = {"InputDimensionCount": len(data), "IndicesDimensionCount": len(index)}
    if operator != "DML_OPERATOR_GATHER_ND":
        members["BatchDimensionCount"] = attributes.get("batch_dims", 0)
    sizes = (data, index, output_shape(given, attributes))
    return DirectmlCall(
        operator or "DML_OPERATOR_GATHER_ND1", ("InputTensor", "IndicesTensor"), sizes, directml_rank(given, attributes), members
    )


OPERATOR = Operator(
    name="GatherND",
    inputs=("data", "indices"),
    output="output",
    values_input="indices",
    value_kinds=INDEX_KINDS,
    choices={"indices": ("outer", "tuple")},
    shapes=shapes,
    domain=domain,
    broken_rule=broken_rule,
    broken_by_values=broken_by_values,
    generate=generate,
    oracle=oracle,
    output_shape=output_shape,
    directml_rank=directml_rank,
    directml=directml,
    applies=lambda kind, dtype, given: applies(kind, dtype, given[1]),
    directml_index="indices",
    batched=lambda attributes: attributes.get("batch_dims", 0) != 0,
)
