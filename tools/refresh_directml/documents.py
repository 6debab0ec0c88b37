"""Microsoft's reference pages of DirectML: per operator its level, tables of tensor support, constraints and
aliasing.

What a page prints differently than the others is a remark and not a guess: remarks are shown, and the fact is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Facts = dict[str, Any]
_LEVEL = re.compile(r"DML_FEATURE_LEVEL_(\d+_\d+)")
_DTYPES = frozenset(
    [
        "FLOAT64",
        "FLOAT32",
        "FLOAT16",
        "INT64",
        "INT32",
        "INT16",
        "INT8",
        "INT4",
        "UINT64",
        "UINT32",
        "UINT16",
        "UINT8",
        "UINT4",
    ],
)
_KINDS = {
    "input": "input", "output": "output", "optional input": "optional_input", "optional output": "optional_output",
    "array of inputs": "inputs", "array of outputs": "outputs",
}  # fmt: skip
_ALIKE = {"DataType": "dtype", "DimensionCount": "dimension_count", "Sizes": "sizes"}


def level_key(level: str) -> tuple[int, ...]:
    """Sort key of a level such as `2_1`."""
    return tuple(map(int, level.split("_")))


def introduced(text: str, remarks: list[str]) -> str:
    """Return the level that a page says the operator was introduced in."""
    printed = re.findall(r"This operator was introduced in [`*]*DML_FEATURE_LEVEL_(\d+_\d+)", text)
    if not printed:
        remarks.append("no availability is printed")
    elif len(set(printed)) > 1:
        remarks.append(f"introduced in {' and in '.join(printed)}")
    return printed[-1] if printed else "1_0"


def tensor_support(text: str, first: str, remarks: list[str]) -> tuple[Facts, Facts]:
    """Return ({level: {tensor: row}}, {function: the same}) of the part `Tensor support`; a table without a
    level is of `first`."""
    start = re.search(r"^#+ *Tensor support[^\n]*$", text, re.M | re.I)
    if start is None:
        remarks.append("no tensor support")
        return {}, {}
    plain: Facts = {}
    functions: Facts = {}
    target, level = plain, first
    for line in text[start.end() :].split("\n"):
        if line.startswith("#"):
            found = _LEVEL.search(line)
            if found:
                level = found[1]
            elif line.startswith("### "):
                target, level = functions.setdefault(_plain(line.lstrip("# ")), {}), first
            elif line.startswith("## "):
                break
        elif line.startswith("|") and (cells := _cells(line)) and (row := _row(cells, remarks)) is not None:
            target.setdefault(level, {})[cells[0]] = row
    return _ordered(plain), {function: _ordered(tables) for function, tables in functions.items()}


def _ordered(tables: Facts) -> Facts:
    return dict(sorted(tables.items(), key=lambda item: level_key(item[0])))


def _cells(line: str) -> list[str]:
    cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
    return [] if cells[0].lower() in ("tensor", "") or set(cells[0]) <= set("- ") else cells


def _row(cells: list[str], remarks: list[str]) -> Facts | None:
    kind = _KINDS.get(cells[1].lower()) if len(cells) in (4, 5) else None
    if kind is None:
        remarks.append(f"a row that is not understood: {cells}")
        return None
    counts = re.fullmatch(r"(\d)(?:(?: to |-)(\d))?", cells[-2])
    if counts is None:
        remarks.append(f"{cells[0]}: DimensionCount {cells[-2]!r}")
        return None
    dtypes = [name.strip() for name in cells[-1].split(",") if name.strip()]
    if not dtypes:
        remarks.append(f"{cells[0]}: no data types are printed")
    if unknown := sorted(set(dtypes) - _DTYPES):
        remarks.append(f"{cells[0]}: data types {unknown}")
        return None
    row: Facts = {"kind": kind, "dims": [int(counts[1]), int(counts[2] or counts[1])], "dtypes": dtypes}
    if len(cells) == 5:
        row["shape"] = " ".join(cells[2].strip("{} ").replace(",", " , ").split()).replace(" ,", ",")
    return row


def constraints(text: str, unparsed: list[str]) -> list[Facts]:
    """Return the sentences `A, B and C must have the same DataType, …` as {same: [dtype, …], of: [A, B,
    C]}."""
    found = []
    for line in _section(text, "Tensor constraints").split("\n"):
        sentence = _plain(line.strip().lstrip("-*• ").strip())
        if not sentence:
            continue
        match = re.fullmatch(r"(.+?) must have the same ([A-Za-z, ]+?)\.?", sentence)
        names, alike = (_words(match[1]), _words(match[2])) if match else ([], [])
        if match and all(re.fullmatch(r"\w+", name) for name in names) and set(alike) <= set(_ALIKE):
            found.append({"same": [_ALIKE[each] for each in alike], "of": names})
        else:
            unparsed.append(sentence)
    return found


def aliasing(text: str) -> list[str] | str | None:
    """Return the inputs that the output may be bound over, `any`, or `see document`."""
    found = re.search(r"permitted to alias ([^\n.]*?) during binding", _plain(text))
    if found is None:
        return None
    named = re.findall(r"\b[A-Z]\w*Tensor\b", found[1])
    return named or ("any" if "input tensor" in found[1] else "see document")


def history(text: str) -> dict[str, Facts]:
    """Return per level the DirectML version that introduced it and the operators named as added
    (dml-feature-level-history.md)."""
    found: dict[str, Facts] = {}
    for part in re.split(r"^## (?=DML_FEATURE_LEVEL)", text, flags=re.M)[1:]:
        level = _LEVEL.search(part.split("\n")[0])
        assert level is not None
        version = re.search(r"Introduced in DirectML version ([\d.]+\d)", part)
        added = _added(re.split(r"\n(?=[A-Z*])", part))
        found[level[1]] = {"directml": version[1] if version else None, "added": sorted(added)}
    return found


def _added(blocks: Iterable[str]) -> set[str]:
    names: set[str] = set()
    for block in blocks:
        head = block.split("\n")[0]
        if "Added" in head and "support" not in head:
            names.update(re.findall(r"DML_OPERATOR_(?!TYPE\b)[A-Z0-9_]+", block))
    return names


def _words(text: str) -> list[str]:
    return re.split(r",? and |, ", text)


def _section(text: str, name: str) -> str:
    found = re.search(rf"^#+ *(?:-)?{name}[^\n]*\n(.*?)(?=^##? [^#]|\Z)", text, re.M | re.S | re.I)
    return found[1] if found else ""


def _plain(text: str) -> str:
    return (
        re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
        .replace("*", "")
        .replace("`", "")
        .replace("\\", "")
        .strip()
    )
