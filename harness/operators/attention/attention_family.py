"""The family of Attention: the extents of a call, the rules that its types, shapes and attributes keep, how the shapes of
keys, values, masks and caches are derived from that of queries, and which elements are chosen for them.

Q is [batch, heads, queries, size], K [batch, kv heads, keys, size], V [batch, kv heads, keys, v size]; or each is
[batch, length, heads * size], with the numbers of heads as attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import FLOATS_BY_NUMBER, Array
from harness.model.float_formats import encode
from harness.operators.base import Call, Entropy, Operator, Relation, Shape, ValueKind, value_kinds
from harness.operators.broadcasting import broadcast
from harness.operators.computing import Computing, lengths


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
    if call.parameter("softmax_precision") not in (None, *FLOATS_BY_NUMBER):
        return "softmax_precision is a type of floats"
    windows = (call.parameter("left_window_size", -1), call.parameter("right_window_size", -1))
    return "window sizes from -1" if min(windows) < -1 else None


LENGTHS = "nonpad_kv_seqlen from 0 to the number of keys"
LENGTH_KINDS = (
    *value_kinds("any_length", "full", "none"),
    *value_kinds("too_long", "negative_length", breaks=LENGTHS),
)
"""any_length: 1 to the number of keys; none: 0 for the first."""
MASKS = value_kinds("masked", "rows_masked")
"""masked: a quarter of the elements False, of floats -inf and the others in -2..2; rows_masked: so, and every second
row without a key."""


_MASK_SHAPES: dict[str, Callable[[Extents], Shape]] = {
    "keys": lambda n: (n.total,),
    "queries": lambda n: (n.queries, n.total),
    "one_query": lambda n: (1, n.total),
    "heads": lambda n: (n.heads, n.queries, n.total),
    "batch": lambda n: (n.batch, 1, n.queries, n.total),
    "full": lambda n: (n.batch, n.heads, n.queries, n.total),
    "short": lambda n: (n.queries, n.total - 1),
    "short_full": lambda n: (n.batch, n.heads, n.queries, n.total - 1),
    "cached": lambda n: (n.queries, n.total + 3),
    "cached_full": lambda n: (n.batch, n.heads, n.queries, n.total + 3),
    "unlike": lambda n: (n.queries + 1, n.total),
    "deeper": lambda n: (1, n.batch, n.heads, n.queries, n.total),
}
"""The shapes of masks by their words."""


class Attending(Computing):
    """K by `length`, its keys (or `same`), `heads` where Q has four dimensions, and `unlike`; V `same`, `narrow`
    (size 1), `wide` (3 more) or unlike K; the mask by the dimensions that it has of the scores, `short` without
    the last key, `cached` for three more in a cache; past_key by its keys `one`, `some` (3), `none`; all others
    `same`.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "length": ("same",),
        "unlike": ("batch", "size", "rank"),
    }
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "K": ("length", "heads", "unlike"),
        "V": ("same", "narrow", "wide", "unlike_batch", "unlike_heads", "unlike_length"),
        "attn_mask": tuple(_MASK_SHAPES),
        "past_key": ("one", "some", "none", "unlike"),
        "*": ("same", "unlike"),
    }
    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"nonpad_kv_seqlen": LENGTH_KINDS}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of all inputs behind Q."""
        if name == "K":
            return None if isinstance(relation, str) else _keys(call, relation)
        if name == "V":
            return _values(call, str(relation))
        if wrong_shapes(call) is not None:
            return None
        found, unlike = extents(call), relation == "unlike"
        if name == "attn_mask":
            return _MASK_SHAPES[str(relation)](found)
        if name == "past_key":
            length = {"one": 1, "none": 0}.get(str(relation), 3)
            return (found.batch, found.kv_heads, length, found.size + unlike)
        if name == "past_value":
            return (found.batch, found.kv_heads, (found.past or 3) + unlike, found.v_size)
        return (found.batch + unlike,)

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Lengths, masks, and elements by what they mean."""
        return (MASKS if name == "attn_mask" else ()) + super().kinds(operator, name)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input's type."""
        return kind in {each.name for each in MASKS} or super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose masks, lengths or elements."""
        if kind not in {each.name for each in MASKS}:
            return super().generate(operator, kind, name, call, entropy)
        dtype, shape = call.inputs[name]
        raw = np.frombuffer(entropy, "<u4", prod(shape)).astype(np.int64).reshape(shape)
        closed = raw % 4 == 0
        if kind == "rows_masked" and len(shape) > 1:
            closed[..., 1::2, :] = True
        chosen = ~closed if dtype == "bool" else np.where(closed, -np.inf, (raw >> 8) % 17 / 4 - 2)
        return np.asarray(chosen) if dtype == "bool" else encode(dtype, np.asarray(chosen, np.float64))

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose lengths within the keys, of which one may be illegal."""
        keys = call.inputs["K"].shape[-2 if len(call.first.shape) == 4 else 1]
        return lengths(kind, raw, keys)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Types, ranks and shapes, and words of the attributes."""
        return wrong_shapes(call) or wrong_mask(call) or wrong_cache(call) or wrong_attributes(call)

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Lengths within the keys."""
        lengths = inputs.get("nonpad_kv_seqlen")
        if lengths is None:
            return None
        return LENGTHS if ((lengths.array < 0) | (lengths.array > extents(call).keys)).any() else None

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Y, the keys and values with those of the cache, and the scores."""
        n = extents(call)
        four = len(call.first.shape) == 4
        return (
            (n.batch, n.heads, n.queries, n.v_size) if four else (n.batch, n.queries, n.heads * n.v_size),
            (n.batch, n.kv_heads, n.total, n.size),
            (n.batch, n.kv_heads, n.total, n.v_size),
            (n.batch, n.heads, n.queries, n.total),
        )


def _keys(call: Call, relation: Mapping[str, Any]) -> Shape | None:
    q = call.first.shape
    if len(q) not in (3, 4):
        return None
    unlike, length = relation.get("unlike"), relation.get("length", "same")
    batch, count = q[0] + (unlike == "batch"), q[-2] if length == "same" else length
    if len(q) == 4:
        heads = relation.get("heads", q[1])
        return (batch, heads, count, q[3] + (unlike == "size"))[unlike == "rank" :]
    heads, kv_heads = head_counts(call)
    if "heads" in relation or heads < 1 or kv_heads < 1 or q[2] % heads:
        return None
    found = (batch, count, kv_heads * (q[2] // heads + (unlike == "size")))
    return (1, *found) if unlike == "rank" else found


def _values(call: Call, relation: str) -> Shape | None:
    k = call.inputs["K"].shape
    if len(k) != len(call.first.shape):
        return k
    batch, length = k[0] + (relation == "unlike_batch"), k[-2] + (relation == "unlike_length")
    if len(k) == 4:
        size = {"narrow": 1, "wide": k[3] + 3}.get(relation, k[3])
        return (batch, k[1] + (relation == "unlike_heads"), length, size)
    heads = head_counts(call)[1]
    if heads < 1 or relation == "unlike_heads":
        return None
    return (batch, length, {"narrow": heads, "wide": k[2] + 3 * heads}.get(relation, k[2]))
