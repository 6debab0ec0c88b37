"""Optionals: every case by onnx's own reference, and wrong kernels that turn cases of the specs red."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from harness.compile.graphs import compile_case
from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from tests.mutants.any_operator import Sample, samples

NAMES = ("Optional", "OptionalGetElement", "OptionalHasElement")
UNLIKE = ("empty", "empty_sequence", "sequence")
BFLOAT16 = "bfloat16"
"""Of which the reference has another storage."""


@cache
def known(name: str) -> list[Sample]:
    return [sample for sample in samples(name) if not any(e.dtype == BFLOAT16 for e in sample.case.inputs)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_expected_is_what_the_reference_gives(name: str) -> None:
    compared = 0
    for sample in known(name)[::3]:
        if (
            sample.case.opset > 18
            or (name == NAMES[2] and not sample.case.inputs)
            or sample.case.options.optionals
        ):
            continue  # the reference takes an input that is left out for a mistake, and optionals of the graph as lists
        if sample.case.options.variant in UNLIKE or sample.case.attributes or not sample.case.inputs:
            continue  # asks for the type of an empty one by a number, and holds a sequence in a list
        graph = compile_case(sample.case, sample.call, tuple(sample.inputs.values()))
        given = ReferenceEvaluator(ModelProto.FromString(graph.model)).run(None, sample.arrays)
        for expected, found in zip(sample.expected, given, strict=True):
            held = found[0] if isinstance(found, list) else found  # an optional is a list to it
            array = np.asarray(held, np.bool_ if expected.dtype == "bool" else None)
            assert compare(expected, Tensor(expected.dtype, array)).diff is None, sample.case.id
            compared += 1
    assert compared > 20


WRONG: dict[str, dict[str, Callable[[Sample], tuple[Array, ...] | None]]] = {
    "Optional": {
        "always empty": lambda s: (np.array(False), *s.arrays.values()),
        "never empty": lambda s: (np.array(True),) if not s.arrays else None,
        "an element of zeros": lambda s: (np.array(True), *(np.zeros_like(x) for x in s.arrays.values())),
        "the first of its elements": lambda s: (
            np.array(True),
            *(x.reshape(-1)[:1] for x in s.arrays.values()),
        ),
    },
    "OptionalHasElement": {
        "always": lambda s: (np.array(True),),
        "never": lambda s: (np.array(False),),
        "false where there are no numbers": lambda s: (np.array(any(x.size for x in s.arrays.values())),),
        "true of an empty sequence": lambda s: (
            (np.array(True),) if s.case.options.variant == "empty_sequence" else None
        ),
        "false of a bare tensor": lambda s: (
            (np.array(False),) if str(s.case.options.variant).startswith("bare") else None
        ),
    },
    "OptionalGetElement": {
        "zeros": lambda s: tuple(map(np.zeros_like, s.arrays.values())),
        "flat": lambda s: tuple(x.reshape(-1) for x in s.arrays.values()),
        "nothing of a sequence": lambda s: (
            tuple(x[:0] if x.ndim else x.reshape(1) for x in s.arrays.values())
            if str(s.case.options.variant).endswith("sequence")
            else None
        ),
    },
}


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, each) for name, every in WRONG.items() for each in every]
)
def test_wrong_kernels_turn_two_cases_red(name: str, mistake: str) -> None:
    red = [
        sample.case.id
        for sample in known(name)
        if (found := WRONG[name][mistake](sample)) is not None
        and any(
            compare(expected, Tensor(expected.dtype, array)).diff is not None
            for expected, array in zip(sample.expected, found, strict=False)
        )
    ]
    assert len(red) >= 2
