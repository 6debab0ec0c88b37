"""GatherElements: the oracle against an element loop and onnx.reference, and the rules on both sides of each
boundary."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.operators import OPERATORS
from harness.operators.base import ValueKind
from tests import calling
from tests.calling import shaped
from tests.operators.brute import assert_same, elements, gather_elements, legal_indices

RANGE = "index values within [-s, s-1]"
OPERATOR = OPERATORS["GatherElements"]
KINDS = OPERATOR.family.kinds(OPERATOR, "indices")


oracle = partial(calling.exact, "GatherElements")
broken_rule = partial(calling.broken_rule, "GatherElements")
broken_by_values = partial(calling.broken_by_values, "GatherElements")
shapes = partial(calling.shapes, "GatherElements")
domain = partial(calling.domain, "GatherElements")


def random_case(rng: np.random.Generator, dtype: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Ranks 1 to 5, any axis, extents up to the data's off the axis (ONNX allows smaller), any extent along
    it, empty dimensions too."""
    rank = int(rng.integers(1, 6))
    data = tuple(int(n) for n in rng.integers(0, 4 + (rank < 4), rank))
    axis = int(rng.integers(-rank, rank))
    index = [int(rng.integers(0, n + 1)) for n in data]
    index[axis] = int(rng.integers(0, 6)) if data[axis] else 0
    index_dtype = ("int32", "int64")[int(rng.integers(2))]
    return elements(rng, dtype, data), legal_indices(rng, tuple(index), data[axis], index_dtype), axis


def as_tensors(dtype: str, data: np.ndarray, indices: np.ndarray) -> tuple[Tensor, Tensor]:
    return Tensor(dtype, data), Tensor(str(indices.dtype), indices)


@pytest.mark.parametrize("dtype", DTYPES)
def test_oracle_is_the_element_loop(dtype: str) -> None:
    rng = np.random.default_rng([11, DTYPES[dtype].onnx])
    for number in range(250):
        data, indices, axis = random_case(rng, dtype)
        what = (number, data.shape, indices.shape, axis)
        assert broken_rule((data.shape, indices.shape), {"axis": axis}) is None, what
        found = oracle(as_tensors(dtype, data, indices), {"axis": axis})
        assert_same(dtype, found, gather_elements(data, indices, axis), what)


def test_oracle_takes_axis_0_without_an_axis() -> None:
    data = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.int32)
    indices = np.array([[2, 0, -3]], np.int64)
    assert oracle(as_tensors("int32", data, indices), {}).array.tolist() == [[7, 2, 3]]


@pytest.mark.parametrize("axis", range(-4, 4))
def test_negative_index_is_the_index_plus_the_size(axis: int) -> None:
    data = np.arange(2 * 3 * 4 * 5, dtype=np.uint16).reshape(2, 3, 4, 5)
    indices = np.random.default_rng(axis + 9).integers(0, data.shape[axis], data.shape)
    positive = oracle(as_tensors("uint16", data, indices), {"axis": axis})
    negative = oracle(as_tensors("uint16", data, indices - data.shape[axis]), {"axis": axis})
    assert_same("uint16", negative, positive.array, axis)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "complex64"])
def test_oracle_agrees_with_onnx_reference(dtype: str) -> None:
    """Where the reference can be trusted: indices in range (its np.choose may loop for ages), axis >= 0,
    equal extents off it."""
    rng = np.random.default_rng([12, DTYPES[dtype].onnx])
    for number in range(60):
        rank = int(rng.integers(1, 5))
        axis = int(rng.integers(0, rank))
        data = tuple(int(n) for n in rng.integers(1, 5, rank))
        index = tuple(int(rng.integers(1, 7)) if d == axis else n for d, n in enumerate(data))
        given = elements(rng, dtype, data)
        indices = rng.integers(0, data[axis], index)
        wanted = ReferenceEvaluator(
            helper.make_node("GatherElements", ["data", "indices"], ["output"], axis=axis)
        ).run(None, {"data": given, "indices": indices})[0]
        assert_same(
            dtype,
            oracle(as_tensors(dtype, given, indices), {"axis": axis}),
            wanted,
            (number, data, index, axis),
        )


