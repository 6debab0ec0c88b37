"""What is expected: records that cannot be made wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, OneOf

TENSOR = Tensor("float32", np.zeros((2, 3), np.float32))


def approx(value: Any, bound: Any, dtype: str = "float32") -> Approx:
    return Approx(dtype, np.asarray(value, np.float64), np.asarray(bound, np.float64))


def test_each_has_a_dtype_and_a_shape() -> None:
    assert (Exact(TENSOR).dtype, Exact(TENSOR).shape) == ("float32", (2, 3))
    assert (OneOf((TENSOR, TENSOR)).dtype, OneOf((TENSOR,)).shape) == ("float32", (2, 3))
    made = approx([1.0, 2.0], [0.0, 1.0], "bfloat16")
    assert (made.dtype, made.shape) == ("bfloat16", (2,))


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        ((), "not \\[\\]"),
        ((TENSOR, Tensor("float64", np.zeros((2, 3)))), "float64"),
        ((TENSOR, Tensor("float32", np.zeros((3, 2), np.float32))), r"\(3, 2\)"),
    ],
)
def test_candidates_share_dtype_and_shape(candidates: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"candidates need one dtype and shape, .*{said}"):
        OneOf(candidates)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("int32", np.zeros(1), np.zeros(1)), "int32 is not a floating-point type"),
        (("float32", np.zeros(1, np.float32), np.zeros(1)), "the value is not a float64 array"),
        (("float32", np.zeros(1), 0.5), "the bound is not a float64 array"),
        (("float32", np.zeros(2), np.zeros(1)), r"the bound has shape \(1,\), the value \(2,\)"),
        (("float32", np.zeros(1), np.array([-1.0])), "a bound is negative or NaN"),
        (("float32", np.zeros(1), np.array([np.nan])), "a bound is negative or NaN"),
    ],
)
def test_a_bound_belongs_to_its_value(arguments: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Approx(*arguments)


def test_records_do_not_change() -> None:
    with pytest.raises(AttributeError):
        approx(1.0, 0.0).bound = np.ones(())  # type: ignore[misc]


def test_where_nothing_is_claimed() -> None:
    assert not approx([1.0, 2.0], [np.inf, np.inf]).claims
    assert approx([1.0, 2.0], [np.inf, 0.0]).claims
    assert approx([], []).claims
