"""Constant: every form by onnx's own reference, and wrong readings of it that turn cases of the spec red."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from harness.compile.graphs import compile_case
from harness.model.case import Tensor, TensorValue
from harness.model.diff import compare
from harness.model.dtypes import DTYPES, Array
from tests.mutants.any_operator import Sample, samples

constants = cache(partial(samples, "Constant"))
FEW = ("float16", "bfloat16", "complex64", "complex128")
"""Types of which sparse tensors, or elements in whatever storage, are another matter to the reference."""


def test_all_forms_are_those_of_the_reference() -> None:
    compared = 0
    for sample in constants():
        (value,) = sample.case.attributes.values()
        if isinstance(value, TensorValue) and (value.dtype in FEW or value.indices is not None):
            continue
        graph = compile_case(sample.case, sample.call, ())
        (found,) = ReferenceEvaluator(ModelProto.FromString(graph.model)).run(None, {})
        dtype = sample.call.outputs[0]
        array = np.asarray(found, object if dtype == "string" else None)
        if (
            DTYPES[dtype].narrow and DTYPES[dtype].is_integer
        ):  # whose bits the reference does not extend by the sign
            array = array.astype(DTYPES[dtype].storage)
        assert compare(sample.expected[0], Tensor(dtype, array)).diff is None, sample.case.id
        compared += 1
    assert compared > 50


def _sparse(read: Callable[[TensorValue, Array], Array]) -> Callable[[Sample], Array | None]:
    def kernel(sample: Sample) -> Array | None:
        (value,) = sample.case.attributes.values()
        if not isinstance(value, TensorValue) or value.indices is None:
            return None
        return read(value, value.tensor.array)

    return kernel


def _listed(sample: Sample) -> Array | None:
    ((name, value),) = sample.case.attributes.items()
    return np.array(value[:1], np.float32) if name == "value_floats" and isinstance(value, tuple) else None


def _shortened(sample: Sample) -> Array | None:
    found = sample.expected[0].tensor.array  # type: ignore[union-attr] # to the bit
    return found.astype(np.int32).astype(np.int64) if found.dtype == np.int64 else None


def _positive(sample: Sample) -> Array | None:
    found = sample.expected[0].tensor.array  # type: ignore[union-attr] # to the bit
    return found + 0.0 if found.dtype == np.float32 else None


def _letters(sample: Sample) -> Array | None:
    found = sample.expected[0].tensor.array  # type: ignore[union-attr] # to the bit
    if found.dtype != object:
        return None
    bare = [str(each).encode("ascii", "ignore").decode() for each in found.reshape(-1)]
    return np.array(bare, object).reshape(found.shape)


def _transposed(value: TensorValue, dense: Array) -> Array:
    return np.ascontiguousarray(dense.reshape(dense.shape[::-1]).T)


WRONG: dict[str, Callable[[Sample], Array | None]] = {
    "sparse by columns": _sparse(_transposed),
    "sparse without its zeros": _sparse(lambda value, _: np.array(value.elements)),
    "sparse one place too late": _sparse(lambda _, dense: np.roll(dense, 1)),
    "sparse without its last value": _sparse(
        lambda value, _: (
            value._replace(
                elements=value.elements[:-1],
                indices=value.indices
                and value.indices._replace(
                    shape=(max(value.indices.shape[0] - 1, 0), *value.indices.shape[1:]),
                    elements=value.indices.elements[
                        : (len(value.elements) - 1)
                        * (len(value.indices.elements) // max(len(value.elements), 1))
                    ],
                ),
            ).tensor.array
        )
    ),
    "the first of a list": _listed,
    "integers in 32 bits": _shortened,
    "no zero below": _positive,
    "texts of ASCII": _letters,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_readings_turn_two_cases_red(name: str) -> None:
    found = [(sample, WRONG[name](sample)) for sample in constants()]
    red = [
        sample.case.id
        for sample, array in found
        if array is not None
        and compare(sample.expected[0], Tensor(sample.call.outputs[0], array)).diff is not None
    ]
    assert len(red) >= 2
