"""The DirectML feature level of a case: the lowest level whose published tables allow the lowered call. Derived from data, never typed.

A case is lowered to one DirectML call (operator, element types, DimensionCount). Lowering may pad shapes with leading 1s to the rank that a
level demands, and may pass non-negative int32 indices as UINT32, since the bits are the same. Sizes are not part of the published tables.
A case of DirectML's own API is taken as it is written: its operator, its data types, and its DimensionCount if it names one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harness.dtypes import DTYPES, Array
from harness.operators import OPERATORS
from harness.operators.base import Attributes, Operator, Shapes
from harness.records import BEYOND, Case, DirectmlOptions
from harness.reference.directml import Table, directml_operator, operator_names


class Call(NamedTuple):
    """What the published tables speak of: candidates for the operator, types of data and (alternatives for) indices, DimensionCount.

    `exact`: the DimensionCount is as it is written, and no leading 1s can be added.
    """

    operators: tuple[str, ...]
    data: str | None
    indices: tuple[str, ...] | None
    rank: int
    batched: bool
    exact: bool = False


def known_operators() -> tuple[str, ...]:
    """Return the DirectML operators whose tables are known."""
    return operator_names()


def levels_of(case: Case, lowers_to: Sequence[str]) -> dict[str, str]:
    """Return {"directml": level or "beyond"} for a case whose spec lowers to these operators; equal levels share one mapping."""
    operator = OPERATORS[case.operator]
    negative = False
    if operator.directml_index is not None:
        position = operator.inputs.index(operator.directml_index)
        written = case.literals[position] if case.literals is not None else None
        negative = operator.kind(case.inputs[position].values).negative if written is None else _any_below_zero(written)
    dtypes, shapes = tuple(spec.dtype for spec in case.inputs), tuple(spec.shape for spec in case.inputs)
    return levels(operator, tuple(lowers_to), dtypes, shapes, case.attributes, negative, case.directml)


def levels(
    operator: Operator,
    lowers_to: tuple[str, ...],
    dtypes: tuple[str, ...],
    shapes: Shapes,
    attributes: Attributes,
    negative: bool,
    directml: DirectmlOptions | None = None,
) -> dict[str, str]:
    """Return the levels of all cases of an operator with these element types, shapes and attributes, with or without negative indices."""
    rank, batched = operator.directml_rank(shapes, attributes), operator.batched(attributes)
    exact = None
    if directml is not None:
        exact = directml.dimension_count is not None
        rank = directml.dimension_count or rank
        lowers_to = lowers_to if directml.operator is None else (directml.operator,)
    return _level(operator.name, lowers_to, dtypes, rank, negative, batched, exact)


def _any_below_zero(written: Array) -> bool:
    return written.dtype.kind in "if" and bool(np.any(written < 0))


@lru_cache(maxsize=8192)
def _level(
    name: str, lowers_to: tuple[str, ...], dtypes: tuple[str, ...], rank: int, negative: bool, batched: bool, exact: bool | None
) -> dict[str, str]:
    """`exact` is None for a case that leaves the lowering open."""
    operator = OPERATORS[name]
    indices: tuple[str, ...] | None = None
    if operator.directml_index is not None:
        own = DTYPES[dtypes[operator.inputs.index(operator.directml_index)]]
        same_bits = {"INT32": "UINT32", "INT64": "UINT64"}.get(own.directml or "")
        indices = tuple(kind for kind in (own.directml, None if negative or exact is not None else same_bits) if kind is not None)
    return _shared(lowest_level(Call(lowers_to, DTYPES[dtypes[0]].directml, indices, max(1, rank), batched, exact is True)))


@lru_cache(maxsize=64)
def _shared(level: str) -> dict[str, str]:
    return {"directml": level}


def lowest_level(call: Call) -> str:
    """Return the lowest level, such as `2_1`, whose table allows a call, or `beyond`."""
    found = [
        level
        for operator in call.operators
        for level, table in directml_operator(operator).tables.items()
        if _allows(operator, table, call)
    ]
    return min(found, key=_order, default=BEYOND)


def _allows(operator: str, table: Table, call: Call) -> bool:
    if call.batched and operator == "DML_OPERATOR_GATHER_ND":
        return False  # it has no BatchDimensionCount
    if any(call.rank > tensor.dims[1] or (call.exact and call.rank < tensor.dims[0]) for tensor in table.values()):
        return False
    if call.data not in table["InputTensor"].dtypes:
        return False
    return call.indices is None or any(kind in table["IndicesTensor"].dtypes for kind in call.indices)


def _order(level: str) -> tuple[int, int]:
    major, minor = level.split("_")
    return int(major), int(minor)
