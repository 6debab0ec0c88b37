"""Specs of a chosen size: the same operators and tiny tensors as the default specs, on shared graphs or with
a session per case."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from pathlib import Path

_HEAD = """operator: GatherElements
opsets: [13]
lowers_to: {{directml: DML_OPERATOR_GATHER_ELEMENTS}}
because: "elements are moved, not computed"
sweeps:
  - name: {name}
    data: {{dtype: [{dtypes}], shape: {shapes}}}
    indices: {{dtype: all, shape: {{extent: [one, same, more]}}, values: [{values}]}}
    attributes: {{axis: [1]}}
    options: {{shapes: {kind}}}
"""
_DTYPES = [
    "float32",
    "float16",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]
_VALUES = ["mixed", "in_range", "negative", "boundary", "repeated"]


def write_spec(folder: Path, cases: int, *, static: bool, without: Sequence[str] = ()) -> tuple[Path, int]:
    """Write a spec of about `cases` cases, without some element types; return its path and their exact
    number."""
    dtypes = [dtype for dtype in _DTYPES if dtype not in without]
    values = (
        _VALUES[:1] if static else _VALUES
    )  # cases that differ in values alone would share a static graph
    per_shape = len(dtypes) * 2 * 3 * len(values)
    count = max(1, cases // per_shape)
    side = isqrt(count) + 1
    shapes = [[2 + n // side, 2 + n % side] for n in range(count)]
    path = folder / f"GatherElements_{'static' if static else 'shared'}_{count}.yaml"
    path.write_text(
        _HEAD.format(
            name="bench",
            shapes=shapes,
            dtypes=", ".join(dtypes),
            values=", ".join(values),
            kind="static" if static else "symbolic",
        ),
        encoding="utf-8",
    )
    return path, count * per_shape
