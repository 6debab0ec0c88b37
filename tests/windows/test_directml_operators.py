"""DirectML's operators called through the structures that their documented members make up: the DLL's results
against NumPy's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from harness.targets.execution import Execution
from tests.windows.directml_calls import Call, every_call
from tests.windows.directml_units import execute, pool

pytestmark = pytest.mark.windows_runtime
CALLS = dict(every_call())
COARSE = ("ELEMENT_WISE_ACOS", "ELEMENT_WISE_ASIN", "ELEMENT_WISE_ATAN_YX")
"""Off by up to 6e-4 of the value where this was measured (llvmpipe): what is tested here is the call, not how
exact a device is."""


@pytest.fixture(scope="module")
def executions() -> Mapping[str, Execution]:
    """Run every call in one worker."""
    with pool() as worker:
        return execute(worker, {name: (call.description, call.arrays) for name, call in CALLS.items()})


@pytest.mark.parametrize("name", CALLS)
def test_an_operator_computes_what_numpy_does(name: str, executions: Mapping[str, Execution]) -> None:
    call: Call = CALLS[name]
    found = executions[name]
    assert found.outputs is not None, found.error
    array = found.outputs[0].array
    assert (array.dtype, array.shape) == (call.wanted.dtype, call.wanted.shape)
    if call.wanted.dtype.kind == "f":
        coarse = name.split()[0] in COARSE
        np.testing.assert_allclose(array, call.wanted, rtol=1e-3 if coarse else 1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(array, call.wanted)