@pytest.mark.parametrize(
    ("data", "indices", "axis", "rule"),
    [
        ((3,), (3,), 0, None),
        ((), (), 0, "rank r >= 1"),
        ((3,), (), 0, "rank r >= 1"),
        ((), (3,), 0, "rank r >= 1"),
        ((3, 4), (3,), 0, "data and indices have the same rank"),
        ((3,), (3, 4), 0, "data and indices have the same rank"),
        ((3, 4), (3, 4), 1, None),
        ((3, 4), (3, 4), 2, "axis in [-r, r-1]"),
        ((3, 4), (3, 4), -2, None),
        ((3, 4), (3, 4), -3, "axis in [-r, r-1]"),
        ((3, 4), (3, 4), 2**32, "axis in [-r, r-1]"),
        ((3, 4), (9, 4), 0, None),
        ((3, 4), (3, 3), 0, None),
        ((3, 4), (3, 5), 0, "indices are no larger than data off the axis: the formula reads data there"),
        ((3, 4), (4, 4), -1, "indices are no larger than data off the axis: the formula reads data there"),
        ((3, 4), (3, 9), -1, None),
        ((3, 4), (9, 0), -1, None),
        ((0, 4), (0, 4), 0, None),
        ((0, 4), (1, 4), 0, RANGE),
        ((0, 4), (0, 9), 1, None),
        ((0, 4), (1, 4), 1, "indices are no larger than data off the axis: the formula reads data there"),
        ((3, 0), (3, 0), 0, None),
        ((3, 0), (3, 1), 1, RANGE),
    ],
)
def test_rules_on_shapes_and_axis(
    data: tuple[int, ...], indices: tuple[int, ...], axis: int, rule: str | None
) -> None:
    assert broken_rule((data, indices), {"axis": axis}) == rule


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("index", "rule"),
    [(3, None), (4, RANGE), (-4, None), (-5, RANGE), (0, None), (2**31 - 1, RANGE), (-(2**31), RANGE)],
)
def test_rule_on_values(dtype: str, index: int, rule: str | None) -> None:
    data = Tensor("float32", np.zeros((2, 4), np.float32))
    indices = np.zeros((2, 3), DTYPES[dtype].storage)
    indices[1, 2] = index
    assert broken_by_values((data, Tensor(dtype, indices)), {"axis": 1}) == rule
    assert broken_by_values((data, Tensor(dtype, indices)), {"axis": -1}) == rule


@pytest.mark.parametrize(
    ("extent", "axis", "wanted"),
    [
        ("none", 0, (0, 4)),
        ("one", 0, (1, 4)),
        ("fewer", 0, (2, 4)),
        ("same", 0, (3, 4)),
        ("more", 0, (5, 4)),
        ("narrow", 0, (3, 3)),
        ("wide", 0, (3, 5)),
        ("more", -1, (3, 6)),
        ("fewer", 1, (3, 3)),
    ],
)
def test_extents(extent: str, axis: int, wanted: tuple[int, ...]) -> None:
    assert shapes((3, 4), {"extent": extent}, {"axis": axis}) == ((3, 4), wanted)


def test_extents_that_do_not_exist() -> None:
    assert shapes((5,), {"extent": "narrow"}, {"axis": 0}) is None
    assert shapes((5,), {"extent": "wide"}, {"axis": 0}) is None
    assert shapes((0, 2), {"extent": "fewer"}, {"axis": 0}) is None
    assert shapes((2, 0), {"extent": "narrow"}, {"axis": 0}) is None


def test_domain_of_axis() -> None:
    assert domain("axis", ((2, 3, 4), (2, 3, 4))) == [-3, -2, -1, 0, 1, 2]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kinds_break_the_rule_exactly_if_they_say_so(kind: ValueKind, dtype: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        rank = int(rng.integers(1, 4))
        data = tuple(int(n) for n in rng.integers(1, 5, rank))
        axis = int(rng.integers(-rank, rank))
        index = tuple(6 if d == axis % rank else n for d, n in enumerate(data))
        call = calling.call_of("GatherElements", shaped(data, index, dtypes=("uint8", dtype)), {"axis": axis})
        if not OPERATOR.family.applies(OPERATOR, kind.name, "indices", call):
            continue
        values = calling.generated(OPERATOR, kind.name, "indices", call, rng.bytes(1 << 16))
        assert values.shape == index
        assert values.dtype == DTYPES[dtype].storage
        inputs = (Tensor("uint8", np.zeros(data, np.uint8)), Tensor(dtype, values))
        assert (broken_by_values(inputs, {"axis": axis}) == RANGE) is (kind.breaks == RANGE)
