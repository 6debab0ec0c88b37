"""Operators that make sequences of tensors, change them and take them apart.

A sequence stands as its tensors: one that an operator takes is a variadic input, one that it gives is two
outputs, the number of its tensors and the tensors. Positions below 0 count from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import UNKNOWN, Call, Operator, Relation, Shape, variadic
from harness.operators.data_movement.joining import Joining, cannot_join
from harness.operators.data_movement.moving import (
    Moving,
    axis_of,
    every_axis,
    rank,
    shapes_by_formula,
    wrong_axis,
)
from harness.operators.formulas import moved

# s: the sequence, n: the number of its tensors
# SequenceConstruct:  [inputs_0, inputs_1, ..]
# SequenceEmpty:      []
# SequenceAt:         s[position]                                                 -n <= position <= n-1
# SequenceInsert:     [s[0], .., s[position-1], tensor, s[position], .., s[n-1]]  -n <= position <= n, without one n
# SequenceErase:      [s[0], .., s[position-1], s[position+1], .., s[n-1]]        -n <= position <= n-1, without one n-1
# SequenceLength:     n
# SplitToSequence:    [input[.., 0:a, ..], input[.., a:b, ..], ..]                a, b-a, ..: split, or equal to it
# ConcatFromSequence: s[0], s[1], .. one after the other along axis; with new_axis along a dimension that is put there


_COMPLEX128 = 15
"""TensorProto.DataType: the types from FLOAT, 1, to this one are those of a sequence."""


def construct(inputs: Sequence[Array]) -> list[Array]:
    """Return the length of a sequence, and its tensors."""
    return [np.array(len(inputs), np.int64), *inputs]


def empty() -> list[Array]:
    """Return the length of a sequence of no tensors."""
    return construct(())


def at(input_sequence: Sequence[Array], position: Array) -> Array:
    """Return a copy of the tensor at a position, of shape ()."""
    return input_sequence[int(position)]


def insert(tensor: Array, input_sequence: Sequence[Array] = (), position: Array | None = None) -> list[Array]:
    """Return the sequence with one tensor more, by default at its end."""
    place = len(input_sequence) if position is None else _from_start(position, len(input_sequence))
    return construct([*input_sequence[:place], tensor, *input_sequence[place:]])


def erase(input_sequence: Sequence[Array], position: Array | None = None) -> list[Array]:
    """Return the sequence without one of its tensors, by default the last."""
    place = _from_start(np.array(-1) if position is None else position, len(input_sequence))
    return construct([*input_sequence[:place], *input_sequence[place + 1 :]])


def _from_start(position: Array, count: int) -> int:
    place = int(position)
    return place + count if place < 0 else place


def length(input_sequence: Sequence[Array] = ()) -> Array:
    """Return the number of tensors, of shape ()."""
    return np.array(len(input_sequence), np.int64)


def split_to_sequence(
    input: Array, axis: int, keepdims: int, call: Call, split: Array | None = None
) -> list[Array]:
    """Cut into parts; parts of one, where split is absent, lose the dimension unless keepdims is set."""
    parts = np.split(input, np.cumsum(_sizes(call))[:-1], axis)
    return construct(parts if keepdims or split is not None else [np.squeeze(part, axis) for part in parts])


def concat_from_sequence(input_sequence: Sequence[Array], axis: int, new_axis: int) -> Array:
    """Join along the axis, which with new_axis is one of the result alone."""
    return np.stack(input_sequence, axis) if new_axis else np.concatenate(input_sequence, axis)


def _sizes(call: Call) -> tuple[int, ...]:
    """Return the extents of the parts along the axis: those of split, or equal ones with the rest at the end."""
    given = call.parameter("split", 1)
    if isinstance(given, tuple):
        return given
    extent = call.first.shape[axis_of(call)]
    return tuple(min(given, extent - start) for start in range(0, extent, given))


def _held(call: Call) -> int:
    """Return the number of tensors in the sequence that is taken."""
    return sum("." in name for name in call.inputs)


def _wrong_position(call: Call, last: int, rule: str) -> str | None:
    if "position" not in call.constants:
        return None
    position, count = call.constants["position"], _held(call)
    if position.ndim:
        return "position is a scalar"
    return None if -count <= int(position) <= count + last else rule


def _no_such_type(call: Call) -> str | None:
    dtype = call.parameter("dtype", 1)
    return None if 1 <= dtype <= _COMPLEX128 else "dtype is an element type that S allows"


def _no_tensor_there(call: Call) -> str | None:
    rule = "position in [-n, n-1]"
    return _wrong_position(call, -1, rule) if _held(call) else rule


def _no_place_there(call: Call) -> str | None:
    return _wrong_position(call, 0, "position in [-n, n]")


def _cannot_join(call: Call) -> str | None:
    if not _held(call):
        return "there is a tensor to join"
    if not call.attributes.get("new_axis"):
        return cannot_join(call)
    if "axis" not in call.attributes:
        return "axis is required"
    if not -rank(call) - 1 <= axis_of(call) <= rank(call):
        return "axis in [-r-1, r]"
    return None if len(set(call.shapes)) == 1 else "all tensors have the same shape"


def _axes_of_result(call: Call) -> Iterable[int]:
    """Return all axes of the first tensor, or with new_axis those of the result."""
    return range(-rank(call) - 1, rank(call) + 1) if call.attributes.get("new_axis") else every_axis(call)


def _cannot_split(call: Call) -> str | None:
    if not rank(call):
        return "rank r >= 1"
    if wrong := wrong_axis(call, axis_of(call), rank(call)):
        return wrong
    split = call.constants.get("split", np.array(1))
    extent = call.first.shape[axis_of(call)]
    if split.ndim > 1:
        return "split is a scalar or has one dimension"
    if (split < 0).any():
        return "sizes are not negative"
    if split.ndim and sum(split.tolist()) != extent:
        return "the sizes sum up to the extent along the axis"
    return None if split.all() and extent else "each part holds something"


def _parts(call: Call) -> int:
    """Return the number of parts; of a call that breaks a rule any, but for parts of nothing."""
    split = call.constants.get("split", np.array(1))
    countable = split.ndim == 0 and split > 0 and not wrong_axis(call, axis_of(call), rank(call))
    return len(_sizes(call)) if split.ndim == 1 or countable else 1


def _of_any_shape(first: Shape, place: int) -> Shape:
    """Return the shape of the tensor at a place after the first: one dimension more, one less, or no element."""
    return ((*first, 2), first[1:], (0, *first))[(place - 1) % 3]


_OTHERS: Mapping[str, Callable[[Shape, int], Shape]] = {
    "same": lambda first, _: first,
    "grown": lambda first, place: tuple(extent + place for extent in first),
    "none": lambda first, _: (0, *first[1:]),
    "unlike": _of_any_shape,
}
"""The shape of the tensor at a place after the first."""


class Sequences(Moving):
    """Tensors in any number and of any shapes. `options` is the number of tensors in the sequence that an
    operator gives, None where it gives none."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "inputs": ("of", "count", "others"),
        "input_sequence": ("of", "count", "others"),
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Any:
        """Return the shapes of `count` tensors: the first is `of`, the `others` are the same, grown (one more in
        each dimension with each further tensor), without elements (none), or of any shapes (unlike)."""
        assert not isinstance(relation, str)
        if relation.get("count") == 1 and relation.get("others", "same") != "same":
            return None
        return variadic(relation, lambda word, first, place: _OTHERS[word](first, place))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """All tensors that are put into a sequence have its element type."""
        held = {each.dtype for name, each in call.inputs.items() if name not in operator.constants}
        return None if len(held) < 2 else "all tensors of a sequence have one element type"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shapes that the formula gives; of a call that breaks a rule those of the tensors that it takes."""
        if operator.broken_rule(call) is None:
            return shapes_by_formula(operator, call)
        taken = [each.shape for name, each in call.inputs.items() if name not in operator.constants] or [()]
        count = len(call.outputs)
        tensors = (*taken, *(taken[0] for _ in range(count)))
        return tensors[:1] if operator.options is None else ((), *tensors[: count - 1])

    def output_count(self, operator: Operator, call: Call) -> int:
        """The length and the tensors of a sequence, or the one tensor that the operator gives."""
        return 1 if operator.options is None else 1 + operator.options(call)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> None:
        """DirectML has no sequences."""


class Taking(Sequences):
    """One tensor of a sequence."""

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """A sequence of no tensors is one of float32: it has no other type."""
        return () if _held(call) else ("float32",)


class JoiningSequences(Joining):
    """The tensors of a sequence that are alike off an axis."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"input_sequence": ("of", "count", "others")}
    broken_rule = Sequences.broken_rule
    output_shapes = Sequences.output_shapes
    output_dtypes = Taking.output_dtypes
    directml = Sequences.directml


SEQUENCES = Sequences()
POSITION = {"position": 0}
OPERATORS = (
    Operator("SequenceConstruct", SEQUENCES, moved(construct), options=_held),
    Operator("SequenceEmpty", SEQUENCES, moved(empty), _no_such_type, options=_held),
    Operator("SequenceAt", Taking(), moved(at), _no_tensor_there, constants=POSITION),
    Operator(
        "SequenceInsert",
        SEQUENCES,
        moved(insert),
        _no_place_there,
        constants=POSITION,
        options=lambda call: _held(call) + 1,
    ),
    Operator(
        "SequenceErase",
        SEQUENCES,
        moved(erase),
        _no_tensor_there,
        constants=POSITION,
        options=lambda call: max(0, _held(call) - 1),
    ),
    Operator("SequenceLength", SEQUENCES, moved(length)),
    Operator(
        "SplitToSequence",
        SEQUENCES,
        moved(split_to_sequence),
        _cannot_split,
        constants={"split": UNKNOWN},
        domains={"axis": every_axis},
        options=_parts,
    ),
    Operator(
        "ConcatFromSequence",
        JoiningSequences(),
        moved(concat_from_sequence),
        _cannot_join,
        domains={"axis": _axes_of_result},
    ),
)
