"""Generates the inputs of a case: the same bits for the same id and seed, on every platform and whatever
other cases exist.

The bits come from SHAKE-128 (FIPS 202) of `seed` and id, so they depend on no library's generator.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128
from math import prod

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.model.records import Case, Tensor, TensorSpec
from harness.operators import OPERATORS
from harness.operators.base import Call
from harness.operators.elements import ALPHABET


def case_inputs(call: Call, case: Case, seed: int) -> tuple[Tensor, ...]:
    """Return the tensors of all inputs of a case and its call, in the order of the specification; written-out
    elements come first."""
    operator = OPERATORS[case.operator]
    chosen, counts, ends = _layout(case.operator, case.inputs)
    stream = memoryview(shake_128(f"{seed}:{case.id}".encode()).digest(ends[-1])) if ends else memoryview(b"")
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


@lru_cache(maxsize=1024)
def _layout(operator: str, inputs: tuple[TensorSpec, ...]) -> tuple[list[bool], list[int], list[int]]:
    """Return which inputs the operator chooses, their element counts, and where the bytes of each end in the
    case's stream."""
    entry = OPERATORS[operator]
    chosen = [entry.chooses(spec.name, spec.values) for spec in inputs]
    counts = [prod(spec.shape) for spec in inputs]
    ends: list[int] = []
    for spec, count, by_kind in zip(inputs, counts, chosen, strict=True):
        size = max(4, DTYPES[spec.dtype].itemsize) * count if by_kind else _random_bytes(spec.dtype, count)
        ends.append(size + (ends[-1] if ends else 0))
    return chosen, counts, ends


def _random_bytes(dtype: str, count: int) -> int:
    return count * (DTYPES[dtype].itemsize or 2)


def random_tensor(dtype: str, shape: tuple[int, ...], count: int, entropy: memoryview) -> Array:
    """Return any bit patterns of a dtype: NaNs with payloads, subnormals and infinities are as likely as
    their share of the patterns."""
    if dtype == "string":
        return _strings(count, shape, entropy)
    if dtype == "bool":
        return (np.frombuffer(entropy, np.uint8, count) & 1).view(np.bool_).reshape(shape)
    return np.frombuffer(entropy, DTYPES[dtype].storage, count).reshape(shape)


def _strings(count: int, shape: tuple[int, ...], picks: memoryview) -> Array:
    array = np.empty(count, object)
    for n in range(count):
        array[n] = (
            f"{ALPHABET[picks[2 * n] % len(ALPHABET)]}{picks[2 * n + 1]}" if picks[2 * n + 1] % 8 else ""
        )
    return array.reshape(shape)
