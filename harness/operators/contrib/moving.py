"""Operators that move, choose, count or hash elements."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import UNKNOWN, Call, Operator
from harness.operators.contrib.channels_last import NhwcPooling, channels_first
from harness.operators.data_movement import gather_nd, padding, permuting
from harness.operators.data_movement.moving import rank
from harness.operators.data_movement.reshaping import MOVING
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded, decided, moved
from harness.operators.generation import generating
from harness.operators.pooling.pooling import max_pool

TRILU = next(each for each in permuting.OPERATORS if each.name == "Trilu")


def trilu(X: Array, upper: int, k: Array | None = None) -> Array:
    """Keep a triangle as ONNX's Trilu does."""
    return permuting.trilu(X, upper, k)


# the elements in the order of their first places, their indices there, and how often each stands        (Unique)
def unique(x: Array) -> tuple[Array, Array, Array]:
    found, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    return found[order], np.argsort(order)[inverse].astype(np.int64), counts[order].astype(np.int64)


# a dimension of 1 at an axis                                                                        (ExpandDims)
def expand_dims(X: Array, axis: Array) -> Array:
    return np.expand_dims(X, int(axis.reshape(())))


def _axis(call: Call) -> int:
    axis = call.parameter("axis")
    return int(axis[0] if isinstance(axis, tuple) else axis)


def _cannot_expand(call: Call) -> str | None:
    return None if -rank(call) - 1 <= _axis(call) <= rank(call) else "axis in [-r-1, r]"


# start, start + delta, ... up to the limit; a delta that is left out is 1                               (Range)
def span(start: Any, limit: Any, call: Call, delta: Any = None) -> Any:
    one = start.reshape(()) * 0 + 1 if delta is None else delta.reshape(())
    return generating.span(start.reshape(()), limit.reshape(()), one, call)


def _no_range(call: Call) -> str | None:
    if any(each.shape not in ((), (1,)) for each in call.inputs.values()):
        return "start, limit and delta have one element"
    delta = call.parameter("delta", 1)
    return "delta is not 0" if delta in (0, (0,)) else generating.without_end(call)


def pad(data: Array, call: Call, mode: str, value: Array | None = None) -> Array:
    """Pad as ONNX's Pad does; pads may be a row of a matrix."""
    return np.asarray(padding.pad(data, _flat(call), mode, constant_value=value))


def _flat(call: Call) -> Call:
    flat = {name: each.reshape(-1) for name, each in call.constants.items() if name == "pads"}
    return call._replace(constants=flat, opset=18)


def _unlike_pads(call: Call) -> str | None:
    pads, *value = call.shapes[1:3]
    if pads[:-1] not in ((), (1,)):
        return "pads is a list, or a matrix of one row"
    return None if all(each in ((), (1,)) for each in value) else "value is one element"


