"""Every operator's cases against the mistakes that a kernel of any operator can make: each turns two red."""

from __future__ import annotations

import pytest

from harness.model.onnx_schemas import latest_opset, operator_schema
from harness.operators import COLLECTED
from tests.mutants.any_operator import red, samples, survives
from tests.mutants.any_operator.careless import CAREFUL, CARELESS, careful, careless
from tests.mutants.any_operator.conditions import WrongWhere, conditions
from tests.mutants.any_operator.narrow import narrow
from tests.mutants.any_operator.precision import imprecise
from tests.mutants.any_operator.readings import readings
from tests.mutants.any_operator.survivors import reason
from tests.mutants.any_operator.together import NAMES, together
from tests.plans import DEEPEST

FEW = ("Add", "Clip", "Concat", "GatherElements", "GatherND", "Gemm", "MaxPool", "Round", "Softmax")
"""Operators of different families; all others are tried with `-m slow`."""
QUICK = ("Less", "LeakyRelu", "MatMulInteger", "Softmax")
"""Operators whose mistakes of two conditions are always tried."""
_MANY = 8
"""Of the operators with most cases, one case in eight is tried."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in sorted(COLLECTED)],
)
def test_every_mistake_turns_two_cases_red(name: str) -> None:
    cases = samples(name)[:: _MANY if name in DEEPEST else 1]
    mistakes = [*readings(name, cases), *conditions(name, cases)]
    needed = any(not each.optional for each in operator_schema(name, latest_opset()).inputs)
    assert len(mistakes) >= (20 if needed else 10)  # an optional input has no mistakes of its types
    found = [each.name for each in mistakes if reason(name, each.name) is None and survives(each, cases)]
    assert found == []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in sorted(COLLECTED)]
)
def test_kernels_of_fewer_digits_turn_two_cases_red(name: str) -> None:
    cases = samples(name)[:: _MANY if name in DEEPEST else 1]
    found = [
        each.name for each in imprecise(cases) if reason(name, each.name) is None and survives(each, cases)
    ]
    assert found == []


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES],
)
def test_every_mistake_of_two_conditions_turns_two_cases_red(name: str) -> None:
    cases = samples(name)
    found = [each.name for each in together(name) if survives(each, cases)]
    assert found == []


NARROW = [
    name
    for name in sorted(COLLECTED)
    if any(each.dtypes != each.wide for each in operator_schema(name, latest_opset()).inputs)
]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "Cast" else pytest.mark.slow) for name in NARROW]
)
def test_mistakes_of_narrow_types_turn_two_cases_red(name: str) -> None:
    cases = samples(name)
    mistakes = list(narrow(name, cases))
    assert [each.name for each in mistakes if reason(name, each.name) is None and survives(each, cases)] == []


def test_a_kernel_that_is_right_turns_nothing_red() -> None:
    cases = samples("Clip")
    right = WrongWhere("nowhere", lambda _: True, lambda array: array[:0])
    assert list(red(right, cases)) == []


@pytest.mark.parametrize("name", CARELESS)
def test_kernels_that_are_right_for_ordinary_numbers_turn_two_cases_red(name: str) -> None:
    cases = samples(name)
    assert [each.name for each in careless(name) if survives(each, cases)] == []


@pytest.mark.parametrize("name", CAREFUL)
def test_kernels_as_good_as_the_formula_turn_nothing_red(name: str) -> None:
    cases = samples(name)
    assert [(each.name, case) for each in careful(name) for case in red(each, cases)] == []
