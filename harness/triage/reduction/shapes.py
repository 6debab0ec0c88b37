"""Steps that reduce shapes: drop dimensions and cut extents, in one input or in two at once, with attributes
and values that follow.

No step makes a non-empty tensor empty: a case without elements is another kind of case, not a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Tensor, TensorValue, Value
from harness.model.dtypes import DTYPES, Array
from harness.triage.reduction.candidate import Candidate, Subject

_PARTS = (2, 4, 8, 16)
"""A dimension loses one of so many parts: what fails at its end needs no start of it."""
_VECTORS = (16, 8, 4)
"""Elements that a kernel takes at once: what fails only where whole vectors are filled fails at no extent
between."""
_SINGLE_SLICES = 8
"""In a dimension of at most so many slices each is tried alone; in a longer one both ends."""


_TOGETHER = 3
"""Attributes of at most so many are changed together."""


class _Cut(NamedTuple):
    """A smaller version of one input: the cut, its dimension, and the remaining part."""

    how: str
    position: int
    left: int
    array: Array


def smaller_shapes(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates with fewer dimensions or smaller ones; the largest cuts first."""
    cuts = [list(_cuts(tensor, position)) for position, tensor in enumerate(candidate.inputs)]
    drops = [[cut for cut in each if cut.how == "drop"] for each in cuts]
    for one, other in combinations(drops, 2):
        for pair in product(one, other):
            yield from _follow(subject, candidate, pair)
    for cut in chain.from_iterable(drops):
        yield from _follow(subject, candidate, (cut,))
    for one, other in combinations(cuts, 2):
        for first, second in product(one, other):
            one_dropped = (first.how == "drop") is not (second.how == "drop")
            if one_dropped or (first.how == second.how != "drop" and first.left == second.left):
                yield from _follow(subject, candidate, (first, second))
    for cut in chain.from_iterable(cuts):
        if cut.how != "drop":
            yield from _follow(subject, candidate, (cut,))
    yield from _merged(subject, candidate)


