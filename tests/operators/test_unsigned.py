"""Unsigned indices, which DirectML has and ONNX has not."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.operators.data_movement.indexing import INDEX_KINDS, applies, indices, out_of_range
from tests.calling import exact

ENTROPY = bytes(range(256)) * 4


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_the_oracles_gather_by_unsigned_indices(dtype: str) -> None:
    data = Tensor("int64", np.array([[1, 2, 3], [4, 5, 6]], np.int64))
    index = Tensor(dtype, np.array([[2, 0], [1, 1]], dtype))
    assert exact("GatherElements", (data, index), {"axis": 1}).array.tolist() == [[3, 1], [5, 5]]
    pairs = Tensor(dtype, np.array([[1, 2], [0, 0]], dtype))
    assert exact("GatherND", (data, pairs)).array.tolist() == [6, 1]


@pytest.mark.parametrize(
    ("dtype", "value", "bad"),
    [("uint64", 2**64 - 1, True), ("uint32", 2**32 - 1, True), ("uint64", 4, False)],
)
def test_the_bits_of_a_negative_index_are_out_of_range(dtype: str, value: int, bad: bool) -> None:
    assert out_of_range(np.array([value], dtype), 5) is bad
    assert out_of_range(np.array([[0, value]], dtype), np.array([1, 5], np.int64)) is bad


def test_unsigned_types_have_no_negative_kinds() -> None:
    kinds = {kind.name for kind in INDEX_KINDS if applies(kind.name, "uint64", (3,))}
    assert kinds == {"in_range", "repeated", "first", "last", "above", "far_above", "wraps_to_legal"}
    assert not applies("wraps_to_legal", "uint32", (3,))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("kind", ["in_range", "last", "above", "far_above"])
def test_values_of_each_kind_are_what_their_name_says(dtype: str, kind: str) -> None:
    made = indices(kind, dtype, (6,), 5, ENTROPY)
    assert made.dtype == np.dtype(dtype)
    assert out_of_range(made, 5) is (kind in ("above", "far_above"))
