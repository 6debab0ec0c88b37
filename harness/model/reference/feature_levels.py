"""DirectML's feature levels as Microsoft documents them, and the handwritten data files, read once.

This module knows the order of the levels and those at which a table changes. It does not look up the level of
a case, which is in its result; `harness.model.reference` has the operators and kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import yaml

from harness.model.case import BEYOND
from harness.model.reference.directml import PREFIX, TensorSupportEntry, directml_operator, operator_names
from harness.model.reference.files import file_bytes


@cache
def load(name: str) -> Any:
    """Read one data file of the package as plain data."""
    return yaml.load(file_bytes(name), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def level_order() -> tuple[str, ...]:
    """Return every feature level from the lowest up, then `beyond`."""
    return (*load("directml.yaml")["feature_levels"], BEYOND)


def table_levels(operators: Iterable[str]) -> tuple[str, ...]:
    """Return the levels at which a table of these DirectML operators is introduced or changes, lowest first;
    then `beyond`.

    These are the levels at which a case can first be allowed. Operators without a document have none.
    """
    known = frozenset(operator_names())
    named = {level for name in operators if name in known for level in directml_operator(name).table_levels}
    return tuple(level for level in level_order() if level in named or level == BEYOND)


def level_key(level: str) -> tuple[int, str]:
    """Sort key of a level; an unknown one comes last."""
    order = level_order()
    return (order.index(level) if level in order else len(order), level)


@cache
def tensors_documented(operator: str) -> tuple[str, ...]:
    """Return the tensors that the tables of a DirectML operator (its name without prefix) speak of; () for
    one without tables."""
    name = PREFIX + operator
    if name not in operator_names():
        return ()
    tables = (table for levels in directml_operator(name).all_tables() for table in levels.values())
    return tuple(dict.fromkeys(tensor for table in tables for tensor in table))


@cache
def required_tensors(operator: str) -> frozenset[str]:
    """Return those of `tensors_documented` that no call may leave out."""
    documented = tensors_documented(operator)
    members = directml_operator(PREFIX + operator).tensors if documented else ()
    return frozenset(documented).difference(member.name for member in members if member.optional)


@cache
def documented_tensor(operator: str, tensor: str, level: str) -> tuple[int, int, tuple[str, ...]]:
    """Return (least DimensionCount, most, data types) that the tables in force at a level have for a tensor;
    (0, -1, ()) before the first.

    Where tables differ by the value of a member, they are taken together: a call that results name does not
    say the value.
    """
    tensor = tensor.partition(".")[0]
    found: list[TensorSupportEntry] = []
    for tables in directml_operator(PREFIX + operator).all_tables():
        reached = [table for name, table in tables.items() if level_key(name) <= level_key(level)]
        if reached and tensor in reached[-1]:
            found.append(reached[-1][tensor])
    if not found:
        return 0, -1, ()
    dtypes = dict.fromkeys(dtype for each in found for dtype in each.dtypes)
    return min(each.dims[0] for each in found), max(each.dims[1] for each in found), tuple(dtypes)
