"""Every operator has its spec, and every spec its operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.operators import OPERATORS

SPECS = Path(__file__).resolve().parents[2] / "specs"


def test_operator_modules_and_specs_are_the_same_set() -> None:
    assert {path.stem for path in SPECS.glob("*.yaml")} == set(OPERATORS)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_values_input_and_choices_name_inputs(operator: object) -> None:
    assert operator.values_input in operator.inputs
    assert set(operator.choices) <= set(operator.inputs)
    assert operator.directml_index is None or operator.directml_index in operator.inputs


def test_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="too_high"):
        OPERATORS["GatherND"].kind("too_high")
    assert OPERATORS["GatherND"].kind("mixed").negative
