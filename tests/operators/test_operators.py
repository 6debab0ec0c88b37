"""Every operator has its spec, and every spec its operator."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from harness.model.onnx_schemas import operator_schema, opsets_of_versions
from harness.model.target_info import CPU
from harness.operators import COLLECTED
from harness.operators.base import UNKNOWN, Operator
from harness.operators.formulas import parameters
from harness.run.oracle import oracle
from harness.specs.reading.load import operator_of
from tests.plans import selected
from tests.prepared import prepared_case

SPECS = Path(__file__).resolve().parents[2] / "specs"


def test_operator_modules_and_specs_are_the_same_set() -> None:
    files = (*SPECS.glob("*.yaml"), *SPECS.glob("*.*/*.yaml"))
    assert {operator_of(path) for path in files} == set(COLLECTED)


@pytest.mark.parametrize("operator", COLLECTED.values(), ids=lambda operator: operator.name)
def test_what_an_operator_names_are_its_inputs_and_attributes(operator: Operator) -> None:
    """Inputs with a relation or with indices are those of the newest version; what decides shapes is an input
    at one opset at least."""
    schemas = [operator_schema(operator.name, opset) for opset in opsets_of_versions(operator.name)]
    inputs = {parameter.name for parameter in schemas[-1].inputs}
    assert set(operator.family.unsigned_inputs(operator)) <= inputs
    assert set(operator.constants) <= {parameter.name for schema in schemas for parameter in schema.inputs}
    assert set(operator.constants.values()) <= {0, 1, UNKNOWN}
    if operator.name in ("GatherElements", "GatherND"):
        assert set(operator.family.relations) == {"indices"}
        assert operator.family.unsigned_inputs(operator) == ("indices",)
        assert {name for name in inputs if operator.family.kinds(operator, name)} == {"indices"}


def test_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="too_high"):
        COLLECTED["GatherND"].kind("indices", "too_high")
    assert COLLECTED["GatherND"].kind("indices", "mixed").negative


def test_the_oracle_of_the_largest_numbers_warns_of_nothing() -> None:
    """A warning is an error here; in a run it would stand in the terminal."""
    cases = list(selected("GridSample:case=kind_*"))
    assert any("kind_grid_largest" in case.id for case in cases)
    for case in cases:
        oracle(prepared_case(case), CPU)


def test_a_formula_has_a_signature_in_every_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """In NumPy 2.2, the last release for Python 3.10, `where` has none, nor have other functions that are written in C."""
    formulas = [formula for each in COLLECTED.values() if (formula := getattr(each.oracle, "formula", None))]
    in_c = [formula for formula in formulas if not isinstance(formula, FunctionType)]
    assert len(in_c) < len(formulas)

    def none(formula: object) -> inspect.Signature:
        raise ValueError(f"no signature found for builtin {formula!r}")

    monkeypatch.setattr(inspect, "signature", none)
    assert np.where in in_c
    assert {parameters.__wrapped__(formula) for formula in in_c} == {frozenset()}
