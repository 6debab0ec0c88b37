"""The two data files: facts put into the form that `harness.model.reference` reads, one operator a line, in a
fixed order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import onnx.defs

from tools.refresh_directml.documents import Facts

_TYPES = {
    "UINT": "uint", "INT": "int", "FLOAT": "float", "BOOL": "uint", "const UINT *": "uint_array", "const INT *": "int_array",
    "const FLOAT *": "float_array",
}  # fmt: skip
_REDUCE_FUNCTIONS = (
    "ARGMAX", "ARGMIN", "AVERAGE", "L1", "L2", "LOG_SUM", "LOG_SUM_EXP", "MAX", "MIN", "MULTIPLY", "SUM", "SUM_SQUARE",
)  # fmt: skip
"""DML_REDUCE_FUNCTION of DirectML.h, from 0."""
_CPU, _DIRECTML = "CPUExecutionProvider", "DmlExecutionProvider"


def operators_file(facts: Facts) -> str:
    """Return directml_operators.json."""
    sources = facts["meta"]["sources"]
    operators = {name: _operator(entry, sources) for name, entry in sorted(facts["operators"].items())}
    return _lines({"sources": sources, "licence": facts["meta"]["licence"]}, operators)


def _operator(entry: Facts, sources: Mapping[str, str]) -> Facts:
    rows = {
        name: row for tables in _all_tables(entry) for table in tables.values() for name, row in table.items()
    }
    made: Facts = {
        "number": entry["number"],
        "introduced": entry["introduced"],
        "members": _members(entry["members"], rows),
    }
    if "levels" in entry:
        made["tables"] = entry["levels"]
    if "functions" in entry:
        made["by_value"] = [
            {"member": "Function", "values": _numbers(words), "tables": tables}
            for words, tables in entry["functions"].items()
        ]
    for key in ("constraints", "in_place"):
        if key in entry:
            made[key] = entry[key]
    source, _, path = entry["document"].partition(":")
    name, _, commit = sources[source].partition("@")
    made["document"] = f"{name.strip()}:{path}@{commit}"
    return made


def _all_tables(entry: Facts) -> Iterable[Facts]:
    return [entry.get("levels", {}), *entry.get("functions", {}).values()]


def _members(members: Iterable[Facts], rows: Mapping[str, Facts]) -> list[Facts]:
    """Give each member one type, and each array the member that counts it: the nearest one before whose name
    ends with Count."""
    made: list[Facts] = []
    count = None
    for member in members:
        name, printed = member["name"], member["type"]
        if printed.startswith(("const DML_TENSOR_DESC", "tensor_desc")):
            role = member.get("kind") or rows[name]["kind"].removeprefix("optional_")
            type_ = f"{role}s" if printed == "tensor_desc_array" else role
        elif "kind" in member:
            type_ = "uint" if printed == "bool" else printed
        else:
            type_ = _TYPES.get(printed, "uint" if printed.startswith("DML_") else printed)
        each: Facts = {"name": name, "type": type_}
        if (
            member.get("optional") and type_ != "float"
        ):  # DirectMLSchema.h marks one number so, which cannot be left out
            each["optional"] = True
        if count is not None and (type_.endswith("_array") or type_ in ("inputs", "outputs")):
            each["count"] = count
        made.append(each)
        if name.endswith("Count") and type_ == "uint":
            count = name
    return made


def _numbers(words: str) -> list[int]:
    """Read the heading of a table, such as `AVERAGE, L2, LOG_SUM, and LOG_SUM_EXP`."""
    return [_REDUCE_FUNCTIONS.index(word) for word in re.split(r",? and |, ", words)]


def kernels_file(source: Facts, table: Facts, registered: Mapping[str, list[Facts]]) -> str:
    """Return onnxruntime_kernels.json: the DirectML provider's kernels for the operators of ONNX's default domain that the installed onnx
    knows, and under `others` what the DirectML provider registers beside them.

    A kernel's types are those that the table names and ONNX's definition allows: the table names types of
    other versions, too.
    """
    schemas: dict[str, dict[int, onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            schemas.setdefault(schema.name, {})[schema.since_version] = schema
    newest = max(
        first for rows in table[_CPU]["ai.onnx"].values() for row in rows for first in row["opsets"] if first
    )
    head = source | {"onnx": onnx.__version__, "newest_opset": newest, "others": _others(schemas, registered)}
    operators = {
        name: _kernels_of(name, dict(sorted(found.items())), table, registered)
        for name, found in sorted(schemas.items())
    }
    return _lines(head, operators)


def _others(
    schemas: Mapping[str, Mapping[int, onnx.defs.OpSchema]], registered: Mapping[str, list[Facts]]
) -> Facts:
    """Return the registrations of operators that ONNX's default domain does not have, or no longer: what the
    kernels create, and the element types of the first type parameter."""
    made: Facts = {}
    for name, rows in sorted(registered.items()):
        if name in schemas:
            continue
        types = {each for row in rows for each in next(iter(row["types"].values()), ())}
        creates = {each: None for row in rows for each in row["creates"]}
        made[name] = {"creates": list(creates), "types": sorted(types)}
    return made


def _kernels_of(
    name: str, schemas: dict[int, onnx.defs.OpSchema], table: Facts, registered: Mapping[str, list[Facts]]
) -> Facts:
    made: Facts = {"versions": list(schemas)}
    made["inputs"] = grouped((version, {"inputs": _formal(schema)}) for version, schema in schemas.items())
    served = (
        (version, {"types": allowed(row["types"], schema)})
        for version, schema in schemas.items()
        for row in table[_DIRECTML]["ai.onnx"].get(name, [])
        if _serves(row["opsets"], version)
    )
    if found := grouped(served):
        made["kernels"] = found
    placed = (
        (row["since"], _placement(row, schemas[row["since"]]))
        for row in registered.get(name, [])
        if row.get("since") in schemas
    )
    if found := grouped(placed):
        made["directml"] = found
    return made


def _serves(opsets: list[int | None], version: int) -> bool:
    """Say whether a kernel of these opsets serves a version of the definition; an open end serves the version
    that it names alone."""
    first, last = opsets
    assert first is not None
    return version == first if last is None else first <= version <= last


def _formal(schema: onnx.defs.OpSchema) -> list[list[str]]:
    return [
        [formal.name, formal.type_str if formal.type_str in _constraints(schema) else formal.name]
        for formal in schema.inputs
    ]


def _constraints(schema: onnx.defs.OpSchema) -> dict[str, list[str]]:
    return {
        each.type_param_str: [type_text(text) for text in each.allowed_type_strs]
        for each in schema.type_constraints
    }


def allowed(named: Mapping[str, list[str]], schema: onnx.defs.OpSchema) -> dict[str, list[str]]:
    """Return the types by type parameter, and for an input that has no parameter by its name."""
    found = _constraints(schema)
    for formal in schema.inputs:
        if formal.type_str not in found:
            found[formal.name] = [type_text(formal.type_str)]
    parameters = dict(_formal(schema))
    given = {parameters.get(name, name): set(types) for name, types in named.items()}
    return {
        name: sorted(each for each in types if each in given.get(name, types))
        for name, types in sorted(found.items())
    }


def type_text(text: str) -> str:
    inner = text
    for name, dtype in (("float", "float32"), ("double", "float64")):
        inner = inner.replace(f"tensor({name})", f"tensor({dtype})")
    return re.sub(r"\btensor\((\w+)\)", r"\1", inner)


def _placement(row: Facts, schema: onnx.defs.OpSchema) -> Facts:
    made: Facts = {"creates": row["creates"]}
    if constants := row.get("constant_cpu_inputs"):
        made["constants"] = [schema.inputs[place].name for place in constants if place < len(schema.inputs)]
    for key in ("graph", "query", "dml_target_version"):
        if key in row:
            made[key] = row[key]
    return made


def grouped(rows: Iterable[tuple[int, Facts]]) -> list[Facts]:
    """Join neighbouring versions of which the same is said."""
    made: list[Facts] = []
    for version, said in rows:
        if made and {key: value for key, value in made[-1].items() if key != "versions"} == said:
            made[-1]["versions"].append(version)
        else:
            made.append({"versions": [version], **said})
    return made


def _lines(head: Facts, operators: Facts) -> str:
    """Write compact JSON with one operator a line, so that a change of one operator is a change of one
    line."""
    lines = ",\n".join(f"{_json(name)}:{_json(entry)}" for name, entry in operators.items())
    return _json(head)[:-1] + ',\n"operators":{\n' + lines + "\n}}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
