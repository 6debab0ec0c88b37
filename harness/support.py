"""Documented, registered and measured support side by side, with their disagreements.

Only valid cases speak of support. Documented support is DirectML's alone and is compared for targets that lower to it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness.facets import dtype_key
from harness.published import Registered, level_key, registered
from harness.records import BEYOND, Outcome, Validity
from harness.tables import Tables, Tally

Measured = Literal["yes", "no", "partly", "nothing ran"]

LOWERS_TO_DIRECTML = frozenset({"DmlExecutionProvider", "DirectML"})
_DENIED = frozenset({Outcome.UNSUPPORTED, Outcome.NOT_PLACED})


class Support(NamedTuple):
    """What holds for one operator, opset, element type and index element type on one target."""

    operator: str
    opset: int
    target: str
    dtype: str
    index_dtype: str
    documented: tuple[str, ...]
    """The levels that first allow these cases, lowest first."""
    registered: Registered
    measured: Measured
    tally: Tally
    disagreements: tuple[str, ...]


def measured(tally: Tally) -> Measured:
    """Say whether a target took the cases: `unsupported` and `not_placed` are a no, whatever else it did is a yes."""
    denied = sum(tally.outcomes[outcome] for outcome in _DENIED)
    if not tally.run:
        return "nothing ran"
    return "no" if denied == tally.run else "partly" if denied else "yes"


def support(tables: Tables) -> list[Support]:
    """Compare the three for everything that the run's valid cases cover, in the order of operator, opset, target and element type."""
    levels: dict[tuple[object, ...], dict[str, Tally]] = {}
    fields = ("operator", "opset", "target", "dtype", "index_dtype")
    for leaf, tally in tables.by(*fields, "level", validity=Validity.VALID).items():
        levels.setdefault(leaf[:-1], {})[str(leaf[-1])] = tally
    rows = []
    for key, total in tables.by(*fields, validity=Validity.VALID).items():
        operator, opset, target, dtype, index_dtype = str(key[0]), int(str(key[1])), str(key[2]), str(key[3]), str(key[4])
        if not dtype:
            continue
        info = tables.header.targets[target]
        kernel = registered(info, operator, opset, dtype, index_dtype)
        by_level = levels[key]
        found = _disagreements(kernel, total, by_level if info.provider in LOWERS_TO_DIRECTML else {})
        documented = tuple(sorted(by_level, key=level_key))
        rows.append(Support(operator, opset, target, dtype, index_dtype, documented, kernel, measured(total), total, found))
    order = {target: place for place, target in enumerate(tables.targets)}
    return sorted(rows, key=lambda row: (row.operator, row.opset, order[row.target], dtype_key(row.dtype), row.index_dtype))


def _disagreements(kernel: Registered, total: Tally, documented: dict[str, Tally]) -> tuple[str, ...]:
    """Name what does not agree; a device-dependent kernel may do either."""
    taken = measured(total)
    found = []
    if taken in ("no", "partly") and kernel == "yes":
        found.append("registered, but not taken" if taken == "no" else "registered, but not always taken")
    if taken in ("yes", "partly") and kernel == "no":
        found.append("taken, but not registered")
    allowed = [level for level in documented if level != BEYOND]
    if allowed and kernel == "no":
        found.append(f"documented from {min(allowed, key=level_key)}, but not registered")
    beyond = documented.get(BEYOND)
    if beyond is not None and beyond.passed:
        found.append("passes beyond the documented tables")
    return tuple(found)
