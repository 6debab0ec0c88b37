"""WordConvEmbedding: vectors of words that are lists of characters."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import Bounded, tanh, where
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded

# WordConvEmbedding: Y[s, m] = max over p of tanh(B[m] + sum over i and e of W[m, 0, i, e] C[Sequence[s, p + i], e]), over the windows
#   within the characters of word s, which are followed by zeros, or the first window; no document says what a word without
#   a character is


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


_EMBEDDED = "characters of which there is an embedding"


def _word(raw: Array, n: Any) -> Array:
    lengths = 1 + raw[:, :1] % raw.shape[1]
    return np.asarray(np.where(np.arange(raw.shape[1]) < lengths, 1 + raw // 7 % max(1, n["V"] - 1), 0))


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
)
