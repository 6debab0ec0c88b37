"""What ONNX Runtime's DirectML provider gives of operators that generate or move elements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, deviation


def low_bits(number: int) -> int:
    """Return the lower 32 bits of a number, as a signed one."""
    return (number + 2**31) % 2**32 - 2**31


def with_low_bits(inputs: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return inputs, one of them cut to its lower 32 bits."""
    given = inputs[name]
    return {**inputs, name: Tensor(given.dtype, given.array.astype(np.int32).astype(given.array.dtype))}


@deviation
def low_bits_of_k(asked: Deviating) -> tuple[Expected, ...]:
    """EyeLike and Trilu: the diagonal that the lower 32 bits of k name."""
    if "k" in asked.inputs:
        return asked.formula(inputs=with_low_bits(asked.inputs, "k"))
    return asked.formula(k=low_bits(int(asked.call.parameter("k"))))


@deviation
def low_bits_of_indices(asked: Deviating) -> tuple[Expected, ...]:
    """OneHot: the class that the lower 32 bits of an index name."""
    return asked.formula(inputs=with_low_bits(asked.inputs, "indices"))


@deviation
def low_bits_of_axis(asked: Deviating) -> tuple[Expected, ...]:
    """Any operator with an axis: that of its lower 32 bits."""
    return asked.formula(axis=low_bits(int(asked.call.parameter("axis"))))
