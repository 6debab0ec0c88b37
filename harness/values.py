"""Inputs of a case: the same bits for the same id and seed, on every platform and whatever other cases exist.

The bits come from SHAKE-128 (FIPS 202) of `seed` and id, so that they depend on no library's generator.
"""

from __future__ import annotations

from hashlib import shake_128

import numpy as np

from harness.dtypes import DTYPES, Array
from harness.operators.base import Operator
from harness.records import Case, Tensor

_ALPHABET = ("", "a", "B", "\u00e9", "\u4e2d", "\U0001f600", " ", "\x01", "'", "longer text, so that it is not stored in place")


def case_inputs(operator: Operator, case: Case, seed: int) -> tuple[Tensor, ...]:
    """Return the tensors of all inputs, in the order of the specification; written-out elements come first."""
    shapes = tuple(spec.shape for spec in case.inputs)
    source = f"{seed}:{case.id}".encode()
    made = []
    for number, spec in enumerate(case.inputs):
        written = case.literals[number] if case.literals is not None else None
        if written is not None:
            made.append(Tensor(spec.dtype, written))
            continue
        # one stream an input: the first byte keeps them apart
        prefix = b"%d:" % number + source
        if spec.name == operator.values_input:
            array = operator.generate(spec.values, spec.dtype, shapes, case.attributes, lambda n, p=prefix: shake_128(p).digest(n))  # type: ignore[misc]
        else:
            array = random_tensor(spec.dtype, spec.shape, prefix)
        made.append(Tensor(spec.dtype, array))
    return tuple(made)


def random_tensor(dtype: str, shape: tuple[int, ...], source: bytes) -> Array:
    """Return any bit patterns of a dtype: NaNs with payloads, subnormals and infinities are as likely as their share of the patterns."""
    count = 1
    for extent in shape:
        count *= extent
    if dtype == "string":
        return _strings(count, shape, source)
    storage = DTYPES[dtype].storage
    if dtype == "bool":
        return (np.frombuffer(shake_128(source).digest(count), np.uint8) & 1).view(np.bool_).reshape(shape)
    return np.frombuffer(shake_128(source).digest(count * DTYPES[dtype].itemsize), storage).reshape(shape)


def _strings(count: int, shape: tuple[int, ...], source: bytes) -> Array:
    picks = shake_128(source).digest(2 * count)
    array = np.empty(count, object)
    for n in range(count):
        array[n] = f"{_ALPHABET[picks[2 * n] % len(_ALPHABET)]}{picks[2 * n + 1]}" if picks[2 * n + 1] % 8 else ""
    return array.reshape(shape)
