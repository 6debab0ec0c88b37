"""Makes text from specs, errors and tensors safe to show: one line, no control or direction marks, no machine
paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from harness.model.errors import shown

_AFTER_ROOT = r"(?:file:/{2,3})?(?:[A-Za-z]:[\\/]|/|\\\\)(?:[^\s\\/:*?\"'<>|()\[\],;]+[\\/])+([^\s\\/:*?\"'<>|()\[\],;]*)"
_NAME = "\xa0"
"""Stands before a name that may look like a path; `line` makes it a blank or nothing."""
_BEFORE_NAME = r"(?<![Nn]ame:')(?<!name ')(?<!ode \()"  # as ONNX Runtime names a node
_PATH = re.compile(rf"(?<![\w.:/\\{_NAME}]){_BEFORE_NAME}{_AFTER_ROOT}")
_PATH_OF_NO_OPTION = re.compile(rf"(?<![\w.:/\\={_NAME}]){_BEFORE_NAME}{_AFTER_ROOT}")
_LONG, _NODE = 4000, 200
_COMMAND = 6000
"""Characters of a command with the longest query."""
_PREAMBLE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : (Non-zero status code returned while running \S+ node\. Name:'[^']*' Status Message: )?"
)
_WHERE = re.compile(
    r"(?:\\[\w.]+)?!(?:\w+!)?[0-9A-F]{4,16}: (?:\(caller: [0-9A-F]{4,16}\) )?Exception\(\d+\) tid\([0-9a-f]+\) ?"
)
"""Where and as which of its exceptions Windows' own code met an error: addresses and counters that differ
from run to run."""
_HIDDEN = re.compile(  # spelled out, because Unicode's categories change between releases of Python
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Write characters that hide or reorder text as escapes; keep line ends and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: _escape(found[0]), text)


def one_line(text: str) -> str:
    """Write an id or a name as `visible` does, and on one line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def json_text(value: Any, *, indent: int = 0) -> str:
    """Write JSON with characters that hide or reorder text as escapes of JSON, which a reader undoes."""
    encoded = msgspec.json.encode(value)
    text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    return text if text.isascii() else _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _escape(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def without_paths(text: str, *, options: bool = False) -> str:
    """Shorten absolute paths to their last part, and leave addresses out: where they lay on one machine says
    nothing on another. `options` keeps the path of a target's option, by which two targets can differ."""
    return _WHERE.sub(" ", (_PATH_OF_NO_OPTION if options else _PATH).sub(lambda path: f"…/{path[1]}", text))


def node_name(text: str) -> str:
    """Return a name of a node that `line` keeps though it may look like a path, as exporters name nodes."""
    short = shown(text, _NODE)
    return f"{_NAME}{short}" if short.startswith("/") else short


def message(text: str, limit: int) -> str:
    """Make an error message fit to show, at most about `limit` characters long."""
    cut = text[: limit * 2]
    shown = visible(without_paths(cut).strip())
    if len(shown) <= limit and len(cut) == len(text):
        return shown
    return f"{shown[:limit]}… [{len(text):,} characters in the run file]"


def line(text: str, limit: int = 200, *, options: bool = False) -> str:
    """Make a message fit one line; how much is cut is said only where it is a lot."""
    shown = " ".join(visible(without_paths(text[: limit * 2], options=options).strip()).split())
    if len(shown) <= limit and len(text) <= limit * 2:
        return shown
    more = f" [{len(text):,} characters in the run file]" if len(text) > _LONG else ""
    return f"{shown[:limit].rstrip()}…{more}"


def whole(command: str) -> str:
    """Return a command that a report can show as it is typed; nothing for one that would be cut, or has a path of
    the machine."""
    return command if line(command, _COMMAND) == command else ""


def gist(text: str, limit: int = 240) -> str:
    """Make ONNX Runtime's message fit one line without what stands before every one of them; the error class
    says the same."""
    return line(_PREAMBLE.sub("", text[: limit * 4]), limit) if len(text) <= _LONG else line(text, limit)


def ranks(found: Iterable[int]) -> str:
    """Write ranks with runs of them folded: `1–4, 8`."""
    parts: list[list[int]] = []
    for rank in sorted(found):
        if parts and parts[-1][-1] == rank - 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)


_FAMILIES = (
    ("int8–int64", ("int8", "int16", "int32", "int64")),
    ("uint8–uint64", ("uint8", "uint16", "uint32", "uint64")),
    ("float16–float64", ("float16", "float32", "float64")),
)
"""Names of element types that often stand together."""


def folded_types(dtypes: Iterable[str]) -> list[str]:
    """Name element types, whole families by one name: `int8–int64`, `float32`."""
    left = list(dtypes)
    for name, family in _FAMILIES:
        if set(family) <= set(left):
            left[left.index(next(each for each in left if each in family))] = name
            left = [each for each in left if each not in family]
    return left
