"""RNN, GRU and LSTM against loops over sequences and neurons, and the specs against kernels with one
mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from harness.model.case import Case, Tensor, Validity
from harness.model.diff import compare
from harness.operators import OPERATORS
from harness.operators.base import Call
from harness.specs.expand import expand
from harness.specs.reading.load import default_folder, load_specs
from harness.specs.sweeps.calls import call_of, case_inputs
from tests.operators import recurrent_loops, regions_loops
from tests.sampled import one_of

Kernel = Callable[[Call, dict[str, Any], str], list[Any]]


def recurrent(operator: str) -> Kernel:
    return lambda call, arrays, wrong: recurrent_loops.run(operator, call.attributes, arrays, wrong)


KERNELS: dict[str, Kernel] = {
    "RNN": recurrent("RNN"),
    "GRU": recurrent("GRU"),
    "LSTM": recurrent("LSTM"),
    "RoiAlign": regions_loops.kernel,
}
ALL = (
    "bias ignored",
    "recurrence bias ignored",
    "recurrence transposed",
    "reverse ignored",
    "reverse outputs in the order of steps",
    "reverse from the end of the longest",
    "sequence_lens ignored",
    "one length for the batch",
    "last output by time",
    "weights of the first direction for both",
    "initial_h ignored",
    "states with the batch first",
    "clip ignored",
    "clip after the activation",
    "activations ignored",
    "activations of the first direction for both",
    "activation_alpha ignored",
    "activation_beta ignored",
    "no default of ThresholdedRelu",
    "float16",
)
MISTAKES = {
    "RNN": ALL,
    "GRU": (
        *ALL,
        "gates in the order rzh",
        "gates in the order hzr",
        "linear_before_reset ignored",
        "linear_before_reset always",
        "recurrence bias not reset",
        "reset ignored",
        "update the other way round",
        "last activation not clipped",
        "first activation not clipped",
        "activations of the last place at the one before",
    ),
    "LSTM": (
        *ALL,
        "gates in the order ifoc",
        "gates in the order iocf",
        "initial_c ignored",
        "input_forget ignored",
        "input coupled to forget",
        "peepholes ignored",
        "peepholes in the order ifo",
        "peepholes of the input gate alone",
        "output gate sees the old cell",
        "cell clipped as a state",
        "cell without its activation",
        "last cell for the last output",
        "last activation not clipped",
        "first activation not clipped",
        "activations of the last place at the one before",
    ),
    "RoiAlign": regions_loops.MISTAKES,
}
_MOST = 3_000
"""Cases with more elements are left out: what is wrong shows in smaller ones."""


@cache
def cases(name: str) -> tuple[tuple[Case, Call, dict[str, Tensor], Any], ...]:
    """Return the valid float32 cases of a spec, with their inputs and what is expected."""
    plan = expand(load_specs((default_folder() / f"{name}.yaml",)))
    found = []
    for case in plan.cases(valid=True):
        if case.validity is not Validity.VALID or case.inputs[0].dtype != "float32":
            continue
        call = call_of(case)
        inputs = {s.name: t for s, t in zip(case.inputs, case_inputs(call, case, 0), strict=True)}
        if sum(tensor.array.size for tensor in inputs.values()) <= _MOST:
            found.append((case, call, inputs, OPERATORS[name].oracle(call, inputs, "opencl")))
    return tuple(found)


def red(name: str, wrong: str) -> Iterator[str]:
    """Yield the cases that a kernel gets wrong."""
    for case, call, inputs, expected in cases(name):
        arrays = {key: tensor.array for key, tensor in inputs.items()}
        with np.errstate(all="ignore"):
            made = [each.astype(np.float32) for each in KERNELS[name](call, arrays, wrong)]
        if any(
            compare(one, Tensor("float32", actual)).diff is not None
            for one, actual in zip(expected, made, strict=False)
        ):
            yield case.id


@pytest.mark.parametrize("name", one_of(4, KERNELS))
def test_loops_turn_nothing_red(name: str) -> None:
    assert len(cases(name)) >= 20
    assert list(red(name, "")) == []


@pytest.mark.parametrize(
    ("name", "wrong"), one_of(9, [(name, wrong) for name, all_ in MISTAKES.items() for wrong in all_])
)
def test_a_mistake_turns_cases_red(name: str, wrong: str) -> None:
    found = red(name, wrong)
    assert next(found, None) is not None
    assert next(found, None) is not None


def test_nothing_is_claimed_of_y_beyond_a_length() -> None:
    claimed = [
        np.isinf(expected[0].bound).any()
        for case, _, inputs, expected in cases("LSTM")
        if "sequence_lens" in inputs and (inputs["sequence_lens"].array < case.inputs[0].shape[0]).any()
    ]
    assert claimed
    assert all(claimed)
