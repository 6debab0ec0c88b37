"""Signatures: the kind of a mismatch by its first wrong element."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.result import Diff
from harness.model.signature import difference, place


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


@pytest.mark.parametrize(
    ("diff", "where"),
    [
        (Diff(None, 1, 2, (0,), "nan (0x7e00)", "1.0 (0x3c00)"), "expected"),
        (Diff(None, 1, 2, (0,), "1.0 (0x3c00)", "nan (0x7e00)"), "actual"),
        (Diff(None, 1, 2, (0,), "1.0 (0x3c00)", "-inf (0xfc00)", output=1), "output 1 actual"),
        (Diff(None, 1, 2, None, "float32[2,3]", "float32[2,4]"), "extent"),
        (Diff(None, 1, 2, None, "float32[2,3]", "float32[6]"), "rank"),
        (Diff(None, 1, 2, None, "float32[]", "float32[1]"), "rank"),
        (Diff(1, 1, 2, (1,), "1.0 (0x3c00)", "1.001 (0x3c01)"), ""),
    ],
)
def test_the_place_of_a_difference_stays_when_a_case_shrinks(diff: Diff, where: str) -> None:
    assert place(diff) == where
