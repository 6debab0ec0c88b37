"""Deviating results of recurrent layers and of Attention."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Expected
from harness.model.float_formats import FORMATS
from harness.operators.attention.attention_family import extents
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, changed, deviation, replaced, settled
from harness.operators.formulas import bounded
from harness.operators.recurrence.recurrences import FUNCTIONS, named
from harness.operators.recurrence.recurrent import rnn


@deviation
def scales_of_0(asked: Deviating) -> tuple[Expected, ...]:
    """RNN: an alpha or beta that is not given is 0."""
    scales: dict[str, Value] = {}
    for which in ("alpha", "beta"):
        count = sum(getattr(FUNCTIONS[name], which) is not None for name in _functions(asked))
        own = asked.call.parameter(f"activation_{which}") or ()
        scales[f"activation_{which}"] = (*own, *(0.0,) * (count - len(own)))
    return asked.formula(**scales)


def _functions(asked: Deviating) -> tuple[str, ...]:
    """Return the names of the activation functions of all directions."""
    kind = asked.operator.options
    return named(asked.call, kind.functions, len(kind.directions(asked.call)))


# RNN with HardSigmoid in each direction: of NaN it is 0.
replaced("zero_of_nan_in_hard_sigmoid", bounded(partial(rnn, of_nan=0.0)))


@deviation
def cell_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: Ht = ot (.) h(Ct), Ct not bounded by clip; all other arguments are."""
    clip = asked.call.parameter("clip")
    return asked.formula(clip=(clip, clip, None))


@deviation
def thresholds_of_0_and_cell_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: Ht = ot (.) h(Ct), Ct not bounded by clip, and ThresholdedRelu has the alpha 0."""
    return cell_not_clipped(asked.again(activation_alpha=_with_thresholds_of_0(asked)))


def _with_thresholds_of_0(asked: Deviating) -> tuple[float, ...]:
    return _floats(0.0 if name == "ThresholdedRelu" else FUNCTIONS[name].alpha for name in _functions(asked))


# RNN, GRU, LSTM: ThresholdedRelu has the alpha 0.
changed("thresholds_of_0", activation_alpha=_with_thresholds_of_0)


def _with_thresholds_above(asked: Deviating) -> tuple[float, ...]:
    given = iter(asked.call.parameter("activation_alpha") or ())
    alphas = [FUNCTIONS[name].alpha and next(given, FUNCTIONS[name].alpha) for name in _functions(asked)]
    return _floats(
        float(np.nextafter(np.float32(alpha), np.float32(np.inf))) if name == "ThresholdedRelu" else alpha
        for name, alpha in zip(_functions(asked), alphas, strict=True)
    )


# RNN, GRU, LSTM: ThresholdedRelu(x) = x for x > alpha, which is 0 for alpha itself.
changed("thresholds_not_reached", activation_alpha=_with_thresholds_above)


@deviation
def not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """RNN and GRU: clip is not read, and arguments are held to the largest number, NaN to the least.
    LSTM: it bounds the arguments of f and g, and not that of h."""
    clip = asked.call.parameter("clip")
    if clip is None:
        raise Undefined("no clip")
    changed: Value = (
        (clip, clip, np.inf) if asked.operator.name == "LSTM" else FORMATS[asked.call.first.dtype].largest
    )
    return tuple(_known(found) for found in asked.formula(clip=changed) if isinstance(found, Approx))


# log(1 + exp(steepness * x)) / steepness, with a steepness of 0
@deviation
def infinite_softplus(asked: Deviating) -> tuple[Expected, ...]:
    """Recurrent operators: Softplus is infinite, and a cell state that is not given is not multiplied by it."""
    names = asked.call.parameter("activations") or ()
    if "Softplus" not in names or asked.call.parameter("activation_alpha") is not None:
        raise Undefined("no Softplus of its own")
    inputs = dict(asked.inputs)
    if asked.operator.name == "LSTM" and "initial_c" not in inputs:
        x, r = inputs["X"], inputs["R"].array
        batch = x.array.shape[1 - asked.call.parameter("layout", 0)]
        least = np.finfo(x.array.dtype).smallest_subnormal  # infinity times this is no NaN
        inputs["initial_c"] = Tensor(x.dtype, np.full((len(r), batch, r.shape[2]), least))
    changed: dict[str, Any] = {
        "activations": tuple("Affine" if name == "Softplus" else name for name in names),
        "activation_alpha": _floats(0.0 if name == "Softplus" else FUNCTIONS[name].alpha for name in names),
        "activation_beta": _floats(np.inf if name == "Softplus" else FUNCTIONS[name].beta for name in names),
    }
    again = asked.again(inputs=inputs, **changed)
    given = not_clipped(again) if again.call.parameter("clip") is not None else again.formula()
    return tuple(_known(found) for found in given if isinstance(found, Approx))


def _known(found: Approx) -> Approx:
    """Return a result with a bound where gates that are saturated or infinite leave none: 8 units in the last place
    of 1, or of the value where that is greater."""
    finite = np.isfinite(found.value)
    steps = 8 * FORMATS[found.dtype].spacing(np.maximum(np.abs(np.where(finite, found.value, 0.0)), 1.0))
    bound = np.where(np.isfinite(found.bound), found.bound, steps)
    return Approx(found.dtype, found.value, np.where(finite, bound, 0.0))


def _floats(given: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(each for each in given if each is not None)


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
