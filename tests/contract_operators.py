"""Operators for tests of the contract, put in the place of those that the harness may have: two outputs,
inputs that are left out or several, an input that decides shapes, attributes of every type, and formulas that
fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.model.case import (
    Case,
    Options,
    Tensor,
    TensorSpec,
    Value,
)
from harness.model.dtypes import Array
from harness.operators.base import Call, Family, Operator, Shape
from harness.operators.formulas import bounded, decided, moved


class _TopK(Family):
    name = "largest"

    def output_count(self, operator: Operator, call: Call) -> int:
        return 2

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        (k,) = call.parameter("K")
        return ((*call.first.shape[:-1], k),) * 2


def _largest(X: Array, K: Array) -> tuple[Array, Array]:  # noqa: N803 - as ONNX calls its inputs
    (k,) = K
    order = np.argsort(-X, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(X, order, -1), order


TOP_K = Operator("TopK", _TopK(), decided(_largest), constants={"K": 1})


class _Concat(Family):
    name = "joining"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        first, *others = call.shapes
        return ((sum(shape[0] for shape in call.shapes), *first[1:]),) if others else (first,)


CONCAT = Operator("Concat", _Concat(), moved(lambda inputs, axis: np.concatenate(inputs, axis)))


def _clip(input: Array, min: Array | None = None, max: Array | None = None) -> Array:
    low = input if min is None else np.maximum(input, min)
    return np.asarray(low if max is None else np.minimum(low, max))


CLIP = Operator("Clip", Family(), decided(_clip))
EXP = Operator("Exp", Family(), bounded(np.exp))
SEEN: list[dict[str, Value]] = []
"""The attributes that the formula of TfIdfVectorizer was given."""


def _remembering(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Any, ...]:
    SEEN.append(dict(call.attributes))
    return moved(np.copy)(call._replace(outputs=(inputs["X"].dtype,)), inputs, arithmetic)


TF_IDF = Operator("TfIdfVectorizer", Family(), _remembering)


def case_of(
    operator: Operator,
    opset: int,
    inputs: Mapping[str, Tensor],
    attributes: Mapping[str, Value] | None = None,
    **options: Any,
) -> Case:
    """Return a case with its inputs written out."""
    specs = tuple(
        TensorSpec(name, tensor.dtype, tensor.array.shape, "literal") for name, tensor in inputs.items()
    )
    return Case(
        id=f"{operator.name}@{opset}:case=written",
        operator=operator.name,
        opset=opset,
        attributes=dict(attributes or {}),
        inputs=specs,
        options=Options(**options),
        literals=tuple(tensor.array for tensor in inputs.values()),
    )


def floats(*values: float) -> Tensor:
    return Tensor("float32", np.array(values, np.float32))
