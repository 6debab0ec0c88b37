"""Gemm: the product of two matrices, either transposed, times a factor, plus a third times another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape
from harness.operators.bounded import Bounded
from harness.operators.broadcasting import broadcast, strides
from harness.operators.computing import Computing
from harness.operators.formulas import bounded

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


OPERATOR = Operator("Gemm", Gemm(), bounded(gemm))
