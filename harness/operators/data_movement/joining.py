"""Concat and Split: join tensors along an axis, and cut them apart again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape, variadic
from harness.operators.data_movement.moving import Moving, axis_of, every_axis, rank, wrong_axis
from harness.operators.formulas import moved

Tensors = Mapping[str, CallTensor | tuple[CallTensor, ...] | None]

# Concat: concat_result[.., k, ..] = inputs_n[.., k - s_n, ..]      s_n: the extents of the inputs before n along the axis
# Split:  outputs_n[.., k, ..] = input[.., s_n + k, ..]             s_n: the sizes of the outputs before n


def concat(inputs: Sequence[Array], axis: int) -> Array:
    """Join along the axis."""
    return np.concatenate(inputs, axis)


def split(input: Array, axis: int, call: Call, split: Sequence[int] | Array | None = None) -> list[Array]:
    """Cut into the sizes that are given, or into equal ones; since version 18 the last may be smaller."""
    return np.split(input, np.cumsum(_equal_sizes(call) if split is None else split)[:-1], axis)


def _equal_sizes(call: Call) -> tuple[int, ...]:
    count, extent = len(call.outputs), call.first.shape[axis_of(call)]
    whole = -(-extent // count)
    return (*(whole for _ in range(count - 1)), extent - whole * (count - 1))


def cannot_join(call: Call) -> str | None:
    """Return the rule that tensors to join along an axis break, or None."""
    shapes = call.shapes
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        return "all inputs have the same rank"
    if not shapes[0]:
        return "rank r >= 1"
    if "axis" not in call.attributes:
        return "axis is required"
    if wrong := wrong_axis(call, axis_of(call), len(shapes[0])):
        return wrong
    axis = axis_of(call) % len(shapes[0])
    alike = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
    return None if len(alike) == 1 else "all inputs have the same dimensions off the axis"


def _cannot_split(call: Call) -> str | None:
    if not call.first.shape:
        return "rank r >= 1"
    if wrong := wrong_axis(call, axis_of(call), rank(call)):
        return wrong
    given, parts = call.parameter("split"), call.attributes.get("num_outputs")
    count, extent = len(call.outputs) or 1, call.first.shape[axis_of(call)]
    if given is not None and parts is not None:
        return "either split or num_outputs is given, not both"
    if given is None and parts is None and call.opset >= 18:
        return "either split or num_outputs is given"
    if given is not None:
        if any(size < 0 for size in given):
            return "sizes are not negative"
        if len(given) != count:
            return "as many sizes as outputs"
        return None if sum(given) == extent else "the sizes sum up to the extent along the axis"
    if parts not in (None, count):
        return "num_outputs is the number of outputs"
    if call.opset < 18:
        return "the extent is divisible by the number of outputs" if extent % count else None
    return "each part holds something" if extent and _equal_sizes(call)[-1] <= 0 else None


def _sampled_sizes(call: Call) -> Iterable[tuple[int, ...]]:
    """Equal parts, unequal ones, empty ones at either end or between, one part, single rows."""
    axis = axis_of(call)
    extent = call.first.shape[axis] if call.first.shape and -rank(call) <= axis < rank(call) else 1
    half = extent // 2
    uneven = [(half, extent - half), (extent,), (1, extent - 1), (extent - 1, 1), (1, 0, extent - 1)]
    tried = [*uneven, (0, extent), (extent, 0), (1,) * min(extent, 7)]
    return [sizes for sizes in dict.fromkeys(tried) if sizes and min(sizes) >= 0 and sum(sizes) == extent]


def _join(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    tensors = tuple(CallTensor(name, *given) for name, given in call.inputs.items())
    axis = axis_of(call) % rank(call)
    joined: Tensors = {"InputTensors": tensors, "OutputTensor": CallTensor(0, call.first.dtype, outputs[0])}
    return DirectmlCall("DML_OPERATOR_JOIN", joined, 1, {"Axis": axis}, ("Axis",))


def _cut(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    dtype, shape = call.first
    parts = tuple(CallTensor(place, dtype, output) for place, output in enumerate(outputs))
    tensors: Tensors = {"InputTensor": CallTensor("input", dtype, shape), "OutputTensors": parts}
    return DirectmlCall("DML_OPERATOR_SPLIT", tensors, 1, {"Axis": axis_of(call) % len(shape)}, ("Axis",))


class Joining(Moving):
    """Several inputs that are alike off an axis; or several outputs that are."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"inputs": ("of", "count", "others")}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Any:
        """Return the shapes of a variadic input: `count` of them, the first is `of`, the `others` are related
        to it.

        Along the axis: same; none 0; one 1; more n+1 with each further input. Beside it: unlike, another
        extent off the axis; lower, one dimension less.
        """
        assert not isinstance(relation, str)
        first, axis = relation["of"], axis_of(call)
        if not first or not -len(first) <= axis < len(first):
            return variadic(relation, lambda *_: first)
        if relation.get("count") == 1 and relation.get("others", "same") != "same":
            return None
        axis %= len(first)

        def other(word: str, first: Shape, place: int) -> Shape | None:
            if word == "lower":
                return first[1:]
            if word == "unlike":
                return tuple(n + (d != axis) for d, n in enumerate(first)) if len(first) > 1 else None
            along = {"same": first[axis], "none": 0, "one": 1, "more": first[axis] + place}[word]
            return (*first[:axis], along, *first[axis + 1 :])

        return variadic(relation, other)

    def output_count(self, operator: Operator, call: Call) -> int:
        """Count the sizes that are given, or take num_outputs; two where neither is given."""
        if "split" not in operator.constants:
            return 1
        given = call.parameter("split")
        parts = call.attributes.get("num_outputs")
        if given is not None:
            return max(1, len(given))
        return parts if isinstance(parts, int) and 0 < parts < 64 else 2


JOINING = Joining()
OPERATORS = (
    Operator("Concat", JOINING, moved(concat), cannot_join, domains={"axis": every_axis}, options=_join),
    Operator(
        "Split",
        JOINING,
        moved(split),
        _cannot_split,
        constants={"split": 1},
        domains={"axis": every_axis, "split": _sampled_sizes, "num_outputs": lambda call: (1, 2, 3, 7)},
        options=_cut,
    ),
)
