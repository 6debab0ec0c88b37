"""The extents of a call of Attention, and the rules that its types, shapes and attributes keep.

Q is [batch, heads, queries, size], K [batch, kv heads, keys, size], V [batch, kv heads, keys, v size]; or each is
[batch, length, heads * size], with the numbers of heads as attributes.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.operators.base import Call
from harness.operators.broadcasting import broadcast

SOFTMAX_TYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
"""The types of TensorProto.DataType that `softmax_precision` may name."""


class Extents(NamedTuple):
    """The extents of a call: `kv_heads` are those of K and V, `past` the keys of the cache."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    past: int
    size: int
    v_size: int

    @property
    def total(self) -> int:
        """Return the number of keys with those of the cache."""
        return self.past + self.keys


def extents(call: Call) -> Extents:
    """Return the extents of a call whose Q, K and V fit together."""
    q, k, v = (call.inputs[name].shape for name in "QKV")
    cache = call.inputs.get("past_key")
    past = cache.shape[2] if cache is not None and len(cache.shape) == 4 else 0
    if len(q) == 4:
        return Extents(q[0], q[1], k[1], q[2], k[2], past, q[3], v[3])
    heads, kv_heads = head_counts(call)
    return Extents(q[0], heads, kv_heads, q[1], k[1], past, q[2] // heads, v[2] // kv_heads)


def head_counts(call: Call) -> tuple[int, int]:
    """Return q_num_heads and kv_num_heads; 0 for one that is not given."""
    heads, kv_heads = call.parameter("q_num_heads") or 0, call.parameter("kv_num_heads") or 0
    return heads, kv_heads


def wrong_shapes(call: Call) -> str | None:
    """Return the rule that the element types and shapes of Q, K and V break, or None."""
    q, k, v = (call.inputs[name].shape for name in "QKV")
    if len({call.inputs[name].dtype for name in "QKV"}) > 1:
        return "Q, K and V have one element type"
    if len(q) not in (3, 4) or len(k) != len(q) or len(v) != len(q):
        return "Q, K and V have four dimensions, or three"
    heads, kv_heads = head_counts(call) if len(q) == 3 else (q[1], k[1])
    if len(q) == 3:
        if heads < 1 or kv_heads < 1:
            return "q_num_heads and kv_num_heads are given for three dimensions"
        if q[2] % heads or k[2] % kv_heads or v[2] % kv_heads:
            return "the numbers of heads divide the last dimensions"
    if len({q[0], k[0], v[0]}) > 1:
        return "Q, K and V have one batch size"
    if k[-2] != v[-2] or (len(q) == 4 and k[1] != v[1]):
        return "K and V have as many heads and keys"
    if (q[3] != k[3]) if len(q) == 4 else (q[2] // heads != k[2] // kv_heads):
        return "Q and K have one head size"
    return "q_num_heads is a multiple of kv_num_heads" if kv_heads < 1 or heads % kv_heads else None


def wrong_cache(call: Call) -> str | None:
    """Return the rule that cached keys and values, and lengths, break, or None."""
    key, value = call.inputs.get("past_key"), call.inputs.get("past_value")
    lengths = call.inputs.get("nonpad_kv_seqlen")
    if (key is None) != (value is None):
        return "past_key and past_value are used together"
    n = extents(call)
    if key is not None and value is not None:
        if key.shape != (n.batch, n.kv_heads, n.past, n.size):
            return "past_key has the shape (batch_size, kv_num_heads, past_sequence_length, head_size)"
        if value.shape != (n.batch, n.kv_heads, n.past, n.v_size):
            return "past_value has the shape (batch_size, kv_num_heads, past_sequence_length, v_head_size)"
        if value.dtype != key.dtype:
            return "Q, K and V have one element type"
        if lengths is not None:
            return "nonpad_kv_seqlen is not used together with a cache"
    if lengths is not None and {1, 2} & set(call.given or range(len(call.outputs))):
        return "nonpad_kv_seqlen is not used together with a cache"
    wrong = lengths is not None and lengths.shape != (n.batch,)
    return "nonpad_kv_seqlen has the shape (batch_size,)" if wrong else None


def wrong_mask(call: Call) -> str | None:
    """Return the rule that the mask breaks, or None."""
    mask = call.inputs.get("attn_mask")
    if mask is None:
        return None
    if mask.dtype not in ("bool", call.first.dtype):
        return "attn_mask is bool, or of the type of Q"
    n, shape = extents(call), mask.shape
    scores = (n.batch, n.heads, n.queries, n.total)
    if call.opset >= 24 and shape and shape[-1] < n.total:
        shape = (*shape[:-1], n.total)
    fits = len(shape) <= 4 and broadcast((shape, scores)) == scores
    return None if fits else "attn_mask can be broadcast to the scores"


def wrong_attributes(call: Call) -> str | None:
    """Return the rule that attributes break, or None."""
    if call.parameter("qk_matmul_output_mode") not in range(4):
        return "qk_matmul_output_mode from 0 to 3"
    if call.parameter("softmax_precision") not in (None, *SOFTMAX_TYPES):
        return "softmax_precision is a type of floats"
    windows = (call.parameter("left_window_size", -1), call.parameter("right_window_size", -1))
    return "window sizes from -1" if min(windows) < -1 else None
