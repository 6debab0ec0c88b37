"""MatMulInteger: the product of matrices of 8-bit integers, less their zero points, in 32 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape
from harness.operators.formulas import decided
from harness.operators.products.products import Products, multiplied

# Y[..., i, j] = sum over k of (A[..., i, k] - a_zero_point[..., i]) (B[..., k, j] - b_zero_point[..., j]), in
# int32


def matmul_integer(
    A: Array,  # noqa: N803 - as ONNX calls it
    B: Array,  # noqa: N803 - as ONNX calls it
    a_zero_point: Array | None = None,
    b_zero_point: Array | None = None,
) -> Array:
    """Multiply by the formula above; a vector of zero points of A has one for each row."""
    a, b = A.astype(np.int32), B.astype(np.int32)
    if a_zero_point is not None:
        zero = a_zero_point.astype(np.int32)
        a = a - (zero[:, None] if zero.shape not in ((), (1,)) and zero.ndim == 1 else zero)
    if b_zero_point is not None:
        b = b - b_zero_point.astype(np.int32)
    return np.asarray(np.matmul(a, b))


class IntegerProducts(Products):
    """Two inputs as in `Products`, and zero points: `scalar`; `one` (1,); `each` (M,) of A and (N,) of B;
    `wide` (..., M, 1), (..., 1, N); `unlike`, one more than that.
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **Products.relations,
        "a_zero_point": ("scalar", "one", "each", "wide", "unlike"),
        "b_zero_point": ("scalar", "one", "each", "wide", "unlike"),
    }
    lowers = "DML_OPERATOR_MATRIX_MULTIPLY_INTEGER"
    lowers_broken = False

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of B and of the zero points."""
        if name == "B":
            return super().shape(operator, name, relation, call)
        found = _zero_points(call.shapes[0 if name.startswith("a") else 1], rows=name.startswith("a"))
        return found.get(str(relation), ())

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Name the rule of products that is broken, or that of the shapes of zero points."""
        for name, number in (("a_zero_point", 0), ("b_zero_point", 1)):
            if name not in call.inputs:
                continue
            allowed = _zero_points(call.shapes[number], rows=number == 0)
            allowed.pop("unlike", None)
            if call.inputs[name].shape not in allowed.values():
                return "zero points are one for all, or one for each row of A and each column of B"
        return super().broken_rule(operator, call)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Vectors become matrices, a stack is broadcast by strides of 0."""
        a, b, y = multiplied(call)
        tensors = {
            "ATensor": a,
            "AZeroPointTensor": _zero_tensor(call, "a_zero_point", rows=True),
            "BTensor": b,
            "BZeroPointTensor": _zero_tensor(call, "b_zero_point", rows=False),
            "OutputTensor": y,
        }
        return DirectmlCall(candidate, tensors, 2, {})


def _zero_points(shape: Shape, *, rows: bool) -> dict[str, Shape]:
    """Return the shapes of zero points by word; a vector has no row and no column of its own."""
    found: dict[str, Shape] = {"scalar": (), "one": (1,), "unlike": (7,)}
    if len(shape) < 2:
        return found
    count = shape[-2] if rows else shape[-1]
    if len(shape) == 2:
        found["each"] = (count,)
    return {**found, "wide": (*shape[:-1], 1) if rows else (*shape[:-2], 1, count), "unlike": (count + 1,)}


def _zero_tensor(call: Call, name: str, *, rows: bool) -> CallTensor | None:
    given = call.inputs.get(name)
    if given is None:
        return None
    shape = given.shape or (1,)
    if len(shape) == 1:
        shape = (*shape, 1) if rows else (1, *shape)
    return CallTensor(name, given.dtype, shape)


OPERATOR = Operator("MatMulInteger", IntegerProducts(), decided(matmul_integer))
