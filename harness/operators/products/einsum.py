"""Einsum: sums of products over letters, as an equation says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, ClassVar

import numpy as np

from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.bounded import Bounded, contracted, number
from harness.operators.computing import Computing
from harness.operators.formulas import bounded

# output[output-term] = sum over all letters that the output-term lacks of Inputs[0][term 0] Inputs[1][term 1]
# ...


class Equation:
    """An equation for operands of given shapes: explicit, with a letter for each dimension of an ellipsis."""

    def __init__(self, text: str, shapes: Sequence[Shape]) -> None:
        left, arrow, right = text.replace(" ", "").partition("->")
        terms = left.split(",")
        letters = [len(term.replace("...", "")) for term in terms]
        ranks = [
            len(shape) - count if "..." in term else 0
            for term, shape, count in zip(terms, shapes, letters, strict=False)
        ]
        free = [letter for letter in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if letter not in text]
        self.ellipsis = "".join(free[: max([0, *ranks])])
        if not arrow:
            once = sorted(each for each in set(left) if each.isalpha() and left.count(each) == 1)
            right = ("..." if "..." in left else "") + "".join(once)
        self.terms = [
            self._spelt(term, rank) for term, rank in zip(terms, [*ranks, *[0] * len(terms)], strict=False)
        ]
        self.output = self._spelt(right, len(self.ellipsis))
        covered = {rank for term, rank in zip(terms, ranks, strict=False) if "..." in term}
        self.fits = (
            len(covered) < 2
            and len(terms) == len(shapes)
            and all(len(t) == len(s) for t, s in zip(self.terms, shapes, strict=True))
        )
        self.extents: dict[str, int] = {}
        for term, shape in zip(self.terms, shapes, strict=False):
            for letter, extent in zip(term, shape, strict=False):
                agreed = self.extents.setdefault(letter, extent)
                if letter in self.ellipsis and agreed == 1:
                    self.extents[letter] = extent
                elif agreed != extent and not (letter in self.ellipsis and extent == 1):
                    self.fits = False

    def _spelt(self, term: str, rank: int) -> str:
        return term.replace("...", self.ellipsis[len(self.ellipsis) - rank :] if rank else "")

    @property
    def text(self) -> str:
        return f"{','.join(self.terms)}->{self.output}"


def einsum(Inputs: Sequence[Any], equation: str) -> Any:  # noqa: N803 # as ONNX names it
    """Sum by the formula above; integers wrap."""
    found = Equation(equation, [each.shape for each in Inputs])
    if not isinstance(Inputs[0], Bounded):
        return np.asarray(np.einsum(found.text, *Inputs, dtype=Inputs[0].dtype))
    orders = range(len(Inputs) if len(Inputs) > 2 else 1)
    results = [_contracted(found, [*Inputs[n:], *Inputs[:n]], n) for n in orders]
    error = np.maximum.reduce([each.error for each in results])  # no order of the factors is defined
    return Bounded(results[0].value, error, results[0].arithmetic)


def _contracted(found: Equation, operands: Sequence[Bounded], turned: int) -> Bounded:
    """Multiply the operands, rotated by a number of places: the first ones come last."""
    terms = [*found.terms[turned:], *found.terms[:turned]]
    first, term = operands[0], terms[0]
    others, letters = number(1.0, first.arithmetic), ""
    for each, more in zip(operands[1:], terms[1:], strict=True):
        others, letters = _outer(others, letters, each, more)
    count = prod(extent for letter, extent in found.extents.items() if letter not in found.output)
    text = f"{term},{letters}->{found.output}"
    return contracted(lambda a, b: np.asarray(np.einsum(text, a, b)), first, others, count)


def _outer(a: Bounded, letters: str, b: Bounded, more: str) -> tuple[Bounded, str]:
    """Multiply two operands over all their letters without a sum."""
    every = "".join(dict.fromkeys(letters + more))
    if not letters:
        return b, more
    if len(set(more)) < len(more):
        raise NotImplementedError("a letter twice in one operand of three")
    wide = [_over(each, term, every) for each, term in ((a, letters), (b, more))]
    return reduce(lambda x, y: x * y, wide), every


def _over(x: Bounded, term: str, every: str) -> Bounded:
    order = [term.index(letter) for letter in every if letter in term]
    extents = iter(x.shape[place] for place in order)
    return x.transpose(*order).reshape([next(extents) if letter in term else 1 for letter in every])


class Summing(Computing):
    """Operands whose shapes follow from the equation: `extents` of the letters in the order in which they
    first stand, and `ellipsis`; `unlike` makes the last extent of the last operand another.
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"Inputs": ("extents", "ellipsis", "unlike")}
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"unlike": ("extent", "rank")}

    def shape(
        self, operator: Operator, name: str, relation: Relation, call: Call
    ) -> tuple[Shape, ...] | None:
        """Derive the shapes of all operands."""
        if isinstance(relation, str):
            return None
        text = str(call.attributes["equation"])
        left = text.replace(" ", "").partition("->")[0]
        extents, ellipsis = relation.get("extents", ()), relation.get("ellipsis", (2, 3))
        letters = list(dict.fromkeys(each for each in left if each.isalpha()))
        if len(letters) > len(extents):
            return None
        by_letter = dict(zip(letters, extents, strict=False))
        shapes = []
        for term in left.split(","):
            before, dots, after = term.partition("...")
            shapes.append(
                (*(by_letter[e] for e in before), *(ellipsis if dots else ()), *(by_letter[e] for e in after))
            )
        last = shapes[-1]
        if relation.get("unlike") == "extent":
            shapes[-1] = (*last[:-1], last[-1] + 1) if last else (2,)
        if relation.get("unlike") == "rank":
            shapes[-1] = (*last, 2)
        return tuple(shapes)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Terms that are not those of the operands."""
        fitting = Equation(call.parameter("equation"), call.shapes).fits
        return None if fitting else "the terms of the equation fit the operands"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The extents of the output-term."""
        found = Equation(call.parameter("equation"), call.shapes)
        return (tuple(found.extents.get(letter, 1) for letter in found.output),)


OPERATOR = Operator("Einsum", Summing(), bounded(einsum))
