"""Operators of ai.onnx.ml against onnx's own reference implementation, where that follows the document."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import load_model_from_string
from onnx.reference import ReferenceEvaluator

from harness.compile.graphs import compile_case
from harness.model.case import Tensor
from harness.model.diff import compare
from harness.operators import COLLECTED, OPERATORS
from tests.mutants.any_operator import Sample, samples

NAMES = sorted(name.removeprefix("ai.onnx.ml.") for name in COLLECTED if name.startswith("ai.onnx.ml."))


def _differs(sample: Sample) -> bool:
    operator = OPERATORS[sample.case.operator]
    shapes = operator.family.output_shapes(operator, sample.call)
    made = compile_case(sample.case, sample.call, tuple(sample.inputs.values()), shapes)
    fed = {feed: sample.inputs[feed].array for feed, _ in made.inputs}
    outputs = ReferenceEvaluator(load_model_from_string(made.model)).run(None, fed)
    return any(
        compare(wanted, Tensor(dtype, np.asarray(found)))[0] is not None
        for wanted, dtype, found in zip(sample.expected, sample.call.outputs, outputs, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_gives_the_same(name: str) -> None:
    cases = [each for each in samples(f"ai.onnx.ml.{name}") if not each.case.options.initializer][::3]
    assert len(cases) > 5
    assert [each.case.id for each in cases if _differs(each)] == []
