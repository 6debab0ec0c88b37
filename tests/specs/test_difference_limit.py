from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.expected import Approx
from harness.model.result import Diff
from harness.specs.difference_limit import DifferenceLimit


def diff(expected: list[float], actual: list[float], dtype: str = "float32") -> Diff:
    found = compare(tensor(expected, dtype), tensor(actual, dtype))
    assert found is not None
    return found


def tensor(values: list[float], dtype: str = "float32") -> Tensor:
    return Tensor(dtype, np.array(values, dtype))


@pytest.mark.parametrize(
    ("kind", "expected", "actual"),
    [
        ("NaN", [1.0], [np.nan]),
        ("infinity", [1.0], [np.inf]),
        ("sign of zero", [0.0], [-0.0]),
        ("sign", [1.0], [-1.0]),
        ("value", [1.0], [1.0000001]),
        ("value", [1.0], [5.0]),
        ("shape", [1.0], [1.0, 2.0]),
    ],
)
def test_a_kind_allows_its_differences_alone(kind: str, expected: list[float], actual: list[float]) -> None:
    others = {"dtype", "shape", "NaN", "infinity", "sign of zero", "sign", "value"} - {kind}
    assert DifferenceLimit(kind=(kind,)).allows(diff(expected, actual))
    assert not DifferenceLimit(kind=tuple(others)).allows(diff(expected, actual))


def test_integers_differ_in_value() -> None:
    assert DifferenceLimit(kind=("value",)).allows(diff([1], [2], "int8"))


def test_the_largest_distance_counts_not_that_of_the_first_wrong_element() -> None:
    two = diff([1.0, 1.0], [1.0000001, 1.0000004])
    assert two.max_ulp == 3
    assert DifferenceLimit(ulp=3).allows(two)
    assert not DifferenceLimit(ulp=2).allows(two)


def bounded(actual: list[float]) -> Diff:
    wanted = np.ones(len(actual))
    found = compare(Approx("float32", wanted, np.full(len(actual), 1e-6)), tensor(actual)).diff
    assert found is not None
    return found


def test_the_largest_error_counts_where_a_bound_is_expected() -> None:
    assert DifferenceLimit(error=0.3).allows(bounded([1.1, 1.25]))
    assert not DifferenceLimit(error=0.2).allows(bounded([1.1, 1.25]))
    assert not DifferenceLimit(error=0.3).allows(bounded([1.1, np.nan]))


def test_a_limit_limits_something() -> None:
    with pytest.raises(ValidationError, match="limits nothing"):
        DifferenceLimit()
