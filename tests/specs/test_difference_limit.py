from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import encode
from harness.model.wrong_elements import WrongElements
from harness.run.deviation import within
from harness.specs.expectations.expectation_entry import DifferenceLimit, LimitKind

KINDS: tuple[LimitKind, ...] = ("NaN", "infinity", "sign of zero", "sign", "value")
TINY = 2.0**-149
"""The least subnormal of float32."""


def tensor(values: list[object], dtype: str = "float32") -> Tensor:
    if dtype == "bfloat16":
        return Tensor(dtype, encode(dtype, np.array(values, np.float64)))
    return Tensor(dtype, np.array(values, object if dtype == "string" else dtype))


def wrong(expected: list[object], actual: list[object], dtype: str = "float32") -> WrongElements:
    return WrongElements(Exact(tensor(expected, dtype)), tensor(actual, dtype))


def near(values: list[float], bounds: list[float]) -> Approx:
    return Approx("float32", np.array(values), np.array(bounds))


@pytest.mark.parametrize(
    ("kind", "expected", "actual"),
    [
        ("NaN", 1.0, np.nan),
        ("NaN", np.nan, np.inf),
        ("infinity", 1.0, np.inf),
        ("infinity", -np.inf, -1.0),
        ("sign of zero", 0.0, -0.0),
        ("sign", 1.0, -1.0),
        ("sign", np.inf, -np.inf),
        ("value", 1.0, 1.0000001),
        ("value", 0.0, 5.0),
    ],
)
def test_a_kind_is_met_by_its_differences_alone(kind: LimitKind, expected: float, actual: float) -> None:
    found = wrong([expected], [actual])
    assert found.kinds.tolist() == [kind]
    for each in KINDS:
        assert DifferenceLimit(kind=(each,)).met(found).tolist() == [each == kind]


def test_right_elements_are_not_looked_at() -> None:
    found = wrong([1.0, 2.0, np.nan, 4.0], [1.0, 2.5, np.nan, np.inf])
    assert (found.expected.tolist(), found.actual.tolist()) == ([2.0, 4.0], [2.5, np.inf])
    assert found.kinds.tolist() == ["value", "infinity"]


@pytest.mark.parametrize(
    ("held", "dtype", "yes", "no"),
    [
        (0, "float32", 0.0, -0.0),
        (-0.0, "float32", -0.0, 0.0),
        (1.5, "float16", 1.5, 1.25),
        (0.33333334, "float32", 1 / 3, 0.3333333),  # as reports print it
        ("NaN", "float64", np.nan, np.inf),
        ("inf", "float32", np.inf, -np.inf),
        ("-inf", "float32", -np.inf, np.inf),
        ("lowest", "float16", -65504.0, 65504.0),
        ("largest", "bfloat16", float.fromhex("0x1.fep+127"), 1.0),
        ("lowest", "int8", -128, 127),
        ("largest", "uint64", 2**64 - 1, 2**64 - 2),
        ("subnormal", "float32", TINY, 0.0),
        ("subnormal", "float32", -TINY, 2.0**-126),
        (7, "int64", 7, 8),
        (2**53 + 1, "int64", 2**53 + 1, 2**53),
        ("a", "string", "a", "b"),
        ("NaN", "string", "NaN", "nan"),
        (True, "bool", True, False),
    ],
)  # fmt: skip
def test_what_an_element_should_be_and_is(held: float | str, dtype: str, yes: object, no: object) -> None:
    assert DifferenceLimit(actual=(held,)).met(wrong([no], [yes], dtype)).tolist() == [True]
    assert DifferenceLimit(actual=(held,)).met(wrong([yes], [no], dtype)).tolist() == [False]
    assert DifferenceLimit(expected=(held,)).met(wrong([yes], [no], dtype)).tolist() == [True]
    assert DifferenceLimit(expected=(held,)).met(wrong([no], [yes], dtype)).tolist() == [False]


def test_one_of_a_few_elements() -> None:
    found = wrong([1.0, 2.0, 3.0], [0.0, -0.0, 4.0])
    assert DifferenceLimit(actual=(0, 4)).met(found).tolist() == [True, False, True]


def test_units_in_the_last_place() -> None:
    found = wrong([1.0, 1.0, 1.0], [1.0000001, 1.0000004, np.nan])
    assert DifferenceLimit(ulp=3).met(found).tolist() == [True, True, False]
    assert DifferenceLimit(ulp=2).met(found).tolist() == [True, False, False]


