"""LinearAttention: queries read a state to which each key adds its value after the state has decayed; and its gates."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.bounded import (
    Bounded,
    concatenate,
    converted,
    einsum,
    either,
    exp,
    number,
    repeat,
    sigmoid,
    stack,
)
from harness.operators.computing import Computing
from harness.operators.dimensioned import Dimensioned
from harness.operators.elementwise.activations import softplus_as_written
from harness.operators.formulas import bounded

# S = exp(decay[t]) S                                    gated, gated_delta
# v = value[t]; delta, gated_delta: v = beta[t] (value[t] - S^T key[t])
# S = S + key[t] v^T; output[t] = scale S^T query[t]     scale = 1 / sqrt(d_k) where it is 0
# for each head of keys, whose state several heads of queries read, or as many heads as one of queries reads (com.microsoft)

RULES = {
    "linear": (False, False),
    "gated": (True, False),
    "delta": (False, True),
    "gated_delta": (True, True),
}
"""By update rule, whether there is a decay and a beta."""


class Heads(NamedTuple):
    """The extents of a call: `keys` and `values` are those of one head, d_k and d_v."""

    batch: int
    steps: int
    queries: int
    heads: int
    keys: int
    values: int

    @property
    def outputs(self) -> int:
        """The heads of the output."""
        return max(self.queries, self.heads)


def _heads(call: Call) -> Heads:
    query, value = call.inputs["query"].shape, call.inputs["value"].shape
    queries, heads = call.parameter("q_num_heads"), call.parameter("kv_num_heads")
    return Heads(query[0], query[1], queries, heads, query[2] // queries, value[2] // heads)


def _window(call: Call) -> Shape:
    """Return the extent of the states of the last steps, which com.microsoft's may give; none where one is given alone."""
    window = call.parameter("state_window", 0)
    return (window,) if window else ()


