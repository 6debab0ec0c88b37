"""Signatures: the kind of a mismatch by its first wrong element."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.diff import compare
from harness.model.mismatch_kind import difference
from harness.model.records import Diff, Tensor


def of(dtype: str, expected: list[object], actual: list[object]) -> str:
    storage = {"bfloat16": "u2", "string": "O"}.get(dtype, dtype)
    diff = compare(Tensor(dtype, np.array(expected, storage)), Tensor(dtype, np.array(actual, storage)))
    assert diff is not None
    return difference(diff)


@pytest.mark.parametrize(
    ("dtype", "expected", "actual", "kind"),
    [
        ("float32", [1.0, 0.0], [1.0, -0.0], "sign of zero"),
        ("float16", [-2.0], [2.0], "sign"),
        ("float64", [float("nan")], [1.0], "NaN"),
        ("float32", [1.0], [float("nan")], "NaN"),
        ("float32", [1.0], [float("inf")], "infinity"),
        ("float32", [float("-inf")], [float("inf")], "sign"),
        ("float32", [1.0], [np.nextafter(np.float32(1), np.float32(2))], "ulp"),
        ("float32", [5e-45], [-1e-45], "value"),
        ("float32", [-1e-45], [1e-45], "sign"),
        ("float64", [1.0], [1.0 + 4 * 2.0**-52], "ulp"),
        ("float64", [1.0], [1.0 + 5 * 2.0**-52], "value"),
        ("bfloat16", [0x3F80], [0x3F81], "ulp"),
        ("bfloat16", [0x0000], [0x8000], "sign of zero"),
        ("int64", [1], [2], "element"),
        ("string", ["a"], ["b (0x3f800000)"], "element"),
        ("string", ["1.0 (0x3f800000)"], ["-0.0 (0x80000000)"], "element"),
        ("complex64", [1 + 2j], [1 - 2j], "element"),
        ("float32", [1.0], [1.0, 2.0], "shape"),
    ],
)
def test_the_kind_of_a_difference(
    dtype: str, expected: list[object], actual: list[object], kind: str
) -> None:
    assert of(dtype, expected, actual) == kind


def test_another_dtype_is_no_shape() -> None:
    diff = compare(Tensor("float32", np.zeros((1, 2), "f4")), Tensor("int32", np.zeros((2,), "i4")))
    assert diff is not None
    assert difference(diff) == "dtype"


def test_only_the_first_wrong_element_counts() -> None:
    assert of("float32", [0.0, 1.0], [-0.0, 2.0]) == "sign of zero"
    assert of("float32", [1.0, 0.0], [2.0, -0.0]) == "value"


def test_an_element_that_only_looks_like_a_float_is_an_element() -> None:
    assert difference(Diff(None, 1, 2, (0,), "x (0x12)", "y (0x13)")) == "element"


@pytest.mark.parametrize(
    ("expected", "actual", "error", "kind"),
    [
        ("1 ± 0.1", "1.3 (0x0)", 0.3, "bound"),
        ("1 ± 0.1", "1.5 (0x0)", 0.5, "value"),
        ("1 ± 0.1", "-1.5 (0x0)", 2.5, "sign"),
        ("0.1 ± 0.1", "-0.2 (0x0)", 0.3, "bound"),
        ("1 ± 0.1", "nan (0x0)", None, "NaN"),
        ("nan ± 0", "1.0 (0x0)", None, "NaN"),
        ("1 ± 0.1", "-inf (0x0)", None, "infinity"),
        ("inf ± 0", "1.0 (0x0)", None, "infinity"),
        ("1 ± 0.1", "damaged", 1.0, "element"),
    ],
)
def test_kinds_of_differences_from_a_value_with_a_bound(
    expected: str, actual: str, error: float | None, kind: str
) -> None:
    assert difference(Diff(3, 1, 2, (0,), expected, actual, error, 0.1)) == kind