def test_the_nearest_of_a_few_candidates_counts() -> None:
    candidates = OneOf((tensor([1.0, 5.0]), tensor([2.0, 7.0])))
    found = WrongElements(candidates, tensor([2.25, 7.0]))
    assert found.expected.tolist() == [1.0]
    assert DifferenceLimit(error=0.25).met(found).tolist() == [True]


@pytest.mark.parametrize(
    ("dtype", "expected", "actual", "error"),
    [("int8", -128, 127, 255), ("uint64", 0, 2**63, 2**63), ("int64", -(2**63), 2**63 - 1, 2**64 - 1), ("bool", True, False, 1)],
)  # fmt: skip
def test_integers_do_not_wrap_in_an_error(dtype: str, expected: int, actual: int, error: float) -> None:
    found = wrong([expected], [actual], dtype)
    assert DifferenceLimit(error=error).met(found).tolist() == [True]
    assert DifferenceLimit(error=error / 2).met(found).tolist() == [False]


def test_errors_and_multiples_of_a_bound() -> None:
    found = WrongElements(near([1.0, 1.0, 2.0], [0.1, 0.25, 0.0]), tensor([1.3, 1.125, 2.5]))
    assert found.expected.tolist() == [1.0, 2.0]
    assert DifferenceLimit(error=0.4).met(found).tolist() == [True, False]
    assert DifferenceLimit(bounds=4).met(found).tolist() == [True, False]
    assert DifferenceLimit(bounds=2).met(found).tolist() == [False, False]


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        (DifferenceLimit(ulp=9), wrong([1], [2], "int32")),
        (DifferenceLimit(ulp=9), wrong(["a"], ["b"], "string")),
        (DifferenceLimit(error=9), wrong([np.nan], [1.0])),
        (DifferenceLimit(error=9), wrong([np.inf], [1.0])),
        (DifferenceLimit(error=9), wrong(["a"], ["b"], "string")),
        (DifferenceLimit(bounds=9), wrong([1.0], [1.5])),
        (DifferenceLimit(bounds=9), WrongElements(near([1.0], [0.1]), tensor([np.nan]))),
        (DifferenceLimit(kind=("NaN",), ulp=9), wrong([1.0], [np.nan])),
    ],
)
def test_a_limit_that_cannot_be_measured_is_not_met(limit: DifferenceLimit, found: WrongElements) -> None:
    assert limit.met(found).tolist() == [False]


def test_every_key_has_to_hold() -> None:
    found = wrong([1.0, 1.0], [1.5, -1.5])
    assert DifferenceLimit(kind=("value",), error=1.0).met(found).tolist() == [True, False]
    assert DifferenceLimit(kind=("value",), error=0.25).met(found).tolist() == [False, False]


NAN, SMALL = DifferenceLimit(kind=("NaN",)), DifferenceLimit(kind=("value",), error=0.5)


@pytest.mark.parametrize(
    ("limits", "actual", "is_within"),
    [
        ((SMALL,), [1.5, 2.0], True),
        ((SMALL,), [1.0, 2.0], True),
        ((SMALL,), [1.5, 2.75], False),
        ((SMALL,), [1.5, np.nan], False),
        ((SMALL, NAN), [1.5, np.nan], True),
        ((NAN,), [1.5, np.nan], False),
    ],
)
def test_every_wrong_element_keeps_to_one_of_the_limits(
    limits: tuple[DifferenceLimit, ...], actual: list[object], is_within: bool
) -> None:
    expected: tuple[Expected, ...] = (Exact(tensor([1.0, 2.0])),)
    assert within(limits, expected, (tensor(actual),)) is is_within


def test_every_output_keeps_to_them_and_none_has_another_type_shape_or_number() -> None:
    expected: tuple[Expected, ...] = (Exact(tensor([1.0])), near([3.0], [0.1]))
    assert within((SMALL,), expected, (tensor([1.0]), tensor([3.5])))
    assert not within((SMALL,), expected, (tensor([1.0]), tensor([5.0])))
    assert not within((SMALL,), expected, (tensor([1.0]), tensor([3.0], "float64")))
    assert not within((SMALL,), expected, (tensor([1.0]), tensor([3.0, 3.0])))
    assert not within((SMALL,), expected, (tensor([1.0]),))


def test_a_limit_limits_something() -> None:
    with pytest.raises(ValidationError, match="limits nothing"):
        DifferenceLimit()
