"""Embeddings of n-grams of tokens: their hashes, and the gates of what is looked up under them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import Bounded, choose, maximum, sigmoid
from harness.operators.bounded import sqrt as root
from harness.operators.contrib.fused_norms import normalised
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded, decided
from harness.operators.packed import COUNTS, ENDS, unfit_capacity, unlike_ends

# gate = sigmoid(sign(dot) sqrt(max(|dot|, 1e-6))), dot = sum(rms(key) key_norm_scale * rms(query) query_norm_scale) / sqrt(H)
# output = gate value; gated_value_normed = rms(output) conv_norm_scale                                    (EngramGate)


def engram_gate(
    key: Bounded,
    query: Bounded,
    value: Bounded,
    key_norm_scale: Bounded,
    query_norm_scale: Bounded,
    epsilon: float,
    conv_norm_scale: Any = None,
) -> tuple[Bounded, ...]:
    """Gate by the formula above."""

    def normed(x: Bounded, scale: Bounded) -> Bounded:
        return normalised(x, epsilon, mean=False)[0] * scale

    dot = (normed(key, key_norm_scale) * normed(query, query_norm_scale)).sum(-1, keepdims=True)
    dot = dot / sqrt(max(1, key.shape[-1]))
    size = root(maximum(abs(dot), 1e-6))
    zero = (dot.value == 0) & (dot.error == 0)
    signed = choose(dot, 0.0, -size, size)
    signed = Bounded(np.where(zero, 0, signed.value), np.where(zero, 0, signed.error), signed.arithmetic)
    batch, steps, width = value.shape
    y = sigmoid(signed) * value.reshape(batch, steps, 1, width)
    return (y,) if conv_norm_scale is None else (y, normed(y, conv_norm_scale))


# ids                  past_ids, or max_ngram_size - 1 times what stands for missing ones, and the tokens
# shifted[k]           ids[t - k]; what stands for missing ones at the last eos_token_id before t and ahead of it, if
#                      reset_on_eos; and ahead of the first token of the segment of t
# hash of n, head j    (shifted[0] multipliers[0] xor ... xor shifted[n-1] multipliers[n-1]) mod vocab_sizes[n, j] + offset
# missing              eos_token_id, or without one pad_id                (NGramHashMapping, VarlenNGramHashMapping)


def _hashed(
    ids: Sequence[int],
    segments: Sequence[int | None],
    multipliers: Array,
    vocab_sizes: Array,
    call: Call,
    eos: int | None,
) -> list[list[int]]:
    """Return the hashes of each of the ids that has as many before it as there are in a window."""
    size, heads = call.parameter("max_ngram_size"), call.parameter("n_head_per_ngram")
    missing = call.parameter("pad_id") if eos is None else eos
    resets = eos is not None and call.parameter("reset_on_eos") != 0
    rows = []
    for t in range(size - 1, len(ids)):
        start = max([0, *(p + 1 for p in range(t) if resets and ids[p] == eos)])
        known = (p for p in range(1, t + 1) if None not in segments[p - 1 : p + 1])
        start = max([start, *(p for p in known if segments[p] != segments[p - 1])])
        row: list[int] = []
        mix = 0
        for k in range(size):
            product = (ids[t - k] if t - k >= start else missing) * int(multipliers[k])
            if not 0 <= product < 2 ** (8 * multipliers.itemsize - 1):
                raise Undefined(
                    "what a product beyond the element type is, or the remainder of a negative one"
                )
            mix ^= product
            if k:
                places = slice((k - 1) * heads, k * heads)
                row += [mix % each for each in vocab_sizes[places].tolist()]
        rows.append(row)
    return rows


def ngram_hashes(
    input_ids: Array,
    multipliers: Array,
    vocab_sizes: Array,
    call: Call,
    past_ids: Array | None = None,
    head_offsets: Array | None = None,
    eos_token_id: Array | None = None,
    segment_ids: Array | None = None,
) -> tuple[Array, Array]:
    """Hash the n-grams of each row by the formula above."""
    offsets = np.zeros_like(vocab_sizes) if head_offsets is None else head_offsets
    if (offsets < 0).any() or (offsets > np.iinfo(offsets.dtype).max - vocab_sizes).any():
        raise Undefined("offsets below 0, or that leave the element type")
    batch, steps = input_ids.shape
    flat = None if segment_ids is None else segment_ids.reshape(-1)
    ends = np.arange(batch + 1) * steps
    found, present, *_ = varlen_ngram_hashes(
        input_ids.reshape(-1),
        multipliers,
        vocab_sizes,
        ends,
        call,
        past_ids,
        head_offsets,
        eos_token_id,
        flat,
    )
    return found.reshape(batch, steps, found.shape[-1]), present


def varlen_ngram_hashes(
    input_ids: Array,
    multipliers: Array,
    vocab_sizes: Array,
    cumulative_sequence_length: Array,
    call: Call,
    past_ids: Array | None = None,
    head_offsets: Array | None = None,
    eos_token_id: Array | None = None,
    segment_ids: Array | None = None,
    past_segment_ids: Array | None = None,
    capture_count: Array | None = None,
) -> tuple[Array, ...]:
    """Hash the n-grams of each request by the formula above; state_update has the last ids after each of its first tokens."""
    eos = None if eos_token_id is None else int(eos_token_id.item())
    before = call.parameter("max_ngram_size") - 1
    missing = call.parameter("pad_id") if eos is None else eos
    ends = cumulative_sequence_length.tolist()
    most, dtype = call.parameter("state_update_capacity", 0), input_ids.dtype
    hashes: list[list[int]] = []
    present, present_segments = [], []
    updates = np.full((len(ends) - 1, most, before), call.parameter("pad_id"), dtype)
    for request, (start, end) in enumerate(pairwise(ends)):
        tokens = input_ids[start:end]
        ids = [*([missing] * before if past_ids is None else past_ids[request].tolist()), *tokens.tolist()]
        segments: list[int | None] = (
            [None] * before if past_segment_ids is None else past_segment_ids[request].tolist()
        )
        segments += [None] * len(tokens) if segment_ids is None else segment_ids[start:end].tolist()
        hashes += _hashed(ids, segments, multipliers, vocab_sizes, call, eos)
        present.append(ids[len(tokens) :])
        present_segments.append(segments[len(tokens) :])
        captured = 0 if capture_count is None else min(int(capture_count[request]), most, len(tokens))
        for step in range(captured):
            updates[request, step] = ids[step + 1 : step + 1 + before]
    if len(call.outputs) > 2 and any(None in each for each in present_segments):
        raise Undefined("the segments of ids before a request without past_segment_ids")
    shape = (len(input_ids), before * call.parameter("n_head_per_ngram"))
    found = np.array(hashes, dtype).reshape(shape) + (0 if head_offsets is None else head_offsets)
    last_segments = np.array([[each or 0 for each in row] for row in present_segments], np.int32)
    return found, np.array(present, dtype).reshape(-1, before), last_segments.reshape(-1, before), updates


def _tokens(most: int) -> tuple[Chosen, ...]:
    return (Chosen("tokens", lambda raw, _: raw % most),)


_CHOSEN = {
    "input_ids": _tokens(5),
    "past_ids": _tokens(5),
    "multipliers": (Chosen("odd", lambda raw, _: raw % 5000 * 2 + 1),),
    "vocab_sizes": (
        Chosen("sizes", lambda raw, _: raw % 97 + 1),
        Chosen("none", lambda raw, _: -(raw % 2), breaks="vocabularies have a size above 0"),
    ),
    "head_offsets": _tokens(1000),
    "eos_token_id": _tokens(5),
    "segment_ids": (Chosen("segments", lambda raw, _: np.cumsum(raw % 3 == 0, axis=-1)),),
    "past_segment_ids": _tokens(2),
    "capture_count": COUNTS,
    "cumulative_sequence_length": ENDS,
}
_SIZES: Mapping[str, Any] = {
    "W": lambda n: n["max_ngram_size"] - 1,
    "H": lambda n: (n["max_ngram_size"] - 1) * n["n_head_per_ngram"],
}


def _unfit(n: Dimensions, _call: Call) -> str | None:
    if n["max_ngram_size"] < 2 or n["n_head_per_ngram"] < 1:
        return "max_ngram_size is at least 2, and there is a head for each"
    if n["M"] < n["max_ngram_size"]:
        return "there are multipliers for max_ngram_size tokens"
    return unfit_capacity(n) if "state_update_capacity" in n else None


def _unfit_elements(n: Dimensions, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    if (inputs["vocab_sizes"].array <= 0).any():
        return "vocabularies have a size above 0"
    return unlike_ends(n, call, inputs)


OPERATORS = (
    Operator(
        "com.microsoft.EngramGate",
        Dimensioned(
            "key: B S C H; query: B S C H; value: B S H; key_norm_scale: C H; query_norm_scale: C H; conv_norm_scale: C H",
            "B S C H; B S C H",
            rule=lambda n, call: (
                "gated_value_normed needs conv_norm_scale"
                if len(call.outputs) > 1 and "conv_norm_scale" not in n["inputs"]
                else None
            ),
        ),
        bounded(engram_gate),
    ),
    Operator(
        "com.microsoft.NGramHashMapping",
        Dimensioned(
            "input_ids: B S; multipliers: M; vocab_sizes: H; past_ids: B W; head_offsets: H; eos_token_id: | 1; segment_ids: B S",
            "B S H; B W",
            _SIZES,
            _unfit,
            _CHOSEN,
            by_values=_unfit_elements,
        ),
        decided(ngram_hashes),
    ),
    Operator(
        "com.microsoft.VarlenNGramHashMapping",
        Dimensioned(
            "input_ids: T; multipliers: M; vocab_sizes: H; cumulative_sequence_length: E; past_ids: B W; head_offsets: H; "
            "eos_token_id: | 1; segment_ids: T; past_segment_ids: B W; capture_count: B",
            "T H; B W; B W; B C W",
            {**_SIZES, "B": lambda n: n["E"] - 1, "C": lambda n: n["state_update_capacity"]},
            _unfit,
            _CHOSEN,
            by_values=_unfit_elements,
        ),
        decided(varlen_ngram_hashes),
    ),
)
