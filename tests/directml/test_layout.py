from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.operators.broadcasting import offsets, packed
from harness.operators.directml.layout import LAYOUTS, buffer_bytes, elements, lay_out
from harness.specs.reading.entry_schema import LayoutName

DATA = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


def test_the_format_names_every_layout() -> None:
    assert set(get_args(LayoutName)) == set(LAYOUTS)


@pytest.mark.parametrize(
    ("layout", "strides", "count"),
    [
        ("packed", None, 6),
        ("explicit", (3, 1), 6),
        ("padded", (6, 1), 9),
        ("stepped", (6, 2), 11),
        ("transposed", (1, 2), 6),
        ("broadcast", (0, 1), 3),
        ("broadcast_last", (1, 0), 2),
        ("zero", (0, 0), 1),
    ],
)
def test_strides_of_each_layout(layout: str, strides: tuple[int, ...] | None, count: int) -> None:
    assert LAYOUTS[layout]((2, 3)) == strides
    assert elements((2, 3), strides) == count
    assert buffer_bytes("float32", (2, 3), strides) == 4 * count


def test_broadcast_repeats_the_first_dimension_that_has_several_elements() -> None:
    assert LAYOUTS["broadcast"]((1, 1, 4, 2)) == (2, 2, 0, 1)
    assert LAYOUTS["broadcast"]((1, 1)) == (0, 1)


@pytest.mark.parametrize(
    ("dtype", "count", "size"),
    [("int8", 1, 4), ("int8", 4, 4), ("int8", 5, 8), ("float16", 3, 8), ("float64", 1, 8)],
)
def test_buffers_are_rounded_up_to_4_bytes(dtype: str, count: int, size: int) -> None:
    assert buffer_bytes(dtype, (count,), None) == size


def test_a_tensor_without_elements_takes_no_bytes() -> None:
    assert buffer_bytes("float32", (0, 3), None) == buffer_bytes("float32", (0, 3), (3, 1)) == 0


def test_packed_strides_and_offsets_are_row_major() -> None:
    assert packed((2, 3, 4)) == (12, 4, 1)
    assert offsets((2, 3, 4), packed((2, 3, 4))).reshape(-1).tolist() == list(range(24))


@pytest.mark.parametrize(
    "layout", [name for name in LAYOUTS if name not in ("packed", "broadcast", "broadcast_last", "zero")]
)
def test_the_buffer_holds_every_element_where_the_strides_say(layout: str) -> None:
    strides = LAYOUTS[layout]((1, 2, 3))
    assert strides is not None
    held, buffer = lay_out(Tensor("float32", DATA), (1, 2, 3), strides)
    assert held.array.tolist() == DATA.tolist()
    assert buffer.array.shape == (elements((1, 2, 3), strides),)
    for i in range(2):
        for j in range(3):
            assert buffer.array[i * strides[1] + j * strides[2]] == DATA[i, j]


def test_elements_that_share_a_place_are_all_the_first_of_them() -> None:
    held, buffer = lay_out(Tensor("float32", DATA), (2, 3), (0, 1))
    assert buffer.array.tolist() == [1, 2, 3]
    assert held.array.tolist() == [[1, 2, 3], [1, 2, 3]]
    assert lay_out(Tensor("float32", DATA), (2, 3), (0, 0))[0].array.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_holes_hold_nothing_that_an_element_could_be_taken_for() -> None:
    _, buffer = lay_out(Tensor("int64", np.zeros((2, 2), np.int64)), (2, 2), (4, 2))
    assert buffer.array[1] == 0x5555555555555555
    assert lay_out(Tensor("bool", np.ones((2, 2), np.bool_)), (2, 2), (4, 2))[1].array.tolist()[1] is False
