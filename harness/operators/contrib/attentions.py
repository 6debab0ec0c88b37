"""Attention, MultiHeadAttention, GroupQueryAttention and QAttention: averages of values, weighted by how well their keys
match each query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.attention.attention import weights
from harness.operators.base import UNKNOWN, Call, Operator, Undefined
from harness.operators.bounded import (
    Bounded,
    arithmetic,
    concatenate,
    converted,
    number,
    repeat,
    sqrt,
    stack,
    swapaxes,
    tanh,
    where,
)
from harness.operators.contrib.block_quantised import BITS, unpacked
from harness.operators.contrib.integer_products import Multiply, exactly
from harness.operators.contrib.qlinear import scale_of, zero_of
from harness.operators.dimensioned import SMALL, Chosen, Dimensioned, Dimensions
from harness.operators.formulas import Either, bounded

# scores = Q K^T scale + attention_bias, less 10000 (mask_filter_value) where a key is padding, -inf where it comes later
# output = softmax(scores) V                                                          scale = 1 / sqrt(size)

FILTER = -10000.0


class AttendedHeads(NamedTuple):
    """Queries, keys and values, each [batch, heads, length, size]."""

    q: Bounded
    k: Bounded
    v: Bounded


def by_heads(x: Bounded, heads: int) -> Bounded:
    """Return [batch, heads, length, size] of [batch, length, heads * size]."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def joined(x: Bounded) -> Bounded:
    """Return [batch, length, heads * size] of [batch, heads, length, size]."""
    batch, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


def attend(
    h: AttendedHeads, call: Call, added: list[Any], closed: Array | None = None
) -> tuple[Bounded, Bounded]:
    """Return the averages and the weights by the formula above; `closed` are the keys that no query may see."""
    scores = (h.q @ swapaxes(h.k, -1, -2)) * _scale(call, h)
    for each in added:
        scores = scores if each is None else scores + each
    shut = np.zeros(scores.shape, bool) if closed is None else np.broadcast_to(closed, scores.shape)
    scores = where(shut, np.full(scores.shape, -np.inf), scores)
    found = weights(scores, np.asarray(shut.all(-1, keepdims=True)), call)
    return found @ h.v, found


def _scale(call: Call, h: AttendedHeads) -> float:
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
    shown = (
        mask[:, None, None]
        if mask.ndim == 2
        else mask[:, None]
        if mask.ndim == 3
        else mask[:, :, keys - queries : keys, :keys]
    )
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
    queries, keys = q.shape[2], k.shape[2]
    closed = later(queries, keys) if call.parameter("unidirectional") else None
    y, _ = attend(AttendedHeads(q, k, v), call, [more, padding(mask, call, queries, keys)], closed)
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
    """Attend by the formula above, to keys and values that are given, packed with the queries, or of a cache."""
    heads = call.parameter("num_heads")
    parts = _unpacked(query, key, value)
    if bias is not None:
        at = np.cumsum([0, *(part.shape[2] if part.ndim == 3 else heads * part.shape[3] for part in parts)])
        parts = [
            part + bias[start:end] if part.ndim == 3 else part
            for part, start, end in zip(parts, at[:-1], at[1:], strict=True)
        ]
    q, k, v = (part if part.ndim == 4 else by_heads(part, heads) for part in parts)
    shared = call.parameter("past_sequence_length")
    if past_key is not None:
        before = slice(None if shared is None else shared[0])
        k, v = (concatenate([past[:, :, before], x], axis=2) for past, x in ((past_key, k), (past_value, v)))
    queries, keys = q.shape[2], k.shape[2]
    closed = later(queries, keys) if call.parameter("unidirectional") else None
    y, found = attend(
        AttendedHeads(q, k, v), call, [attention_bias, padding(key_padding_mask, call, queries, keys)], closed
    )
    k, v = (k, v) if shared is None else (_filled(each, past_key.shape[2], 2) for each in (k, v))
    return joined(y), k, v, found


