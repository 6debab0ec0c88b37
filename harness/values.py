"""Inputs of a case: the same bits for the same id and seed, on every platform and whatever other cases exist.

The bits come from SHAKE-128 (FIPS 202) of `seed` and id, so that they depend on no library's generator.
"""

from __future__ import annotations

from hashlib import shake_128
from math import prod

import numpy as np

from harness.dtypes import DTYPES, Array
from harness.operators.base import Operator
from harness.records import Case, Tensor

_ALPHABET = ("", "a", "B", "\u00e9", "\u4e2d", "\U0001f600", " ", "\x01", "'", "longer text, so that it is not stored in place")


def case_inputs(operator: Operator, case: Case, seed: int) -> tuple[Tensor, ...]:
    """Return the tensors of all inputs, in the order of the specification; written-out elements come first."""
    shapes = [spec.shape for spec in case.inputs]
    counts = [prod(shape) for shape in shapes]
    sizes = [
        8 * count if spec.name == operator.values_input else _random_bytes(spec.dtype, count)
        for spec, count in zip(case.inputs, counts, strict=True)
    ]
    stream = memoryview(shake_128(f"{seed}:{case.id}".encode()).digest(sum(sizes)))
    made = []
    at = 0
    for number, spec in enumerate(case.inputs):
        entropy = stream[at : at + sizes[number]]
        at += sizes[number]
        written = case.literals[number] if case.literals is not None else None
        if written is not None:
            array = written
        elif spec.name == operator.values_input:
            array = operator.generate(spec.values, spec.dtype, tuple(shapes), case.attributes, entropy)
        else:
            array = random_tensor(spec.dtype, spec.shape, counts[number], entropy)
        made.append(Tensor(spec.dtype, array))
    return tuple(made)


def _random_bytes(dtype: str, count: int) -> int:
    return count * (DTYPES[dtype].itemsize or 2)


def random_tensor(dtype: str, shape: tuple[int, ...], count: int, entropy: memoryview) -> Array:
    """Return any bit patterns of a dtype: NaNs with payloads, subnormals and infinities are as likely as their share of the patterns."""
    if dtype == "string":
        return _strings(count, shape, entropy)
    if dtype == "bool":
        return (np.frombuffer(entropy, np.uint8, count) & 1).view(np.bool_).reshape(shape)
    return np.frombuffer(entropy, DTYPES[dtype].storage, count).reshape(shape)


def _strings(count: int, shape: tuple[int, ...], picks: memoryview) -> Array:
    array = np.empty(count, object)
    for n in range(count):
        array[n] = f"{_ALPHABET[picks[2 * n] % len(_ALPHABET)]}{picks[2 * n + 1]}" if picks[2 * n + 1] % 8 else ""
    return array.reshape(shape)
