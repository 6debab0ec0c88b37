"""Operators of ai.onnx.ml against onnx's own reference implementation, where that follows the document."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import load_model_from_string
from onnx.reference import ReferenceEvaluator

from harness.compile.graphs import compile_case
from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import DTYPES
from harness.operators import COLLECTED, OPERATORS
from tests.mutants.any_operator import Sample, samples

REFERENCE_FAILS = {"CastMap", "CategoryMapper", "SVMRegressor", "TreeEnsembleClassifier", "ZipMap"}
"""Those whose attributes onnx's reference wants all, also the optional ones; it has no CastMap, CategoryMapper and ZipMap."""
FAULTS = (
    "LabelEncoder@4:case=not_a_number",
    "post_transform=",
    "SVMClassifier@1:sweep=probabilities",
    "SVMClassifier@1:sweep=of_four_classes",
    "coefficients=[3.0,1.0,0.5]",
    "Normalizer@1:case=kind_X_minus_inf;X=float32[2,2];norm=MAX",
    "OneHotEncoder@1:case=kind_X_subnormal",
    "OneHotEncoder@1:case=kind_X_fine",
    "TreeEnsemble@5:case=members_of_sets",
    "Normalizer@1:case=greatest_below_zero",
    "SVMClassifier@1:case=degree_with_a_fraction",
    "OneHotEncoder@1:case=fractions",
    "OneHotEncoder@1:case=kind_X_initializer",
)
"""Where it differs from the document: a NaN finds no key that is NaN, transforms are those of two classes, and intercepts that are left
out are NaN; of integers coefficients are truncated, and so is the degree of a polynomial. Of a FeatureVectorizer's tensors of one
dimension it makes columns. Of SVMClassifier's three classes and more it sums products of probabilities that the paper has apart, and of
two it takes the second where no coefficient is negative, whatever the votes. OneHotEncoder's numbers with a fraction are no category,
where the document casts them to integers. Normalizer's MAX is of magnitudes there. A set of TreeEnsemble it reads up to a member that is
0."""
_REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError)
"""What the reference raises for transforms, ranks, types and empty rows that it does not implement."""
NAMES = sorted(name for each in COLLECTED if (name := each.removeprefix("ai.onnx.ml.")) != each)


@np.errstate(all="ignore")
def _differs(sample: Sample) -> bool | None:
    """Say whether the reference gives something else; None where it does not run."""
    operator = OPERATORS[sample.case.operator]
    shapes = operator.family.output_shapes(operator, sample.call)
    made = compile_case(sample.case, sample.call, tuple(sample.inputs.values()), shapes)
    fed = {feed: sample.inputs[feed].array for feed, _ in made.inputs}
    for name in made.maps:
        keys, values = (fed.pop(f"{name}_{part}") for part in ("keys", "values"))
        fed[name] = dict(zip(keys.tolist(), values.tolist(), strict=True))
    try:
        outputs = ReferenceEvaluator(load_model_from_string(made.model)).run(None, fed)
    except _REFUSALS:
        return None
    return any(
        compare(wanted, Tensor(dtype, np.asarray(found).astype(DTYPES[dtype].storage)))[0] is not None
        for wanted, dtype, found in zip(sample.expected, sample.call.outputs, outputs, strict=True)
    )


def _at_fault(case: str) -> bool:
    linear = "ml.Linear" in case
    return (
        any(text in case for text in FAULTS)
        or (linear and "intercepts=" not in case)
        or ((linear or "ml.Scaler" in case or "ml.SVM" in case) and "X=int" in case)
        or ("SVMClassifier" in case and "prob_a=" in case and "=[7,3,9]" in case)
        or re.search(r"ml.FeatureVectorizer@.*X.0=\w+\[\d+\]", case) is not None
    )


@pytest.mark.parametrize("name", sorted(set(NAMES) - REFERENCE_FAILS))
def test_the_reference_gives_the_same(name: str) -> None:
    cases = [each for each in samples(f"ai.onnx.ml.{name}") if not _at_fault(each.case.id)]
    found = {each.case.id: _differs(each) for each in cases}
    assert list(found.values()).count(False) > 5
    assert [case for case, differs in found.items() if differs] == []
