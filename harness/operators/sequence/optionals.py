"""Operators that make an optional of a tensor, ask whether it has an element, and take that out.

An optional stands as its tensor, left out where there is none; one that an operator gives is two outputs, whether
it has an element and the element. In the variants a sequence of the tensor, twice, is the element; the input is no
optional at all (`bare`, since version 18); or the optional has no element.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, Composition, Node, Operator, Shape
from harness.operators.data_movement.moving import Moving
from harness.operators.formulas import moved

# Optional:           an optional of the input, or without an element of `type`
# OptionalHasElement: true where there is an element
# OptionalGetElement: the element

_BARE_SINCE = 18
_EMPTY = ("empty", "empty_sequence")


def optional(call: Call, input: Array | None = None) -> tuple[Array, ...]:
    """Return whether there is an element, and it."""
    return (np.array(input is not None), *([] if input is None else [input]))


def has_element(call: Call, input: Array | None = None) -> Array:
    """Say whether there is an element."""
    return np.array(input is not None and call.variant not in _EMPTY)


def get_element(input: Array) -> Array:
    """Return the element."""
    return input


def _element(call: Call) -> str | None:
    """Return the element type and kind that `type` names, as ONNX writes it."""
    given = call.attributes.get("type")
    return given if isinstance(given, str) else None


def _onnx(dtype: str) -> str:
    renamed = {"float32": "float", "float64": "double"}
    return f"tensor({renamed.get(dtype, dtype)})"


def _no_optional(call: Call) -> str | None:
    if not call.inputs:
        return None if _element(call) else "type is given where no input is"
    given = _element(call)
    return None if given is None or given == _onnx(call.first.dtype) else "type is the type of the input"


def _cannot_be_asked(call: Call) -> str | None:
    if call.opset < _BARE_SINCE and not call.inputs:
        return "an input is given before version 18"
    if call.opset < _BARE_SINCE and (call.variant or "").startswith("bare"):
        return "the input is of an optional type before version 18"
    return None


def _cannot_be_taken(call: Call) -> str | None:
    if call.variant in _EMPTY or not call.inputs:
        return "the optional has an element"
    return _cannot_be_asked(call)


def _held(first: str, dtype: str, kind: str) -> tuple[list[Node], str]:
    """Return the nodes that make an operator's input of a tensor, and its name."""
    if kind in _EMPTY:
        type_ = _onnx(dtype) if kind == "empty" else f"seq({_onnx(dtype)})"
        return [Node("Optional", (), "held", {"type": type_})], "held"
    listed = [Node("SequenceConstruct", (first, first), "listed")] if kind.endswith("sequence") else []
    element = "listed" if listed else first
    if kind.startswith("bare"):
        return listed, element
    return [*listed, Node("Optional", (element,), "held")], "held"


def _variants(operator: str) -> dict[str, Composition]:
    """Return the graphs of an operator, by the kind of its input."""

    def nodes(first: str, last: str, dtype: str, *, kind: str) -> list[Node]:
        made, held = _held(first, dtype, kind)
        if operator != "OptionalGetElement" or not kind.endswith("sequence"):
            return [*made, Node(operator, (held,), last)]
        return [
            *made,
            Node(operator, (held,), "taken"),
            Node("Constant", (), "place", value=Tensor("int64", np.array(1))),
            Node("SequenceAt", ("taken", "place"), last),
        ]

    return {kind: partial(nodes, kind=kind) for kind in _KINDS}


class Optionals(Moving):
    """A tensor, or none."""

    def output_count(self, operator: Operator, call: Call) -> int:
        """Count the outputs: whether an optional has an element, and with it the element if it has one; or one
        tensor."""
        return 2 if operator.options and call.inputs else 1

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Scalars that say whether there is an element, and the shape of that."""
        element = tuple(each.shape for each in call.inputs.values())
        return element or ((),) if operator.name == "OptionalGetElement" else ((), *element)

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Nothing but the input tells the type of an element; without one it is as good as any."""
        return () if call.inputs else ("bool",)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> None:
        """DirectML has no optionals."""


OPTIONALS = Optionals()
_KINDS = ("sequence", "empty", "empty_sequence", "bare", "bare_sequence")
OPERATORS = (
    Operator("Optional", OPTIONALS, moved(optional), _no_optional, options=True),
    Operator(
        "OptionalHasElement",
        OPTIONALS,
        moved(has_element),
        _cannot_be_asked,
        variants=_variants("OptionalHasElement"),
    ),
    Operator(
        "OptionalGetElement",
        OPTIONALS,
        moved(get_element),
        _cannot_be_taken,
        variants=_variants("OptionalGetElement"),
    ),
)