# every window of `size` elements along `dim`, `step` apart, in a last dimension                   (UnfoldTensor)
def unfold(input: Array, dim: int, size: int, step: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(input, size, axis=dim)
    return np.asarray(windows[(slice(None),) * (dim % input.ndim) + (slice(None, None, step),)])


def _cannot_unfold(call: Call) -> str | None:
    shape, dim = call.first.shape, call.parameter("dim")
    if not -len(shape) <= dim < len(shape):
        return "dim in [-r, r-1]"
    fits = 0 < call.parameter("size") <= shape[dim] and call.parameter("step") > 0
    return None if fits else "size within the dimension, step above 0"


# a score becomes -inf where its token would end n tokens that stand in input_ids already      (NGramRepeatBlock)
def ngram_repeat_block(input_ids: Array, scores: Array, ngram_size: int) -> Array:
    found = np.array(scores)
    for ids, row in zip(input_ids.tolist(), found, strict=True):
        last = ids[len(ids) - ngram_size + 1 :]
        for place in range(len(ids) - ngram_size + 1):
            if ids[place : place + ngram_size - 1] == last:
                row[ids[place + ngram_size - 1]] = -np.inf
    return found


# tokens: cur_tokens and pred_tokens from where they first differ from src_tokens behind prev_suffix_match_idx;
# suffix_match_idx: the place behind the only one in src_tokens of the longest last tokens, of max to min, else -1
def bifurcation(
    src_tokens: Array,
    cur_tokens: Array,
    prev_suffix_match_idx: Array,
    min_ngram_size: int,
    max_ngram_size: int,
    pred_tokens: Array | None = None,
) -> tuple[Array, Array]:
    """Merge and look by the formula above."""
    source, tokens = src_tokens.tolist(), cur_tokens.tolist()
    if pred_tokens is not None:
        at, predicted = int(prev_suffix_match_idx.reshape(())), pred_tokens.tolist()
        same = 0
        while same < min(len(predicted), len(source) - at) and predicted[same] == source[at + same]:
            same += 1
        tokens += predicted[: same + 1]
    found = -1
    for size in range(min_ngram_size, max_ngram_size + 1):
        if size > len(tokens):
            break
        places = [n for n in range(len(source) - size + 1) if source[n : n + size] == tokens[-size:]]
        if len(places) < 2:
            found = places[0] + size if places else -1
            break
    return np.array(tokens, np.int64), np.array(found, np.int64).reshape(prev_suffix_match_idx.shape)


_C1, _C2 = 0xCC9E2D51, 0x1B873593


def murmur3(data: bytes, seed: int) -> int:
    """Return MurmurHash3_x86_32 (A. Appleby, https://github.com/aappleby/smhasher), which is in the public domain."""
    mask = 0xFFFFFFFF

    def turned(x: int, by: int) -> int:
        return (x << by | x >> 32 - by) & mask

    found = seed & mask
    for start in range(0, len(data), 4):
        part = int.from_bytes(data[start : start + 4], "little")
        found ^= turned(part * _C1 & mask, 15) * _C2 & mask
        if start + 4 <= len(data):
            found = (turned(found, 13) * 5 + 0xE6546B64) & mask
    found ^= len(data)
    for factor, by in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        found = ((found ^ found >> by) * factor) & mask
    return found ^ found >> 16


def murmur_hash(X: Array, positive: int, seed: int) -> Array:
    """Hash the bytes of each element, of a text those of UTF-8."""
    data = [each.encode() if isinstance(each, str) else each.tobytes() for each in X.reshape(-1)]
    hashes = np.array([murmur3(each, seed) for each in data], np.uint32).reshape(X.shape)
    return hashes if positive == 1 else hashes.view(np.int32)


def nhwc_max_pool(x: Array, call: Call) -> Array:
    """Choose the greatest as MaxPool does, of channels that are last."""
    found, _ = max_pool(np.moveaxis(x, -1, 1), channels_first(call))
    return np.moveaxis(np.asarray(found), 1, -1)


def _tokens(most: int) -> tuple[Chosen, ...]:
    return (Chosen("tokens", lambda raw, _: raw % most),)


_TOKENS = (*_tokens(4), Chosen("different", lambda raw, _: np.arange(raw.size)))
"""Tokens that stand at many places, and those that stand at one."""


_SCORED = "tokens that have a score"


def _beyond_the_scores(n: Dimensions, _call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    tokens = inputs["input_ids"].array
    return _SCORED if ((tokens < 0) | (tokens >= n["V"])).any() else None


def _not_left(n: Dimensions, _call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    """Predictions that do not go with what is left of the source."""
    left = n["S"] - int(inputs["prev_suffix_match_idx"].array)
    if "pred_tokens" not in inputs:
        return None
    fits = 0 <= left <= n["S"] and inputs["pred_tokens"].array.size == left + 1
    return None if fits else "as many predicted as source tokens are left, and one"


OPERATORS = (
    Operator("com.microsoft.Trilu", MOVING, moved(trilu), TRILU.rule, constants={"k": 0}),
    Operator(
        "com.microsoft.Pad",
        MOVING,
        moved(pad),
        lambda call: _unlike_pads(call) or padding.PAD.rule(_flat(call)),
        constants={"pads": UNKNOWN},
        domains=padding.PAD.domains,
    ),
    Operator(
        "com.microsoft.Unique",
        Dimensioned("x: N", "M; N; M", count=3, types=lambda call: (None, "int64", "int64")),
        decided(unique),
        outputs=lambda call: ((UNKNOWN,), call.first.shape, (UNKNOWN,)),
    ),
    Operator(
        "com.microsoft.ExpandDims", MOVING, moved(expand_dims), _cannot_expand, constants={"axis": UNKNOWN}
    ),
    Operator("com.microsoft.GatherND", gather_nd.GatherNDFamily(), moved(gather_nd.formula)),
    Operator("com.microsoft.UnfoldTensor", MOVING, moved(unfold), _cannot_unfold),
    Operator(
        "com.microsoft.Range",
        MOVING,
        bounded(span),
        _no_range,
        constants=dict.fromkeys(("start", "limit", "delta"), UNKNOWN),
    ),
    Operator(
        "com.microsoft.NGramRepeatBlock",
        Dimensioned(
            "input_ids: B S; scores: B V",
            "B V",
            rule=lambda n, _: None if n["ngram_size"] > 0 else "ngram_size is above 0",
            chosen={
                "input_ids": (
                    *_tokens(3),
                    Chosen("above", lambda raw, _: raw % 2 + 100_000, _SCORED),
                    Chosen("below", lambda raw, _: -1 - raw % 2, _SCORED),
                )
            },
            by_values=_beyond_the_scores,
        ),
        decided(ngram_repeat_block),
        outputs=lambda call: (call.inputs["scores"].shape,),
    ),
    Operator(
        "com.microsoft.BifurcationDetector",
        Dimensioned(
            "src_tokens: S; cur_tokens: C; prev_suffix_match_idx: ; pred_tokens: whole | P",
            "T; ",
            {"whole": lambda n: n["S"] + 1},
            count=2,
            types=lambda call: ("int64", "int64"),
            chosen={
                "src_tokens": _TOKENS,
                "cur_tokens": _TOKENS,
                "pred_tokens": _TOKENS,
                "prev_suffix_match_idx": (*_tokens(3), Chosen("start", lambda raw, _: raw * 0)),
            },
            by_values=_not_left,
        ),
        decided(bifurcation),
        outputs=lambda call: ((UNKNOWN,), ()),
    ),
    Operator(
        "com.microsoft.MurmurHash3",
        Dimensioned(
            "X: *",
            "*",
            types=lambda call: ("uint32" if call.parameter("positive") == 1 else "int32",),
            rule=lambda _n, call: (
                None if 0 <= call.parameter("seed") < 2**32 else "seed is an unsigned integer of 32 bits"
            ),
        ),
        moved(murmur_hash),
    ),
    Operator("com.microsoft.NhwcMaxPool", NhwcPooling(), decided(nhwc_max_pool)),
)
