"""StringNormalizer: texts without stop words, in upper or lower case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import UNKNOWN, Call, Family, Operator, Shape, Undefined, ValueKind, value_kinds
from harness.operators.formulas import decided

# Y = change(those of X that are no stop word), in their order; one empty text where none is left
# Which letters beyond ASCII have a case, and which, the locale says, and that is the machine's.

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_TO_UPPER, _TO_LOWER = str.maketrans(_LOWER, _UPPER), str.maketrans(_UPPER, _LOWER)
_LETTERS = frozenset((_TO_UPPER | _TO_LOWER).keys())


def _ascii_lower(text: str) -> str:
    return text.translate(_TO_LOWER)


_ALIKE: tuple[Callable[[str], str], ...] = (_ascii_lower, str.lower, str.upper, str.casefold)
"""Ways in which a locale may see past case; in the first of them ASCII alone has any."""
ACTIONS = ("NONE", "LOWER", "UPPER")
KINDS = value_kinds("words", "caseless", "letters", "stopwords", "empty_texts", "lengths")
"""words: stop words and what is nearly one, in ASCII and in several cases; caseless: signs, digits, ideographs
and zeros; letters: beyond ASCII, with a case; stopwords: nothing but stop words; empty_texts: nothing but these;
lengths: of letters of both cases, as many as powers of 2 and one more or less."""
_WORDS = (
    "monday", "Monday", "MONDAY", "mon", "tuesday", "Tuesday", "a", "A", "the", "The", "x", "Z", "it's 7", "", "Conversion Error",
)  # fmt: skip
_CASELESS = (
    "7", "--", "", " ", "\u4e2d\u6587", "\U0001f600", "\U0001f600\U0001f601\U0001f602", "\u0e01", "\0", "1\x002",
    "\t\n", "[@`{", "\u05d0",
)  # fmt: skip
_OTHER_LETTERS = (
    "\u00e9", "\u00c9t\u00e9", "\u00df", "\u0130", "\u017f", "\u212a", "\u03a3\u03c2", "\u0416", "\u00ff", "a", "B",
)  # fmt: skip
_LENGTHS = tuple(2**n + more for n in (3, 4, 5, 6, 8, 10, 12) for more in (-1, 0, 1))


def string_normalizer(
    X: Array,  # noqa: N803 - as ONNX calls it
    case_change_action: str,
    is_case_sensitive: int,
    stopwords: Sequence[str] = (),
) -> Array:
    """Remove and change by the formula above; Undefined where a locale decides."""
    kept = [text for text in X.reshape(-1).tolist() if not _stops(text, stopwords, bool(is_case_sensitive))]
    changed = [_changed(text, case_change_action) for text in kept] or [""]
    return np.array(changed, object).reshape(*X.shape[:-1], len(changed))


def _stops(text: str, stopwords: Sequence[str], is_case_sensitive: bool) -> bool:
    if is_case_sensitive:
        return text in stopwords
    found = {any(alike(text) == alike(word) for word in stopwords) for alike in _ALIKE}
    if len(found) > 1:
        raise Undefined("which letters beyond ASCII are alike but for their case")
    return found.pop()


def _changed(text: str, action: str) -> str:
    if action == "NONE":
        return text
    if any(char.lower() != char or char.upper() != char for char in text if ord(char) not in _LETTERS):
        raise Undefined("what the case of letters beyond ASCII is")
    return text.translate(_TO_LOWER if action == "LOWER" else _TO_UPPER)


class Normalizing(Family):
    """One row of texts, by what they have of case and of stop words."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"X": KINDS}

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether there are stop words to choose from."""
        return kind != "stopwords" or bool(call.attributes.get("stopwords"))

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose texts by kind."""
        found = [_text(kind, n, call) for n in raw.reshape(-1).tolist()]
        return np.array(found, object).reshape(raw.shape)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules on the shape and the action; a locale, where case is changed or compared."""
        shape = call.first.shape
        if len(shape) not in (1, 2) or shape[:-1] not in ((), (1,)) or not shape[-1]:
            return "X has the shape [C] or [1, C], and C > 0"
        if call.attributes["case_change_action"] not in ACTIONS:
            return "case_change_action is LOWER, UPPER or NONE"
        compared = call.attributes.get("stopwords") and not call.attributes["is_case_sensitive"]
        unsaid = "locale" not in call.attributes and (
            compared or call.attributes["case_change_action"] != "NONE"
        )
        return "which locale stands where none is given" if unsaid else None

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the count of texts that are left."""
        return ((*call.first.shape[:-1], UNKNOWN),)


def _text(kind: str, drawn: int, call: Call) -> str:
    """Choose one text."""
    if kind in ("caseless", "letters"):
        texts = _CASELESS if kind == "caseless" else _OTHER_LETTERS
        return texts[drawn % len(texts)]
    if kind == "empty_texts":
        return ""
    if kind == "lengths":
        return "".join(
            chr(((drawn >> n % 25) + n) % 26 + (65 if drawn >> n % 31 & 1 else 97))
            for n in range(_LENGTHS[drawn % len(_LENGTHS)])
        )
    words = call.parameter("stopwords") or ()
    if not words or (kind == "words" and drawn >> 16 & 1):
        return _WORDS[drawn % len(_WORDS)]
    word = str(words[drawn % len(words)])
    nearly = (word + "s", word[:-1], f" {word}", f"{word}\0", word[::-1])
    alike = (word, word.upper(), word.lower())
    if kind == "words":
        return (*alike, *nearly)[drawn >> 20 & 7]
    return word if call.attributes["is_case_sensitive"] else alike[(drawn >> 20) % 3]


OPERATOR = Operator("StringNormalizer", Normalizing(), decided(string_normalizer))
