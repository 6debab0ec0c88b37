"""GroupQueryAttention: attention in which some heads share keys and values, over a cache that grows, is held or slides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.attention.attention import by_heads, joined, weights
from harness.operators.attention.rotary_embedding import rotated
from harness.operators.base import UNKNOWN, Call, Operator
from harness.operators.bounded import (
    Bounded,
    concatenate,
    converted,
    number,
    repeat,
    sqrt,
    swapaxes,
    tanh,
    where,
)
from harness.operators.contrib.attentions import (
    AttendedHeads,
    filled,
    later,
    score_scale,
)
from harness.operators.contrib.block_quantised import BITS, unpacked
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import Either, bounded


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
        concatenate([filled(each, extent, axis) for each in parts], axis=0)
        if isinstance(parts[0], Bounded)
        else _quantised(parts, extent, call)
        for parts, extent, axis in ((y, q.shape[2], 1), *((cache, most, 2) for cache in caches))
    )
    shares = (
        () if len(call.outputs) < 4 else [filled(filled(each, q.shape[2], 2), most, 3) for each in scores]
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


def _grouped(h: AttendedHeads, call: Call, more: Any, sink: Any) -> tuple[Bounded, Bounded]:
    share = call.parameter("num_heads") // call.parameter("kv_num_heads")
    k, v = (repeat(each, share, axis=1) for each in (h.k, h.v))
    scores = (h.q @ swapaxes(k, -1, -2)) * score_scale(call, h)
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


def _ragged(raw: Array, n: Dimensions) -> Array:
    """Lengths of caches from 0 to all, to which one token is added; that of the first batch is all."""
    return np.asarray(np.where(np.arange(len(raw)) == 0, n["P"], raw % (n["P"] + 1)))


def _latest(raw: Array, n: Dimensions) -> Array:
    """Lengths up to that of the first batch, which is the greatest."""
    total, new = n["total_sequence_length"], n["S"]
    return np.asarray(np.where(np.arange(len(raw)) == 0, total - 1, new - 1 + raw % (total - new + 1)))


def _used(raw: Array, n: Dimensions) -> Array:
    """Lengths that leave room for padded new tokens, behind tokens that a cache without a window holds."""
    most = n["total_sequence_length"] - n["S"]
    most = most if n["sliding_window_cache"] else min(most, n["P"])
    return np.asarray(n["S"] - 1 + raw % max(1, most + 1 - n["S"]))


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
    elif "query_seqlens" not in call.inputs and n["P"] < n.get("total_sequence_length", 0) != n["P"] + n["S"]:
        return "a cache that grows by what is new, or one that holds it already"
    if "query_seqlens" in call.inputs and ("past_key" not in call.inputs or n["causal"] != 1):
        return "query_seqlens goes with past_key, past_value and causal=1"
    for name in ("q_norm_epsilon", "k_norm_epsilon"):
        if not 0 < call.parameter(name, 1.0) < np.inf:
            return f"{name} is finite and positive"
    if n["P"] and "past_key" not in call.inputs:
        return "as many keys as queries without a cache"
    types = {call.inputs[name].dtype for name in ("past_key", "past_value") if name in call.inputs}
    ways = {each: call.parameter(f"{each}_quant_type") for each in "kv"}
    single = {
        each: call.inputs[f"{each}_scale"].shape == (1,) for each in "kv" if f"{each}_scale" in call.inputs
    }
    if set(ways.values()) == {"NONE"}:
        if single or types - {call.first.dtype} or "kv_cache_bit_width" in call.attributes:
            return "a cache that is not quantised has the type of the query, and no scales"
    elif types != {{8: "int8", 4: "uint8"}.get(call.parameter("kv_cache_bit_width"))} or single != {
        each: way == "PER_TENSOR" for each, way in ways.items()
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


_LENGTHS = "seqlens_k + 1 is from 1 to total_sequence_length"


def _no_lengths(n: Dimensions, _call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    """Lengths that a batch cannot have, as the description of query_seqlens says."""
    held = inputs["seqlens_k"].array.astype(np.int64) + 1
    most = int(inputs["total_sequence_length"].array.max(initial=0))
    slides = n["sliding_window_cache"]
    if most < (0 if slides else n["S"]):
        return "total_sequence_length counts the new tokens"
    if ((held < 1) | (held > most)).any():
        return _LENGTHS
    if "query_seqlens" not in inputs:
        return None
    new = inputs["query_seqlens"].array.astype(np.int64)
    if ((new < 0) | (new > np.minimum(n["S"], held))).any():
        return "query_seqlens is from 0 to the sequence length and to seqlens_k + 1"
    before = held - new
    if not slides and ((before > n["P"]) | (before + n["S"] > max(n["P"], most))).any():
        return "the cache has the tokens before the new ones, and room for all new ones, padding too"
    return None


OPERATORS = (
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
                "T": lambda n: max(n["P"], n.get("total_sequence_length", n["P"] + n["S"])),
                "rows": lambda n: n["P"] if n["sliding_window_cache"] else n["T"],
            },
            _no_groups,
            {
                "seqlens_k": (
                    Chosen("full", lambda raw, n: raw * 0 + n["S"] + n["P"] - 1),
                    Chosen("above", lambda raw, n: raw % 3 + n["S"] + n["P"], _LENGTHS),
                    Chosen("far_above", lambda raw, n: raw % 3 + 2**30, _LENGTHS),
                    Chosen("below", lambda raw, _: -2 - raw % 3, _LENGTHS),
                    Chosen("ragged", _ragged),
                    Chosen("latest", _latest),
                    Chosen("used", _used),
                    Chosen(
                        "prompts", lambda raw, n: np.where(np.arange(len(raw)) == 0, n["S"] - 1, raw % n["S"])
                    ),
                ),
                **dict.fromkeys(
                    ("query", "key", "value"),
                    (Chosen("sixteenths", lambda raw, _: (raw % 29 - 14) / 16 + 1 / 64),),
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
            by_values=_no_lengths,
        ),
        bounded(group_query),
        constants={"total_sequence_length": UNKNOWN},
        seldom=("q_norm_weight", "k_quant_type"),
    ),
)
