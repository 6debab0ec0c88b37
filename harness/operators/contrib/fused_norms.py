"""Normalisations with the additions that are fused before them, the embeddings and the gates."""

# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Exact, Expected
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import Bounded, arithmetic, converted, either, sigmoid, sqrt
from harness.operators.contrib.qlinear import real
from harness.operators.dimensioned import PADDED, SCALES, Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded
from harness.operators.normalization.layer_norms import LAYER_NORMALISING, rms_norm


def normalised(
    x: Bounded, epsilon: float, mean: bool = True, axes: Any = -1
) -> tuple[Bounded, Bounded, Bounded]:
    """Return (x - mean) / sqrt(variance + epsilon), the mean and the factor, over axes; without a mean x / rms."""
    middle = x.mean(axes, keepdims=True)
    d = x - middle if mean else x
    factor = 1.0 / sqrt((d * d).mean(axes, keepdims=True) + epsilon)
    return d * factor, middle, factor


# S = input + skip + bias; output = normalised(S) gamma + beta                   (SkipLayerNormalization)
def skip_layer_norm(
    input: Bounded, skip: Bounded, gamma: Bounded, epsilon: float, beta: Any = None, bias: Any = None
) -> tuple[Bounded, ...]:
    s = _summed(input, skip, bias)
    y, mean, factor = normalised(s, epsilon)
    return y * gamma if beta is None else y * gamma + beta, mean, factor, s


# S = input + skip + bias; output = S / rms(S) gamma                             (SkipSimplifiedLayerNormalization)
# Of the mean that is saved nothing is claimed: none is subtracted.
def skip_rms_norm(
    input: Bounded, skip: Bounded, gamma: Bounded, epsilon: float, bias: Any = None
) -> tuple[Bounded, ...]:
    s = _summed(input, skip, bias)
    y, mean, factor = normalised(s, epsilon, mean=False)
    return y * gamma, mean.unclaimed(), factor, s


def _summed(x: Bounded, skip: Bounded, bias: Any) -> Bounded:
    return x + skip if bias is None else x + skip + bias


# S = word_embedding[input_ids] + position_embedding[position_ids] + segment_embedding[segment_ids]
# output = normalised(S) gamma + beta; mask_index: the place of the first 0 of the mask, or how many words there are, which
# are the same of words before padding; embedding_sum may be S or leave out segments, which the document does not name
def embed_layer_norm(
    input_ids: Array,
    word_embedding: Bounded,
    position_embedding: Bounded,
    gamma: Bounded,
    beta: Bounded,
    epsilon: float,
    segment_ids: Any = None,
    segment_embedding: Any = None,
    mask: Any = None,
    position_ids: Any = None,
) -> tuple[Any, ...]:
    """Embed by the formula above."""
    places = np.arange(input_ids.shape[1])[None] if position_ids is None else position_ids
    plain = word_embedding[input_ids] + position_embedding[np.broadcast_to(places, input_ids.shape)]
    s = plain if segment_ids is None else plain + segment_embedding[segment_ids]
    counted = np.zeros(len(input_ids), np.int32)
    if mask is not None:
        counted = (mask == 1).sum(axis=1).astype(np.int32)
        if (mask != (np.arange(mask.shape[1]) < counted[:, None])).any():
            raise Undefined("whether mask_index counts the words, or is the place of the first 0")
    return normalised(s, epsilon)[0] * gamma + beta, counted, either(s, plain)


