"""Sequences: positions and parts by hand, and wrong kernels that turn cases of the specs red."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from harness.operators.base import Call
from harness.operators.sequence.sequences import concat_from_sequence, construct, erase, insert
from tests.mutants.any_operator import Sample, samples
from tests.sampled import one_of

A, B, C = (np.array(values) for values in ([1, 2], [[3]], [4]))
Kernel = Callable[[Call, list[Array], Mapping[str, Array]], list[Array] | Array]
"""Takes a call, the tensors of the sequence and the other inputs; gives a sequence, or a tensor."""


def same(found: list[Array], *tensors: Array) -> bool:
    """Say whether what is given is a length and these tensors."""
    return int(found[0]) == len(tensors) and all(
        ours.shape == theirs.shape and bool((ours == theirs).all())
        for ours, theirs in zip(found[1:], tensors, strict=True)
    )


@pytest.mark.parametrize(
    ("position", "place"), [(None, 2), (0, 0), (1, 1), (2, 2), (-1, 1), (-2, 0)], ids=str
)
def test_a_tensor_is_put_before_the_one_at_a_position(position: int | None, place: int) -> None:
    given = None if position is None else np.array(position)
    wanted = [A, B]
    wanted.insert(place, C)
    assert same(insert(C, [A, B], given), *wanted)


def test_a_tensor_is_put_into_an_empty_sequence() -> None:
    assert same(insert(C), C)
    assert same(insert(C, (), np.array(0)), C)


@pytest.mark.parametrize(
    ("position", "left"), [(None, (A, B)), (0, (B, C)), (-3, (B, C)), (1, (A, C)), (-1, (A, B))], ids=str
)
def test_one_tensor_is_taken_out(position: int | None, left: tuple[Array, ...]) -> None:
    assert same(erase([A, B, C], None if position is None else np.array(position)), *left)


def test_joined_along_a_new_axis() -> None:
    found = concat_from_sequence([np.array([1, 2]), np.array([3, 4])], -1, 1)
    assert found.tolist() == [[1, 3], [2, 4]]


@cache
def cases(name: str) -> list[Sample]:
    return samples(name)


def red(name: str, kernel: Kernel) -> Iterator[str]:
    """Yield the cases that a kernel gets wrong."""
    for sample in cases(name):
        held = [array for key, array in sample.arrays.items() if "." in key]
        given = kernel(sample.call, held, {k: array for k, array in sample.arrays.items() if "." not in k})
        actual: list[Any] = construct(given) if isinstance(given, list) else [given]
        if len(actual) != len(sample.expected) or any(
            ours.shape != np.shape(theirs)
            or compare(ours, Tensor(ours.dtype, np.asarray(theirs))).diff is not None
            for ours, theirs in zip(sample.expected, actual, strict=True)
        ):
            yield sample.case.id


def _position(others: Mapping[str, Array], default: int) -> int:
    return int(others["position"]) if "position" in others else default


def _inserting(where: Callable[[int, int], int], default: int | None = None) -> Kernel:
    """Return a kernel that inserts at what `where` makes of a position and a length."""

    def kernel(call: Call, held: list[Array], others: Mapping[str, Array]) -> list[Array]:
        place = where(_position(others, len(held) if default is None else default), len(held))
        return [*held[:place], others["tensor"], *held[place:]]

    return kernel


def _erasing(where: Callable[[int, int], int], default: int = -1) -> Kernel:
    def kernel(call: Call, held: list[Array], others: Mapping[str, Array]) -> list[Array]:
        place = where(_position(others, default), len(held))
        return [each for number, each in enumerate(held) if number != place]

    return kernel


def _taking(where: Callable[[int, int], int]) -> Kernel:
    return lambda call, held, others: held[where(_position(others, 0), len(held)) % len(held)]


def _from_start(place: int, count: int) -> int:
    return place + count if place < 0 else place


def _split(mistake: str) -> Kernel:
    """Return a kernel that walks from part to part."""

    def kernel(call: Call, held: list[Array], others: Mapping[str, Array]) -> list[Array]:
        x, split = others["input"], others.get("split")
        axis = int(call.attributes["axis"])  # type: ignore[arg-type]
        axis = 0 if mistake == "always the first axis" else axis % x.ndim
        extent = x.shape[axis]
        size = 1 if split is None else int(split.reshape(-1)[0])
        if split is None or split.ndim == 0 or mistake == "the first size alone":
            sizes = [size] * (extent // size) + [extent % size] * (extent % size > 0)
        else:
            sizes = split.tolist()
        if mistake == "the last part lost" and len(sizes) > 1 and sizes[-1] < sizes[0]:
            sizes = sizes[:-1]
        if mistake == "the smaller part first":
            sizes = sizes[::-1]
        parts, start = [], 0
        for length in sizes:
            parts.append(x.take(range(start, start + length), axis, mode="clip"))
            start += length
        keeps = bool(call.attributes["keepdims"])
        drops = not keeps and (split is None or mistake == "keepdims heeded with split")
        if mistake == "keepdims ignored":
            drops = False
        if mistake == "keepdims turned":
            drops = keeps and split is None
        parts = [part.squeeze(axis) if drops and part.shape[axis] == 1 else part for part in parts]
        return parts[::-1] if mistake == "from the end" else parts

    return kernel


def _join(mistake: str) -> Kernel:
    def kernel(call: Call, held: list[Array], others: Mapping[str, Array]) -> Array:
        axis, new = int(call.attributes["axis"]), bool(call.attributes["new_axis"])  # type: ignore[arg-type]
        if mistake == "from the end":
            held = held[::-1]
        if mistake == "the last left out" and len(held) > 2:
            held = held[:-1]
        if new:
            if mistake == "a negative axis counts in the tensors" and axis < 0:
                axis = axis + held[0].ndim if axis + held[0].ndim >= 0 else 0
            return np.stack(held, 0 if mistake == "the new axis first" else axis)
        return np.concatenate([each.swapaxes(0, axis) for each in held]).swapaxes(0, axis)

    return kernel


MISTAKES: dict[str, tuple[str, Kernel]] = {
    "insert: after the position": ("SequenceInsert", _inserting(lambda p, n: _from_start(p, n) + 1)),
    "insert: at the end": ("SequenceInsert", _inserting(lambda p, n: n)),
    "insert: at the start": ("SequenceInsert", _inserting(lambda p, n: 0)),
    "insert: by default at the start": ("SequenceInsert", _inserting(_from_start, 0)),
    "insert: below 0 from the new length": (
        "SequenceInsert",
        _inserting(lambda p, n: p + n + 1 if p < 0 else p),
    ),
    "insert: -n taken for the end": (
        "SequenceInsert",
        _inserting(lambda p, n: n if p == -n else _from_start(p, n)),
    ),
    "erase: the first": ("SequenceErase", _erasing(lambda p, n: 0)),
    "erase: the last": ("SequenceErase", _erasing(lambda p, n: n - 1)),
    "erase: the one after": ("SequenceErase", _erasing(lambda p, n: min(_from_start(p, n) + 1, n - 1))),
    "erase: below 0 from the start": ("SequenceErase", _erasing(lambda p, n: abs(p) - 1 if p < 0 else p)),
    "erase: nothing below 0": ("SequenceErase", _erasing(lambda p, n: p)),
    "erase: by default the first": ("SequenceErase", _erasing(_from_start, 0)),
    "at: the first": ("SequenceAt", _taking(lambda p, n: 0)),
    "at: the last": ("SequenceAt", _taking(lambda p, n: n - 1)),
    "at: the next": ("SequenceAt", _taking(lambda p, n: p + 1)),
    "at: below 0 from the start": ("SequenceAt", _taking(lambda p, n: abs(p) - 1 if p < 0 else p)),
    "at: below 0 one too far": ("SequenceAt", _taking(lambda p, n: p - 1 if p < 0 else p)),
    "length: one for any": ("SequenceLength", lambda call, held, others: np.array(min(1, len(held)))),
    "length: elements": (
        "SequenceLength",
        lambda call, held, others: np.array(sum(each.size for each in held)),
    ),
    "length: of those with elements": (
        "SequenceLength",
        lambda call, held, others: np.array(sum(each.size > 0 for each in held)),
    ),
    "length: eight bits": ("SequenceLength", lambda call, held, others: np.array(len(held) & 0x3F)),
    "construct: from the end": ("SequenceConstruct", lambda call, held, others: held[::-1]),
    "construct: empty ones left out": (
        "SequenceConstruct",
        lambda call, held, others: [each for each in held if each.size],
    ),
    "construct: the shape of the first": (
        "SequenceConstruct",
        lambda call, held, others: [
            each.reshape(held[0].shape) if each.size == held[0].size else each for each in held
        ],
    ),
    **{
        f"split: {mistake}": ("SplitToSequence", _split(mistake))
        for mistake in (
            "always the first axis",
            "the first size alone",
            "the last part lost",
            "the smaller part first",
            "keepdims heeded with split",
            "keepdims ignored",
            "keepdims turned",
            "from the end",
        )
    },
    **{
        f"join: {mistake}": ("ConcatFromSequence", _join(mistake))
        for mistake in (
            "from the end",
            "the last left out",
            "a negative axis counts in the tensors",
            "the new axis first",
        )
    },
}
RIGHT: dict[str, Kernel] = {
    "SequenceInsert": _inserting(_from_start),
    "SequenceErase": _erasing(_from_start),
    "SequenceAt": _taking(_from_start),
    "SequenceLength": lambda call, held, others: np.array(len(held)),
    "SequenceConstruct": lambda call, held, others: held,
    "SequenceEmpty": lambda call, held, others: held,
    "SplitToSequence": _split(""),
    "ConcatFromSequence": _join(""),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_turns_nothing_red(name: str) -> None:
    assert len(cases(name)) >= 20
    assert list(red(name, RIGHT[name])) == []


@pytest.mark.parametrize("mistake", one_of(6, MISTAKES))
def test_a_wrong_kernel_turns_two_cases_red(mistake: str) -> None:
    name, kernel = MISTAKES[mistake]
    assert len(list(islice(red(name, kernel), 2))) == 2
