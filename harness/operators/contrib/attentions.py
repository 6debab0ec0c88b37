"""Attention, MultiHeadAttention and QAttention: averages of values, weighted by how well their keys
match each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.attention.attention import by_heads, joined, weights
from harness.operators.attention.rotary_embedding import rotated
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import (
    Bounded,
    arithmetic,
    concatenate,
    number,
    stack,
    swapaxes,
    where,
)
from harness.operators.contrib.integer_products import Multiply, exactly
from harness.operators.contrib.qlinear import scale_of, zero_of
from harness.operators.dimensioned import PADDED, SMALL, Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded

# scores = Q K^T scale + attention_bias, less 10000 (mask_filter_value) where a key is padding, -inf where it comes later
# output = softmax(scores) V                                                          scale = 1 / sqrt(size)

FILTER = -10000.0


class AttendedHeads(NamedTuple):
    """Queries, keys and values, each [batch, heads, length, size]."""

    q: Bounded
    k: Bounded
    v: Bounded


def attend(h: AttendedHeads, call: Call, bias: Any, mask: Array | None) -> tuple[Bounded, Bounded]:
    """Return the averages and the weights by the formula above."""
    queries, keys = h.q.shape[2], h.k.shape[2]
    scores = (h.q @ swapaxes(h.k, -1, -2)) * score_scale(call, h)
    for each in (bias, padding(mask, call, queries, keys)):
        scores = scores if each is None else scores + each
    shut = np.broadcast_to(later(queries, keys) & bool(call.parameter("unidirectional")), scores.shape)
    scores = where(shut, np.full(scores.shape, -np.inf), scores)
    found = weights(scores, np.asarray(shut.all(-1, keepdims=True)), call)
    return found @ h.v, found


def score_scale(call: Call, h: AttendedHeads) -> float:
    """Return the factor of scores: the attribute, or 1 over the root of the size of a head."""
    return float(call.parameter("scale") or 0) or float(h.q.shape[-1]) ** -0.5


def later(queries: int, keys: int) -> Array:
    """Say which keys come after a query, of which the last stands at the last key."""
    return np.asarray(np.arange(keys) > np.arange(queries)[:, None] + keys - queries)


def padding(mask: Array | None, call: Call, queries: int, keys: int) -> Any:
    """Return what is added to scores for a mask: 0 and 1 for each key, or for each query and key, or how many keys each
    batch has, or their ends and then their starts."""
    if mask is None:
        return None
    at, batch = np.arange(keys), call.first.shape[0]
    if mask.ndim == 1:
        ends, starts = mask[:batch, None], mask[batch : 2 * batch, None] if len(mask) > batch else 0
        mask = (at < ends) & (at >= starts)
    if mask.ndim == 4:
        mask = mask[:, :, keys - queries : keys, :keys]
    shown = np.expand_dims(mask, tuple(range(1, 5 - mask.ndim)))
    return np.where(shown == 0, float(call.parameter("mask_filter_value", FILTER)), 0.0)


def _projected(
    projected: Bounded, call: Call, mask: Array | None, past: Any, more: Any
) -> tuple[Bounded, Bounded]:
    """Attend with queries, keys and values that stand beside each other; return the keys and values as well."""
    if call.parameter("do_rotary"):
        raise Undefined("the angles by which do_rotary turns queries and keys")
    heads, sizes = call.parameter("num_heads"), call.parameter("qkv_hidden_sizes")
    width = projected.shape[-1] // 3
    first, second = (sizes[0], sizes[0] + sizes[1]) if sizes else (width, 2 * width)
    parts = (projected[..., :first], projected[..., first:second], projected[..., second:])
    q, k, v = (by_heads(part, heads) for part in parts)
    if past is not None:
        k, v = concatenate([past[0], k], axis=2), concatenate([past[1], v], axis=2)
    y, _ = attend(AttendedHeads(q, k, v), call, more, mask)
    return joined(y), stack([k, v], axis=0) if k.shape == v.shape else k


def attention(
    input: Bounded, weights: Bounded, call: Call, bias: Any = None, mask_index: Any = None, past: Any = None,
    attention_bias: Any = None,
) -> tuple[Bounded, ...]:  # fmt: skip
    """Project, then attend by the formula above."""
    projected = input @ weights
    return _projected(projected if bias is None else projected + bias, call, mask_index, past, attention_bias)


def qattention(
    call: Call, inputs: Mapping[str, Tensor], declared: str, multiply: Multiply = exactly
) -> tuple[Expected, ...]:
    """Attend with a projection of quantised numbers."""
    worked = arithmetic(declared, call.outputs[0])
    zeros = (zero_of(inputs, f"{name}_zero_point") for name in ("input", "weight"))
    exact = multiply(inputs["input"].array, inputs["weight"].array, *zeros)
    scale = scale_of(inputs, "input_scale", worked) * scale_of(inputs, "weight_scale", worked)
    projected = number(exact.astype(float), worked) * scale + number(inputs["bias"], worked)
    mask, past = inputs.get("mask_index"), inputs.get("past")
    with np.errstate(all="ignore"):
        found = _projected(projected, call, mask and mask.array, past and number(past, worked), None)
    return tuple(each.stored(dtype) for each, dtype in zip(found, call.outputs, strict=False))


def multi_head(
    query: Bounded, call: Call, key: Any = None, value: Any = None, bias: Any = None, key_padding_mask: Any = None,
    attention_bias: Any = None, past_key: Any = None, past_value: Any = None,
) -> tuple[Bounded, ...]:  # fmt: skip
    """Attend by the formula above, to keys and values that are given, packed with the queries, or of a cache. The document
    does not say which scores are given."""
    heads = call.parameter("num_heads")
    parts = _unpacked(query, key, value)
    if bias is not None:
        at = np.cumsum([0, *(part.shape[2] if part.ndim == 3 else heads * part.shape[3] for part in parts)])
        parts = [
            part + bias[start:end] if part.ndim == 3 else part
            for part, start, end in zip(parts, at[:-1], at[1:], strict=True)
        ]
    q, k, v = (by_heads(part, heads) for part in parts)
    shared = call.parameter("past_sequence_length")
    if past_key is not None:
        before = slice(None if shared is None else shared[0])
        k, v = (concatenate([past[:, :, before], x], axis=2) for past, x in ((past_key, k), (past_value, v)))
    y, found = attend(AttendedHeads(q, k, v), call, attention_bias, key_padding_mask)
    k, v = (k, v) if shared is None else (filled(each, past_key.shape[2], 2) for each in (k, v))
    return joined(y), k, v, found.unclaimed()


def _unpacked(query: Bounded, key: Any, value: Any) -> list[Any]:
    """Return queries, keys and values apart: [batch, length, heads, 3 or 2, size] holds several."""
    if query.ndim == 5:
        return [query[:, :, :, n].reshape(*query.shape[:2], -1) for n in range(3)]
    if key.ndim == 5:
        return [query, *(key[:, :, :, n].reshape(*key.shape[:2], -1) for n in range(2))]
    return [query, key, value]


def filled(found: Bounded, rows: int, axis: int) -> Bounded:
    """Return what is found with rows behind its own, which hold anything."""
    more = [(0, rows - found.shape[axis] if n == axis else 0) for n in range(found.value.ndim)]
    return Bounded(
        np.pad(found.value, more), np.pad(found.error, more, constant_values=np.inf), found.arithmetic
    )


def rotary_embedding(
    input: Bounded,
    position_ids: Array,
    cos_cache: Bounded,
    sin_cache: Bounded,
    call: Call,
    scale: float = 1.0,
) -> Bounded:
    """Rotate each token by its position, the first one's and those behind it where there is one."""
    half = cos_cache.shape[-1]
    x = by_heads(input, call.parameter("num_heads") or input.shape[-1] // (2 * half))
    places = position_ids + np.arange(x.shape[2])[None] if position_ids.ndim == 1 else position_ids
    return _turned(input, x, cos_cache[places], sin_cache[places], call, scale)


def _turned(input: Bounded, x: Bounded, cos: Bounded, sin: Bounded, call: Call, scale: float) -> Bounded:
    if scale != 1:
        raise Undefined("what scale multiplies")
    y = rotated(x, cos, sin, bool(call.parameter("interleaved", 0)))
    return y if input.ndim == 4 else joined(y)


# column r of the caches is read at the position of stream s(r), temporal, height or width: the streams stand one behind the
# other, each for its section of the columns; or interleaved: 1, 4, 7… of the first 3 section columns are of the height,
# 2, 5, 8… of the width, the rest temporal                                      (MRotaryEmbedding)
def mrotary_embedding(
    input: Bounded,
    position_ids: Array,
    cos_cache: Bounded,
    sin_cache: Bounded,
    call: Call,
    mrope_section: Sequence[int],
    mrope_layout: int = 0,
    scale: float = 1.0,
) -> Bounded:
    """Rotate each token by its three positions."""
    half = cos_cache.shape[-1]
    stream = np.repeat(np.arange(3), mrope_section)
    if mrope_layout:
        stream = np.zeros(half, int)
        for place in (1, 2):
            stream[place : 3 * mrope_section[place] : 3] = place
    places = np.moveaxis(position_ids[stream], 0, -1), np.arange(half)
    x = by_heads(input, call.parameter("num_heads") or input.shape[-1] // (2 * half))
    return _turned(input, x, cos_cache[places], sin_cache[places], call, scale)


MASKS = (
    PADDED,
    Chosen("holes", lambda raw, _: (raw % 4 > 0) | (np.arange(raw.shape[-1]) == 0)),
)
LENGTHS = Chosen("lengths", lambda raw, n: 1 + raw % n["T"])
_CACHED = {"T": lambda n: n["P"] + n["S"], "P": lambda n: n["T"] - n["S"]}


def _past(name: str) -> Any:
    def rule(n: Dimensions, call: Call) -> str | None:
        if name not in call.inputs and n["P"]:
            return "as many keys as queries without a cache"
        if n.get("L", n["S"]) != n["S"] and call.parameter("unidirectional"):
            return "as many keys as queries where each attends to earlier ones"
        if n.get("M", n["T"]) < n["T"]:
            return "a mask of as many rows and columns as there may be keys"
        by_head = "value" in call.inputs and len(call.inputs["value"].shape) == 4
        cached = n["P"] or (name == "past" and len(call.outputs) > 1)
        if n.get("X", n.get("H")) != n.get("H") and (cached or by_head):
            return "values that are cached, or given by heads, have the size of keys"
        if "past_sequence_length" in n and not 0 <= n["past_sequence_length"] <= n["P"] - n["L"]:
            return "a shared buffer has rows for what is cached and what is new"
        if (sizes := n.get("qkv_hidden_sizes")) and (
            len(sizes) != 3 or sizes[0] != sizes[1] or sum(sizes) != n["W"] or sizes[2] % n["num_heads"]
        ):
            return "hidden sizes of queries, keys and values, the first two alike"
        if name == "past" and not sizes and n["W"] % 3:
            return "one matrix makes queries, keys and values, each of a third of its columns"
        return None if n["num_heads"] > 0 and n.get("H", 0) > 0 else "heads divide the hidden size"

    return rule


_PACKED = {
    "V": lambda n: n["qkv_hidden_sizes"][2] if "qkv_hidden_sizes" in n else n["W"] // 3,
    "K": lambda n: n["qkv_hidden_sizes"][0] if "qkv_hidden_sizes" in n else n["V"],
    "H": lambda n: n["K"] // n["num_heads"] if n["K"] % n["num_heads"] == 0 else 0,
    "X": lambda n: n["V"] // n["num_heads"],
    "E": lambda n: 2 * n["B"],
    **_CACHED,
}
"""Dimensions where one matrix makes queries, keys and values."""

_ANGLES = {"R": lambda n: (n.get("rotary_embedding_dim") or n["H"]) // 2}


def _wrong_angles(n: Dimensions, call: Call) -> str | None:
    size = n.get("H", n.get("D"))
    if "D" in n and (heads := n.get("num_heads")):
        size = n["D"] // heads if n["D"] % heads == 0 else 0
    if not n["R"] or not size or size % (2 * n["R"]):
        return "heads of twice the angles"
    rotated = n.get("rotary_embedding_dim") or (size if "H" in n or n.get("num_heads") else 2 * n["R"])
    if rotated != 2 * n["R"]:
        return "caches of half of rotary_embedding_dim, or of a head"
    if n["S"] > n["M"]:
        return "as many tokens as the caches have rows, or fewer"
    sections = n.get("mrope_section")
    if sections is None or (len(sections) == 3 and min(sections) >= 0 and sum(sections) == n["R"]):
        return None
    return "three sections of the columns of the caches"


_TURNED = "positions of rows of the caches"
_UNTURNED = (
    Chosen("above", lambda raw, n: raw % 3 + n.get("M", 11), _TURNED),
    Chosen("below", lambda raw, _: -1 - raw % 3, _TURNED),
    Chosen("far_above", lambda raw, _: raw % 3 + 2**30, _TURNED),
)


def _beyond_the_caches(n: Dimensions, _call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    places = inputs["position_ids"].array
    last = places + n["S"] - 1 if places.ndim == 1 else places
    return _TURNED if ((places < 0) | (last >= n["M"])).any() else None


OPERATORS = (
    Operator(
        "com.microsoft.Attention",
        Dimensioned(
            "input: B S D; weights: D W; bias: W; mask_index: B T | B | E | B S T | B 1 M M; past: 2 B num_heads P H; "
            "attention_bias: B num_heads S T | 1 1 S T | B 1 S T | 1 num_heads S T",
            "B S V; 2 B num_heads T H",
            _PACKED,
            _past("past"),
            {"mask_index": (*MASKS, LENGTHS)},
            defaults={"P": 0},
        ),
        bounded(attention),
    ),
    Operator(
        "com.microsoft.QAttention",
        Dimensioned(
            "input: B S D; weight: D W; bias: W; input_scale: ; weight_scale:  | W; mask_index: B | E | B T; input_zero_point: ; "
            "weight_zero_point:  | W; past: 2 B num_heads P H",
            "B S V; 2 B num_heads T H",
            _PACKED,
            _past("past"),
            {"mask_index": (LENGTHS, *MASKS), "input_scale": (SMALL,), "weight_scale": (SMALL,)},
            defaults={"P": 0},
        ),
        qattention,
    ),
    Operator(
        "com.microsoft.MultiHeadAttention",
        Dimensioned(
            "query: B S D | B S num_heads 3 H; key: B L D | B num_heads L H | B L num_heads 2 H; value: B L V | B num_heads L X; bias: W; "
            "key_padding_mask: B T | B | B S T; attention_bias: B num_heads S T | 1 1 S T | B 1 S T | 1 num_heads S T; "
            "past_key: B num_heads P H; "
            "past_value: B num_heads P H; past_sequence_length: 1",
            "B S V; B num_heads rows H; B num_heads rows X; B num_heads S T",
            {
                "D": lambda n: n["num_heads"] * n["H"],
                "H": lambda n: n["D"] // n["num_heads"] if n["D"] % n["num_heads"] == 0 else 0,
                "X": lambda n: n["V"] // n["num_heads"] if n["V"] % n["num_heads"] == 0 else 0,
                "V": lambda n: n["num_heads"] * n["X"] if "value" in n["inputs"] else n["D"],
                "L": lambda n: n["L"] if "key" in n["inputs"] else n["S"],
                "W": lambda n: 2 * n["D"] + n["V"],
                "T": lambda n: n["past_sequence_length" if "past_sequence_length" in n else "P"] + n["L"],
                "P": lambda n: n["P"] if "past_sequence_length" in n else n["T"] - n["L"],
                "rows": lambda n: n["P"] if "past_sequence_length" in n else n["T"],
            },
            _past("past_key"),
            {"key_padding_mask": (*MASKS, LENGTHS)},
            defaults={"P": 0},
        ),
        bounded(multi_head),
        constants={"past_sequence_length": 1},
    ),
    Operator(
        "com.microsoft.RotaryEmbedding",
        Dimensioned(
            "input: B S D | B N S H; position_ids: B S | 1; cos_cache: M R; sin_cache: M R",
            "*",
            _ANGLES,
            _wrong_angles,
            defaults={"M": 11},
            chosen={
                "position_ids": (
                    Chosen("places", lambda raw, n: raw % (4 if raw.ndim == 1 else n.get("M", 11))),
                    *_UNTURNED,
                )
            },
            by_values=_beyond_the_caches,
        ),
        bounded(rotary_embedding),
    ),
    Operator(
        "com.microsoft.MRotaryEmbedding",
        Dimensioned(
            "input: B S D | B N S H; position_ids: 3 B S; cos_cache: M R; sin_cache: M R",
            "*",
            _ANGLES,
            _wrong_angles,
            defaults={"M": 11},
            chosen={"position_ids": (Chosen("places", lambda raw, n: raw % n.get("M", 11)), *_UNTURNED)},
            by_values=_beyond_the_caches,
        ),
        bounded(mrotary_embedding),
    ),
)
