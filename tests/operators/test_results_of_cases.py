"""Every valid literal case has a result: a target that rejects it, or dies, hides a formula that raises."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.case import Validity
from harness.operators import OPERATORS
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
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
