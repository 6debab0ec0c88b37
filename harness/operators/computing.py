"""A family whose numeric inputs are chosen by meaning (`elements`); the base of families that compute."""

from __future__ import annotations

from harness.model.dtypes import Array
from harness.operators import elements
from harness.operators.base import Call, Entropy, Family, Operator, ValueKind


class Computing(Family):
    """Operators that compute with every input but those that decide shapes."""

    name = "computing"

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Elements by what they mean; an input whose elements decide shapes is written out."""
        return () if name in operator.constants else elements.ELEMENT_KINDS

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input's type."""
        return name in operator.constants or elements.applies(kind, call.inputs[name].dtype)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind."""
        return elements.choose(kind, *call.inputs[name], entropy)
