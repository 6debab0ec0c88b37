"""The DirectML feature level of a case: the lowest level whose published tables allow the lowered call. Derived from data, never typed.

A case is lowered to one DirectML call (operator, element types, DimensionCount). Lowering may pad shapes with leading 1s to the rank that a
level demands, and may pass non-negative int32 indices as UINT32, since the bits are the same. Sizes are not part of the published tables.
A case of DirectML's own API is taken as it is written: its operator, its data types, and its DimensionCount if it names one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from harness.dtypes import DTYPES, Array
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator
from harness.published import load
from harness.records import BEYOND, Case, DirectmlOptions

_PREFIX = "DML_FEATURE_LEVEL_"


def known_operators() -> tuple[str, ...]:
    """Return the DirectML operators whose tables are known."""
    return tuple(load("directml.yaml")["operators"])


def levels_of(case: Case, call: Call, lowers_to: Sequence[str]) -> dict[str, str]:
    """Return {"directml": level or "beyond"} for a case whose spec lowers to these operators; equal levels share one mapping."""
    operator = OPERATORS[case.operator]
    negative = False
    for position, spec in enumerate(case.inputs):
        if spec.name in operator.family.unsigned_inputs(operator):
            written = case.literals[position] if case.literals is not None else None
            negative |= operator.kind(spec.name, spec.values).negative if written is None else _any_below_zero(written)
    return levels(operator, call, tuple(lowers_to), negative, case.directml)


def levels(
    operator: Operator, call: Call, lowers_to: tuple[str, ...], negative: bool, directml: DirectmlOptions | None = None
) -> dict[str, str]:
    """Return the levels of all cases with one call, with or without negative indices.

    A case of DirectML's own API is taken as it is written; otherwise an index input that holds no negative one may be UINT32 for INT32.
    """
    exact = directml is not None and directml.dimension_count is not None
    asked = directml.operator if directml is not None else None
    widened = () if negative or directml is not None else operator.family.unsigned_inputs(operator)
    found = []
    for candidate in lowers_to if asked is None else (asked,):
        made = operator.family.directml(operator, candidate, call)
        if made is not None:
            rank = max(1, (directml.dimension_count if directml is not None else None) or made.dimension_count)
            rank = rank if exact else max(rank, *(len(t.sizes) for _, t in made.each()))
            tensors = tuple((name, t.dtype, t.carries in widened) for name, t in made.each())
            found.append(_lowest(candidate, tensors, rank, exact))
    return _shared(min(found, key=_order, default=BEYOND))


def _any_below_zero(written: Array) -> bool:
    return written.dtype.kind in "if" and bool(np.any(written < 0))


@lru_cache(maxsize=64)
def _shared(level: str) -> dict[str, str]:
    return {"directml": level}


_SAME_BITS = {"INT32": "UINT32", "INT64": "UINT64"}


@lru_cache(maxsize=65536)
def _lowest(operator: str, tensors: tuple[tuple[str, str, bool], ...], rank: int, exact: bool) -> str:
    """Return the lowest level whose table allows tensors (name, element type, whether unsigned of the same bits is as good) of a rank."""
    return next((level for level, table in _levels(operator) if _allows(table, tensors, rank, exact)), BEYOND)


def _levels(operator: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = load("directml.yaml")["operators"][operator]["levels"]
    return sorted(((level.removeprefix(_PREFIX), table) for level, table in tables.items()), key=lambda row: _order(row[0]))


def _allows(table: Mapping[str, Any], tensors: tuple[tuple[str, str, bool], ...], rank: int, exact: bool) -> bool:
    for name, dtype, widened in tensors:
        least, most = table[name]["dims"]
        if rank > most or (exact and rank < least):
            return False
        own = DTYPES[dtype].directml or ""
        if own not in table[name]["dtypes"] and not (widened and _SAME_BITS.get(own) in table[name]["dtypes"]):
            return False
    return True


def _order(level: str) -> tuple[int, int]:
    if level == BEYOND:
        return 1 << 16, 0
    major, minor = level.split("_")
    return int(major), int(minor)
