"""Documented, registered and measured support side by side, with their disagreements.

Only valid cases of the operator itself count for support; a variant is composed of other operators.
Documented support exists only for DirectML and is compared for targets that lower to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from harness.model.case import BEYOND, Validity
from harness.model.facets import dtype_key
from harness.model.reference.feature_levels import level_key
from harness.model.reference.kernels import Registered, formal_inputs, registered
from harness.model.target_info import DIRECTML, DML, TargetInfo
from harness.model.verdict import Outcome
from harness.results.tables import Tables
from harness.results.tally import Tally

Measured = Literal["yes", "as a function", "no", "partly", "unclear", "nothing ran"]

LOWERS_TO_DIRECTML = frozenset({DML, DIRECTML})
_TAKEN = (Outcome.PASS, Outcome.MISMATCH, Outcome.ORACLE_ERROR)
_DENIED = (Outcome.UNSUPPORTED, Outcome.NOT_PLACED, Outcome.REJECTED)


class Support(NamedTuple):
    """The support for the valid cases of one operator, type and level on one target; rows that agree in everything
    else are joined."""

    operator: str
    target: str
    opsets: tuple[int, ...]
    dtypes: tuple[str, ...]
    types: tuple[str, ...]
    """The element types of further inputs, where these differ from the first one's."""
    documented: tuple[str, ...]
    """The levels that first allow these cases, lowest first."""
    registered: Registered
    measured: Measured
    tally: Tally
    disagreements: tuple[str, ...]


def measured(tally: Tally) -> Measured:
    """Say whether a target took valid cases: a result says yes, a refusal no, a crash or timeout neither."""
    taken = _taken(tally)
    denied = sum(tally.outcomes[outcome] for outcome in _DENIED)
    if not taken and not denied:
        return "unclear" if tally.run else "nothing ran"
    if taken and denied:
        return "partly"
    return "no" if denied else "as a function" if taken == tally.functions else "yes"


def _taken(tally: Tally) -> int:
    return sum(tally.outcomes[outcome] for outcome in _TAKEN)


def _by_kernel(tally: Tally) -> bool:
    """Say whether an operator itself ran, not the function that ONNX gives for it."""
    return _taken(tally) > tally.functions


def support(tables: Tables) -> list[Support]:
    """Compare the three for everything that the run's valid cases cover, in the order of operator, target,
    opset and element type."""
    levels: dict[tuple[object, ...], dict[str, Tally]] = {}
    fields = ("operator", "opset", "target", "dtype", "types")
    for leaf, tally in tables.by(*fields, "level", validity=Validity.VALID, variant="").items():
        levels.setdefault(leaf[:-1], {})[leaf[-1]] = tally
    joined: dict[tuple[object, ...], list[tuple[int, str, str, Tally]]] = {}
    for key, total in tables.by(*fields, validity=Validity.VALID, variant="").items():
        operator, opset, target, dtype, types = key
        if not dtype:
            continue
        info = tables.header.targets[target]
        kernel = kernel_of(info, operator, opset, dtype, dict(part.split("=") for part in types.split()))
        by_level = levels[key]
        found = _disagreements(kernel, total, by_level if info.provider in LOWERS_TO_DIRECTML else {})
        documented = tuple(sorted(by_level, key=level_key))
        row = (operator, target, documented, kernel, measured(total), found)
        joined.setdefault(row, []).append((opset, dtype, types, total))
    order = {target: place for place, target in enumerate(tables.targets)}
    rows = [_row(key, kinds) for key, kinds in joined.items()]
    return sorted(
        rows,
        key=lambda row: (
            row.operator,
            order[row.target],
            row.opsets,
            dtype_key(row.dtypes[0]),
            row.dtypes,
            row.types,
        ),
    )


def kernel_of(
    info: TargetInfo, operator: str, opset: int, dtype: str, others: Mapping[str, str]
) -> Registered:
    """Say whether a target's provider registers a kernel for the element types of the first input and of others by name."""
    first = next((name for name, _ in formal_inputs(operator, opset)), "")
    return registered(info, operator, opset, {first: dtype, **others})


class TypeKernels(NamedTuple):
    """An element type of first inputs: of how many operators a target has a kernel for it, of how many only the
    function that ONNX gives ran, and how many have valid cases of it."""

    dtype: str
    kernels: dict[str, int]
    functions: dict[str, int]
    operators: int

    def on(self, target: str) -> str:
        """Write them: `33 + 2 / 41`."""
        if target not in self.kernels:
            return "–"
        functions = f" + {self.functions[target]:,}" if self.functions[target] else ""
        return f"{self.kernels[target]:,}{functions} / {self.operators:,}"


def kernels_by_type(tables: Tables) -> list[TypeKernels]:
    """Count operators by element type and target; one has a kernel where any valid case ran on it."""
    rows: dict[str, TypeKernels] = {}
    seen: dict[str, set[str]] = {}
    zero = {target: 0 for target, info in tables.header.targets.items() if not info.unavailable}
    found = tables.by("dtype", "operator", "target", validity=Validity.VALID, variant="")
    for (dtype, operator, target), tally in found.items():
        if not dtype:
            continue
        row = rows.setdefault(dtype, TypeKernels(dtype, dict(zero), dict(zero), 0))
        seen.setdefault(row.dtype, set()).add(operator)
        if target not in zero:
            continue
        row.kernels[target] += _by_kernel(tally)
        row.functions[target] += 0 < tally.functions == _taken(tally)
    return [
        row._replace(operators=len(seen[name]))
        for name, row in sorted(rows.items(), key=lambda item: dtype_key(item[0]))
    ]


def _row(key: tuple[Any, ...], kinds: list[tuple[int, str, str, Tally]]) -> Support:
    operator, target, documented, kernel, taken, found = key
    tally = Tally()
    for *_, each in kinds:
        tally.include(each)
    opsets = tuple(sorted({opset for opset, *_ in kinds}))
    dtypes = tuple(sorted({dtype for _, dtype, *_ in kinds}, key=dtype_key))
    types = tuple(sorted({types for *_, types, _ in kinds if types}))
    return Support(operator, target, opsets, dtypes, types, documented, kernel, taken, tally, found)


def _disagreements(kernel: Registered, total: Tally, documented: dict[str, Tally]) -> tuple[str, ...]:
    """Name the disagreements. A device-dependent kernel may be there or not; a registered one may refuse calls that
    no document allows."""
    within = Tally()
    for level, tally in documented.items():
        if level != BEYOND:
            within.include(tally)
    taken = measured(within if documented else total)
    found = []
    if taken in ("no", "partly") and kernel == "yes":
        found.append("registered, but not taken" if taken == "no" else "registered, but not always taken")
    if _by_kernel(total) and kernel == "no":
        found.append("taken, but not registered")
    allowed = [level for level in documented if level != BEYOND]
    if allowed and kernel == "no":
        found.append(f"documented from {min(allowed, key=level_key)}, but not registered")
    beyond = documented.get(BEYOND)
    if beyond is not None and beyond.correct and _by_kernel(beyond):
        found.append("passes beyond the documented tables")
    return tuple(found)
