"""MoE and QMoE: each token goes through a few of several networks, weighted by how a router rates them; and a router."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import decode
from harness.operators.base import Call, Operator
from harness.operators.bounded import (
    Bounded,
    converted,
    either,
    log,
    maximum,
    minimum,
    number,
    sigmoid,
    take_along_axis,
    where,
)
from harness.operators.contrib.block_quantised import BITS, allowed, blockwise, unpacked
from harness.operators.dimensioned import SCALES, SMALL, Chosen, Dimensioned, Dimensions
from harness.operators.elementwise.activations import gelu
from harness.operators.formulas import bounded
from harness.operators.normalization.norms import softmax

# p = softmax(router_probs); of the k greatest, divided by their sum if normalize_routing_weights:
# output = sum over them of p[e] (fc2[e] activation(fc1[e] x + bias1[e]) + bias2[e])
# QMoE may round what a product of blocks takes to 8 bits: of weights of 8 bits always, of 4 bits at accuracy_level 4
# swiglu: G sigmoid(alpha G) (L + beta), G = min(g, limit), L = l between -limit and limit, g and l from fc1, or of it and fc3


_ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: maximum(x, 0.0),
    "gelu": lambda x: either(gelu(x, "none"), gelu(x, "tanh")),  # the document does not say which
    "silu": lambda x: x * sigmoid(x),
    "identity": lambda x: x,
}


def _parts(x: Bounded, call: Call) -> tuple[Bounded, Bounded]:
    """Return what one product has of both."""
    half = x.shape[-1] // 2
    interleaved = call.parameter("swiglu_fusion") == 1
    return (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])


def _swiglu(g: Bounded, up: Bounded, call: Call) -> Bounded:
    limit = call.parameter("swiglu_limit")
    if limit is not None:
        g, up = minimum(g, limit), minimum(maximum(up, -limit), limit)
    found: Bounded = (
        g * sigmoid(g * call.parameter("activation_alpha")) * (up + call.parameter("activation_beta"))
    )
    return found


def moe(
    input: Bounded, router_probs: Bounded, fc1_experts_weights: Bounded, fc2_experts_weights: Bounded, call: Call,
    fc1_experts_bias: Any = None, fc2_experts_bias: Any = None, fc3_experts_weights: Any = None,
    fc3_experts_bias: Any = None, router_weights: Any = None,
) -> Bounded:  # fmt: skip
    """Mix by the formula above, with `router_weights` in place of p; routers that rate two experts alike are not given."""
    x = input.reshape(prod(input.shape[:-1]), input.shape[-1])
    hidden = _projected(x, fc1_experts_weights, fc1_experts_bias, call)
    name = call.parameter("activation_type")
    if name != "swiglu":
        hidden = _ACTIVATIONS[name](hidden)
    elif fc3_experts_weights is None:
        hidden = _swiglu(*_parts(hidden, call), call)
    else:
        hidden = _swiglu(hidden, _projected(x, fc3_experts_weights, fc3_experts_bias, call), call)
    every = _projected(hidden, fc2_experts_weights, fc2_experts_bias, call).transpose(1, 0, 2)
    order = np.argsort(-router_probs.value, axis=-1, kind="stable")
    k = call.parameter("k")
    best, last_two = order[:, :k], np.take_along_axis(router_probs.value, order[:, k - 1 : k + 1], axis=-1)
    # the document does not say which of equal experts count
    open_ = (last_two[:, :1] == last_two[:, 1:]).any(-1, keepdims=True)
    rated = softmax(router_probs, -1) if router_weights is None else router_weights
    p = take_along_axis(rated, best, axis=-1)
    p = p / p.sum(-1, keepdims=True) if call.parameter("normalize_routing_weights") else p
    mixed = (take_along_axis(every, best[..., None], axis=1) * p.reshape(*p.shape, 1)).sum(1)
    mixed = Bounded(mixed.value, np.where(open_, np.inf, mixed.error), mixed.arithmetic)
    return mixed.reshape(input.shape)


def _projected(x: Bounded, weights: Bounded, bias: Any, call: Call) -> Bounded:
    """Return what each expert makes of tokens: [experts, tokens, rows of its weights]."""
    block, bits = call.parameter("block_size") or 0, call.parameter("expert_weight_bits")
    if (
        block > 0
        and call.parameter("quant_type") == "int"
        and 4 in (call.parameter("accuracy_level"), 12 - bits)
    ):
        x = allowed(x, 4, block)
    y: Bounded = x @ weights.transpose(0, 2, 1)
    return y if bias is None else y + bias.reshape(len(bias), 1, bias.shape[1])


def qmoe(
    input: Bounded, router_probs: Bounded, fc1_experts_weights: Array, fc2_experts_weights: Array, call: Call,
    fc1_scales: Any = None, fc2_scales: Any = None, fc1_experts_bias: Any = None, fc2_experts_bias: Any = None,
    fc3_experts_weights: Any = None, fc3_scales: Any = None, fc3_experts_bias: Any = None, fc1_zero_points: Any = None,
    fc2_zero_points: Any = None, fc3_zero_points: Any = None, router_weights: Any = None,
    fc1_global_scale: Any = None, fc2_global_scale: Any = None,
) -> Bounded:  # fmt: skip
    """Mix by the formula above with weights (q - zero_points) scale, without zero points 2**(bits - 1); those of fp8 are
    numbers times the scale of their square block, or of their expert."""
    weights: Any = _floats if call.parameter("quant_type") == "fp8" else _weights

    def made(packed: Any, scales: Any, zero: Any, whole: Any = None) -> Any:
        scale = converted(scales if whole is None else whole, input.arithmetic.form.dtype)
        return weights(packed, scale, zero, call)

    fc1 = made(fc1_experts_weights, fc1_scales, fc1_zero_points, fc1_global_scale)
    fc2 = made(fc2_experts_weights, fc2_scales, fc2_zero_points, fc2_global_scale)
    fc3 = None if fc3_experts_weights is None else made(fc3_experts_weights, fc3_scales, fc3_zero_points)
    more = fc1_experts_bias, fc2_experts_bias, fc3, fc3_experts_bias
    return moe(input, router_probs, fc1, fc2, call, *more, router_weights)


def _weights(packed: Array, scales: Bounded, zero: Array | None, call: Call) -> Bounded:
    bits = call.parameter("expert_weight_bits")
    q = unpacked(packed, bits)

    def wide(each: Any) -> Any:
        """Return a number of each row, or of each block of one, for each element."""
        block = q.shape[-1] if scales.ndim == 2 else call.parameter("block_size")
        return blockwise(each[..., None] if each.ndim == 2 else each, block, q.shape[-1])

    shift = np.full(scales.shape, 1 << bits - 1)
    if zero is not None:
        shift = unpacked(zero, bits)[..., : scales.shape[-1]]
    found: Bounded = wide(scales) * (q - wide(shift)).astype(float)
    return found


def _floats(numbers: Array, scales: Bounded, _zero: None, call: Call) -> Bounded:
    _, rows, columns = numbers.shape
    block = call.parameter("block_size", 0)
    if block > 0:
        wide: Any = blockwise(blockwise(scales, block, columns), block, rows, axis=1)
    else:
        wide = scales.reshape(-1, 1, 1)
    found: Bounded = wide * decode("float8e4m3fn", numbers)
    return found


def _cannot_quantised(n: Dimensions, call: Call) -> str | None:
    """Return the rule that is broken, of quant_type before those of both operators."""
    given, blocks = n["inputs"], n.get("block_size", 0) > 0
    floats = call.parameter("quant_type") == "fp8"
    if {call.inputs[name].dtype == "float8e4m3fn" for name in given if name.endswith("weights")} - {floats}:
        return "weights of float8e4m3fn are those of quant_type fp8"
    if floats and any(name.endswith("zero_points") for name in given):
        return "weights of float8e4m3fn have no zero points"
    if {f"fc{m}_global_scale" in given for m in (1, 2)} != {floats and not blocks}:
        return "fc1 and fc2 have global scales with fp8 without blocks"
    if {f"fc{m}_scales" in given for m in (1, 2)} == {floats and not blocks}:
        return "weights have scales, but for those of fp8 without blocks"
    if floats and n["expert_weight_bits"] != 8:
        return "weights of float8e4m3fn have 8 bits"
    if floats and not blocks and "fc3_experts_weights" in given:
        return "fc3 of fp8 has scales of blocks"
    return _cannot(n, call)


def _cannot(n: Dimensions, call: Call) -> str | None:
    if not 0 < n["k"] <= n["E"]:
        return "k experts of those there are"
    if call.parameter("swiglu_limit", 0.0) < 0:
        return "swiglu_limit is not below 0"
    swiglu = call.parameter("activation_type") == "swiglu"
    fused = swiglu and n["swiglu_fusion"] in (1, 2)
    if n["F"] != n["I"] * (2 if fused else 1):
        return "fc1 has as many rows as fc2 has columns, twice as many where swiglu is fused"
    if (swiglu and not fused) != ("fc3_experts_weights" in n["inputs"]):
        return "fc3 is given with swiglu that is not fused"
    third = {name for name in n["inputs"] if name.startswith("fc3_")}
    needed = {"fc3_experts_weights", *(["fc3_scales"] if "fc1_scales" in n["inputs"] else [])}
    if third and not needed <= third:
        return "fc3 has weights, and scales where they are quantised"
    rank = 3 if n.get("block_size", 0) else 2
    apart = (f"fc{m}_{part}" for m in (1, 2, 3) for part in ("scales", "zero_points"))
    ranks = {len(call.inputs[name].shape) for name in apart if name in call.inputs}
    if not ranks <= {rank}:
        return "a scale and a zero point for each row, or with block_size for each block"
    return None


UNLIKE = (Chosen("unlike", lambda raw, _: np.argsort(np.argsort(raw, axis=-1), axis=-1) / 4.0 - 1),)


# s = sigmoid(logits), logits = activations @ projection_weight^T where that is given; selection_scores = s + expert_bias
# router_probs: log(max(s, 1e-20)) of the top_k experts by s + expert_bias in the topk_group groups with the greatest sums of
# their group_topk greatest, router_sentinel elsewhere; router_weights: s                                  (MoEGroupRouter)
def group_router(
    logits: Bounded,
    expert_bias: Bounded,
    call: Call,
    router_sentinel: float,
    projection_weight: Any = None,
    rating: Callable[[Bounded], Bounded] = sigmoid,
) -> tuple[Bounded, ...]:
    """Route by the formula above; of tokens of which rounding can choose other experts nothing is claimed."""
    wide = converted(logits.reshape(prod(logits.shape[:-1]), logits.shape[-1]), "float32")
    if projection_weight is not None:
        wide = wide @ converted(projection_weight, "float32").T
    s = rating(wide)
    scores = s + expert_bias
    tokens, experts = s.shape
    groups, chosen = call.parameter("n_group"), call.parameter("topk_group")
    size = experts // groups
    grouped, error = scores.value.reshape(tokens, groups, size), scores.error.reshape(tokens, groups, size)
    best = min(call.parameter("group_topk"), size)
    rated = -np.sort(-grouped, axis=-1)[..., :best].sum(-1)
    among, open_groups = _best(rated, error.max(-1, initial=0) * (best + 1), chosen)
    inside = np.where(np.repeat(among, size, axis=-1), scores.value, -np.inf)
    selected, open_experts = _best(inside, scores.error, call.parameter("top_k"))
    probs = where(selected, log(maximum(s, 1e-20)), number(np.full(s.shape, router_sentinel), s.arithmetic))
    unsure = (open_groups | open_experts | np.isnan(scores.value).any(-1))[:, None]
    probs = Bounded(probs.value, np.where(unsure, np.inf, probs.error), probs.arithmetic)
    return converted(probs, logits.arithmetic.form.dtype), scores, s


def _best(rated: Any, error: Any, count: int) -> tuple[Any, Any]:
    """Return where the greatest of each row are, and the rows in which another may be one of them."""
    order = np.argsort(-rated, axis=-1, kind="stable")
    found = np.zeros(rated.shape, bool)
    np.put_along_axis(found, order[:, :count], True, axis=-1)
    if count >= rated.shape[-1] or not len(rated):
        return found, np.zeros(len(rated), bool)
    last, other = (np.take_along_axis(rated, order[:, [n]], axis=-1)[:, 0] for n in (count - 1, count))
    return found, ~(last - other > 4 * error.max(-1)) & np.isfinite(other)


def _no_routes(n: Dimensions, call: Call) -> str | None:
    experts, groups, full = n["E"], n["n_group"], call.given is not None or len(call.outputs) > 1
    if not groups > 0 or experts % groups or not 0 < n["topk_group"] <= groups or n["group_topk"] < 1:
        return "groups divide the experts, and of topk_group of them there are as many"
    if not 0 < n["top_k"] <= n["topk_group"] * (experts // groups):
        return "there are top_k experts in the groups"
    if full and (call.given != (1, 2) or groups != 1 or experts > 512):
        return "selection_scores and router_weights come together, without router_probs, of one group and 512 experts at most"
    if "projection_weight" in n["inputs"] and (not full or n["F"] % 256 or not n["F"] or len(n["..."]) != 1):
        return "a projection is of full scores, and of rows of a multiple of 256"
    return None


OPERATORS = (
    Operator(
        "com.microsoft.MoEGroupRouter",
        Dimensioned(
            "logits: ... F; expert_bias: E; projection_weight: E F",
            "T E; T E; T E",
            {
                "T": lambda n: prod(n["..."]),
                "E": lambda n: n[
                    "E" if "projection_weight" in n["inputs"] else "F"
                ],  # its own is not known yet
            },
            _no_routes,
            types=lambda _: (None, "float32", "float32"),
        ),
        bounded(group_router),
    ),
    Operator(
        "com.microsoft.MoE",
        Dimensioned(
            "input: T D | B S D; router_probs: T E; fc1_experts_weights: E F D; fc1_experts_bias: E F; fc2_experts_weights: E D I; "
            "fc2_experts_bias: E D; fc3_experts_weights: E I D; fc3_experts_bias: E I",
            "*",
            {"T": lambda n: n["B"] * n["S"]},
            _cannot,
            {"router_probs": UNLIKE},
        ),
        bounded(moe),
        seldom=("fc3_experts_weights",),
    ),
    Operator(
        "com.microsoft.QMoE",
        Dimensioned(
            "input: T D | B S D; router_probs: T E; fc1_experts_weights: E F packed; fc1_scales: E F | E F blocks | E rows blocks; "
            "fc1_experts_bias: E F; "
            "fc2_experts_weights: E D packed2; fc2_scales: E D | E D blocks2 | E rows2 blocks2; fc2_experts_bias: E D; "
            "fc3_experts_weights: E I packed; fc3_scales: E I | E I blocks | E blocks2 blocks; fc3_experts_bias: E I; "
            "fc1_zero_points: E zeros | E F zero_blocks; fc2_zero_points: E zeros2 | E D zero_blocks2; "
            "fc3_zero_points: E zeros3 | E I zero_blocks; router_weights: T E; fc1_global_scale: E; fc2_global_scale: E",
            "*",
            {
                "T": lambda n: n["B"] * n["S"],
                "packed": lambda n: n["D"] * n["expert_weight_bits"] // 8,
                "packed2": lambda n: n["I"] * n["expert_weight_bits"] // 8,
                "I": lambda n: n["packed2"] * 8 // n["expert_weight_bits"],
                "blocks": lambda n: -(-n["D"] // n["block_size"]),
                "blocks2": lambda n: -(-n["I"] // n["block_size"]),
                "rows": lambda n: -(-n["F"] // n["block_size"]),
                "rows2": lambda n: -(-n["D"] // n["block_size"]),
                "zeros": lambda n: -(-n["F"] * n["expert_weight_bits"] // 8),
                "zeros2": lambda n: -(-n["D"] * n["expert_weight_bits"] // 8),
                "zeros3": lambda n: -(-n["I"] * n["expert_weight_bits"] // 8),
                "zero_blocks": lambda n: -(-n["blocks"] * n["expert_weight_bits"] // 8),
                "zero_blocks2": lambda n: -(-n["blocks2"] * n["expert_weight_bits"] // 8),
            },
            _cannot_quantised,
            {
                "router_probs": UNLIKE,
                "router_weights": (SCALES,),
                **dict.fromkeys(
                    (f"fc{n}_{part}" for n in (1, 2, 3) for part in ("experts_weights", "zero_points")), BITS
                ),
                **dict.fromkeys(
                    (*(f"fc{n}_scales" for n in (1, 2, 3)), "fc1_global_scale", "fc2_global_scale"),
                    (SMALL, SCALES),
                ),
            },
        ),
        bounded(qmoe),
        seldom=("fc3_experts_weights",),
    ),
)
