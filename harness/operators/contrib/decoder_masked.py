"""DecoderMaskedMultiHeadAttention: attention of one query to what a cache holds, which other beams may have written."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import Bounded, concatenate
from harness.operators.contrib.attentions import MASKS, multi_head
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded

# as MultiHeadAttention of one query; token k of a cache may be that of another beam, cache_indirection[batch, beam, k].
# A shared buffer of keys holds [batch, heads, size / x, length, x], where x elements have 16 bytes.


def decoder_masked(
    query: Bounded, call: Call, key: Any = None, value: Any = None, bias: Any = None, mask_index: Any = None,
    attention_bias: Any = None, past_key: Any = None, past_value: Any = None, cache_indirection: Any = None,
    block: int = 16,
) -> tuple[Bounded, ...]:  # fmt: skip
    """Attend by the formula above, keys in blocks of so many bytes."""
    if key is None:
        width = query.shape[2] // 3
        query, key, value = (query[..., n * width : (n + 1) * width] for n in range(3))
    if mask_index is not None and (mask_index < 0).any():
        raise Undefined("whether a number below 0 in a mask shows a key")
    wide = block // np.dtype(DTYPES[call.first.dtype].storage).itemsize
    blocks = bool(call.parameter("past_present_share_buffer")) and 0 < wide < past_key.shape[3]
    if blocks:
        b, heads, length, size = past_key.shape
        split = past_key.reshape(b, heads, size // wide, length, wide)
        past_key = split.transpose(0, 1, 3, 2, 4).reshape(past_key.shape)
    attended = (
        (past_key, past_value)
        if cache_indirection is None
        else (_of_beams(each, cache_indirection) for each in (past_key, past_value))
    )
    y, k, v, scores = multi_head(query, call, key, value, bias, mask_index, attention_bias, *attended)
    if cache_indirection is not None:
        past = call.parameter("past_sequence_length")[0]
        k, v = (
            concatenate([old[:, :, :past], x[:, :, past:]], axis=2)
            for old, x in ((past_key, k), (past_value, v))
        )
    if blocks:
        k = k.reshape(b, heads, length, size // wide, wide).transpose(0, 1, 3, 2, 4).reshape(k.shape)
    return y, k, v, scores


def _of_beams(cache: Bounded, beams: Array) -> Bounded:
    """Return a cache of which each token is that of a beam of the same batch."""
    batches, width, _ = beams.shape
    rows = np.arange(batches)[:, None, None] * width + beams
    rows = rows.reshape(batches * width, 1, -1)
    return cache[rows, np.arange(cache.shape[1])[:, None], np.arange(cache.shape[2])]


def _no_decoder(n: Dimensions, call: Call) -> str | None:
    if n["num_heads"] < 1 or not n["H"] or n["D"] != n["K"] * (1 if "key" in call.inputs else 3):
        return "heads divide the hidden size"
    if ("past_sequence_length" in n) != bool(n.get("past_present_share_buffer")) or (
        "past_sequence_length" in n and "past_key" not in call.inputs
    ):
        return "past_sequence_length goes with a buffer that past and present share"
    if "past_sequence_length" in n and (
        n["H"] * np.dtype(DTYPES[call.first.dtype].storage).itemsize % 16
        or not 0 <= n["past_sequence_length"] < n["P"]
    ):
        return "a shared buffer has rows for what is cached and what is new"
    if "L" in n and ("past_key" in call.inputs or len(call.inputs["value"].shape) != 4):
        return "keys and values of heads are a cache themselves"
    if "L" not in n and "past_sequence_length" not in n and n["T"] != n["P"] + 1:
        return "a mask of what is cached and what is new"
    if "cache_indirection" in call.inputs and n["B"] % n.get("beam_width", 1):
        return "each batch has as many beams"
    return None


OPERATORS = (
    Operator(
        "com.microsoft.DecoderMaskedMultiHeadAttention",
        Dimensioned(
            "query: B 1 D; key: B 1 D | B num_heads L H; value: B 1 D | B num_heads L H; mask_index: B T; "
            "attention_bias: B num_heads 1 T | 1 1 1 T | B 1 1 T | 1 num_heads 1 T; past_key: B num_heads P H; "
            "past_value: B num_heads P H; past_sequence_length: 1; beam_width: 1; cache_indirection: I beam_width P; bias: W",
            "B 1 K; B num_heads rows H; B num_heads rows H; B num_heads 1 T",
            {
                "K": lambda n: n["D"] if "key" in n["inputs"] else n["D"] // 3,
                "H": lambda n: n["K"] // n["num_heads"] if n["K"] % n["num_heads"] == 0 else 0,
                "W": lambda n: 3 * n["K"],
                "T": lambda n: (
                    n["L"]
                    if "L" in n
                    else n["past_sequence_length" if "past_sequence_length" in n else "P"] + 1
                ),
                "I": lambda n: n["B"] // n["beam_width"],
                "rows": lambda n: n["P"] if "past_sequence_length" in n else n["T"],
            },
            _no_decoder,
            {
                "mask_index": MASKS,
                "cache_indirection": (Chosen("beams", lambda raw, n: raw % n["beam_width"]),),
            },
            defaults={"P": 0},
        ),
        bounded(decoder_masked),
        constants={"past_sequence_length": 1, "beam_width": 1},
        seldom=("beam_width", "cache_indirection"),
    ),
)