def linear_attention(
    query: Bounded,
    key: Bounded,
    value: Bounded,
    call: Call,
    past_state: Bounded | None = None,
    decay: Bounded | None = None,
    beta: Bounded | None = None,
) -> tuple[Bounded, Bounded]:
    """Go through the steps by the formula above."""
    n = _heads(call)
    q = query.reshape(n.batch, n.steps, n.queries, n.keys)
    k = key.reshape(n.batch, n.steps, n.heads, n.keys)
    v = value.reshape(n.batch, n.steps, n.heads, n.values)
    scale = call.parameter("scale") or 1 / sqrt(max(n.keys, 1))
    window = call.parameter("state_window", 0)
    shape = (n.batch, n.heads, n.keys, n.values)
    dtype = query.arithmetic.form.dtype
    empty = number(np.zeros(shape), query.arithmetic)
    state = empty if past_state is None else converted(past_state[-1] if window else past_state, dtype)
    read, states = [], [empty] * window
    for t in range(n.steps):
        if decay is not None:
            width = decay.shape[2] // n.heads
            state = state * exp(decay[:, t].reshape(n.batch, n.heads, width, 1))
        new = v[:, t]
        if beta is not None:
            held = einsum("bhdm,bhd->bhm", state, k[:, t])
            new = (new - held) * beta[:, t].reshape(n.batch, beta.shape[2], 1)
        state = state + k[:, t].reshape(*shape[:3], 1) * new.reshape(n.batch, n.heads, 1, n.values)
        states.append(state)
        seen = repeat(state, n.outputs // n.heads, axis=1)
        asks = repeat(q[:, t], n.outputs // n.queries, axis=1)
        summed = einsum("bhd,bhdm->bhm", asks, seen) * scale
        read.append(either(summed, einsum("bhd,bhdm->bhm", asks * scale, seen)))
    y = (
        concatenate([each.reshape(n.batch, 1, n.outputs * n.values) for each in read], axis=1)
        if read
        else number(np.zeros((n.batch, 0, n.outputs * n.values)), query.arithmetic)
    )
    return y, stack(states[-window:]) if window else state


class LinearAttending(Computing):
    """query [B, T, q_num_heads * d_k], the others by its heads: key `each`; value `each` (d_v = d_k), `narrow` (1),
    `wide` (3 more); state `each`; decay `heads`, `keys`; beta `heads`, `one`; and unlike them."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "key": ("each", "unlike", "unlike_batch", "unlike_steps"),
        "value": ("each", "narrow", "wide", "unlike_batch", "unlike_steps"),
        "past_state": ("each", "unlike"),
        "decay": ("heads", "keys", "unlike"),
        "beta": ("heads", "one", "unlike"),
    }
    count = 2

    def __init__(self, *, inverse: bool = False) -> None:
        """With `inverse` there may be more heads of keys than of queries."""
        self.inverse = inverse

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of all inputs behind query."""
        query = call.first.shape
        queries, heads = call.parameter("q_num_heads"), call.parameter("kv_num_heads")
        if len(query) != 3 or queries < 1 or heads < 1:
            return query
        size, word = query[2] // queries, str(relation)
        if name == "past_state":
            values = call.shapes[2][-1] // heads + (word == "unlike")
            return (*_window(call), query[0], heads, size, values)
        lengths = {
            "each": heads * size,
            "keys": heads * size,
            "narrow": heads,
            "heads": heads,
            "one": 1,
            "wide": heads * (size + 3),
            "unlike": heads * size + (heads if name == "key" else heads + 1),
        }
        batch, steps = query[0] + (word == "unlike_batch"), query[1] + (word == "unlike_steps")
        return (batch, steps, lengths.get(word, heads * size))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The numbers of heads, what the update rule needs, and shapes."""
        queries, heads = call.parameter("q_num_heads"), call.parameter("kv_num_heads")
        if heads < 1 or queries < 1 or (queries % heads and not (self.inverse and heads % queries == 0)):
            return "q_num_heads is a multiple of kv_num_heads"
        if not 0 <= call.parameter("state_window", 0) <= 8:
            return "state_window is at most 8"
        rule = call.parameter("update_rule")
        if rule not in RULES:
            return "update_rule is linear, gated, delta or gated_delta"
        if tuple(name in call.inputs for name in ("decay", "beta")) != RULES[rule]:
            return "decay and beta are given where update_rule has them"
        query, key, value = call.shapes[:3]
        if any(len(shape) != 3 for shape in (query, key, value)):
            return "query, key and value have three dimensions"
        if query[2] % queries or key[2] % heads or value[2] % heads:
            return "the numbers of heads divide the last dimensions"
        if not query[:2] == key[:2] == value[:2]:
            return "query, key and value have one batch and length"
        n = _heads(call)
        if key[2] != n.heads * n.keys:
            return "query and key have one head size"
        wanted: dict[str, tuple[Shape, ...]] = {
            "past_state": ((*_window(call), n.batch, n.heads, n.keys, n.values),),
            "decay": tuple((n.batch, n.steps, last) for last in (n.heads, n.heads * n.keys)),
            "beta": tuple((n.batch, n.steps, last) for last in (n.heads, 1)),
        }
        for name, shapes in wanted.items():
            if name in call.inputs and call.inputs[name].shape not in shapes:
                return f"{name} has its shape"
        return None

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[B, T, heads * d_v] and [B, kv_num_heads, d_k, d_v], behind the extent of a window."""
        n = _heads(call)
        state = (*_window(call), n.batch, n.heads, n.keys, n.values)
        return ((n.batch, n.steps, n.outputs * n.values), state)

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Without past_state the new state has the type of query."""
        return (None, None if "past_state" in call.inputs else call.first.dtype)


# decay = decay_scale softplus(a + dt_bias), in float32; beta = sigmoid(b)      (LinearAttentionGate)
def linear_attention_gate(
    a: Bounded, dt_bias: Bounded, decay_scale: Bounded, b: Bounded | None = None
) -> tuple[Bounded, ...]:
    """Make the gates by the formula above."""
    dtype = a.arithmetic.form.dtype
    decay = converted(decay_scale * softplus_as_written(converted(a, "float32") + dt_bias), dtype)
    return (decay,) if b is None else (decay, sigmoid(b))


OPERATORS = (
    Operator("LinearAttention", LinearAttending(), bounded(linear_attention)),
    Operator("com.microsoft.LinearAttention", LinearAttending(inverse=True), bounded(linear_attention)),
    Operator(
        "com.microsoft.LinearAttentionGate",
        Dimensioned("a: B T H; dt_bias: H; decay_scale: H; b: B T H", "B T H; B T H"),
        bounded(linear_attention_gate),
    ),
)
