"""MatMul: the product of matrices, and of stacks of them that are broadcast together. Gemm: that of two matrices, either
transposed, times a factor, plus a third times another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape
from harness.operators.bounded import Bounded
from harness.operators.broadcasting import broadcast, strides
from harness.operators.computing import Computing
from harness.operators.formulas import bounded

# Y[..., i, j] = sum over k of A[..., i, k] B[..., k, j]; a vector A is a row, a vector B a column, whose
# dimension is left out again


def matmul(a: Any, b: Any) -> Any:
    """Multiply by the formula above; integers wrap."""
    return np.matmul(a, b)


class Products(Computing):
    """Two inputs, stacks of matrices. The shape of the second for a first one (..., m, k), by words:

    square (k, k); wide (k, 5); narrow (k, 1); vector (k,); stack (..., k, 3); ones (1, ..., k, 3) with a 1
    for each dimension of the stack; deeper (2, ..., k, 3); unlike (k + 1, 3), which has no product;
    unlike_stack, whose stack cannot be broadcast.
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "B": ("square", "wide", "narrow", "vector", "stack", "ones", "deeper", "unlike", "unlike_stack")
    }
    lowers = "DML_OPERATOR_GEMM"
    lowers_broken = True

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of the second input."""
        first = call.first.shape
        if not first:
            return None
        inner, stack = first[-1], first[:-2]
        if relation == "unlike_stack":
            return (*(extent + 1 for extent in stack), inner, 3) if stack and min(stack) > 1 else None
        found: dict[str, Shape] = {
            "square": (inner, inner),
            "wide": (inner, 5),
            "narrow": (inner, 1),
            "vector": (inner,),
            "stack": (*stack, inner, 3),
            "ones": (*(1 for _ in stack), inner, 3),
            "deeper": (2, *stack, inner, 3),
            "unlike": (inner + 1, 3),
        }
        return found[str(relation)]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, inner dimensions, and stacks that cannot be broadcast."""
        a, b = call.shapes[:2]
        if not a or not b:
            return "A and B have at least one dimension"
        if a[-1] != (b[-2] if len(b) > 1 else b[0]):
            return "the inner dimensions agree"
        return None if broadcast((a[:-2], b[:-2])) is not None else "the stacks of matrices can be broadcast"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The stack that both have together, the rows of A, the columns of B."""
        a, b = call.shapes[:2]
        stack = broadcast((a[:-2], b[:-2])) or ()
        return ((*stack, *a[-2:-1], *(b[-1:] if len(b) > 1 else ())),)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Vectors become matrices, a stack is broadcast by strides of 0."""
        a, b, y = multiplied(call)
        tensors = {"ATensor": a, "BTensor": b, "OutputTensor": y}
        members = {"TransA": 0, "TransB": 0, "Alpha": 1.0, "Beta": 0.0}
        return DirectmlCall(candidate, tensors, 2, members)


def multiplied(call: Call) -> tuple[CallTensor, CallTensor, CallTensor]:
    """Return both factors and the product: vectors become matrices, a stack is broadcast by strides of 0."""
    (first, a), (second, b) = list(call.inputs.items())[:2]
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    stack = broadcast((left[:-2], right[:-2])) or ()
    wide_left, wide_right = (*stack, *left[-2:]), (*stack, *right[-2:])
    return (
        CallTensor(first, a.dtype, wide_left, strides(left, wide_left)),
        CallTensor(second, b.dtype, wide_right, strides(right, wide_right)),
        CallTensor(0, call.outputs[0], (*stack, left[-2], right[-1])),
    )


# Y = alpha * A' * B' + beta * C; A' is A, with transA its transpose, and so B'


def gemm(a: Any, b: Any, c: Any = None, *, alpha: float, beta: float, transA: int, transB: int) -> Any:  # noqa: N803 # as ONNX names them
    """Multiply by the formula above; integers wrap, and their fractions after a factor are cut off."""

    def scaled(factor: float, x: Any) -> Any:
        return x if factor == 1 else factor * x if isinstance(x, Bounded) else (factor * x).astype(a.dtype)

    y = scaled(alpha, (a.T if transA else a) @ (b.T if transB else b))
    return y if c is None else y + scaled(beta, c)


class Gemm(Computing):
    """Two matrices and what can be broadcast to their product [M, N].

    By words: B is `wide` (N = 5), `narrow` (N = 1), `square` (N = K), `unlike` (another K), each as transB
    wants it; C is `full` (M, N), `scalar` (), `one` (1,), `row` (N,), `flat_row` (1, N), `column` (M, 1),
    `ones` (1, 1), `unlike` (M + 1, N), `higher` (1, M, N).
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "B": ("wide", "narrow", "square", "unlike"),
        "C": ("full", "scalar", "one", "row", "flat_row", "column", "ones", "unlike", "higher"),
    }
    lowers = "DML_OPERATOR_GEMM"

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of B and C."""
        if len(call.first.shape) != 2:
            return None
        rows, inner = _turned(call.first.shape, call.parameter("transA"))
        if name == "B":
            columns = {"narrow": 1, "square": inner}.get(str(relation), 5)
            return _turned((inner + (relation == "unlike"), columns), call.parameter("transB"))
        _, columns = _turned(call.shapes[1], call.parameter("transB"))
        found: dict[str, Shape] = {
            "scalar": (), "one": (1,), "row": (columns,), "flat_row": (1, columns), "column": (rows, 1), "ones": (1, 1),
            "unlike": (rows + 1, columns), "higher": (1, rows, columns),
        }  # fmt: skip
        return found.get(str(relation), (rows, columns))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, inner dimensions, and a C that cannot be broadcast to the product."""
        a, b = call.shapes[:2]
        if len(a) != 2 or len(b) != 2:
            return "A and B are matrices"
        if _turned(a, call.parameter("transA"))[1] != _turned(b, call.parameter("transB"))[0]:
            return "the inner dimensions agree"
        product = self._product(call)
        fits = len(call.shapes) < 3 or broadcast((call.shapes[2], product)) == product
        return None if fits else "C can be broadcast to the product, in one direction"

    def _product(self, call: Call) -> Shape:
        a, b = call.shapes[:2]
        return (_turned(a, call.parameter("transA"))[0], _turned(b, call.parameter("transB"))[1])

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[M, N]."""
        ranks = [len(shape) for shape in call.shapes[:2]]
        return (self._product(call) if ranks == [2, 2] else call.first.shape,)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """C is broadcast by strides of 0."""
        named, wide = (
            zip(("ATensor", "BTensor", "CTensor"), call.inputs.items(), strict=False),
            self._product(call),
        )
        tensors = {member: CallTensor(name, *given) for member, (name, given) in named}
        if (third := tensors.get("CTensor")) is not None:
            tensors["CTensor"] = third._replace(sizes=wide, strides=strides(third.sizes, wide))
        tensors["OutputTensor"] = CallTensor(0, call.outputs[0], wide)
        members = {
            "TransA": int(bool(call.parameter("transA"))),
            "TransB": int(bool(call.parameter("transB"))),
            "Alpha": call.parameter("alpha"),
            "Beta": call.parameter("beta"),
        }
        return DirectmlCall(candidate, tensors, 2, members)


def _turned(shape: Shape, transposed: Any) -> Shape:
    return (shape[1], shape[0]) if transposed else shape


OPERATORS = (
    Operator("MatMul", Products(), bounded(matmul)),
    Operator("Gemm", Gemm(), bounded(gemm)),
)
