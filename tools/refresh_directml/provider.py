"""What ONNX Runtime's DirectML provider registers, from the text of its sources.

`creates` names the DirectML operators that the source of a kernel names: alternatives, of which one call
takes one or several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tools.refresh_directml.checkout import Checkout
from tools.refresh_directml.documents import Facts

FOLDER = "onnxruntime/core/providers/dml/"
OPERATORS = FOLDER + "DmlExecutionProvider/src/Operators/"
REGISTRATION = OPERATORS + "OperatorRegistration.cpp"
VERSIONS = FOLDER + "OperatorAuthorHelper/OperatorVersions.h"
_SCALARS = (
    "Float32", "UInt4", "Int4", "UInt8", "Int8", "UInt16", "Int16", "Int32", "Int64", "Bool", "Float16", "Float64", "UInt32", "UInt64",
)  # fmt: skip
_DEFINED = re.compile(r"DML_OP_DEFINE_CREATION_FUNCTION\((\w+),\s*([^;]*)\);")
_CLASS = re.compile(r"(?:VersionedKernel<)?(\w+)")
_NO_OPERATORS = ("DESC", "INVALID", "TYPE", "GRAPH_NODE_DESC")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)

TypeSet = frozenset[str]


def registrations(checkout: Checkout) -> list[Facts]:
    """Return a row for each line of the provider's table of registrations."""
    return rows(
        checkout.text(REGISTRATION),
        since_versions(checkout.text(VERSIONS)),
        creations(checkout.text(name) for name in checkout.names(OPERATORS) if name.endswith((".cpp", ".h"))),
    )


def rows(
    text: str, since: Mapping[str, Mapping[int, Mapping[str, int]]], created: Mapping[str, list[str]]
) -> list[Facts]:
    """Read the table of OperatorRegistration.cpp; `since` and `created` are what the functions below
    return."""
    names, types = _lists(text, type_sets(text))
    found, target = [], None
    table = text[
        text.index("operatorRegistrationInformationTable[] =") : text.index(
            "MLOperatorEdgeDescription TensorEdgeDesc()"
        )
    ]
    for line in table.split("\n"):
        if condition := re.match(r"\s*#if DML_TARGET_VERSION >= (0x\w+)", line):
            target = condition[1]
        elif line.strip().startswith("#endif"):
            target = None
        match = re.match(r"\s*\{REG_INFO(\w*)\(\s*(\d+),\s*(\w+),\s*(.*)\)\}", line)
        if match is not None:
            found.append(
                _registration(match, names, types, since, created)
                | ({"dml_target_version": target} if target else {})
            )
    return found


def _registration(
    match: re.Match[str],
    names: Mapping[str, list[str]],
    types: Mapping[str, list[TypeSet]],
    since: Mapping[str, Mapping[int, Mapping[str, int]]],
    created: Mapping[str, list[str]],
) -> Facts:
    macro, version, name = match[1], int(match[2]), match[3]
    rest = re.sub(r"Aliases\((?:[^()]|\([^()]*\))*\),\s*", "", re.sub(r"/\*.*?\*/", "", match[4]))
    labels, allowed = (re.search(pattern, rest) for pattern in (r"(typeName\w+)", r"(supportedTypeList\w+)"))
    assert labels is not None
    assert allowed is not None
    domain = "com.microsoft.dml" if macro == "_MSDML" else "com.microsoft" if macro.startswith("_MS") else ""
    function = "Copy" if macro == "_COPY" else name + (str(version) if macro == "_VER" else "")
    row: Facts = {
        "operator": name,
        "domain": domain,
        "set": version,
        "since": since["Msft" if domain else "Onnx"].get(version, {}).get(name),
        "creates": created.get(function, []),
        "types": {
            label: sorted(each.lower() for each in kinds)
            for label, kinds in zip(names[labels[1]], types[allowed[1]], strict=False)
        },
    }
    if constant := re.search(r"requiredConstantCpuInputs\(([\d, ]+)\)", rest):
        row["constant_cpu_inputs"] = [int(number) for number in constant[1].split(",")]
    if "NotSupported" in rest:
        row["graph"] = False
    if query := re.search(r"\bQuery(\w+)", rest):
        row["query"] = query[1]
    return row


def type_sets(text: str) -> dict[str, TypeSet]:
    """Evaluate the enumeration SupportedTensorDataTypes: each of its names as a set of scalar types."""
    found = re.search(r"enum class SupportedTensorDataTypes[^{]*\{(.*?)\};", text, re.S)
    assert found is not None
    sets: dict[str, TypeSet] = {}
    for name, value in re.findall(r"(\w+)\s*=\s*([^,}]+)", re.sub(r"//[^\n]*", "", found[1])):
        if "<<" in value:
            sets[name] = frozenset([name] if name in _SCALARS else [])
        elif "static_cast" in value:
            sets[name] = frozenset(_SCALARS)
        else:
            sets[name] = frozenset[str]().union(*(sets[part.strip()] for part in value.split("|")))
    return sets


