"""docs/OperatorKernels.md of ONNX Runtime: which kernels each provider has."""

from __future__ import annotations

import re

from tools.refresh_directml.documents import Facts

PATH = "docs/OperatorKernels.md"
_NAMES = {"float": "float32", "double": "float64"}


def kernels(text: str) -> Facts:
    """Return {provider: {domain: {operator: [{opsets: [first, last or None], types: {parameter:
    [types]}}]}}}."""
    found: Facts = {}
    provider: Facts = {}
    domain: Facts = {}
    rows: list[Facts] = []
    for line in text.split("\n"):
        if head := re.match(r"## Operators implemented by (\w+)", line):
            provider = found.setdefault(head[1], {})
        elif head := re.match(r"\|\*\*Operator Domain:\*\* \*([\w.]+)\*", line):
            domain = provider.setdefault(head[1], {})
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            opsets = _opsets(cells[2]) if len(cells) == 4 else None
            if opsets is None:
                continue
            if cells[0]:
                rows = domain.setdefault(cells[0], [])
            rows.append({"opsets": opsets, "types": _types(cells[3])})
    return found


def _opsets(text: str) -> list[int | None] | None:
    found = re.fullmatch(r"(\d+)\+|(\d+)|\[(\d+), (\d+)\]", text)
    if found is None:
        return None
    if found[1]:
        return [int(found[1]), None]
    return [int(found[2])] * 2 if found[2] else [int(found[3]), int(found[4])]


def _types(text: str) -> dict[str, list[str]]:
    found = {}
    for part in re.split(r"<br/?>", text):
        if named := re.match(r"\s*\*\*(\w+)\*\* = (.*)", part):
            plain = [_NAMES.get(each, each) for each in re.findall(r"(?<![\w(])tensor\((\w+)\)", named[2])]
            found[named[1]] = plain + [
                f"seq({_NAMES.get(each, each)})" for each in re.findall(r"seq\(tensor\((\w+)\)\)", named[2])
            ]
    return found
