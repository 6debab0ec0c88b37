"""MoE and QMoE: each token goes through a few of several networks, weighted by how a router rates them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.bounded import Bounded, converted, maximum, minimum, sigmoid, stack, take_along_axis
from harness.operators.contrib.block_quantised import blockwise, unpacked
from harness.operators.dimensioned import SCALES, SMALL, Chosen, Dimensioned, Dimensions
from harness.operators.elementwise.activations import gelu
from harness.operators.formulas import bounded
from harness.operators.functions import softmax

# p = softmax(router_probs); of the k greatest, divided by their sum if normalize_routing_weights:
# output = sum over them of p[e] (fc2[e] activation(fc1[e] x + bias1[e]) + bias2[e])
# swiglu: G sigmoid(alpha G) (L + beta), G = min(g, limit), L = l between -limit and limit, g and l from fc1

_ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: maximum(x, 0.0),
    "gelu": lambda x: gelu(x, "none"),
    "silu": lambda x: x * sigmoid(x),
    "identity": lambda x: x,
}


def _swiglu(x: Bounded, call: Call) -> Bounded:
    half = x.shape[-1] // 2
    g, up = (
        (x[..., 0::2], x[..., 1::2])
        if call.parameter("swiglu_fusion") == 1
        else (x[..., :half], x[..., half:])
    )
    limit = call.parameter("swiglu_limit")
    if limit:
        g, up = minimum(g, limit), minimum(maximum(up, -limit), limit)
    found: Bounded = (
        g * sigmoid(g * call.parameter("activation_alpha")) * (up + call.parameter("activation_beta"))
    )
    return found


def moe(
    input: Bounded, router_probs: Bounded, fc1_experts_weights: Bounded, fc2_experts_weights: Bounded, call: Call,
    fc1_experts_bias: Any = None, fc2_experts_bias: Any = None,
) -> Bounded:  # fmt: skip
    """Mix by the formula above; routers that rate two experts alike are not given."""
    x = input.reshape(-1, input.shape[-1])
    found = []
    for e in range(router_probs.shape[-1]):
        hidden = x @ fc1_experts_weights[e].T
        hidden = hidden if fc1_experts_bias is None else hidden + fc1_experts_bias[e]
        name = call.parameter("activation_type")
        hidden = _swiglu(hidden, call) if name == "swiglu" else _ACTIVATIONS[name](hidden)
        y = hidden @ fc2_experts_weights[e].T
        found.append(y if fc2_experts_bias is None else y + fc2_experts_bias[e])
    every = stack(found, axis=1)
    best = np.argsort(-router_probs.value, axis=-1, kind="stable")[:, : call.parameter("k")]
    p = take_along_axis(softmax(router_probs, -1), best, axis=-1)
    p = p / p.sum(-1, keepdims=True) if call.parameter("normalize_routing_weights") else p
    mixed = (take_along_axis(every, best[..., None], axis=1) * p.reshape(*p.shape, 1)).sum(1)
    return mixed.reshape(input.shape)


def qmoe(
    input: Bounded, router_probs: Bounded, fc1_experts_weights: Array, fc1_scales: Bounded, fc2_experts_weights: Array,
    fc2_scales: Bounded, call: Call, fc1_experts_bias: Any = None, fc2_experts_bias: Any = None,
) -> Bounded:  # fmt: skip
    """Mix by the formula above with weights (q - 2**(bits - 1)) scale."""
    pairs = ((fc1_experts_weights, fc1_scales), (fc2_experts_weights, fc2_scales))
    own = input.arithmetic.form.dtype
    first, second = (_weights(packed, converted(scales, own), call) for packed, scales in pairs)
    return moe(input, router_probs, first, second, call, fc1_experts_bias, fc2_experts_bias)


def _weights(packed: Array, scales: Bounded, call: Call) -> Bounded:
    bits = call.parameter("expert_weight_bits")
    q = unpacked(packed, bits) - 2.0 ** (bits - 1)
    wide = (
        scales.reshape(*scales.shape, 1)
        if scales.ndim == 2
        else blockwise(scales, call.parameter("block_size"), q.shape[-1])
    )
    found: Bounded = wide * q
    return found


def _cannot(n: Dimensions, call: Call) -> str | None:
    if not 0 < n["k"] <= n["E"]:
        return "k experts of those there are"
    if n["F"] != n["I"] * (2 if call.parameter("activation_type") == "swiglu" else 1):
        return "fc1 has as many rows as fc2 has columns, twice as many for swiglu"
    return (
        None
        if call.parameter("activation_type") != "swiglu" or n["swiglu_fusion"] in (1, 2)
        else "fc3 is fused"
    )


UNLIKE = (Chosen("unlike", lambda raw, _: np.argsort(np.argsort(raw, axis=-1), axis=-1) / 4.0 - 1),)
BITS = (Chosen("bits", lambda raw, _: raw),)
OPERATORS = (
    Operator(
        "com.microsoft.MoE",
        Dimensioned(
            "input: T D | B S D; router_probs: T E; fc1_experts_weights: E F D; fc1_experts_bias: E F; fc2_experts_weights: E D I; "
            "fc2_experts_bias: E D",
            "*",
            {"T": lambda n: n["B"] * n["S"]},
            _cannot,
            {"router_probs": UNLIKE},
        ),
        bounded(moe),
        outputs=lambda call: (call.first.shape,),
    ),
    Operator(
        "com.microsoft.QMoE",
        Dimensioned(
            "input: T D | B S D; router_probs: T E; fc1_experts_weights: E F packed; fc1_scales: E F | E F blocks; fc1_experts_bias: E F; "
            "fc2_experts_weights: E D packed2; fc2_scales: E D | E D blocks2; fc2_experts_bias: E D",
            "*",
            {
                "T": lambda n: n["B"] * n["S"],
                "packed": lambda n: n["D"] * n["expert_weight_bits"] // 8,
                "packed2": lambda n: n["I"] * n["expert_weight_bits"] // 8,
                "I": lambda n: n["packed2"] * 8 // n["expert_weight_bits"],
                "blocks": lambda n: n["D"] // n["block_size"],
                "blocks2": lambda n: n["I"] // n["block_size"],
            },
            _cannot,
            {
                "router_probs": UNLIKE,
                "fc1_experts_weights": BITS,
                "fc2_experts_weights": BITS,
                "fc1_scales": (SMALL, SCALES),
                "fc2_scales": (SMALL, SCALES),
            },
        ),
        bounded(qmoe),
        outputs=lambda call: (call.first.shape,),
    ),
)
