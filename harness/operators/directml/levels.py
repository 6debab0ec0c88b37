"""The DirectML feature level of a case: the lowest level whose published tables allow the lowered call.
Derived from data, never typed.

A case of an ONNX operator holds the lowest level with a call that expresses it: shapes may have leading 1s up
to the rank that a level requires, and non-negative int32 indices may be UINT32, since the bits are the same.
A case of DirectML's own API is taken as it is lowered, and so is every call that was made (`level_made`),
which may need a higher level than its case. Sizes are not part of the published tables; no call of DirectML
has a size of 0 (DML_BUFFER_TENSOR_DESC), nor sizes that a sentence of the operator's document forbids
(`DirectmlCall.forbidden`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from harness.model.case import BEYOND, Case, DirectmlOptions
from harness.model.dtypes import DTYPES
from harness.model.reference.directml import Table, directml_operator
from harness.operators import OPERATORS
from harness.operators.base import Call, DirectmlCall, Operator
from harness.operators.directml.description import Description, decode

_SAME_BITS = {"INT32": "UINT32", "INT64": "UINT64"}


def levels_of(case: Case, call: Call) -> dict[str, str]:
    """Return {"directml": level or "beyond"} for a case and its call; equal levels share one mapping."""
    operator = OPERATORS[case.operator]
    negative = False
    for position, spec in enumerate(case.inputs):
        if spec.name in operator.family.unsigned_inputs(operator):
            written = case.literals[position] if case.literals is not None else None
            if written is None:
                negative |= operator.kind(spec.name, spec.values).negative
            else:
                negative |= written.dtype.kind in "if" and bool(np.any(written < 0))
    return levels(operator, call, case.lowers_to, negative, case.directml)


def levels(
    operator: Operator,
    call: Call,
    lowers_to: Sequence[str],
    negative: bool,
    directml: DirectmlOptions | None = None,
) -> dict[str, str]:
    """Return the levels of all cases with one call, with or without negative indices.

    A case of DirectML's own API is taken as it is lowered; otherwise an index input that holds no negative
    one may be UINT32 for INT32.
    """
    asked = directml.operator if directml is not None else None
    widened = () if negative or directml is not None else operator.family.unsigned_inputs(operator)
    found = []
    for candidate in lowers_to if asked is None else (asked,):
        made = lowered_to(operator, candidate, call)
        if made is not None:
            found.append(_level(made, widened, directml))
    return _shared(min(found, key=_order, default=BEYOND))


def lowered_to(operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
    """Return a call of a DirectML operator; None where it cannot express the call, as it may not where that
    breaks a rule."""
    try:
        return operator.family.directml(operator, candidate, call)
    except (ValueError, IndexError):
        if operator.broken_rule(call) is None:
            raise
        return None


@lru_cache(maxsize=64)
def _shared(level: str) -> dict[str, str]:
    return {"directml": level}


def _level(made: DirectmlCall, widened: Sequence[str], asked: DirectmlOptions | None) -> str:
    """Return the lowest level that allows a call, with the data types and the DimensionCount that a case asks
    for."""
    if made.forbidden is not None:
        return BEYOND
    count, dtypes = None, {}
    if asked is not None:
        count, dtypes = (
            asked.dimension_count,
            {name: tensor.dtype for name, tensor in asked.tensors if tensor.dtype is not None},
        )
    tensors = []
    for name, (carries, dtype, sizes, _) in made.views():
        if 0 in sizes:
            return BEYOND
        rank = count or max(made.dimension_count, len(sizes))
        tensors.append((name.partition(".")[0], dtypes.get(name, dtype), carries in widened, rank))
    return _lowest(made.operator, tuple(tensors), _deciding(made), asked is not None)


def _deciding(call: DirectmlCall | Description) -> tuple[tuple[str, object], ...]:
    """Return the members whose values decide which table holds, with their values."""
    decided = directml_operator(call.operator).by_value
    return tuple([(each.member, call.attributes.get(each.member)) for each in decided])


@lru_cache(maxsize=4096)
def level_made(model: bytes, lowest: str) -> dict[str, str]:
    """Return the level of the call that an encoded description makes, for a case whose own level is `lowest`:
    no lower one, since a call is one of those that express its case."""
    call = decode(model)
    tensors = tuple(
        (name.partition(".")[0], each.dtype, False, len(each.sizes)) for name, each in call.views()
    )
    return _shared(max(lowest, _lowest(call.operator, tensors, _deciding(call), True), key=_order))


@lru_cache(maxsize=65536)
def _lowest(
    operator: str,
    tensors: tuple[tuple[str, str, bool, int], ...],
    members: tuple[tuple[str, object], ...],
    exact: bool,
) -> str:
    """Return the lowest level whose table allows tensors (name, element type, unsigned is as good, rank)."""
    tables: Mapping[str, Table] = directml_operator(operator).tables_for(dict(members))
    return next(
        (level for level in sorted(tables, key=_order) if _allows(tables[level], tensors, exact)), BEYOND
    )


def _allows(table: Table, tensors: tuple[tuple[str, str, bool, int], ...], exact: bool) -> bool:
    for name, dtype, widened, rank in tensors:
        documented = table.get(name)
        if documented is None:
            return False
        if rank > documented.dims[1] or (exact and rank < documented.dims[0]):
            return False
        own = DTYPES[dtype].directml or ""
        if (
            documented.dtypes
            and own not in documented.dtypes
            and not (widened and _SAME_BITS.get(own) in documented.dtypes)
        ):
            return False
    return True


@lru_cache(maxsize=64)
def _order(level: str) -> tuple[int, int]:
    if level == BEYOND:
        return 1 << 16, 0
    major, minor = level.split("_")
    return int(major), int(minor)
