"""GatherND: picks elements or slices of `data` by index tuples (ONNX GatherND, versions 11, 12 and 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from harness.model.dtypes import Array
from harness.operators.base import Call, Choice, DirectmlCall, Operator, Relation, Shape
from harness.operators.data_movement.indexing import RANGE, Indexing, indexed
from harness.operators.formulas import moved

# out[b..., o..., s...] = data[b..., *indices[b..., o..., :], s...]
#
# b: the first batch_dims coordinates; o: the remaining coordinates of indices without its last; the last axis
# of indices holds tuples of k coordinates; s: the coordinates of data that the tuple leaves. A coordinate
# below 0 counts from the end.


def formula(data: Array, indices: Array, batch_dims: int = 0) -> Array:
    """Gather by the formula above; the output has shape indices.shape[:-1] + data.shape[batch_dims + k:], the
    dtype of data."""
    indices = indices.astype(np.int64, copy=False)
    width = indices.shape[-1]
    sizes = data.shape[batch_dims : batch_dims + width]
    rest = data.shape[batch_dims + width :]
    flat = np.zeros(indices.shape[:-1], np.int64)
    for coordinate, size in enumerate(sizes):
        # index + size for a negative one, since -size <= index < size
        flat = flat * size + indices[..., coordinate] % max(size, 1)
    if batch_dims:
        batches = data.shape[:batch_dims]
        number = np.arange(prod(batches)).reshape(batches + (1,) * (flat.ndim - batch_dims))
        flat = flat + number * prod(sizes)
    rows = data.reshape((prod(data.shape[: batch_dims + width]), *rest))
    return np.asarray(rows[np.asarray(flat).reshape(-1)].reshape(indices.shape[:-1] + rest))


def _batch(call: Call) -> int:
    return int(call.parameter("batch_dims", 0))


BATCHES = ("equal", "more", "one", "twice")
TUPLES = {"one": True, "some": True, "every": True, "empty": False, "longer": False}
"""Words for the length of a tuple, and whether they are legal: some is neither one nor what the batches leave of
the rank of data, longer is one more than that."""


def _text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


class GatherNDFamily(Indexing):
    """Indices that hold tuples of coordinates in their last dimension, after the batch dimensions of data and
    any others."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"indices": ("outer", "tuple", "batches")}
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"batches": BATCHES}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of indices: the batch dimensions of data, then `outer`, then the `tuple` length.

        `batches` says otherwise of the first batch dimension: one more, one, twice as many; `equal` is the
        usual.
        """
        first, batch = call.first.shape, _batch(call)
        assert not isinstance(relation, str)
        outer = relation.get("outer", ())
        width = relation.get("tuple", 1)
        batches = first[:batch] if 0 <= batch < len(first) else ()
        changed = str(relation.get("batches", "equal"))
        if changed != "equal":
            if not batches or (changed == "more" and batches[0] == 1):
                return None  # of one, one more is twice as many
            batches = ({"more": batches[0] + 1, "one": 1, "twice": batches[0] * 2}[changed], *batches[1:])
        return (*batches, *outer, width)

    def positions(self, operator: Operator, name: str) -> Mapping[str, bool]:
        """Lengths of a tuple, and how the batches of indices are to those of data."""
        return {"tuple": TUPLES, "batches": {word: word == "equal" for word in BATCHES}}.get(name, {})

    def position(self, operator: Operator, name: str, word: str, call: Call) -> Choice | None:
        """The length of a tuple that a word stands for; a word for batches is one itself."""
        if name != "tuple":
            return word
        left = len(call.first.shape) - _batch(call)
        if left < 1 and word not in ("one", "empty"):
            return None
        some = left // 2 + 1 if left > 2 else None
        return {"one": 1, "some": some, "every": left, "empty": 0, "longer": left + 1}[word]

    def shown(self, operator: Operator, call: Call) -> Mapping[str, Iterable[str]]:
        """The lengths of tuples and of batches, and the dimensions of indices between them; version 11 has no
        batches."""
        data, index = call.shapes[:2]
        batch = _batch(call)
        if not 0 <= batch < len(index) or batch > len(data):
            return {
                "batch_dims": [str(batch)],
                "outer": [_text(index[:-1])],
                "tuple": ["one"] * (index[-1:] == (1,)),
            }
        left, width = len(data) - batch, index[-1]
        lengths = {
            "one": width == 1,
            "some": 1 < width < left,
            "every": width == left,
            "empty": width == 0,
            "longer": width > left,
        }
        first, ours = (data[:batch], index[:batch])
        relations = {
            "equal": first == ours,
            "more": bool(batch) and ours[0] > first[0],
            "one": bool(batch) and ours[0] == 1 != first[0],
            "twice": bool(batch) and ours[0] == 2 * first[0] > 0,
        }
        return {
            "batch_dims": [str(batch)],
            "outer": [_text(index[batch:-1])],
            "tuple": [word for word, holds in lengths.items() if holds],
            "batches": [word for word, holds in relations.items() if holds],
        }

    def every(self, operator: Operator, name: str, key: str, call: Call) -> Iterable[Choice]:
        """All lengths of a tuple: 1 to the rank of data."""
        return range(1, len(call.first.shape) + 1)

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[int]:
        """Legal values of batch_dims: 0 to min(q, r) - 1."""
        return range(min(map(len, call.shapes)))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules 1 to 4 of ONNX GatherND on ranks, batch_dims and the tuple length."""
        data, index = call.shapes[:2]
        batch = _batch(call)
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
            return RANGE
        return None

    def sizes(self, call: Call) -> int | NDArray[np.int64]:
        """The size of data for each coordinate of a tuple; a coordinate for which data has no dimension
        counts as of size 1."""
        data, index = call.shapes[:2]
        batch = max(_batch(call), 0)
        width = index[-1] if index else 1
        sizes = (list(data[batch : batch + width]) + [1] * width)[:width]
        return np.array(sizes, np.int64) if index and width else 1

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """indices_shape[:-1] ++ data_shape[b + k:], k the length of a tuple."""
        data, index = call.shapes[:2]
        left = max(0, _batch(call)) + (index[-1] if index else 0)
        return (index[:-1] + data[left:],)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Lower to DML_OPERATOR_GATHER_ND, or to DML_OPERATOR_GATHER_ND1 with its BatchDimensionCount.

        The size of the output is that of the examples in their documents, {3,4,5,6,7} by {1,2,3} to
        {1,2,6,7}; the formula printed above them, which lets InputTensor.Sizes begin at DimensionCount -
        indexTupleSize, would give {1,2,5,6,7}. A call has one DimensionCount for all three tensors.
        """
        data, index = call.shapes
        members = {"InputDimensionCount": len(data), "IndicesDimensionCount": len(index)}
        if candidate != "DML_OPERATOR_GATHER_ND":
            members["BatchDimensionCount"] = _batch(call)
        elif _batch(call):
            return None
        (output,) = self.output_shapes(operator, call)
        count = max(len(data), len(index), len(output))
        return DirectmlCall(candidate or "DML_OPERATOR_GATHER_ND1", indexed(call, output), count, members)


OPERATOR = Operator("GatherND", GatherNDFamily(), moved(formula))
