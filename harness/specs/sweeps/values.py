"""Generates the inputs of a case: the same bits for the same id and seed, on every platform and whatever
other cases exist.

The bits come from SHAKE-128 (FIPS 202) of `seed` and id, so they depend on no library's generator.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128
from math import prod
from typing import NamedTuple

import numpy as np

from harness.model.case import Case, Tensor
from harness.model.dtypes import DTYPES, Array
from harness.operators import OPERATORS
from harness.operators.base import Call
from harness.operators.elements import ALPHABET


class StreamLayout(NamedTuple):
    """How the elements of inputs are chosen: whether by the operator, how many they are, and where the bytes of
    each input end in the case's stream."""

    chosen: tuple[bool, ...]
    counts: tuple[int, ...]
    ends: tuple[int, ...]


def case_inputs(call: Call, case: Case, seed: int, layout: StreamLayout | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all inputs of a case and its call, in the order of the specification; written-out
    elements come first. `layout` is that of the case where it is known."""
    operator = OPERATORS[case.operator]
    chosen, counts, ends = layout or layout_of(case)
    named = operator.family.elements_of(case.id)
    stream = memoryview(shake_128(f"{seed}:{named}".encode()).digest(ends[-1])) if ends else memoryview(b"")
    literals = case.literals
    made = []
    start = 0
    for number, spec in enumerate(case.inputs):
        entropy = stream[start : ends[number]]
        start = ends[number]
        written = literals[number] if literals is not None else None
        if written is not None:
            array = written
        elif spec.elements is not None:
            array = call.constants[spec.name]
        elif chosen[number]:
            array = operator.family.generate(operator, spec.values, spec.name, call, entropy)
        else:
            array = random_tensor(spec.dtype, spec.shape, counts[number], entropy)
        made.append(Tensor(spec.dtype, array))
    return tuple(made)


def layout_of(case: Case) -> StreamLayout:
    """Return the layout of a case."""
    return sized_layout(case, chosen_inputs(case))


def chosen_inputs(case: Case) -> tuple[bool, ...]:
    """Return which inputs of a case its operator chooses: of cases with one call this alone decides the layout."""
    return tuple([_chooses(case.operator, spec.name, spec.values) for spec in case.inputs])


def sized_layout(case: Case, chosen: tuple[bool, ...]) -> StreamLayout:
    """Return the layout of a case of which is known which inputs the operator chooses."""
    counts = tuple([prod(spec.shape) for spec in case.inputs])
    ends: list[int] = []
    for spec, count, by_kind in zip(case.inputs, counts, chosen, strict=True):
        size = max(4, DTYPES[spec.dtype].itemsize) * count if by_kind else _random_bytes(spec.dtype, count)
        ends.append(size + (ends[-1] if ends else 0))
    return StreamLayout(chosen, counts, tuple(ends))


@lru_cache(maxsize=4096)
def _chooses(operator: str, name: str, values: str) -> bool:
    return OPERATORS[operator].chooses(name, values)


def _random_bytes(dtype: str, count: int) -> int:
    return count * (DTYPES[dtype].itemsize or 2)


def random_tensor(dtype: str, shape: tuple[int, ...], count: int, entropy: memoryview) -> Array:
    """Return any bit patterns of a dtype: NaNs with payloads, subnormals and infinities are as likely as
    their share of the patterns."""
    if dtype == "string":
        return _strings(count, shape, entropy)
    if dtype == "bool":
        return (np.frombuffer(entropy, np.uint8, count) & 1).view(np.bool_).reshape(shape)
    found = np.frombuffer(entropy, DTYPES[dtype].storage, count).reshape(shape)
    return DTYPES[dtype].wrapped(found) if 0 < DTYPES[dtype].narrow < 8 else found


def _strings(count: int, shape: tuple[int, ...], picks: memoryview) -> Array:
    picked = np.frombuffer(picks, np.uint8, 2 * count).reshape(count, 2)
    return _TEXTS[picked[:, 0] % len(ALPHABET), picked[:, 1]].reshape(shape)


_TEXTS = np.array(
    [[f"{text}{number}" if number % 8 else "" for number in range(256)] for text in ALPHABET], object
)
"""Texts by a letter, or what stands for one, and a number."""