def _lists(text: str, sets: Mapping[str, TypeSet]) -> tuple[dict[str, list[str]], dict[str, list[TypeSet]]]:
    """Return the lists of type parameters and those of supported types, by the names of their variables."""
    names = {
        name: re.findall(r'"(\w+)"', body)
        for name, body in re.findall(r"(typeName\w+)\s*=\s*\{([^}]*)\}", text)
    }
    types: dict[str, list[TypeSet]] = {}
    for name, body in re.findall(
        r"(supportedTypeList\w+)\s*=\s*([^;]*);", re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    ):
        if not body.strip().startswith("{"):
            types[name] = types[body.strip()]
            continue
        entries = [entry for entry in body.strip("{} \n").split(",") if entry.strip()]
        types[name] = [
            frozenset[str]().union(
                *(sets[part] for part in re.findall(r"SupportedTensorDataTypes::(\w+)", entry))
            )
            for entry in entries
        ]
    return names, types


def since_versions(text: str) -> dict[str, dict[int, dict[str, int]]]:
    """Return {Onnx or Msft: {operator set: {operator: the version of its definition}}} of
    OperatorVersions.h."""
    found: dict[str, dict[int, dict[str, int]]] = {"Onnx": {}, "Msft": {}}
    for part in re.split(r"namespace (?=(?:Onnx|Msft)OperatorSet\d+\s*\{)", text)[1:]:
        head = re.match(r"(Onnx|Msft)OperatorSet(\d+)", part)
        assert head is not None
        found[head[1]][int(head[2])] = {
            name: int(version) for name, version in re.findall(r"sc_sinceVer_(\w+) = (\d+)", part)
        }
    return found


class _Source(NamedTuple):
    """One source file: its code without comments, the bodies of its classes and functions, and `using A =
    B`."""

    code: str
    classes: dict[str, str]
    functions: dict[str, str]
    aliases: dict[str, str]
    defined: list[tuple[str, str]]


def creations(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each creation function that sources define, the DirectML operators that its class names."""
    found: dict[str, list[str]] = {}
    for text in texts:
        code = _COMMENT.sub("", text)
        classes = {
            match[1] + (match[2] or ""): _block(code, match.end() - 1)
            for match in re.finditer(
                r"\b(?:class|struct)\s+(\w+)(<[^>{;]*>)?\s*(?:final\s*)?(?::[^{;]*)?\{", code
            )
        }
        functions = {
            match[1]: _block(code, match.end() - 1)
            for match in re.finditer(r"\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{", code)
        }
        source = _Source(
            code, classes, functions, dict(re.findall(r"using (\w+) = (\w+);", code)), _DEFINED.findall(code)
        )
        for name, target in source.defined:
            found[name] = sorted(dict.fromkeys(_created(target, source)))
    return found


def _created(target: str, source: _Source) -> list[str]:
    base = _class(target)
    arguments = target[target.index(base) + len(base) :]
    base = source.aliases.get(base, base)
    emits = _operators(arguments)
    special = [
        body
        for name, body in source.classes.items()
        if name.startswith(base + "<") and name[len(base) :].strip("<> ") in arguments
    ]
    own = source.classes.get(target.replace(" ", "")) or "".join(
        body for name, body in source.classes.items() if name == base
    )
    body = special[0] if special else own
    seen = _operators(body)
    if not seen and not emits and len({_class(each) for _, each in source.defined}) == 1:
        seen = _operators(source.code)
    for call in sorted(set(re.findall(r"\b(\w+)\(", body)) & set(source.functions)):
        if call != base and source.functions[call] not in body:
            seen = seen + _operators(source.functions[call])
    if reduce := re.search(r"DML_REDUCE_FUNCTION_(\w+)", arguments):
        return [f"DML_OPERATOR_{reduce[1]}" if reduce[1].startswith("ARG") else "DML_OPERATOR_REDUCE"]
    return emits if emits and not special else seen


def _class(target: str) -> str:
    found = _CLASS.match(target)
    assert found is not None
    return found[1]


def _operators(text: str) -> list[str]:
    names = re.findall(r"\bDML_OPERATOR_([A-Z0-9_]+)\b(?!_DESC)", text)
    names += re.findall(r"\bDML_(?!OPERATOR_)([A-Z0-9_]+)_OPERATOR_DESC\b", text)
    return [f"DML_OPERATOR_{name}" for name in dict.fromkeys(names) if name not in _NO_OPERATORS]


def _block(text: str, start: int) -> str:
    """Return the text from an opening brace to the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]
