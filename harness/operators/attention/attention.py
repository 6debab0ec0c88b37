"""Attention: averages of values, weighted by how well their keys match each query."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import FLOATS_BY_NUMBER, Array
from harness.operators.attention.attention_family import (
    Attending,
    Extents,
    extents,
    head_counts,
)
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import (
    Bounded,
    arithmetic,
    concatenate,
    converted,
    either,
    exp,
    number,
    pad,
    repeat,
    sqrt,
    swapaxes,
    tanh,
    where,
)
from harness.operators.formulas import bounded

# scores  = (Q * sqrt(scale)) @ (K * sqrt(scale))^T                 scale = 1 / sqrt(size)
# capped  = softcap * tanh(scores / softcap)                        softcap = 0: scores
# biased  = capped + attn_mask, -inf where a key is not open to a query
# weights = softmax(biased), 0 for a query to which no key is open
# Y       = weights @ V
# A query i stands at p = offset + i; a key j is open to it where the mask allows it, j <= p if is_causal,
# p - left_window_size <= j <= p + right_window_size, and j < nonpad_kv_seqlen.
# offset: the length of the cache, or nonpad_kv_seqlen - queries, or 0


def attention(
    Q: Bounded,
    K: Bounded,
    V: Bounded,
    call: Call,
    attn_mask: Any = None,
    past_key: Bounded | None = None,
    past_value: Bounded | None = None,
    nonpad_kv_seqlen: Array | None = None,
) -> tuple[Bounded, ...]:
    """Attend by the formula above: Y, the keys and values with those of the cache, and the scores at one of four
    stages."""
    n = extents(call)
    if any(
        given not in (0, held) for given, held in zip(head_counts(call), (n.heads, n.kv_heads), strict=True)
    ):
        raise Undefined("numbers of heads that are not those of four dimensions")
    q = by_heads(Q, n.heads)
    present = tuple(
        by_heads(new, n.kv_heads) if old is None else concatenate([old, by_heads(new, n.kv_heads)], axis=2)
        for new, old in ((K, past_key), (V, past_value))
    )
    key, value = (repeat(each, n.heads // n.kv_heads, axis=1) for each in present)
    scores = _scores(q, key, call.parameter("scale"), n.size)
    softcap = call.parameter("softcap")
    capped = softcap * tanh(scores / softcap) if softcap else scores
    reached = _open(call, n, nonpad_kv_seqlen)
    biased, dead = _masked(capped, attn_mask, reached)
    found = weights(biased, dead, call)
    y = found @ value
    y = joined(y) if Q.ndim == 3 else y
    return y, *present, (scores, capped, biased, found)[call.parameter("qk_matmul_output_mode")]


def by_heads(x: Bounded, heads: int) -> Bounded:
    """Return [batch, heads, length, size] of [batch, length, heads * size]."""
    if x.ndim == 4:
        return x
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def joined(x: Bounded) -> Bounded:
    """Return [batch, length, heads * size] of [batch, heads, length, size]."""
    batch, heads, length, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


def _scores(q: Bounded, key: Bounded, scale: float | None, size: int) -> Bounded:
    """Multiply queries by keys: each times the root of scale before, or the product times scale.

    ONNX's function computes both in float32, also for queries of float64.
    """
    own = q.arithmetic
    narrow = arithmetic(own.name, "float32") if own.errs and own.form.dtype == "float64" else own
    one = number(1.0, narrow)
    factor = one / sqrt(one * float(max(size, 1))) if scale is None else number(float(scale), narrow)
    root, whole = (converted(each, own.form.dtype) for each in (sqrt(factor), factor))
    turned = swapaxes(key, -1, -2)
    return either((q * root) @ (turned * root), (q @ turned) * whole)


def _open(call: Call, n: Extents, lengths: Array | None) -> Array:
    """Say which keys are open to which queries, but for the mask: [batch or 1, 1, queries, keys]."""
    at = np.arange(n.total)
    offset = np.full((1, 1, 1, 1), n.past) if lengths is None else (lengths - n.queries).reshape(-1, 1, 1, 1)
    p = offset + np.arange(n.queries)[:, None]
    found = at <= p if call.parameter("is_causal") else np.full(p.shape[:3] + at.shape, True)
    left, right = call.parameter("left_window_size", -1), call.parameter("right_window_size", -1)
    found = found & (at >= p - left) if left >= 0 else found
    found = found & (at <= p + right) if right >= 0 else found
    return np.asarray(found if lengths is None else found & (at < lengths.reshape(-1, 1, 1, 1)))


def _masked(x: Bounded, mask: Any, reached: Array) -> tuple[Bounded, Array]:
    """Add the mask, -inf where a key is not open; say also which queries have none. Of a key that is not open and has
    no finite score nothing is claimed: it takes no part, and -inf added to it is NaN or an infinity."""
    if mask is not None and mask.shape[-1] < x.shape[-1]:
        beyond = [(0, 0)] * (mask.ndim - 1) + [(0, x.shape[-1] - mask.shape[-1])]
        bounded_mask = isinstance(mask, Bounded)
        mask = pad(mask, beyond, constant_values=-np.inf) if bounded_mask else np.pad(mask, beyond)
    closed = Bounded(
        np.where(finite := np.isfinite(x.value), -np.inf, 0.0), np.where(finite, 0.0, np.inf), x.arithmetic
    )
    if isinstance(mask, Bounded):
        x = x + mask
        reached = reached & ~np.isneginf(mask.value)
    elif mask is not None:
        reached = reached & mask
    reached = np.broadcast_to(reached, x.shape)
    return where(reached, x, closed), np.asarray(~reached.any(-1, keepdims=True))


def weights(x: Bounded, dead: Array, call: Call) -> Bounded:
    """Return the softmax of scores, computed in the type of `softmax_precision`; exactly 0 where a score is -inf.
    Nothing is claimed of a row of -inf that no mask explains."""
    if not x.shape[-1]:
        return x
    own = x.arithmetic.form.dtype
    asked = call.parameter("softmax_precision")
    wide = x if asked is None else converted(x, FLOATS_BY_NUMBER[asked])
    shut, zero = np.isneginf(wide.value), np.zeros(x.shape)
    most = where(dead, np.zeros(dead.shape), wide.max(-1, keepdims=True))
    e = where(shut, zero, exp(where(shut, zero, wide) - most))
    total = where(dead, np.ones(dead.shape), e.sum(-1, keepdims=True))
    lost = shut.all(-1, keepdims=True) & ~dead
    open_ = Bounded(zero, np.full(x.shape, np.inf), wide.arithmetic)
    return converted(where(lost, open_, where(shut, zero, e / total)), own)


OPERATOR = Operator("Attention", Attending(), bounded(attention))
