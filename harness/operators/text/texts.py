"""Operators of text: StringConcat, StringSplit, RegexFullMatch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import UNKNOWN, Call, Family, Operator, Shape, Undefined, ValueKind, value_kinds
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import decided

# StringConcat:   Z = X followed by Y, after broadcasting
# StringSplit:    Y[..., n] = the n-th part of X between delimiters, "" where there are fewer; Z = how many there are;
#                 without a delimiter between runs of white space, of which none is at the ends
# RegexFullMatch: Y = whether the pattern matches all of X

_TOKENS = ("a", "bc", "\u00e9", "\u4e2d\u6587", "\U0001f600", "word", "7", "")
_BETWEEN = (" ", ".", "-", "--", "  ", ",", "ab", "\u00e9")
_SAMPLES = (
    "a", "ab", "abc", "abcd", "ABC", "b", "12", "123", "1234", "a1", "a b", "\u00e9", "\u00e9a", "\u4e2d\u4e2d", "\U0001f600",
    "www.a.com", "www.a.org", "a\nb", "a\0b", "aaaaaaaaaaaaaaaaaaaaaaaab", "longer text, so that it is not stored in place",
)  # fmt: skip
TEXTS = value_kinds("ordinary", "words", "spaced", "tabs", "plain", "other_spaces", "empty_texts")
"""ordinary: of a list of short and long texts; words: up to four with separators of _BETWEEN between them; spaced:
words between spaces, at the ends too; tabs: between tabs and ends of lines; plain: letters and one space between
them; other_spaces: white space beyond ASCII; empty_texts: nothing but these, which no other kind has."""
_OTHER_SPACE = re.compile(r"[^\S \t\r\n]")
_RE2_ALONE = re.compile(r"\[:|\[[^\]]*\\S|\\[pPQEzCB]|\\x\{|\\[0-7]{2}|\(\?<[a-zA-Z]|\(\?[a-zA-Z]*[-U]|\{,")
"""What RE2's expressions have and Python's have not, or read otherwise: classes by name, quoted text, octal digits, flags."""
_NOT_RE2 = re.compile(
    r"\(\?(?!P<|:|[ims]+[:)])|\\[1-9ZuUN]|[*+?}]\+|\{(?:100[1-9]|10[1-9]\d|1[1-9]\d\d|[2-9]\d{3}|\d{5,})"
)
"""What Python's expressions have and RE2's have not: lookaround, references, other flags, possessive quantifiers, more than
1,000 repetitions."""
_FOLDED = re.compile("[\u017f\u212a]")
"""Letters beyond ASCII that are k and s but for their case."""
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_SPACE = r"\t\n\f\r "


def string_concat(x: Array, y: Array) -> Array:
    """Join by the formula above."""
    return np.asarray(x + y, object)


def string_split(x: Array, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Array, Array]:
    """Split by the formula above; Undefined where ONNX leaves the parts open."""
    most = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, most) for text in x.reshape(-1).tolist()]
    for text, each in zip(x.reshape(-1).tolist(), parts, strict=True):
        if delimiter and not text:
            raise Undefined("how many parts an empty text has")
        if not delimiter and 0 <= most < len(each) and text != text.rstrip():
            raise Undefined("whether white space behind the last split stays")
        if not delimiter and _OTHER_SPACE.search(text):
            raise Undefined("which characters are white space")
    counts = np.array([len(each) for each in parts], np.int64)
    found = np.full((len(parts), counts.max(initial=0)), "", object)
    for row, each in zip(found, parts, strict=True):
        row[: len(each)] = each
    return found.reshape(*x.shape, found.shape[1]), counts.reshape(x.shape)


def regex_full_match(x: Array, call: Call) -> Array:
    """Match by the formula above; classes hold ASCII alone, as RE2's do. Undefined of a pattern that Python has no words for."""
    pattern = call.parameter("pattern")
    if not isinstance(pattern, str):
        raise Undefined("what matches without a pattern")
    folded = "(?i" in pattern and (not pattern.isascii() or _FOLDED.search("".join(x.reshape(-1))))
    if _RE2_ALONE.search(pattern) or folded:
        raise Undefined("what a pattern matches that only RE2 reads")
    compiled = re.compile(
        "".join(_as_python(part.group(), pattern) for part in _PART.finditer(pattern)), re.ASCII
    )
    return np.array([compiled.fullmatch(text) is not None for text in x.reshape(-1)], bool).reshape(x.shape)


def _as_python(part: str, pattern: str) -> str:
    """Return what Python's expressions have for a part of RE2's: its white space, and the end of a text."""
    if part == "$":
        return part if "(?m" in pattern else r"\Z"
    inside = part.startswith("[")
    return part.replace(r"\s", _SPACE if inside else f"[{_SPACE}]").replace(r"\S", f"[^{_SPACE}]")


class Texts(Family):
    """One input of text."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"X": TEXTS}

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose texts by kind."""
        return np.array([_text(kind, n) for n in raw.reshape(-1).tolist()], object).reshape(raw.shape)

    def output_count(self, operator: Operator, call: Call) -> int:
        """All that the operator has."""
        return 2 if operator.name == "StringSplit" else 1

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shape of X; of parts with one dimension more, whose extent the texts decide."""
        x = call.first.shape
        return ((*x, UNKNOWN), x) if self.output_count(operator, call) > 1 else (x,)


def _text(kind: str, drawn: int) -> str:
    """Choose one text."""
    if kind in ("ordinary", "empty_texts"):
        return _SAMPLES[drawn % len(_SAMPLES)] if kind == "ordinary" else ""
    between = {
        "words": _BETWEEN,
        "spaced": (" ", "  ", "   "),
        "tabs": ("\t", " \n ", "\r\n"),
        "plain": (" ",),
        "other_spaces": ("\u00a0", "\u3000", "\x0b", "\x1f"),
    }[kind]
    texts = _TOKENS if kind == "words" else tuple(filter(None, _TOKENS))
    pieces = [
        texts[drawn >> 3 * n & 7 if kind == "words" else (drawn >> 3 * n & 7) % len(texts)] for n in range(4)
    ]
    joined = pieces[0]
    for n, piece in enumerate(pieces[1 : 1 + (drawn >> 12) % 4]):
        joined += between[(drawn >> 16 + 3 * n) % len(between)] + piece
    return f" {joined}  " if kind == "spaced" and drawn >> 30 & 1 else joined or "x"


def _no_pattern(call: Call) -> str | None:
    pattern = str(call.parameter("pattern"))
    if _RE2_ALONE.search(pattern):
        return None
    try:
        re.compile(pattern, re.ASCII)
    except re.error:
        return "pattern is valid RE2 syntax"
    return "pattern is valid RE2 syntax" if _NOT_RE2.search(pattern) else None


TEXT = Texts()
OPERATORS = (
    Operator("StringConcat", ELEMENTWISE, decided(string_concat)),
    Operator("StringSplit", TEXT, decided(string_split)),
    Operator("RegexFullMatch", TEXT, decided(regex_full_match), _no_pattern),
)
