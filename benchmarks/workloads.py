"""Specs of a chosen size: the same operators and tiny tensors as the default specs, on shared graphs or with a session per case."""

from __future__ import annotations

from math import isqrt
from pathlib import Path

_HEAD = """operator: GatherElements
opsets: [13]
lowers_to: {{directml: DML_OPERATOR_GATHER_ELEMENTS}}
tolerance: {{kind: exact, because: "elements are moved, not computed"}}
sweeps:
  - name: {name}
    data: {{dtype: [float32, float16, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool], shape: {shapes}}}
    indices: {{dtype: all, extent: [one, same, more], values: [in_range, negative, mixed, boundary, repeated]}}
    attributes: {{axis: [1]}}
    options: {{shapes: {kind}}}
"""
_PER_SHAPE = 12 * 2 * 3 * 5


def write_spec(folder: Path, cases: int, *, static: bool) -> tuple[Path, int]:
    """Write a spec of about `cases` cases; return its path and their exact number."""
    count = max(1, cases // _PER_SHAPE)
    side = isqrt(count) + 1
    shapes = [[2 + n // side, 2 + n % side] for n in range(count)]
    path = folder / f"GatherElements_{'static' if static else 'shared'}_{count}.yaml"
    path.write_text(_HEAD.format(name="bench", shapes=shapes, kind="static" if static else "symbolic"), encoding="utf-8")
    return path, count * _PER_SHAPE
