"""WordConvEmbedding and Tokenizer: vectors of words that are lists of characters, and texts cut into words."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import UNKNOWN, Call, Operator, Shape, Undefined
from harness.operators.bounded import Bounded, tanh, where
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded, moved

# WordConvEmbedding: Y[s, m] = max over p of tanh(B[m] + sum over i and e of W[m, 0, i, e] C[Sequence[s, p + i], e]), over the windows
#   within the characters of word s, which are followed by zeros, or the first window; no document says what a word without
#   a character is
# Tokenizer: the parts of each text between matches of separators, or the matches of tokenexp, of mincharnum characters or more; with mark
#   between 0x02 and 0x03; pad_value behind, up to the length of the longest


def word_conv_embedding(Sequence: Array, W: Bounded, B: Bounded, C: Bounded) -> Bounded:
    """Embed by the formula above."""
    filters, _, width, size = W.shape
    lengths = (Sequence > 0).sum(1)
    if ((Sequence > 0) != (np.arange(Sequence.shape[1]) < lengths[:, None])).any():
        raise Undefined("a word with zeros between its characters")
    starts = np.arange(Sequence.shape[1] - width + 1)
    windows = C[Sequence[:, starts[:, None] + np.arange(width)]].reshape(
        len(Sequence), len(starts), width * size
    )
    y = tanh(windows @ W.reshape(filters, width * size).T + B)
    within = starts <= np.maximum(lengths, width)[:, None] - width
    found = where(np.broadcast_to(within[..., None], y.shape), y, np.full(y.shape, -2.0)).max(1)
    return Bounded(found.value, np.where(lengths[:, None], found.error, np.inf), found.arithmetic)


def _unknown_characters(n: Dimensions, _call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    found = inputs["Sequence"].array
    return _EMBEDDED if ((found < 0) | (found >= n["V"])).any() else None


def tokenized(
    X: Array,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: tuple[str, ...] = (),
    tokenexp: str | None = None,
) -> Array:
    """Cut texts by the formula above."""
    if not X.size:
        return X
    rows = []
    for text in X.reshape(-1):
        if tokenexp is not None:
            parts = [match.group(0) for match in re.finditer(tokenexp, text, re.DOTALL)]
        else:
            parts = list(text) if separators == ("",) else re.split("|".join(separators), text)
        rows.append([part for part in parts if len(part) >= max(1, mincharnum)])
    most = max(map(len, rows))
    if mark and most:
        rows, most = [["\2", *row, "\3"] for row in rows], most + 2
    found = np.full((len(rows), most), pad_value, object)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found.reshape(*X.shape, most)


def _cannot_cut(_n: Dimensions, call: Call) -> str | None:
    given = [call.parameter(name) for name in ("separators", "tokenexp")]
    if (given[0] is None) == (given[1] is None) or given[0] == ():
        return "one of separators and tokenexp"
    return None if len(call.first.shape) in (1, 2) else "texts in one or two dimensions"


def _cut(call: Call) -> tuple[Shape, ...]:
    shape = call.first.shape
    return (shape if 0 in shape else (*shape, UNKNOWN),)


_EMBEDDED = "characters of which there is an embedding"
_TEXTS = (
    "a b, c",
    "Hello World",
    "I love computer science !",
    "",
    " ",
    "no_separator",
    ",,a,,bb ",
    "\u00e9t\u00e9 \u4e2d\u6587, x",
)


def _word(raw: Array, n: Any) -> Array:
    lengths = 1 + raw[:, :1] % raw.shape[1]
    return np.asarray(np.where(np.arange(raw.shape[1]) < lengths, 1 + raw // 7 % max(1, n["V"] - 1), 0))


def _texts(raw: Array, _: Any) -> Any:
    return np.array(_TEXTS, object)[raw % len(_TEXTS)]


OPERATORS = (
    Operator(
        "com.microsoft.WordConvEmbedding",
        Dimensioned(
            "Sequence: S L; W: embedding_size 1 conv_window_size char_embedding_size; B: embedding_size; C: V char_embedding_size",
            "S embedding_size",
            rule=lambda n, _: (
                None if 0 < n["conv_window_size"] <= n["L"] else "a window of the characters of a word"
            ),
            chosen={
                "Sequence": (
                    Chosen("words", _word),
                    Chosen("full", lambda raw, n: 1 + raw % max(1, n.get("V", 9) - 1)),
                    Chosen("above", lambda raw, n: raw * 0 + n.get("V", 9), _EMBEDDED),
                    Chosen("below", lambda raw, _: raw * 0 - 1, _EMBEDDED),
                )
            },
            by_values=_unknown_characters,
        ),
        bounded(word_conv_embedding),
    ),
    Operator(
        "com.microsoft.Tokenizer",
        Dimensioned("X: *", "*", rule=_cannot_cut, chosen={"X": (Chosen("sentences", _texts),)}),
        moved(tokenized),
        outputs=_cut,
    ),
)