def _unpacked(query: Bounded, key: Any, value: Any) -> list[Any]:
    """Return queries, keys and values apart: [batch, length, heads, 3 or 2, size] holds several."""
    if query.ndim == 5:
        return [query[:, :, :, n].reshape(*query.shape[:2], -1) for n in range(3)]
    if key.ndim == 5:
        return [query, *(key[:, :, :, n].reshape(*key.shape[:2], -1) for n in range(2))]
    return [query, key, value]


def rotated(x: Bounded, cos: Bounded, sin: Bounded, interleaved: bool) -> Bounded:
    """Turn pairs of elements of each head, of [batch, heads, length, size], by angles [batch or 1, length, half]."""
    cos, sin = (each.reshape(each.shape[0], 1, *each.shape[1:]) for each in (cos, sin))
    half = cos.shape[-1]
    part, rest = x[..., : 2 * half], x[..., 2 * half :]
    a, b = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    one, other = a * cos - b * sin, b * cos + a * sin
    turned = (
        stack([one, other], axis=-1).reshape(part.shape)
        if interleaved
        else concatenate([one, other], axis=-1)
    )
    return concatenate([turned, rest], axis=-1)


# each query attends to the keys up to its own (causal), with local_window_size to so many before its own; softcap s: s tanh(scores / s)
# smooth softmax: exp(score) / (sum of exp(score) + exp(head_sink)), head_sink 0 where it is left out
# of batch b seqlens_k[b] + 1 keys are valid, and query_seqlens[b] queries, usually min(S, seqlens_k[b] + 1); what follows is open
# tokens turn by position_ids, those of a first prompt by its first element and the places behind it
# with norm weights heads are x / sqrt(mean(x x) + epsilon) weight before they turn
# a quantised cache holds round(x / scale) of 8 or 4 bits, and queries attend to the numbers that it stands for
# a cache of C rows for a window W (sliding_window_cache) holds of T keys the last T - G ceil((T - C) / G), G = C - W + 1, all up to C
def group_query(
    query: Bounded, seqlens_k: Array, call: Call, key: Any = None, value: Any = None, past_key: Any = None,
    past_value: Any = None, cos_cache: Any = None, sin_cache: Any = None, position_ids: Any = None,
    attention_bias: Any = None, head_sink: Any = None, k_scale: Any = None, v_scale: Any = None,
    q_norm_weight: Any = None, k_norm_weight: Any = None, query_seqlens: Array | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Attend by the formula above, a batch at a time, since each has its own length."""
    heads, groups = call.parameter("num_heads"), call.parameter("kv_num_heads")
    if key is None:
        size = query.shape[2] // (heads + 2 * groups)
        cut = (heads * size, (heads + groups) * size)
        query, key, value = query[..., : cut[0]], query[..., cut[0] : cut[1]], query[..., cut[1] :]
    q, k, v = by_heads(query, heads), by_heads(key, groups), by_heads(value, groups)
    q, k = _normed(q, q_norm_weight, "q", call), _normed(k, k_norm_weight, "k", call)
    slides = bool(call.parameter("sliding_window_cache"))
    total = call.parameter("total_sequence_length", None)
    alone = past_key is None or not past_key.shape[2]
    prompt = query_seqlens is None and (alone or (total is not None and int(np.max(total)) == q.shape[2]))
    found = []
    for batch, last in enumerate(seqlens_k.reshape(-1).tolist()):
        new = min(q.shape[2], last + 1) if query_seqlens is None else int(query_seqlens[batch])
        before = last + 1 - new
        one = AttendedHeads(*(each[batch : batch + 1, :, :new] for each in (q, k, v)))
        if call.parameter("do_rotary"):
            places = np.arange(before, before + new)
            if position_ids is not None:
                places = position_ids[0, 0] + places if prompt else position_ids[batch, :new]
            angles = (
                cos_cache[places][None],
                sin_cache[places][None],
                bool(call.parameter("rotary_interleaved")),
            )
            one = AttendedHeads(rotated(one.q, *angles), rotated(one.k, *angles), one.v)
        first, kept = (given_up(rows, past_key, call) for rows in (before, last + 1))
        olds = (
            each if each is None else each[batch : batch + 1, :, : before - first]
            for each in (past_key, past_value)
        )
        held = [
            cached(old, x, scale, call)
            for old, x, scale in zip(olds, (one.k, one.v), (k_scale, v_scale), strict=True)
        ]
        more = attention_bias
        if more is not None:
            more = more[min(batch, len(more.value) - 1) :][:1, :, :new, first : last + 1]
        attended = _grouped(AttendedHeads(one.q, *(stands for _, stands in held)), call, more, head_sink)
        found.append((*attended, *(cache[..., kept - first :, :] for cache, _ in held)))
    most = q.shape[2] if past_key is None else past_key.shape[2] + (q.shape[2] if total is None else 0)
    most = most if total is None or slides else max(most, int(np.max(total)))
    if not found:
        sizes = ((q.shape[2], heads * v.shape[3]), (groups, most, k.shape[3]), (groups, most, v.shape[3]))
        shapes = (*sizes, (heads, q.shape[2], most))[: max(3, len(call.outputs))]
        return tuple(number(np.zeros((0, *shape)), query.arithmetic) for shape in shapes)
    y, scores, *caches = zip(*found, strict=True)
    output, keys, values = (
        concatenate([_filled(each, extent, axis) for each in parts], axis=0)
        if isinstance(parts[0], Bounded)
        else _quantised(parts, extent, call)
        for parts, extent, axis in ((y, q.shape[2], 1), *((cache, most, 2) for cache in caches))
    )
    shares = (
        () if len(call.outputs) < 4 else [_filled(_filled(each, q.shape[2], 2), most, 3) for each in scores]
    )
    return output, keys, values, *([concatenate(shares)] if shares else [])


def _normed(x: Bounded, weight: Any, name: str, call: Call) -> Bounded:
    """Return heads divided by the root of the mean of their squares, times a weight, where there is one."""
    if weight is None:
        return x
    epsilon = call.parameter(f"{name}_norm_epsilon") or call.parameter("qk_norm_epsilon")
    normed: Bounded = x / sqrt((x * x).mean((-1,), keepdims=True) + epsilon) * weight
    return normed


def given_up(total: int, cache: Any, call: Call) -> int:
    """Return how many of the keys a cache no longer holds."""
    if not call.parameter("sliding_window_cache"):
        return 0
    capacity: int = cache.shape[2]
    at_once: int = capacity - call.parameter("local_window_size") + 1
    return max(0, -(-(total - capacity) // at_once)) * at_once


def cached(old: Any, new: Bounded, scale: Any, call: Call) -> tuple[Any, Bounded]:
    """Return a cache with new rows behind it, and the numbers that it stands for. A quantised one is three: with the nearest
    integers, the least and the greatest within the bound."""
    if scale is None:
        whole = new if old is None else concatenate([old, new], axis=2)
        return whole, whole
    bits, scale = call.parameter("kv_cache_bit_width"), converted(scale, new.arithmetic.form.dtype)
    exact = new / scale
    unknown = np.isnan(exact.value)  # of which the document does not say the integer
    near = np.stack([exact.value, exact.value - exact.error, exact.value + exact.error])
    near = np.where(unknown, np.array([0.0, -np.inf, np.inf]).reshape(3, *[1] * unknown.ndim), near)
    added = np.clip(np.rint(near), -(1 << bits - 1), (1 << bits - 1) - 1)
    past = old if bits == 8 else unpacked(old, 4) - 8
    held = np.concatenate([np.broadcast_to(past, (3, *past.shape)), added], axis=3)
    return held, Bounded(held[0], held[2] - held[1], new.arithmetic) * scale


def _quantised(parts: Any, rows: int, call: Call) -> Either:
    """Return the caches of all batches, each the nearest, the least and the greatest integers, with rows that hold anything
    behind those that each has."""
    behind = np.arange(rows) >= np.array([each.shape[3] for each in parts])[:, None]
    wide = [np.pad(each, [*[(0, 0)] * 3, (0, rows - each.shape[3]), (0, 0)]) for each in parts]
    choices = _packed(np.concatenate(wide, axis=1), call)
    held, anything = choices[0], np.arange(256 if behind.any() else 0).astype(choices.dtype)
    return Either(*choices, *(np.where(behind[:, None, :, None], byte, held) for byte in anything))


def _packed(caches: Array, call: Call) -> Array:
    """Return integers as a cache holds them: of 4 bits two in a byte, the first one lowest, 8 for 0."""
    if call.parameter("kv_cache_bit_width") == 8:
        return caches.astype(np.int8)
    raised = caches.astype(np.uint8) + np.uint8(8)
    return np.asarray(raised[..., 0::2] | raised[..., 1::2] << 4)


def _filled(found: Bounded, rows: int, axis: int) -> Bounded:
    """Return what is found with rows behind its own, which hold anything."""
    more = [(0, rows - found.shape[axis] if n == axis else 0) for n in range(found.value.ndim)]
    return Bounded(
        np.pad(found.value, more), np.pad(found.error, more, constant_values=np.inf), found.arithmetic
    )


def _grouped(h: AttendedHeads, call: Call, more: Any, sink: Any) -> tuple[Bounded, Bounded]:
    share = call.parameter("num_heads") // call.parameter("kv_num_heads")
    k, v = (repeat(each, share, axis=1) for each in (h.k, h.v))
    scores = (h.q @ swapaxes(k, -1, -2)) * _scale(call, h)
    cap, window = call.parameter("softcap", 0.0), call.parameter("local_window_size")
    scores = cap * tanh(scores / cap) if cap else scores
    queries, keys = scores.shape[-2:]
    closed = later(queries, keys) & bool(call.parameter("causal"))
    if window > 0:
        closed = closed | (np.arange(keys) <= np.arange(queries)[:, None] + keys - queries - window)
    scores = scores if more is None else scores + more
    scores = where(np.broadcast_to(closed, scores.shape), np.full(scores.shape, -np.inf), scores)
    if sink is not None or call.parameter("smooth_softmax") > 0:
        one = scores[..., :1]
        extra = where(np.ones(one.shape, bool), np.zeros(one.shape), one)
        extra = extra if sink is None else extra + sink.reshape(1, -1, 1, 1)
        scores = concatenate([scores, extra], axis=-1)
    found = weights(scores, np.zeros((*scores.shape[:-1], 1), bool), call)[..., :keys]
    infinite = (scores.value == np.inf).any(-1, keepdims=True)
    beside = infinite & (scores.value == -np.inf)  # exp(-inf) / inf, or / NaN
    shares = Bounded(found.value, np.where(beside[..., :keys], np.inf, found.error), found.arithmetic)
    return joined(found @ v), shares


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
    x = (
        input
        if input.ndim == 4
        else by_heads(input, call.parameter("num_heads") or input.shape[2] // (2 * half))
    )
    places = position_ids + np.arange(x.shape[2])[None] if position_ids.ndim == 1 else position_ids
    if scale != 1:
        raise Undefined("what scale multiplies")
    y = rotated(x, cos_cache[places], sin_cache[places], bool(call.parameter("interleaved", 0)))
    return y if input.ndim == 4 else joined(y)


def _mask(raw: Array, _n: Dimensions) -> Array:
    """Ones up to a length of each row, at the least one."""
    return np.asarray(np.arange(raw.shape[-1]) < 1 + raw[..., :1] % raw.shape[-1])


MASKS = (
    Chosen("padded", _mask),
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
        if n.get("X", n.get("H")) != n.get("H") and n["P"]:
            return "cached values have the size of keys"
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


def _ragged(raw: Array, n: Dimensions) -> Array:
    """Lengths of caches from 0 to all, to which one token is added; that of the first batch is all."""
    return np.asarray(np.where(np.arange(len(raw)) == 0, n["P"], raw % (n["P"] + 1)))


def _latest(raw: Array, n: Dimensions) -> Array:
    """Lengths up to that of the first batch, which is the greatest."""
    total, new = n["total_sequence_length"], n["S"]
    return np.asarray(np.where(np.arange(len(raw)) == 0, total - 1, new - 1 + raw % (total - new + 1)))


def _no_groups(n: Dimensions, call: Call) -> str | None:
    heads, groups = n["num_heads"], n["kv_num_heads"]
    if heads < 1 or groups < 1 or heads % groups:
        return "kv_num_heads divides num_heads"
    if ("q_norm_weight" in call.inputs) != ("k_norm_weight" in call.inputs):
        return "q_norm_weight and k_norm_weight are given together"
    if "key" in call.inputs and n["KV"] != groups * n["H"]:
        return "keys and values have kv_num_heads heads of the size of the queries'"
    if n["sliding_window_cache"]:
        if not 0 < n["local_window_size"] <= n["P"] or not n["S"]:
            return "a cache that slides has the rows of its window, and a step a token"
    elif n["P"] < n.get("total_sequence_length", 0) != n["P"] + n["S"]:
        return "a cache that grows by what is new, or one that holds it already"
    if n["P"] and "past_key" not in call.inputs:
        return "as many keys as queries without a cache"
    types = {call.inputs[name].dtype for name in ("past_key", "past_value") if name in call.inputs}
    scales = {call.inputs[name].shape == (1,) for name in ("k_scale", "v_scale") if name in call.inputs}
    ways = {call.parameter(f"{each}_quant_type") for each in "kv"}
    if ways == {"NONE"}:
        if scales or types - {call.first.dtype} or "kv_cache_bit_width" in call.attributes:
            return "a cache that is not quantised has the type of the query, and no scales"
    elif types != {{8: "int8", 4: "uint8"}.get(call.parameter("kv_cache_bit_width"))} or scales != {
        each == "PER_TENSOR" for each in ways
    }:
        return "a quantised cache of 8 bits, or of 4 in bytes, with a scale or one for each channel"
    if n["P"] and n["S"] > 1 < n["B"] and "query_seqlens" not in call.inputs:
        return "one batch where several tokens follow a cache"
    if n["H"] % (16 if call.parameter("do_rotary", 0) else 8) or n["Q"] % n["H"]:
        return "the size of a head is a multiple of 8, of 16 where it is rotated"
    if n["causal"] not in (0, 1) or (not n["causal"] and n["local_window_size"] != -1):
        return "causal is 0 or 1, and local_window_size -1 where it is 0"
    caches = {name in call.inputs for name in ("cos_cache", "sin_cache")}
    return None if caches == {bool(call.parameter("do_rotary", 0))} else "do_rotary, and the caches of angles"


_PACKED = {
    "V": lambda n: n["qkv_hidden_sizes"][2] if "qkv_hidden_sizes" in n else n["W"] // 3,
    "K": lambda n: n["qkv_hidden_sizes"][0] if "qkv_hidden_sizes" in n else n["V"],
    "H": lambda n: n["K"] // n["num_heads"] if n["K"] % n["num_heads"] == 0 else 0,
    "X": lambda n: n["V"] // n["num_heads"],
    "E": lambda n: 2 * n["B"],
    **_CACHED,
}
"""Dimensions where one matrix makes queries, keys and values."""

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
                "T": lambda n: n.get("past_sequence_length", n["P"]) + n["L"],
                "P": lambda n: n["T"] - n["L"],
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
        "com.microsoft.GroupQueryAttention",
        Dimensioned(
            "query: B S Q; key: B S KV; value: B S KV; past_key: B kv_num_heads P width; past_value: B kv_num_heads P width; seqlens_k: B; "
            "total_sequence_length:  | 1; cos_cache: M R; sin_cache: M R; position_ids: B S; "
            "attention_bias: B num_heads S A | 1 1 S A | B 1 S A | 1 num_heads S A; "
            "head_sink: num_heads; k_scale: 1 | 1 kv_num_heads 1 H; v_scale: 1 | 1 kv_num_heads 1 H; q_norm_weight: H; "
            "k_norm_weight: H; query_seqlens: B",
            "B S O; B kv_num_heads rows width; B kv_num_heads rows width; B num_heads S T",
            {
                "H": lambda n: (
                    n["Q"] // (n["num_heads"] + (0 if "key" in n["inputs"] else 2 * n["kv_num_heads"]))
                ),
                "width": lambda n: n["H"] // (2 if n.get("kv_cache_bit_width") == 4 else 1),
                "O": lambda n: n["num_heads"] * n["H"],
                "R": lambda n: n["H"] // 2,
                "A": lambda n: n.get("total_sequence_length", n["P"] + n["S"]),
                "T": lambda n: (
                    max(n["P"], n["total_sequence_length"])
                    if "total_sequence_length" in n
                    else n["P"] + n["S"]
                ),
                "rows": lambda n: n["P"] if n["sliding_window_cache"] else n["T"],
            },
            _no_groups,
            {
                "seqlens_k": (
                    Chosen("full", lambda raw, n: raw * 0 + n["S"] + n["P"] - 1),
                    Chosen("ragged", _ragged),
                    Chosen("latest", _latest),
                    Chosen(
                        "used",
                        lambda raw, n: n["S"] - 1 + raw % (n["total_sequence_length"] + 1 - 2 * n["S"]),
                    ),
                    Chosen(
                        "prompts", lambda raw, n: np.where(np.arange(len(raw)) == 0, n["S"] - 1, raw % n["S"])
                    ),
                ),
                **dict.fromkeys(
                    ("key", "value"), (Chosen("sixteenths", lambda raw, _: (raw % 29 - 14) / 16 + 1 / 64),)
                ),
                **dict.fromkeys(("past_key", "past_value"), BITS),
                **dict.fromkeys(
                    ("k_scale", "v_scale"), (Chosen("eighths", lambda raw, _: 0.125 / (1 + raw % 2)),)
                ),
                "total_sequence_length": (Chosen("total", lambda raw, n: raw * 0 + n["S"] + n["P"]),),
                "query_seqlens": (Chosen("chunks", lambda raw, n: raw % (n["S"] + 1)),),
                "position_ids": (
                    Chosen("places", lambda raw, n: raw * 0 + n["P"] + np.arange(n["S"])),
                    Chosen("anywhere", lambda raw, n: raw % n.get("M", 33)),
                    Chosen("early", lambda raw, n: raw % (n.get("M", 33) - n["S"] + 1)),
                ),
            },
            count=3,
            defaults={"P": 0, "M": 33},
        ),
        bounded(group_query),
        constants={"total_sequence_length": UNKNOWN},
        seldom=("q_norm_weight",),
    ),
    Operator(
        "com.microsoft.RotaryEmbedding",
        Dimensioned(
            "input: B S D | B N S H; position_ids: B S | 1; cos_cache: M R; sin_cache: M R",
            "*",
            {"R": lambda n: n["H"] // 2},
            lambda n, _: (
                "heads of twice the angles"
                if n.get("H", n.get("D")) % (2 * n["R"])
                else "as many tokens as the caches have rows, or fewer"
                if n["S"] > n["M"]
                else "caches of half of rotary_embedding_dim"
                if n.get("rotary_embedding_dim", 0) not in (0, 2 * n["R"])
                else None
            ),
            defaults={"M": 11},
            chosen={
                "position_ids": (
                    Chosen("places", lambda raw, n: raw % (4 if raw.ndim == 1 else n.get("M", 11))),
                )
            },
        ),
        bounded(rotary_embedding),
        outputs=lambda call: (call.first.shape,),
    ),
)
