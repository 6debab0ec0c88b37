"""Reads a YAML file as plain data and remembers the line of each part.

The YAML is a small, safe subset: one document of mappings, sequences and scalars with the scalar rules of
YAML 1.2 (`no` is a string). Refused: anchors and aliases, tags, directives, duplicate or non-string keys,
integers that other readers take for octal, text that is not UTF-8, and anything too large or too deep.
Sequences become tuples; a plain `0x7fc00001` stays a string, since in a spec it means a bit pattern.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from yaml import events
from yaml.error import MarkedYAMLError, YAMLError

from harness.model.errors import SpecError
from harness.model.plain_file import NotPlain, PlainFile

_LOADER: Any = getattr(
    yaml, "CLoader", yaml.Loader
)  # only its parser is used, which makes no objects; libyaml's where the wheel has it

MAX_BYTES = 1 << 20
MAX_VALUES = 100_000
"""Keys and values in a file: each takes 10 µs to read with libyaml and 0.2 ms without, so that the first too
many ends the reading soon."""
MAX_DEPTH = 40
_MAX_DIGITS = 400
_MAX_LISTED = 20
_MAX_SHOWN = 60
_MAX_PROBLEMS = 100

Key = str | int
KeyPath = tuple[Key, ...]

_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_OCTAL = re.compile(r"[-+]?0(o[0-7]+|[0-9]+)\Z")
_WORDS: dict[str, object] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
_WORDS |= {w: float("nan") for w in (".nan", ".NaN", ".NAN")}
_WORDS |= {sign + w: float(sign + "inf") for sign in ("", "+", "-") for w in (".inf", ".Inf", ".INF")}


def shown(value: object) -> str:
    """Write a value from a file so that it fits into one line of a message."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, (tuple, dict)):
        return "a list" if isinstance(value, tuple) else "a mapping"
    text = value if isinstance(value, str) else str(value)
    short = text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
    return repr(short) if isinstance(value, str) else short


def show_path(path: KeyPath) -> str:
    """Write a path into a file as `cases[2].attributes.axes`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,60}", key)
            text += ("." if text else "") + (key if plain else shown(key))
    return text


def suggestion(given: str | None, allowed: Iterable[str]) -> str:
    """Return `; did you mean 'x'?; allowed: a, b`, as far as there are suggestions."""
    names = [str(name) for name in allowed]
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.6) if given and len(given) <= 100 else []
    if not near and given:
        near = [name for name in names if name.lower() == given.lower()]
    text = f"; did you mean {near[0]!r}?" if near else ""
    return text + (f"; allowed: {', '.join(names)}" if 0 < len(names) <= _MAX_LISTED else "")


@dataclass(frozen=True)
class Source:
    """A file's data (`tree`) and the line of each part of it; `label` is how messages name the file."""

    path: Path
    label: str
    tree: Any
    lines: Mapping[KeyPath, int]
    digest: bytes = b""
    """SHA-256 of the bytes that were read."""

    def known(self, path: KeyPath) -> KeyPath:
        """Return the part of a path that exists in the file, without keys that do not."""
        found: KeyPath = ()
        for key in path:
            if (*found, key) in self.lines:
                found = (*found, key)
        return found

    def where(self, *path: Key) -> str:
        """Return `file:line` of a path, or of the nearest part around it."""
        return f"{self.label}:{self.lines[self.known(path)]}"

    def problem(
        self, path: KeyPath, what: str, *, given: str | None = None, allowed: Iterable[str] = ()
    ) -> str:
        """Return one line: `file:line: path: what; did you mean 'x'?; allowed: a, b`."""
        while path and isinstance(path[-1], int) and path not in self.lines:
            path = path[:-1]  # a single value stands where a list may
        at = f"{show_path(path)}: " if path else ""
        return f"{self.where(*path)}: {at}{what}{suggestion(given, allowed)}"

    def by_line(self, problems: Iterable[str]) -> list[str]:
        """Return this file's problems, each once, in the order of their lines, and not thousands of them."""
        return _few(
            self.label,
            sorted(
                dict.fromkeys(problems), key=lambda text: int(text[len(self.label) + 1 :].partition(":")[0])
            ),
        )


