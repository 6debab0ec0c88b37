"""Every valid literal case has a result: a target that rejects it, or dies, hides a formula that raises."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.case import Validity
from harness.model.expected import OneOf
from harness.operators import OPERATORS
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, own_spec
from harness.specs.sweeps.calls import call_of, case_inputs


@pytest.mark.slow
def test_every_valid_literal_case_has_a_result() -> None:
    specs = [each for each in load_specs() if each.graph is None]
    missing = []
    with np.errstate(all="ignore"):
        for case in expand(specs).literals:
            if case.validity is not Validity.VALID or case.directml is not None:
                continue
            call = call_of(case)
            tensors = dict(zip((each.name for each in case.inputs), case_inputs(call, case, 0), strict=True))
            try:
                OPERATORS[case.operator].oracle(call, tensors, "ieee")
            except Exception as error:  # noqa: BLE001 - whatever a formula raises
                missing.append(f"{case.id}: {error!r}")
    assert missing == []


@pytest.mark.parametrize(
    "name",
    [
        *("DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "com.microsoft.QGemm"),
        *(
            f"com.microsoft.QLinear{each}"
            for each in ("Add", "AveragePool", "Concat", "GlobalAveragePool", "LeakyRelu", "Mul", "Where")
        ),
    ],
)
@pytest.mark.parametrize("declared", ["opencl", "d3d"])
def test_ties_have_one_result(name: str, declared: str) -> None:
    """A bound that reached beyond a tie would admit every rounding of it."""
    cases = [case for case in expand(load_specs((own_spec(name),))).literals if "case=ties" in case.id]
    assert len(cases) >= 2
    for case in cases:
        call = call_of(case)
        tensors = dict(zip((each.name for each in case.inputs), case_inputs(call, case, 0), strict=True))
        found = OPERATORS[name].oracle(call, tensors, declared)[0]
        assert isinstance(found, OneOf)
        assert case.documented is not None
        for each in found.candidates:
            np.testing.assert_array_equal(each.array, np.asarray(case.documented[0]))
