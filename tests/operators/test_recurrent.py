"""RNN, GRU and LSTM against loops over sequences and neurons, and the specs against kernels with one
mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.operators import OPERATORS
from harness.operators.base import Call, Undefined
from tests.mutants.any_operator import Sample, samples
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


@cache
def cases(name: str) -> list[Sample]:
    """Return the float32 cases of a spec."""
    return [each for each in samples(name, 3_000) if each.case.inputs[0].dtype == "float32"]


def red(name: str, wrong: str) -> Iterator[str]:
    """Yield the cases that a kernel gets wrong."""
    for sample in cases(name):
        with np.errstate(all="ignore"):
            made = [each.astype(np.float32) for each in KERNELS[name](sample.call, sample.arrays, wrong)]
        if any(
            compare(one, Tensor("float32", actual)).diff is not None
            for one, actual in zip(sample.expected, made, strict=False)
        ):
            yield sample.case.id


@pytest.mark.parametrize("name", one_of(4, KERNELS))
def test_loops_turn_nothing_red(name: str) -> None:
    assert len(cases(name)) >= 20
    assert list(red(name, "")) == []


@pytest.mark.parametrize(
    ("name", "wrong"), one_of(9, [(name, wrong) for name, all_ in MISTAKES.items() for wrong in all_])
)
def test_a_mistake_turns_cases_red(name: str, wrong: str) -> None:
    assert len(list(islice(red(name, wrong), 2))) == 2


def test_nothing_is_claimed_of_y_beyond_a_length() -> None:
    claimed = [
        np.isinf(sample.expected[0].bound).any()
        for sample in cases("LSTM")
        if "sequence_lens" in sample.inputs
        and (sample.arrays["sequence_lens"] < sample.case.inputs[0].shape[0]).any()
    ]
    assert claimed
    assert all(claimed)


@pytest.mark.parametrize("name", ["Affine", "ScaledTanh"])
@pytest.mark.parametrize("given", [{}, {"activation_alpha": (0.5,)}, {"activation_beta": (0.5,)}])
def test_a_function_that_is_no_operator_has_no_default_scales(
    name: str, given: dict[str, tuple[float]]
) -> None:
    sample = next(each for each in cases("RNN") if each.call.attributes.get("direction") == "forward")
    call = sample.call._replace(attributes={**sample.call.attributes, "activations": (name,), **given})
    with pytest.raises(Undefined, match="alpha and beta"):
        OPERATORS["RNN"].oracle(call, sample.inputs, "opencl")
