"""CausalConvWithState, of packed requests too: each channel's windows of past and present elements, times its own filter."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.bounded import Bounded, concatenate, moveaxis, number, pad, sigmoid, stack, swapaxes
from harness.operators.computing import Computing
from harness.operators.dimensioned import Dimensioned, Dimensions
from harness.operators.formulas import bounded
from harness.operators.packed import COUNTS, ENDS, unfit_capacity, unlike_ends
from harness.operators.pooling.windows import Window
from harness.operators.products.convolutions import convolution

# padded        = past_state, or zeros, followed by input, along the length
# output        = f(sum over n of padded[b, c, t + n] weight[c, 0, n] + bias[c])      f: x, or x sigmoid(x) for silu, swish
# present_state = the last k - 1 elements of padded
# of com.microsoft taps are `dilation` apart, which makes states of (k - 1) dilation; channels_last has the length before the
# channels; and with state_window states are those after each of the last steps, of zeros before the first one

ACTIVATIONS = ("none", "silu", "swish")


def causal_conv(
    input: Bounded,
    weight: Bounded,
    activation: str,
    call: Call,
    bias: Bounded | None = None,
    past_state: Bounded | None = None,
) -> tuple[Bounded, Bounded]:
    """Convolve by the formula above."""
    dilation, window = call.parameter("dilation", 1), call.parameter("state_window", 0)
    last = bool(call.parameter("channels_last", 0))
    x = _moved(input, last)
    kept = (weight.shape[2] - 1) * dilation
    empty = number(np.zeros((*x.shape[:2], kept)), input.arithmetic)
    before = empty if past_state is None else _moved(past_state[-1] if window else past_state, last)
    padded = concatenate([before, x], axis=2)
    nothing = not x.shape[2]
    whole = Window(weight.shape[2:], (1,), (dilation,), (0, 0))
    y = x if nothing else convolution(padded, weight, bias, whole, x.shape[1])
    y = y if activation == "none" else y * sigmoid(y)

    def after(steps: int) -> Bounded:
        """Return the state after some steps."""
        state = padded[:, :, steps : steps + kept] if steps > 0 or not window else empty
        return moveaxis(state, 1, 2).reshape(len(state), kept, *input.shape[2:]) if last else state

    state = after(x.shape[2])
    if window:
        state = stack([after(x.shape[2] - window + 1 + slot) for slot in range(window)])
    return moveaxis(y, 1, 2).reshape(input.shape) if last else y, state


def _moved(x: Bounded, last: bool) -> Bounded:
    """Return [batch, length, channels of one or more dimensions] as [batch, channels, length]."""
    return moveaxis(x.reshape(*x.shape[:2], prod(x.shape[2:])), 2, 1) if last else x


# each request's tokens by themselves behind its initial_state; state_update: its first tokens (VarlenCausalConvWithState)
def varlen_causal_conv(
    input: Bounded,
    weight: Bounded,
    cumulative_sequence_length: Array,
    initial_state: Bounded,
    activation: str,
    call: Call,
    bias: Bounded | None = None,
    capture_count: Array | None = None,
) -> tuple[Bounded, ...]:
    """Convolve by the formula above."""
    ends = cumulative_sequence_length.tolist()
    capacity = call.parameter("state_update_capacity")
    outputs, states, updates = [], [], []
    for request, (start, end) in enumerate(pairwise(ends)):
        tokens = input[start:end].reshape(1, end - start, input.shape[1])
        before = initial_state[request : request + 1]
        y, state = causal_conv(swapaxes(tokens, 1, 2), weight, activation, call, bias, before)
        outputs.append(swapaxes(y, 1, 2)[0])
        states.append(state)
        captured = (
            0 if capture_count is None else min(capacity, end - start, max(0, int(capture_count[request])))
        )
        updates.append(pad(tokens[:, :captured], ((0, 0), (0, capacity - captured), (0, 0))))
    return concatenate(outputs), concatenate(states), concatenate(updates)


def _unlike_packed(n: Dimensions, call: Call) -> str | None:
    if call.parameter("activation") not in ACTIVATIONS:
        return "activation is none, silu or swish"
    if n["dilation"] < 1 or n["K"] < 1:
        return "dilation is 1 or above"
    return unfit_capacity(n)


class CausalConvolving(Computing):
    """input [N, C, L], weight by `kernel`, bias `channels`, past_state `each`, and unlike them; com.microsoft may have the
    channels last, of one or more dimensions."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"unlike": ("channels", "group", "rank")}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weight": ("kernel", "unlike"),
        "bias": ("channels", "unlike"),
        "past_state": ("each", "unlike_length", "unlike_channels", "unlike_batch"),
    }
    count = 2

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of weight, bias and state."""
        x = call.first.shape
        if len(x) != 3 and not call.parameter("channels_last", 0):
            return (x[-1] if x else 1,) if name == "bias" else (1, 1, 1)
        channels = _channels(call)
        if not isinstance(relation, str):
            kernel, unlike = relation.get("kernel", 3), relation.get("unlike")
            found = (channels + (unlike == "channels"), 1 + (unlike == "group"), kernel)
            return found[1:] if unlike == "rank" else found
        if name == "bias":
            return (channels + (relation == "unlike"),)
        more = {each: relation == f"unlike_{each}" for each in ("batch", "channels", "length")}
        return _state(call, **more)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, shapes and the name of the activation."""
        x, weight = call.shapes[:2]
        if len(x) != 3 and not (call.parameter("channels_last", 0) and len(x) > 2):
            return "input has the shape (batch_size, channels, length)"
        if len(weight) != 3 or weight[:2] != (_channels(call), 1) or weight[2] < 1:
            return "weight has the shape (channels, 1, k)"
        bias, state = call.inputs.get("bias"), call.inputs.get("past_state")
        if bias is not None and bias.shape != weight[:1]:
            return "bias has the shape (channels)"
        if state is not None and state.shape != _state(call):
            return "past_state has the shape (batch_size, channels, k - 1)"
        known = call.parameter("activation") in ACTIVATIONS
        return None if known else "activation is none, silu or swish"

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shape of the input, and that of the state."""
        return (call.first.shape, _state(call))


def _channels(call: Call) -> int:
    x = call.first.shape
    return prod(x[2:]) if call.parameter("channels_last", 0) else x[1]


def _state(call: Call, batch: int = 0, channels: int = 0, length: int = 0) -> Shape:
    """Return the shape of a state, or one that is larger by so much."""
    x, kernel = call.first.shape, call.shapes[1][-1]
    kept = (kernel - 1) * call.parameter("dilation", 1) + length
    window = call.parameter("state_window", 0)
    rows = (
        (kept, *x[2:-1], x[-1] + channels) if call.parameter("channels_last", 0) else (x[1] + channels, kept)
    )
    return (*((window,) if window else ()), x[0] + batch, *rows)


OPERATORS = (
    *(
        Operator(name, CausalConvolving(), bounded(causal_conv))
        for name in ("CausalConvWithState", "com.microsoft.CausalConvWithState")
    ),
    Operator(
        "com.microsoft.VarlenCausalConvWithState",
        Dimensioned(
            "input: T C; weight: C 1 K; cumulative_sequence_length: E; bias: C; initial_state: B C S; capture_count: B",
            "T C; B C S; B U C",
            {
                "B": lambda n: n["E"] - 1,
                "S": lambda n: (n["K"] - 1) * n["dilation"],
                "U": lambda n: n["state_update_capacity"],
            },
            _unlike_packed,
            {
                "cumulative_sequence_length": ENDS,
                "capture_count": COUNTS,
            },
            count=2,
            by_values=unlike_ends,
        ),
        bounded(varlen_causal_conv),
    ),
)
