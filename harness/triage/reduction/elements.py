"""Steps that simplify elements: all, then parts by halves, then each alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.float_formats import encode
from harness.triage.reduction.candidate import Candidate, Subject
from harness.triage.reduction.element_cost import ELEMENTWISE, float_parts, plain

_NUMBERS = (0.0, 1.0, 0.5, 1.5, -1.0, -0.5, -0.0, 2.5, float("inf"), float("-inf"), float("nan"))


def plainer_elements(subject: Subject, candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates with plainer elements in one input."""
    for position, (dtype, array) in enumerate(candidate.inputs):
        usual = plain(dtype, array.shape, payload=subject.payload(candidate.names[position]))
        for changed in _towards(array, usual):
            yield candidate.with_input(position, Tensor(dtype, changed))
        if array.size > ELEMENTWISE:
            continue
        for number, scalar in enumerate(array.reshape(-1)):
            for simpler in simpler_elements(dtype, scalar):
                flat = array.reshape(-1).copy()
                flat[number] = simpler
                yield candidate.with_input(position, Tensor(dtype, flat.reshape(array.shape)))


def _towards(array: Any, usual: Any) -> Iterator[Any]:
    """Yield the array with ever smaller parts replaced by the usual elements."""
    size = array.size
    part = size
    while part:
        for start in range(0, size, part):
            flat = array.reshape(-1).copy()
            flat[start : start + part] = usual.reshape(-1)[start : start + part]
            yield flat.reshape(array.shape)
        if size > ELEMENTWISE and part <= size // 16:
            return
        part = part // 2


def simpler_elements(dtype: str, scalar: Any) -> Iterator[Any]:
    """Yield plainer elements than one element, plainest first."""
    entry = DTYPES[dtype]
    if dtype == "string":
        yield from dict.fromkeys(
            ("", "a", scalar[: len(scalar) // 2], scalar[:-1], scalar[1:], "a" * len(scalar))
        )
    elif dtype == "bool":
        yield np.bool_(False)
    elif entry.is_integer or entry.is_minifloat:
        limits = entry.limits
        for nearer in nearer_integers(int(scalar)):
            if limits.min <= nearer <= limits.max:
                yield np.array(nearer, entry.storage)[()]
    elif entry.is_float:
        yield from _simpler_floats(dtype, scalar)


def nearer_integers(value: int) -> Iterable[int]:
    """Return integers no further from zero than one, plainest first; the integer itself may be among them."""
    half = value // 2 if value >= 0 else -(-value // 2)
    return dict.fromkeys((0, 1, half, value - (value > 0) + (value < 0), abs(value)))


def _simpler_floats(dtype: str, scalar: Any) -> Iterator[Any]:
    entry = DTYPES[dtype]
    assert entry.mantissa is not None
    width, unsigned = entry.itemsize * 8, f"u{entry.itemsize}"
    bits = int(np.asarray(scalar).view(unsigned))
    found = [int(pattern) for pattern in encode(dtype, np.array(_NUMBERS)).view(unsigned)]
    sign, exponent, fraction = float_parts(bits, width, entry.mantissa)
    bias = (1 << (width - 2 - entry.mantissa)) - 1
    middle = (exponent + bias) // 2 if exponent > bias else (exponent + bias + 1) // 2
    for new_exponent in (bias, middle, exponent - (exponent > bias) + (exponent < bias)):
        found.append(sign << (width - 1) | new_exponent << entry.mantissa | fraction)
    for length in (0, entry.mantissa // 2):
        found.append(bits & ~((1 << (entry.mantissa - length)) - 1))
    if fraction:
        found.append(bits & ~(fraction & -fraction))
    found.append(bits & ~(1 << (width - 1)))
    for pattern in dict.fromkeys(found):
        if pattern != bits:
            yield np.array(pattern, unsigned).view(entry.storage)[()]
