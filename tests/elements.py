"""Elements that are easily lost on the way: extremes, special values, odd texts."""

from __future__ import annotations

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.operators.binary_floats import halfway_values, special_patterns


def elements_of(dtype: str) -> Array:
    """Return elements that are hard to write: for floats special patterns, neighbours of halves and any bits,
    for others the extremes."""
    entry = DTYPES[dtype]
    if dtype == "string":
        array = np.empty(9, object)
        array[:] = [
            "",
            "no",
            "null",
            "0x1f",
            "a: b # c",
            'quote " and \\',
            "line\nend\x01\x7f\u2028",
            "\U0001f600é中",
            "{[*&!|>'%@`",
        ]
        return array
    if dtype == "bool":
        return np.array([True, False])
    if entry.is_float:
        drawn = np.random.default_rng(7).integers(0, 256, 200 * entry.itemsize, np.uint8).view(entry.storage)
        return np.concatenate([special_patterns(dtype), halfway_values(dtype), drawn])
    if entry.storage[0] == "c":
        return np.array(
            [0, 1 - 2j, complex(-0.0, -0.0), complex("inf-infj"), 1e-30 + 3e30j, 1 / 3], entry.storage
        )
    limits = np.iinfo(entry.storage)
    return np.array([0, limits.min, limits.max, 1], entry.storage)