def _merged(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates with two neighbouring dimensions as one, counted from the left or from the right: in all
    inputs that have them, then in one alone."""
    most = max(map(len, candidate.shapes), default=0)
    for place in (n for first in range(most - 1) for n in (first, first - most)):
        merges = [
            _Cut("merge", position, 0, merged)
            for position, tensor in enumerate(candidate.inputs)
            if (merged := _with_one_less(tensor.array, place)) is not None
        ]
        yield from _follow(subject, candidate, tuple(merges)) if merges else ()
        for merge in merges if len(merges) > 1 else ():
            yield from _follow(subject, candidate, (merge,))


def _with_one_less(array: Array, place: int) -> Array | None:
    shape = array.shape
    start = place if place >= 0 else place + len(shape)
    if not 0 <= start < len(shape) - 1:
        return None
    return array.reshape(*shape[:start], shape[start] * shape[start + 1], *shape[start + 2 :])


def _cuts(tensor: Tensor, position: int) -> Iterator[_Cut]:
    array = tensor.array
    for dimension, extent in enumerate(array.shape):
        if extent:
            rest = np.asarray(array.take(0, dimension), array.dtype)
        else:
            shape = array.shape[:dimension] + array.shape[dimension + 1 :]
            rest = np.full(shape, "" if tensor.dtype == "string" else 0, DTYPES[tensor.dtype].storage)
        yield _Cut("drop", position, 0, rest)
    for dimension, extent in enumerate(array.shape):
        if extent > 1:
            yield _Cut("keep 1", position, 1, array.take(range(1), dimension))
        for parts in _PARTS:
            part = -(-extent // parts)
            for start in reversed(range(0, extent, part)) if part > 1 else ():
                rest = np.delete(array, range(start, min(start + part, extent)), dimension)
                if rest.shape[dimension]:
                    how = f"without {start} to {start + part}"
                    yield _Cut(how, position, rest.shape[dimension], rest)
        gone = (extent - extent // 2, extent // 4, extent // 16, *_VECTORS, 1)
        for left in dict.fromkeys(extent - part for part in gone):
            if 1 < left < extent:
                yield _Cut(f"keep {left}", position, left, array.take(range(left), dimension))
        single = range(extent) if extent <= _SINGLE_SLICES else (0,)
        for slice_ in single if extent > 1 else ():
            yield _Cut(f"without {slice_}", position, extent - 1, np.delete(array, slice_, dimension))


def _follow(subject: Subject, candidate: Candidate, cuts: tuple[_Cut, ...]) -> Iterator[Candidate]:
    """Yield the cut candidate, with attributes and values that follow.

    Lists of a value for each dimension lose one of them, numbers come one nearer to zero, index values are
    held within what is left.
    """
    cut = candidate
    for _, position, _, array in cuts:
        cut = cut.with_input(
            position, Tensor(cut.inputs[position].dtype, np.ascontiguousarray(array).reshape(array.shape))
        )
    for shorter in _shorter_lists(cut, dropped=any(each.how in ("drop", "merge") for each in cuts)):
        for attributes in _nearer_numbers(shorter.attributes):
            changed = shorter._replace(attributes=attributes)
            yield changed
            yield from _within(subject, changed)


def _shorter_lists(candidate: Candidate, *, dropped: bool) -> Iterator[Candidate]:
    """Yield the candidate, and where a dimension was dropped, with one place taken out of its lists of
    numbers.

    A list may hold a value for each dimension (`perm`, `strides`) or two (`pads`); the places are those of
    the shortest.
    """
    yield candidate
    lists = [
        value
        for _, value in candidate.attributes
        if isinstance(value, tuple) and not isinstance(value, TensorValue) and value
    ]
    least = min(map(len, lists), default=0)
    for place in range(least if dropped else 0):
        attributes = tuple((name, _without(value, place, least)) for name, value in candidate.attributes)
        yield candidate._replace(attributes=attributes)


def _without(value: Value, place: int, number: int) -> Value:
    """Return a list without a place of `number`, or of twice as many; a permutation stays one."""
    if (
        not isinstance(value, tuple)
        or isinstance(value, TensorValue)
        or len(value) not in (number, 2 * number)
    ):
        return value
    kept: tuple[Any, ...] = tuple(each for n, each in enumerate(value) if n % number != place)
    gone = value[place]
    if all(type(each) is int for each in value) and set(value) == set(range(len(value))):
        kept = tuple(each - (each > gone) for each in kept)
    return kept


def _nearer_numbers(attributes: tuple[tuple[str, Value], ...]) -> Iterator[tuple[tuple[str, Value], ...]]:
    """Yield attributes with integers one nearer to zero, or zero: all combinations if they are few, otherwise one
    change at a time."""
    choices = [_nearer(name, value) for name, value in attributes]
    if sum(len(each) > 1 for each in choices) <= _TOGETHER:
        yield from product(*choices)
        return
    yield attributes
    for number, each in enumerate(choices):
        for other in each[1:]:
            yield (*attributes[:number], other, *attributes[number + 1 :])


def _nearer(name: str, value: Value) -> list[tuple[str, Value]]:
    if not isinstance(value, int):
        return [(name, value)]
    values = (value, value - 1 if value > 0 else value + 1, 0) if value else (value,)
    return [(name, each) for each in dict.fromkeys(values)]


def _within(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates whose integer values are held within the sizes of the first input, or come one nearer
    to zero.

    The former of indices, of each column of tuples, then of all; the latter of what decides shapes, such as
    axes.
    """
    for position, (name, (dtype, values)) in enumerate(zip(candidate.names, candidate.inputs, strict=True)):
        if position == 0 or not DTYPES[dtype].is_integer or not values.size or subject.payload(name):
            continue
        if subject.decides(name):
            yield candidate.with_input(
                position, Tensor(dtype, (values - np.sign(values)).astype(values.dtype))
            )
            continue
        for size in sorted({extent for extent in candidate.shapes[0] if extent}):
            limits = (0 if DTYPES[dtype].storage[0] == "u" else -size, size - 1)
            held = np.clip(values, *limits).astype(values.dtype)
            if values.ndim and 1 < values.shape[-1] <= _SINGLE_SLICES:
                for column in range(values.shape[-1]):
                    mixed = values.copy()
                    mixed[..., column] = held[..., column]
                    yield candidate.with_input(position, Tensor(dtype, mixed))
            yield candidate.with_input(position, Tensor(dtype, held))