# the same of embeddings, gamma and beta that are quantised: (x - zero point) scale             (QEmbedLayerNormalization)
def q_embed_layer_norm(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Embed by the formula above."""
    worked = arithmetic(declared, call.outputs[0])
    parts = ("word_embedding", "position_embedding", "segment_embedding", "gamma", "beta")
    given: dict[str, Any] = {
        name: real(inputs, held, f"{name}_scale", f"{name}_zero_point", worked)
        for name in parts
        if (held := name if name == "segment_embedding" else f"{name}_quant") in inputs
    }
    ids: dict[str, Any] = {
        name: inputs[name].array for name in ("input_ids", "segment_ids", "mask") if name in inputs
    }
    with np.errstate(all="ignore"):
        y, counted, _ = embed_layer_norm(**ids, **given, epsilon=float(call.parameter("epsilon")))
    return y.stored(call.outputs[0]), Exact(Tensor("int32", counted))


# normalised over the groups of channels and the image, gamma and beta for each channel; 1: x sigmoid(x)  (GroupNorm)
def group_norm(
    X: Bounded,
    gamma: Bounded,
    beta: Bounded,
    groups: int,
    epsilon: float,
    channels_last: int,
    activation: int,
) -> Bounded:
    """Normalise by the formula above; gamma and beta may be of another type than X."""
    x = X if channels_last else X.transpose(0, 2, 3, 1)
    n, h, w, c = x.shape
    y = normalised(x.reshape(n, h, w, groups, c // groups), epsilon, axes=(1, 2, 4))[0].reshape(n, h, w, c)
    scale, shift = (converted(each, y.arithmetic.form.dtype) for each in (gamma, beta))
    y = y * scale + shift
    y = y * sigmoid(y) if activation else y
    return y if channels_last else y.transpose(0, 3, 1, 2)


# S = X + skip + bias; Y = GroupNorm(S)                                             (SkipGroupNorm)
def skip_group_norm(
    X: Bounded,
    gamma: Bounded,
    beta: Bounded,
    skip: Bounded,
    groups: int,
    epsilon: float,
    channels_last: int,
    activation: int,
    bias: Any = None,
) -> tuple[Bounded, Bounded]:
    """Add and normalise by the formula above; skip and bias lie over the channels, the last dimension."""
    s = _summed(X, skip.reshape(len(skip), 1, 1, skip.shape[-1]) if len(skip.shape) == 2 else skip, bias)
    return group_norm(s, gamma, beta, groups, epsilon, channels_last, activation), s


# X / rms(X) scale activation(gate), over as many elements as scale has             (GatedRMSNorm)
def gated_rms_norm(X: Bounded, scale: Bounded, gate: Bounded, epsilon: float, activation: str) -> Bounded:
    x = X.reshape(*X.shape[:-1], X.shape[-1] // max(1, scale.shape[0]), scale.shape[0])
    y = (normalised(x, epsilon, mean=False)[0] * scale).reshape(X.shape)
    return y * (sigmoid(gate) if activation == "sigmoid" else gate * sigmoid(gate))


# X / rms(X) scale, over each branch                                                (BranchwiseRMSNorm)
def rms_by_branch(X: Bounded, epsilon: float, num_branches: int, scale: Any = None) -> Bounded:
    x = X.reshape(*X.shape[:-1], num_branches, X.shape[-1] // num_branches) if num_branches else X
    y = normalised(x, epsilon, mean=False)[0]
    if scale is not None:
        weight = converted(scale, y.arithmetic.form.dtype)
        y = y * (weight.reshape(x.shape[-2:]) if weight.size == np.prod(x.shape[-2:]) else weight)
    return y.reshape(X.shape)


def _saved(call: Call) -> tuple[str | None, ...]:
    return None, "float32", "float32", None


def _other_rows(n: Dimensions, call: Call) -> str | None:
    fitting = len(n["..."]) < 2 and len(call.shapes[1]) <= len(call.shapes[0])
    return None if fitting else "input has two or three dimensions, and skip no more"


_SKIPPED = "input: ... S H; skip: ... S H | 1 S H | S H; gamma: H; beta: H; bias: H"
_ROWS = "words, segments and places of which there is an embedding"
IDS = {
    **{
        f"{name}_ids": (
            Chosen("in_range", lambda raw, n, rows=rows, usual=usual: raw % n.get(rows, usual)),  # type: ignore[misc] # of this name
            Chosen("above", lambda raw, _: raw * 0 + 9, _ROWS),
            Chosen("below", lambda raw, _: -1 - raw % 3, _ROWS),
        )
        for name, rows, usual in (("input", "V", 7), ("segment", "G", 2), ("position", "P", 5))
    },
    "mask": (PADDED, Chosen("holes", lambda raw, _: raw % 4 > 0)),
}


_QUANTISED = tuple(
    f"{name}_{part}"
    for part in ("scale", "zero_point")
    for name in ("word_embedding", "position_embedding", "segment_embedding", "gamma", "beta")
)
_SEGMENTS = tuple(
    f"segment_{name}" for name in ("ids", "embedding", "embedding_scale", "embedding_zero_point")
)


def _no_places(n: Dimensions, call: Call) -> str | None:
    if ("segment_ids" in call.inputs) != ("segment_embedding" in call.inputs):
        return "segments have an embedding"
    return None if n["S"] <= n["P"] or "position_ids" in call.inputs else _ROWS


def _no_embeddings(n: Dimensions, call: Call) -> str | None:
    if len({name in call.inputs for name in _SEGMENTS}) > 1:
        return "segments have all four inputs or none"
    return None if n["S"] <= n["P"] else _ROWS


def _beyond_the_embeddings(n: Dimensions, _call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    for name, rows in (("input_ids", n["V"]), ("segment_ids", n.get("G", 0)), ("position_ids", n["P"])):
        if name in inputs and not ((inputs[name].array >= 0) & (inputs[name].array < rows)).all():
            return _ROWS
    return None


def _no_groups(n: Dimensions, _call: Call) -> str | None:
    return None if n["groups"] > 0 and n["C"] % n["groups"] == 0 else "groups divide the channels"


def _unlike_branches(n: Dimensions, call: Call) -> str | None:
    branches = n["num_branches"] or (call.shapes[0][-2:-1] or (1,))[0]
    if n["num_branches"] and n["H"] % branches:
        return "num_branches divides the last dimension"
    size = n["H"] // branches if n["num_branches"] else n["H"]
    like = ((size,), (branches * size,), (branches, size))
    fitting = all(each in like for each in call.shapes[1:])
    return None if fitting else "scale has the shape (H), (C H) or (C, H)"


OPERATORS = (
    Operator(
        "com.microsoft.SkipLayerNormalization",
        Dimensioned(_SKIPPED, "... S H; ... S 1; ... S 1; ... S H", rule=_other_rows, types=_saved),
        bounded(skip_layer_norm),
    ),
    Operator(
        "com.microsoft.SkipSimplifiedLayerNormalization",
        Dimensioned(
            "input: ... H; skip: ... H; gamma: H; bias: H",
            "... H; ... 1; ... 1; ... H",
            rule=lambda n, _: None if len(n["..."]) in (1, 2) else "two or three dimensions",
            types=_saved,
        ),
        bounded(skip_rms_norm),
    ),
    Operator("SimplifiedLayerNormalization", LAYER_NORMALISING, bounded(rms_norm), options=1),
    Operator(
        "com.microsoft.EmbedLayerNormalization",
        Dimensioned(
            "input_ids: B S; segment_ids: B S; word_embedding: V H; position_embedding: P H; segment_embedding: G H; gamma: H; "
            "beta: H; mask: B S; position_ids: B S | 1 S",
            "B S H; B; B S H",
            rule=_no_places,
            chosen=IDS,
            types=lambda call: (None, "int32", None),
            count=2,
            by_values=_beyond_the_embeddings,
        ),
        bounded(embed_layer_norm),
    ),
    Operator(
        "com.microsoft.QEmbedLayerNormalization",
        Dimensioned(
            "input_ids: B S; segment_ids: B S; word_embedding_quant: V H; position_embedding_quant: P H; segment_embedding: G H; "
            "gamma_quant: H; beta_quant: H; mask: B S; " + "; ".join(f"{name}:  | 1" for name in _QUANTISED),
            "B S H; B",
            rule=_no_embeddings,
            chosen={
                **IDS,
                **{name: (SCALES,) for name in _QUANTISED if name.endswith("scale")},
            },
            count=2,
            by_values=_beyond_the_embeddings,
        ),
        q_embed_layer_norm,
    ),
    Operator(
        "com.microsoft.GroupNorm",
        Dimensioned(
            "X: N P Q R; gamma: C; beta: C",
            "N P Q R",
            {"C": lambda n: n["R" if n["channels_last"] else "P"]},
            _no_groups,
        ),
        bounded(group_norm),
    ),
    Operator(
        "com.microsoft.SkipGroupNorm",
        Dimensioned(
            "X: N P Q C; gamma: C; beta: C; skip: N P Q C | N 1 1 C | N C; bias: C",
            "N P Q C; N P Q C",
            rule=lambda n, call: "channels are last" if not n["channels_last"] else _no_groups(n, call),
        ),
        bounded(skip_group_norm),
    ),
    Operator(
        "com.microsoft.GatedRMSNorm",
        Dimensioned("X: ... W; scale: C; gate: ... W", "... W"),
        bounded(gated_rms_norm),
    ),
    Operator(
        "com.microsoft.BranchwiseRMSNorm",
        Dimensioned("X: ... H; scale: *", "... H", rule=_unlike_branches),
        bounded(rms_by_branch),
    ),
)