def _few(label: str, problems: list[str]) -> list[str]:
    more = len(problems) - _MAX_PROBLEMS
    if more <= 0:
        return problems
    return [*problems[:_MAX_PROBLEMS], f"{label}:1: {more:,} more problems in this file"]


class _Refused(Exception):
    """A part of the file is not in the subset."""

    def __init__(self, line: int, what: str) -> None:
        self.line, self.what = line, what


def label_of(path: Path) -> str:
    """Name a file as the user would: relative to the current folder where it lies below it."""
    try:
        return Path(os.path.abspath(path)).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return str(path)


def read(path: Path) -> Source:
    """Read a YAML file; raise SpecError with its problems, one for each place up to where reading must
    stop."""
    return parse(contents(path), path=path, label=label_of(path))


def contents(path: Path) -> bytes:
    """Return the bytes of a YAML file; raise SpecError where it cannot be read, or is too large."""
    label = label_of(path)
    try:
        with PlainFile(path) as file:
            if file.size > MAX_BYTES:
                raise SpecError(
                    [
                        f"{label}:1: the file is larger than {MAX_BYTES:,} bytes; split it, or use `fill` for large tensors"
                    ]
                )
            return file.readall()
    except NotPlain as error:
        raise SpecError([f"{label}: {error.strerror}, because it is read more than once"]) from error
    except OSError as error:
        raise SpecError([f"{label}: cannot read: {error.strerror or error}"]) from error


def parse(data: bytes, *, path: Path, label: str) -> Source:
    """Parse the bytes of a YAML file; raise SpecError as `read` does."""
    builder = _Builder()
    try:
        if len(data) > MAX_BYTES:
            raise _Refused(1, f"the file is larger than {MAX_BYTES:,} bytes")
        tree = builder.document(_decode(data))
    except _Refused as refused:
        builder.problems.append((refused.line, refused.what))
    except MarkedYAMLError as error:
        builder.problems.append(_malformed(error, data.splitlines()))
    except (
        YAMLError,
        ValueError,
        IndexError,
        AttributeError,
        AssertionError,
        TypeError,
        KeyError,
        RecursionError,
    ) as error:
        # The parser's own defects on odd input (an empty directive, a truncated escape) come out as these.
        builder.problems.append((1, f"not YAML: {' '.join(str(error).split()) or type(error).__name__}"))
    if builder.problems:
        raise SpecError(_few(label, [f"{label}:{line}: {what}" for line, what in sorted(builder.problems)]))
    return Source(path, label, tree, builder.lines, sha256(data).digest())


