"""What Microsoft documents for DirectML and what ONNX Runtime registers: the data files, read once.

The level of a case is not looked up here: it is in its result. This module knows the order of the levels, those at which a table
changes, and which kernels a provider registers.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml
from packaging.version import InvalidVersion, Version

from harness.records import BEYOND, TargetInfo

Registered = Literal["yes", "no", "device", "unknown"]
"""`device`: only where the device reports the element type; `unknown`: no kernel table for that provider or operator."""


@cache
def load(name: str) -> Any:
    """Read one data file of the package as plain data."""
    text = files("harness.data").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@cache
def level_order() -> tuple[str, ...]:
    """Return every feature level from the lowest up, then `beyond`."""
    return (*load("directml.yaml")["feature_levels"], BEYOND)


@cache
def table_levels() -> tuple[str, ...]:
    """Return the levels at which some operator's table is introduced or changes: where a case can first be allowed; then `beyond`."""
    prefix = "DML_FEATURE_LEVEL_"
    named = {level.removeprefix(prefix) for operator in load("directml.yaml")["operators"].values() for level in operator["levels"]}
    return tuple(level for level in level_order() if level in named or level == BEYOND)


def level_key(level: str) -> tuple[int, str]:
    """Sort key of a level; an unknown one comes last."""
    order = level_order()
    return (order.index(level) if level in order else len(order), level)


_OPERATOR = "DML_OPERATOR_"
_LEVEL = "DML_FEATURE_LEVEL_"


@cache
def operators_documented() -> dict[str, tuple[str, ...]]:
    """Return the tensors of each DirectML operator that has a table, by the operator's name without its prefix."""
    found = {}
    for name, operator in load("directml.yaml")["operators"].items():
        tensors = {tensor: None for table in operator["levels"].values() for tensor in table}
        found[name.removeprefix(_OPERATOR)] = tuple(tensors)
    return found


@cache
def documented_tensor(operator: str, tensor: str, level: str) -> tuple[int, int, tuple[str, ...]]:
    """Return (least DimensionCount, most, data types) that the table in force at a level has for a tensor; (0, -1, ()) before the first."""
    table = None
    for name, each in load("directml.yaml")["operators"][f"{_OPERATOR}{operator}"]["levels"].items():
        if level_key(name.removeprefix(_LEVEL)) <= level_key(level):
            table = each[tensor]
    return (0, -1, ()) if table is None else (*table["dims"], tuple(table["dtypes"]))


def operator_version(operator: str, opset: int) -> int | None:
    """Return the version of the operator that a model of `opset` uses, None for an operator without kernel tables."""
    versions = [version for version in load("onnxruntime_kernels.yaml")["versions"].get(operator, ()) if version <= opset]
    return max(versions, default=None)


def registered(target: TargetInfo, operator: str, opset: int, dtype: str, index_dtype: str) -> Registered:
    """Say whether a target's provider registers a kernel for an operator of these element types."""
    data = load("onnxruntime_kernels.yaml")
    version = operator_version(operator, opset)
    kernels = data["providers"].get(target.provider, {}).get(operator)
    if kernels is None or version is None:
        return "unknown"
    for kernel in kernels:
        if version in kernel["versions"] and dtype in kernel["data"] and (not index_dtype or index_dtype in kernel.get("indices", ())):
            if not _since(kernel.get("since"), target.onnxruntime):
                return "no"
            asks = dtype in data["device_dependent"].get(target.provider, ())
            return "device" if asks and dtype not in target.device_dtypes else "yes"
    return "no"


def _since(first: str | None, version: str | None) -> bool:
    if first is None or version is None:
        return True
    try:
        return Version(version) >= Version(first)
    except InvalidVersion:
        return True
