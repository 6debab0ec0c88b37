"""The family of Attention: how the shapes of keys, values, masks and caches are derived from that of queries, and
which elements are chosen for them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.float_formats import encode
from harness.operators.attention.attention_rules import (
    Extents,
    extents,
    head_counts,
    wrong_attributes,
    wrong_cache,
    wrong_mask,
    wrong_shapes,
)
from harness.operators.base import Call, Entropy, Operator, Relation, Shape, ValueKind
from harness.operators.computing import Computing, lengths

LENGTHS = "nonpad_kv_seqlen from 0 to the number of keys"
LENGTH_KINDS = (
    ValueKind("any_length"),
    ValueKind("full"),
    ValueKind("none"),
    ValueKind("too_long", breaks=LENGTHS),
    ValueKind("negative_length", breaks=LENGTHS),
)
"""any_length: 1 to the number of keys; none: 0 for the first."""
MASKS = (ValueKind("masked"), ValueKind("rows_masked"))
"""masked: a quarter of the elements False, of floats -inf and the others in -2..2; rows_masked: so, and every second
row without a key."""


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
        "attn_mask": (
            "keys",
            "queries",
            "one_query",
            "heads",
            "batch",
            "full",
            "short",
            "short_full",
            "cached",
            "cached_full",
            "unlike",
            "deeper",
        ),
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
            return _mask(found, str(relation))
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


def _mask(n: Extents, relation: str) -> Shape:
    found: dict[str, Shape] = {
        "keys": (n.total,),
        "queries": (n.queries, n.total),
        "one_query": (1, n.total),
        "heads": (n.heads, n.queries, n.total),
        "batch": (n.batch, 1, n.queries, n.total),
        "full": (n.batch, n.heads, n.queries, n.total),
        "short": (n.queries, n.total - 1),
        "short_full": (n.batch, n.heads, n.queries, n.total - 1),
        "cached": (n.queries, n.total + 3),
        "cached_full": (n.batch, n.heads, n.queries, n.total + 3),
        "unlike": (n.queries + 1, n.total),
        "deeper": (1, n.batch, n.heads, n.queries, n.total),
    }
    return found[relation]
