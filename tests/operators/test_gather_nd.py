"""GatherND: the oracle against an element loop and onnx.reference, and the rules on both sides of each
boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from harness.model.case import Tensor, Value
from harness.model.dtypes import DTYPES
from harness.operators import OPERATORS
from harness.operators.base import Shape, ValueKind
from tests import calling
from tests.calling import shaped
from tests.operators.brute import assert_same, elements, gather_nd, legal_indices

RANGE = "index values within [-s, s-1]"
OPERATOR = OPERATORS["GatherND"]
KINDS = OPERATOR.family.kinds(OPERATOR, "indices")


oracle = partial(calling.exact, "GatherND")
broken_rule = partial(calling.broken_rule, "GatherND")
broken_by_values = partial(calling.broken_by_values, "GatherND")
shapes = partial(calling.shapes, "GatherND")
domain = partial(calling.domain, "GatherND")


def random_case(
    rng: np.random.Generator, dtype: str, smallest: int = 0
) -> tuple[np.ndarray, np.ndarray, int]:
    """Ranks 1 to 5, every legal batch_dims and tuple length, outer ranks 0 to 3, scalar outputs and empty
    dimensions included."""
    rank = int(rng.integers(1, 6))
    data = tuple(int(n) for n in rng.integers(smallest, 4 + (rank < 4), rank))
    batch = int(rng.integers(0, rank))
    width = int(rng.integers(1, rank - batch + 1))
    outer = tuple(int(n) for n in rng.integers(smallest, 4, int(rng.integers(0, 4))))
    sizes = data[batch : batch + width]
    if 0 in sizes:  # no index is legal there: only an empty set of them is
        outer = (*outer, 0)
    shape = (*data[:batch], *outer, width)
    return elements(rng, dtype, data), legal_indices(rng, shape, sizes, "int64"), batch


def as_tensors(dtype: str, data: np.ndarray, indices: np.ndarray) -> tuple[Tensor, Tensor]:
    return Tensor(dtype, data), Tensor("int64", indices)


@pytest.mark.parametrize("dtype", DTYPES)
def test_oracle_is_the_element_loop(dtype: str) -> None:
    rng = np.random.default_rng([21, DTYPES[dtype].onnx])
    scalars = batched = empty = 0
    for number in range(250):
        data, indices, batch = random_case(rng, dtype)
        what = (number, data.shape, indices.shape, batch)
        assert broken_rule((data.shape, indices.shape), {"batch_dims": batch}) is None, what
        wanted = gather_nd(data, indices, batch)
        assert_same(dtype, oracle(as_tensors(dtype, data, indices), {"batch_dims": batch}), wanted, what)
        call = calling.call_of("GatherND", as_tensors(dtype, data, indices), {"batch_dims": batch})
        assert OPERATOR.family.output_shapes(OPERATOR, call) == (wanted.shape,), what
        scalars += wanted.shape == ()
        batched += batch > 0
        empty += wanted.size == 0
    assert min(scalars, batched, empty) > 5  # each kind occurs


def test_oracle_takes_no_batch_without_batch_dims() -> None:
    data = np.array([[0, 1], [2, 3]], np.int32)
    assert oracle(as_tensors("int32", data, np.array([[0, 0], [1, -1]])), {}).array.tolist() == [0, 3]


def test_scalar_output() -> None:
    found = oracle(as_tensors("int16", np.array([[1, 2], [3, 4]], np.int16), np.array([1, -2])), {})
    assert found.array.shape == ()
    assert found.array.item() == 3


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "complex64"])
def test_oracle_agrees_with_onnx_reference(dtype: str) -> None:
    rng = np.random.default_rng([22, DTYPES[dtype].onnx])
    for number in range(60):
        data, indices, batch = random_case(rng, dtype, smallest=1)
        node = helper.make_node("GatherND", ["data", "indices"], ["output"], batch_dims=batch)
        wanted = ReferenceEvaluator(node).run(None, {"data": data, "indices": indices})[0]
        found = oracle(as_tensors(dtype, data, indices), {"batch_dims": batch})
        assert_same(dtype, found, wanted, (number, data.shape, indices.shape, batch))


@pytest.mark.parametrize(
    ("data", "indices", "batch", "rule"),
    [
        ((3,), (1,), 0, None),
        ((), (1,), 0, "r >= 1"),
        ((3,), (), 0, "q >= 1"),
        ((2, 3), (2, 1), 1, None),
        ((2, 3), (2, 1), 2, "0 <= b < min(q, r)"),
        ((2, 3, 4), (2, 1), 2, "0 <= b < min(q, r)"),
        ((2, 3), (2, 3, 1), 2, "0 <= b < min(q, r)"),
        ((2, 3), (2, 1), -1, "0 <= b < min(q, r)"),
        ((2, 3), (3, 1), 1, "the first b dimensions of data and indices are equal"),
        ((2, 3), (1, 1), 1, "the first b dimensions of data and indices are equal"),
        ((2, 3, 4), (2, 2, 1), 2, "the first b dimensions of data and indices are equal"),
        ((2, 3, 4), (2, 3, 1), 2, None),
        ((2, 3), (5, 2), 0, None),
        ((2, 3), (5, 3), 0, "1 <= indices_shape[-1] <= r-b"),
        ((2, 3), (5, 0), 0, "1 <= indices_shape[-1] <= r-b"),
        ((2, 3), (2, 2), 1, "1 <= indices_shape[-1] <= r-b"),
        ((0, 3), (5, 1), 0, RANGE),
        ((0, 3), (0, 1), 0, None),
        ((3, 0), (5, 1), 0, None),
        ((3, 0), (5, 2), 0, RANGE),
        ((0, 3), (0, 1), 1, None),
    ],
)
def test_rules_on_shapes_and_batch_dims(
    data: tuple[int, ...], indices: tuple[int, ...], batch: int, rule: str | None
) -> None:
    assert broken_rule((data, indices), {"batch_dims": batch}) == rule


@pytest.mark.parametrize(
    ("index", "rule"),
    [
        ((1, 2), None),
        ((2, 2), RANGE),
        ((1, 3), RANGE),
        ((-2, -3), None),
        ((-3, 0), RANGE),
        ((0, -4), RANGE),
        ((0, 2**32), RANGE),
        ((2**63 - 1, 0), RANGE),
        ((-(2**63), 0), RANGE),
    ],
)
def test_rule_on_values_asks_each_coordinate(index: tuple[int, int], rule: str | None) -> None:
    data = Tensor("float32", np.zeros((2, 3, 7), np.float32))
    indices = np.zeros((4, 2), np.int64)
    indices[3] = index
    assert broken_by_values((data, Tensor("int64", indices)), {}) == rule


def test_rule_on_values_in_a_batch_asks_the_dimensions_after_it() -> None:
    data = Tensor("float32", np.zeros((2, 3), np.float32))
    assert broken_by_values((data, Tensor("int64", np.array([[2], [-3]]))), {"batch_dims": 1}) is None
    assert broken_by_values((data, Tensor("int64", np.array([[2], [3]]))), {"batch_dims": 1}) == RANGE


def test_shapes_put_the_batch_before_the_outer_dimensions() -> None:
    assert shapes((2, 3, 4), {"outer": (5,), "tuple": 2}, {"batch_dims": 1}) == ((2, 3, 4), (2, 5, 2))
    assert shapes((2, 3, 4), {"outer": (), "tuple": 1}, {}) == ((2, 3, 4), (1,))
    assert shapes((2, 3), {"outer": (5,), "tuple": 1}, {"batch_dims": 7}) == ((2, 3), (5, 1))


def test_domain_of_batch_dims() -> None:
    assert domain("batch_dims", ((2, 3, 4), (2, 1))) == [0, 1]
    assert domain("batch_dims", ((2, 3), (2, 3, 1))) == [0, 1]


def directml_rank(given: Sequence[Shape], attributes: Mapping[str, Value]) -> int:
    made = OPERATOR.family.directml(OPERATOR, None, calling.call_of("GatherND", shaped(*given), attributes))
    assert made is not None
    return made.dimension_count


def test_directml_rank_is_the_largest_of_the_three() -> None:
    assert directml_rank(((2, 3), (5, 1)), {}) == 2
    assert directml_rank(((2, 3), (5, 6, 7, 1)), {}) == 4
    assert directml_rank(((2, 3, 4, 5), (6, 7, 1)), {}) == 5
    assert directml_rank(((2, 3, 4), (2, 6, 7, 1)), {"batch_dims": 1}) == 4


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kinds_break_the_rule_exactly_if_they_say_so(kind: ValueKind) -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        rank = int(rng.integers(1, 5))
        data = tuple(int(n) for n in rng.integers(1, 5, rank))
        batch = int(rng.integers(0, rank))
        index = (*data[:batch], 3, int(rng.integers(1, rank - batch + 1)))
        call = calling.call_of("GatherND", shaped(data, index), {"batch_dims": batch})
        values = calling.generated(OPERATOR, kind.name, "indices", call, rng.bytes(1 << 16))
        assert values.shape == index
        assert values.dtype == np.int64
        inputs = (Tensor("uint8", np.zeros(data, np.uint8)), Tensor("int64", values))
        assert (broken_by_values(inputs, {"batch_dims": batch}) == RANGE) is (kind.breaks == RANGE)
