"""Finds the web page of a document that a spec names as the source of a case."""

from __future__ import annotations

import re
from collections.abc import Container

_PAGES = (
    (re.compile(r"(https://[^\s,;)]+)"), "{}"),
    (re.compile(r"ONNX, (docs/\w+\.md)"), "https://github.com/onnx/onnx/blob/main/{}"),
    (re.compile(r"IEEE 754-2019"), "https://doi.org/10.1109/IEEESTD.2019.8766229"),
)
_OPERATOR = re.compile(r"ONNX ([A-Z]\w*)")
_STRUCTURE = re.compile(r"DML_[A-Z0-9_]+_DESC\b")


def document(source: str, operators: Container[str]) -> str:
    """Return the address of the document that a text names, empty if it names none: ONNX's page of one of
    `operators`, Microsoft's page of a DirectML structure, or an address in the text."""
    for pattern, page in _PAGES:
        if found := pattern.search(source):
            return page.format(*found.groups())
    if (found := _OPERATOR.match(source)) and found[1] in operators:
        return f"https://onnx.ai/onnx/operators/onnx__{found[1]}.html"
    if found := _STRUCTURE.match(source):
        return f"https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-{found[0].lower()}"
    return ""
