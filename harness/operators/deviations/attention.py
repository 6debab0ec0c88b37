"""Deviating results of Attention."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Expected
from harness.model.float_formats import FORMATS
from harness.operators.attention.attention_family import extents
from harness.operators.deviations.base import Deviating, changed, deviation, settled

# Attention: all keys are open, whatever is_causal says.
changed("never_causal", is_causal=0)


# Attention: softmax_precision is not read.
changed("softmax_in_its_own_type", without=("softmax_precision",))


# Attention: a scale of NaN is one that is left out.
changed("scaled_as_by_default", without=("scale",))


@deviation
def lowest_score_where_shut(asked: Deviating) -> tuple[Expected, ...]:
    """Attention: the score of a shut key is the lowest number, so that a query without a key takes the shut ones alike;
    is_causal counts from the end of the cache alone, and one query ignores it. -inf of a mask
    stays where neither is_causal nor nonpad_kv_seqlen shuts the key."""
    call, q, n = asked.call, asked.inputs["Q"], extents(asked.call)
    mask = asked.inputs["attn_mask"].array if "attn_mask" in asked.inputs else np.zeros(1)
    infinite: Array = np.isneginf(mask)
    reached: Array = mask if mask.dtype == bool else np.full(1, True)
    if call.parameter("is_causal") and n.queries > 1:
        reached = reached & (np.arange(n.total) <= n.past + np.arange(n.queries)[:, None])
    if "nonpad_kv_seqlen" in asked.inputs:
        reached = reached & (np.arange(n.total) < asked.inputs["nonpad_kv_seqlen"].array.reshape(-1, 1, 1, 1))
    infinite, reached = (
        np.broadcast_to(x, (n.batch, n.heads, n.queries, n.total)) for x in (infinite, reached)
    )
    infinite = infinite & reached
    dead = np.asarray(~(reached & ~infinite).any(-1, keepdims=True))
    added = 0.0 if mask.dtype == bool else np.where(np.isneginf(mask), 0.0, mask)
    bias = np.where(infinite | ~(reached | dead), -np.inf, np.where(dead, 0.0, added))
    storage = DTYPES[q.dtype].storage
    others = {name: x for name, x in asked.inputs.items() if name != "nonpad_kv_seqlen"}
    others["attn_mask"] = Tensor(q.dtype, bias.astype(storage))
    level = np.where(_as(q.array, dead), q.array.dtype.type(0), q.array)
    y, *rest = asked.formula(inputs={**others, "Q": Tensor(q.dtype, level)}, is_causal=0)
    lost = np.asarray(infinite.all(-1, keepdims=True))
    found = [settled(y, _as(y.value, lost), np.nan) if isinstance(y, Approx) else y, *rest]
    if len(found) > 3 and isinstance(found[3], Approx):
        if call.parameter("qk_matmul_output_mode") < 3:
            found[3] = asked.formula(inputs=others, is_causal=0)[3]
            assert isinstance(found[3], Approx)
        if call.parameter("qk_matmul_output_mode") == 2:
            lowest = -FORMATS[q.dtype].largest
            found[3] = Approx(q.dtype, np.where(~reached, lowest, found[3].value), found[3].bound)
        if call.parameter("qk_matmul_output_mode") == 3:
            found[3] = settled(found[3], np.broadcast_to(lost, found[3].shape), np.nan)
    return tuple(found)


def _as(x: Array, rows: Array) -> Array:
    """Return [batch, heads, queries, 1] in the dimensions of Q or Y."""
    if x.ndim == 4:
        return np.broadcast_to(rows, x.shape)
    heads = rows.shape[1]
    parted = np.broadcast_to(rows.transpose(0, 2, 1, 3), (*x.shape[:2], heads, x.shape[2] // heads))
    return parted.reshape(x.shape)
