"""Small specs that are right, for tests to start from."""

from __future__ import annotations

GATHER_ELEMENTS = """\
operator: GatherElements
opsets: [11, 13]
lowers_to: {directml: DML_OPERATOR_GATHER_ELEMENTS}
because: elements are moved
cases:
  - name: documented_example
    source: DML_GATHER_ELEMENTS_OPERATOR_DESC, example
    attributes: {axis: 0}
    inputs:
      data: {dtype: float32, values: [[1, 2, 3], [4, 5, 6], [7, 8, 9]]}
      indices: {dtype: int64, values: [[1, 2, 0], [2, 0, 0]]}
    output: [[4, 8, 3], [7, 2, 3]]
sweeps:
  - name: dtype_rank
    data: {dtype: [float32, bfloat16], shape: [[5], [3, 4]]}
    indices: {dtype: all, shape: {extent: [one, same]}, values: in_range}
    attributes: {axis: all}
    options: {optimization: all, initializer: [indices, null]}
"""

GATHER_ND = """\
operator: GatherND
opsets: [11, 12, 13]
lowers_to: {directml: [DML_OPERATOR_GATHER_ND, DML_OPERATOR_GATHER_ND1]}
because: elements are moved
sweeps:
  - name: batched
    opsets: [13, 12]
    data: {dtype: all, shape: [[2, 3, 4]]}
    indices: {dtype: int64, shape: {outer: [[], [2]], tuple: all}, values: [in_range]}
    attributes: {batch_dims: [0, 1]}
  - name: out_of_range
    validity: invalid
    rule: every index lies in [-s, s-1]
    data: {dtype: float32, shape: [[2, 3]]}
    indices: {dtype: int64, shape: {outer: [[2]], tuple: [1, 2]}, values: too_high}
"""
