"""GatedDeltaNet: queries read a state to which keys write what it lacks of their values, of packed requests."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.attention.linear_attention import RULES
from harness.operators.base import Call, Operator, Shape
from harness.operators.bounded import (
    Bounded,
    concatenate,
    converted,
    either,
    exp,
    number,
    repeat,
    sigmoid,
    stack,
    swapaxes,
)
from harness.operators.bounded import sqrt as root
from harness.operators.dimensioned import Chosen, Dimensioned, Dimensions
from harness.operators.elementwise.activations import softplus_as_written
from harness.operators.formulas import bounded
from harness.operators.packed import COUNTS, ENDS, unfit_capacity, unlike_ends

# S = exp(g[t]) S                                                             gated, gated_delta
# delta = beta[t] (v[t] - S^T k[t]); of linear and gated v[t]                 delta, gated_delta
# S = S + k[t] delta^T; output[t] = scale S^T q[t]                            scale = 1 / sqrt(d) where it is 0
# g: decay; -exp(a_log) softplus(decay + dt_bias); gate_lower_bound sigmoid(exp(a_log) (decay + dt_bias))
# all in float32, for each head of values; heads of queries and keys are shared by several of them
# state_update: of the first tokens exp(g), then k, then delta


def gated_delta_net(
    query: Bounded,
    call: Call,
    key: Any = None,
    value: Any = None,
    cu_seqlens: Array | None = None,
    decay: Any = None,
    beta: Any = None,
    initial_state: Any = None,
    a_log: Any = None,
    dt_bias: Any = None,
    capture_count: Array | None = None,
    state_update_active: Array | None = None,
) -> tuple[Bounded, ...]:
    """Go through the tokens of each request by the formula above."""
    n = FAMILY.dimensions(call)[0]
    heads, size, values, width, batch = n["N"], n["K"], n["V"], n["D"], n["R"]
    if key is None:
        ends = [heads * size, 2 * heads * size]
        query, key, value = (query[:, a:b] for a, b in pairwise([0, *ends, query.shape[1]]))
    tokens = n["tokens"]
    q, k = (converted(each, "float32").reshape(tokens, heads, size) for each in (query, key))
    v = converted(value, "float32").reshape(tokens, values, width)
    if call.parameter("qk_l2_norm"):
        q, k = _normed(q), _normed(k)
    q, k = (repeat(each, values // heads, axis=1) for each in (q, k))
    gated, retrieves = RULES[call.parameter("update_rule")]
    rate = None if beta is None else converted(beta, "float32").reshape(tokens, values, 1)
    if rate is not None and call.parameter("beta_activation") == "sigmoid":
        rate = sigmoid(rate)
    kept = _decay(decay, call, tokens, values, a_log, dt_bias) if gated else None
    scale = call.parameter("scale") or 1 / sqrt(max(1, size))
    starts = np.linspace(0, tokens, batch + 1).astype(int) if cu_seqlens is None else cu_seqlens
    empty = number(np.zeros((batch, values, width, size)), q.arithmetic)
    states = swapaxes(empty if initial_state is None else initial_state, 2, 3)
    read, last, updates = [], [], []
    for request, (start, end) in enumerate(pairwise(starts.tolist())):
        state, steps = states[request], []
        for t in range(start, end):
            if kept is not None:
                state = state * kept[t].reshape(values, kept.shape[2], 1)
            delta = v[t]
            if retrieves:
                delta = rate[t] * (delta - _read(state, k[t]))  # type: ignore[index] # a rule asks for beta
            state = state + k[t].reshape(values, size, 1) * delta.reshape(values, 1, width)
            read.append(either(_read(state, q[t]) * scale, _read(state, q[t] * scale)))
            steps.append((t, delta))
        last.append(state)
        updates.append(_update(steps, k, kept, call, n, capture_count, state_update_active, request))
    output = stack(read) if read else number(np.zeros((0, values, width)), q.arithmetic)
    dtype = query.arithmetic.form.dtype
    return (
        converted(output, dtype).reshape(_output(call)),
        swapaxes(stack(last), 2, 3) if last else empty,
        stack(updates) if updates else number(np.zeros((0, 0)), q.arithmetic),
    )


def _read(state: Bounded, by: Bounded) -> Bounded:
    found: Bounded = (by.reshape(len(by), 1, by.shape[1]) @ state)[:, 0]
    return found


def _normed(x: Bounded) -> Bounded:
    """Return vectors of length 1; whether a small number is added to the square of their length no document says."""
    squared = (x * x).sum(-1, keepdims=True)
    return either(x / root(squared), x / root(squared + 1e-6))


def _decay(decay: Any, call: Call, tokens: int, values: int, a_log: Any, dt_bias: Any) -> Bounded:
    """Return the factors of the state [tokens, values, 1 or size of a key]."""
    g = converted(decay, "float32").reshape(tokens, values, -1)
    activation = call.parameter("gate_activation")
    if activation != "none":
        biased = g + dt_bias.reshape(1, values, -1)
        rate = exp(a_log).reshape(1, values, 1)
        if activation in ("softplus", "qwen"):
            g = -(rate * softplus_as_written(biased))
        else:
            g = call.parameter("gate_lower_bound") * sigmoid(rate * biased)
    return exp(g)


def _update(
    steps: Any, k: Bounded, kept: Any, call: Call, n: Dimensions, counts: Any, active: Any, request: int
) -> Bounded:
    """Return the first transitions of a request; of the others nothing is claimed."""
    capacity, values, heads = call.parameter("state_update_capacity"), n["V"], n["N"]
    width = 1 if kept is None else kept.shape[2]
    none = number(np.zeros((capacity, values * width + heads * n["K"] + values * n["D"])), k.arithmetic)
    if active is not None and not active.any():
        return none.reshape(-1)
    captured = 0 if counts is None else min(capacity, len(steps), max(0, int(counts[request])))
    one = number(np.ones((values, width)), k.arithmetic)
    rows = [
        (one if kept is None else kept[t], k[t][:: values // heads], delta) for t, delta in steps[:captured]
    ]
    parts: list[Bounded] = []
    for place, size in enumerate((values * width, heads * n["K"], values * n["D"])):
        open_ = number(np.zeros((capacity - captured) * size), k.arithmetic).unclaimed()
        parts += [*(row[place].reshape(size) for row in rows), open_]
    return concatenate(parts)


def _output(call: Call) -> Shape:
    n = FAMILY.dimensions(call)[0]
    return (*((n["B"], n["S"]) if "B" in n else (n["T"],)), n["V"], n["D"])


def _shapes(call: Call) -> tuple[Shape, ...]:
    n, broken = FAMILY.dimensions(call)
    if broken or "V" not in n:
        return ((), (), ())
    width = n["V"] * (n["K"] if _wide(call, n) else 1)
    row = width + n["N"] * n["K"] + n["V"] * n["D"]
    return _output(call), (n["R"], n["V"], n["D"], n["K"]), (n["R"], max(0, n["state_update_capacity"]) * row)


def _wide(call: Call, n: Dimensions) -> bool:
    """Say whether there is a decay for each number of a key."""
    decay = call.inputs.get("decay")
    return decay is not None and len(decay.shape) == (4 if "B" in n else 3)


def _cannot(n: Dimensions, call: Call) -> str | None:
    rule, given = call.parameter("update_rule"), n["inputs"]
    if rule not in RULES:
        return "update_rule is linear, gated, delta or gated_delta"
    if tuple(name in given for name in ("decay", "beta")) != RULES[rule]:
        return "decay and beta are given where update_rule has them"
    if n["N"] < 1 or n["V"] < 1 or n["V"] % n["N"]:
        return "the heads of values are a multiple of those of queries and keys"
    if ("key" in given) != ("value" in given) or ("key" not in given and "initial_state" not in given):
        return "key and value are given, or query has both, with an initial state"
    if "P" in n and n["P"] != 2 * n["N"] * n["K"] + n["V"] * n["D"]:
        return "query has packed queries, keys and values"
    if "R" not in n or ("cu_seqlens" not in given and n["tokens"] % max(1, n["R"])):
        return "requests have cu_seqlens, or are as long as each other, of as many as initial_state has"
    if "B" in n and "cu_seqlens" in given:
        return "cu_seqlens goes with tokens in one dimension"
    activation = call.parameter("gate_activation")
    if activation not in ("none", "softplus", "qwen", "sigmoid", "kda"):
        return "gate_activation is none, softplus, qwen, sigmoid or kda"
    if activation != "none" and not {"a_log", "dt_bias"} <= set(given):
        return "an activation of the gate takes a_log and dt_bias"
    if "dt_bias" in given and call.inputs["dt_bias"].shape != (n["V"],) and not _wide(call, n):
        return "dt_bias has a number for each head, or as many as decay"
    if {call.inputs[name].dtype for name in ("decay", "beta") if name in given} - {
        "float32",
        call.first.dtype,
    }:
        return "decay and beta are float32 or of the type of query"
    if activation in ("sigmoid", "kda") and not -np.inf < call.parameter("gate_lower_bound") < 0:
        return "gate_lower_bound is a number below 0"
    if call.parameter("beta_activation") not in ("none", "sigmoid"):
        return "beta_activation is none or sigmoid"
    return unfit_capacity(n)


FAMILY = Dimensioned(
    "query: T N K | B S N K | T P; key: T N K | B S N K; value: T V D | B S V D; cu_seqlens: E; "
    "decay: T V | T V K | B S V | B S V K; beta: T V | B S V; initial_state: R V D K; a_log: V; dt_bias: V | V K | L; "
    "capture_count: R; state_update_active: 1",
    "T V D",
    {
        "R": lambda n: n["E"] - 1 if "cu_seqlens" in n["inputs"] else n["B"],
        "tokens": lambda n: n["B"] * n["S"] if "B" in n else n["T"],
        "N": lambda n: (n["P"] - n["V"] * n["D"]) // (2 * n["K"]),
    },
    _cannot,
    {
        "cu_seqlens": ENDS,
        "capture_count": COUNTS,
        "state_update_active": (Chosen("flag", lambda raw, _: raw % 2),),
        "decay": (Chosen("decays", lambda raw, _: -(raw % 64) / 64.0),),
        "beta": (Chosen("rates", lambda raw, _: (raw % 64 + 1) / 64.0),),
        "key": (Chosen("short", lambda raw, n: (raw % 128 - 64.0) / 64 / max(1, n["K"]) ** 0.5),),
    },
    types=lambda _: (None, "float32", "float32"),
    count=2,
    by_values=unlike_ends,
)
OPERATORS = (Operator("com.microsoft.GatedDeltaNet", FAMILY, bounded(gated_delta_net), outputs=_shapes),)
