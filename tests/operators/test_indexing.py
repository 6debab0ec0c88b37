"""Index kinds produce what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.dtypes import DTYPES
from harness.operators.data_movement.indexing import INDEX_KINDS, applies, indices, out_of_range

SIZES = (1, 2, 3, 7, 300)
BITS = {"int32": 32, "int64": 64}


def made(kind: str, dtype: str, size: int, count: int = 64) -> list[int]:
    return [
        int(n)
        for n in indices(kind, dtype, (count,), size, np.random.default_rng([size, count]).bytes(1 << 16))
    ]


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("size", SIZES)
class TestLegalKinds:
    def test_in_range(self, dtype: str, size: int) -> None:
        found = made("in_range", dtype, size, 4096)
        assert set(found) <= set(range(size))
        assert size > 7 or set(found) == set(range(size))

    def test_negative(self, dtype: str, size: int) -> None:
        assert set(made("negative", dtype, size)) <= set(range(-size, 0))

    def test_mixed_has_both_signs(self, dtype: str, size: int) -> None:
        found = made("mixed", dtype, size)
        assert set(found) <= set(range(-size, size))
        assert min(found) < 0 <= max(found)

    def test_boundary_has_all_four(self, dtype: str, size: int) -> None:
        assert set(made("boundary", dtype, size)) == {-size, -1, 0, size - 1}

    def test_repeated_is_one_legal_index(self, dtype: str, size: int) -> None:
        found = made("repeated", dtype, size)
        assert len(set(found)) == 1
        assert 0 <= found[0] < size

    def test_first_and_last(self, dtype: str, size: int) -> None:
        assert set(made("first", dtype, size)) == {0}
        assert set(made("last", dtype, size)) == {size - 1}


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "kind", ["above", "below", "far_above", "far_below", "wraps_to_legal", "wraps_to_legal_negative"]
)
def test_invalid_kinds_have_one_illegal_element(kind: str, size: int, dtype: str) -> None:
    if not applies(kind, dtype, (64,)):
        assert (kind[:5], dtype) == ("wraps", "int32")
        return
    limit = 2 ** (BITS[dtype] - 1)
    bad = [n for n in made(kind, dtype, size) if not 0 <= n < size]
    assert len(bad) == 1
    fixed = {"above": size, "below": -size - 1, "far_above": limit - 1, "far_below": -limit}
    if kind in fixed:
        assert bad == [fixed[kind]]
    else:
        low = bad[0] & 0xFFFFFFFF
        assert 0 <= low < size  # what an implementation that truncates to 32 bits would read
        assert bad[0] - low == (2**32 if kind == "wraps_to_legal" else -(2**32))


def test_one_size_a_coordinate() -> None:
    sizes = np.array([2, 5, 1], np.int64)
    draw = np.random.default_rng(1).bytes(1 << 16)
    found = indices("boundary", "int64", (400, 3), sizes, draw)
    for coordinate, size in enumerate(sizes):
        assert set(found[:, coordinate].tolist()) == {-size, -1, 0, size - 1}
    assert indices("last", "int64", (2, 3), sizes, draw).tolist() == [[1, 4, 0], [1, 4, 0]]
    assert indices("first", "int64", (2, 3), sizes, draw).tolist() == [[0, 0, 0], [0, 0, 0]]
    repeated = indices("repeated", "int64", (9, 3), sizes, draw)
    assert len(set(map(tuple, repeated.tolist()))) == 1
    assert not out_of_range(repeated, sizes)


@pytest.mark.parametrize("kind", [kind.name for kind in INDEX_KINDS])
def test_what_applies(kind: str) -> None:
    assert applies(kind, "int64", (2, 3))
    assert applies(kind, "int32", (2, 3)) is not kind.startswith("wraps")
    assert applies(kind, "int64", (2, 0)) is (kind == "in_range")


@pytest.mark.parametrize("kind", INDEX_KINDS, ids=lambda kind: kind.name)
def test_kinds_say_whether_they_hold_negative_indices(kind: object) -> None:
    if kind.negative:
        assert any(n < 0 for size in SIZES for n in made(kind.name, "int64", size))
    else:
        assert all(n >= 0 for size in SIZES for n in made(kind.name, "int64", size))


@pytest.mark.parametrize(
    ("values", "size", "bad"),
    [
        ([], 0, False),
        ([0], 1, False),
        ([1], 1, True),
        ([-1], 1, False),
        ([-2], 1, True),
        ([0], 0, True),
        ([-1], 0, True),
    ],
)
def test_out_of_range(values: list[int], size: int, bad: bool) -> None:
    for dtype in BITS:
        assert out_of_range(np.array(values, DTYPES[dtype].storage), size) is bad
