"""The members of DirectML's structures, from DirectMLSchema.h or as a reference page prints them, and the
numbers of enumerations."""

from __future__ import annotations

import re

from tools.refresh_directml.documents import Facts

SCHEMA = "DxDispatch/src/dxdispatch/DirectMLHelpers/DirectMLSchema.h"
_SECOND_NAME = re.compile(r"^\s*DML_OPERATOR_SCATTER_ELEMENTS,$", re.M)
"""DirectML.h lists this beside DML_OPERATOR_SCATTER, whose number it shares."""


def schema_members(text: str) -> dict[str, list[Facts]]:
    """Return the members of every operator's structure (`DML_GATHER`), in the order of their declaration."""
    found: dict[str, list[Facts]] = {}
    for name, body in re.findall(
        r"constexpr DML_SCHEMA_FIELD (\w+?)_OPERATOR_SCHEMA_FIELDS\[\d+\] \{(.*?)\n\};", text, re.S
    ):
        rows = re.findall(
            r"DML_SCHEMA_FIELD_KIND_(\w+), DML_SCHEMA_FIELD_TYPE_(\w+), \"(\w+)\", (true|false)", body
        )
        found[name] = [
            {"name": member, "kind": kind.lower().replace("_tensor", ""), "type": type_.lower()}
            | ({"optional": True} if optional == "true" else {})
            for kind, type_, member, optional in rows
        ]
    return found


def printed_members(text: str) -> list[Facts]:
    """Return the members of the structure that a page prints, with their types in C."""
    body = re.search(r"struct DML_\w+\s*\{(.*?)\}", text, re.S)
    if body is None:
        return []
    lines = re.findall(r"^\s*(?:_\w+_(?:\([^)]*\))?\s*)*([\w ]+[\s*]+)(\w+);", body[1], re.M)
    return [{"name": name, "type": " ".join(type_.replace("*", " *").split())} for type_, name in lines]


def enumeration(text: str) -> dict[str, int]:
    """Return the numbers of an enumeration by their names."""
    value, found = -1, {}
    body = _SECOND_NAME.sub("", text).partition("{")[2].partition("}")[0]
    for name, given in re.findall(r"^\s*(\w+)(?:\s*=\s*(0x[0-9a-fA-F]+|\d+))?\s*,?\s*$", body, re.M):
        value = int(given, 0) if given else value + 1
        found[name] = value
    return found