def _malformed(error: MarkedYAMLError, lines: list[bytes]) -> tuple[int, str]:
    """Return the line where the parser stopped, at most the last one, and the parser's message."""
    mark, began = error.problem_mark, error.context_mark
    line = min(mark.line + 1, max(1, len(lines))) if mark else 1
    what = f"not YAML: {error.problem}"
    if (
        mark
        and line == mark.line + 1
        and lines
        and lines[mark.line].decode(errors="replace")[mark.column :][:1] == "\t"
    ):
        what += " (a tab: indent with spaces)"
    if error.context and began and began.line + 1 < line:
        what += f" {error.context} that begins on line {began.line + 1}"
    return line, what


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Refused(
            line, f"not UTF-8 text: byte 0x{data[error.start]:02x}; save the file as UTF-8"
        ) from error
    bad = re.search(
        r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]", text
    )
    if bad:
        raise _Refused(
            text.count("\n", 0, bad.start()) + 1,
            f"not text: the control character U+{ord(bad[0]):04X}; in a string write it as an escape",
        )
    return text


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Builder:
    """Turns parser events into plain data; keeps lines and the problems that reading can go on after."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {(): 1}
        self.problems: list[tuple[int, str]] = []
        self._values = 0

    def document(self, text: str) -> Any:
        stream: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        tree: Any = None
        documents = 0
        for event in stream:
            if isinstance(event, events.DocumentStartEvent):
                documents += 1
                line = _line(event)
                if documents > 1:
                    raise _Refused(line, "more than one YAML document in the file")
                if event.version or event.tags:
                    raise _Refused(line, "YAML directives are not allowed")
                tree = self.node(next(stream), stream, ())
        if tree is None and not self.problems:
            raise _Refused(1, "the file is empty")
        return tree

    def node(self, event: Any, stream: Iterator[Any], path: KeyPath) -> Any:
        line = _line(event)
        self._values += 1
        if self._values > MAX_VALUES:
            raise _Refused(
                line,
                f"more than {MAX_VALUES:,} keys and values in one file; split it, or use `fill` for large tensors",
            )
        self.lines.setdefault(path, line)
        if isinstance(event, events.AliasEvent) or event.anchor is not None:
            raise _Refused(line, "anchors and aliases are not allowed; write the value out")
        if event.tag is not None:
            raise _Refused(line, f"tags such as {shown(event.tag)} are not allowed")
        if len(path) > MAX_DEPTH:
            raise _Refused(line, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, events.ScalarEvent):
            if event.implicit[0]:
                return self.checked(line, _scalar, event.value)
            return self.checked(line, _text, event.value)
        if isinstance(event, events.MappingStartEvent):
            return self.mapping(stream, path)
        return self.sequence(stream, path)

    def sequence(self, stream: Iterator[Any], path: KeyPath) -> tuple[Any, ...]:
        items: list[Any] = []
        while not isinstance(event := next(stream), events.SequenceEndEvent):
            items.append(self.node(event, stream, (*path, len(items))))
        return tuple(items)

    def mapping(self, stream: Iterator[Any], path: KeyPath) -> dict[str, Any]:
        items: dict[str, Any] = {}
        first: dict[str, int] = {}
        while not isinstance(event := next(stream), events.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, events.ScalarEvent):
                raise _Refused(line, "a key must be a word, not a list or a mapping")
            key = self.node(event, stream, path)
            if not isinstance(key, str):
                raise _Refused(
                    line, f"a key must be a word, not {shown(event.value)}; quote it if you mean text"
                )
            if key in first:
                self.problems.append(
                    (line, f"{show_path((*path, key))}: the key is used twice; first on line {first[key]}")
                )
            first.setdefault(key, line)
            self.lines.setdefault((*path, key), line)
            items[key] = self.node(next(stream), stream, (*path, key))
        return items

    def checked(self, line: int, convert: Callable[[str], Any], text: str) -> Any:
        try:
            return convert(text)
        except _Refused as refused:
            self.problems.append((line, refused.what))
            return None


def _text(text: str) -> str:
    if re.search("[\ud800-\udfff]", text):
        raise _Refused(0, "a string with half of a surrogate pair is not text")
    return text


def _scalar(text: str) -> object:
    """Resolve a plain scalar by the core schema of YAML 1.2, without what people and readers disagree on."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _MAX_DIGITS and (_INT.match(text) or _FLOAT.match(text)):
        raise _Refused(0, f"a number of more than {_MAX_DIGITS} digits")
    if _OCTAL.match(text):
        raise _Refused(
            0,
            f"{shown(text)} is octal to some readers and decimal to others; write a decimal number without leading zeros",
        )
    if _INT.match(text):
        if text == "-0":
            raise _Refused(0, "'-0' is the integer 0; write -0.0 for the negative zero of a float")
        return int(text)
    if _FLOAT.match(text):
        value = float(text)
        if abs(value) == float("inf"):
            raise _Refused(0, f"{shown(text)} is too large for float64; write .inf if you mean infinity")
        if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
            raise _Refused(0, f"{shown(text)} is too small for float64; write 0.0 if you mean zero")
        return value
    return _text(text)
