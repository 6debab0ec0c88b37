"""CausalConvWithState: each channel's windows of past and present elements, times its own filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.bounded import Bounded, concatenate, number, sigmoid
from harness.operators.computing import Computing
from harness.operators.formulas import bounded
from harness.operators.pooling.windows import Window
from harness.operators.products.convolutions import convolution

# padded        = past_state, or zeros, followed by input, along the length
# output        = f(sum over n of padded[b, c, t + n] weight[c, 0, n] + bias[c])      f: x, or x sigmoid(x) for silu, swish
# present_state = the last k - 1 elements of padded

ACTIVATIONS = ("none", "silu", "swish")


def causal_conv(
    input: Bounded,
    weight: Bounded,
    activation: str,
    bias: Bounded | None = None,
    past_state: Bounded | None = None,
) -> tuple[Bounded, Bounded]:
    """Convolve by the formula above."""
    kept = weight.shape[2] - 1
    before = (
        number(np.zeros((*input.shape[:2], kept)), input.arithmetic) if past_state is None else past_state
    )
    padded = concatenate([before, input], axis=2)
    nothing = not input.shape[2]
    whole = Window(weight.shape[2:], (1,), (1,), (0, 0))
    y = input if nothing else convolution(padded, weight, bias, whole, input.shape[1])
    return y if activation == "none" else y * sigmoid(y), padded[:, :, padded.shape[2] - kept :]


class CausalConvolving(Computing):
    """input [N, C, L], weight by `kernel`, bias `channels`, past_state `each`, and unlike them."""

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
        if len(x) != 3:
            return (x[-1] if x else 1,) if name == "bias" else (1, 1, 1)
        if not isinstance(relation, str):
            kernel, unlike = relation.get("kernel", 3), relation.get("unlike")
            found = (x[1] + (unlike == "channels"), 1 + (unlike == "group"), kernel)
            return found[1:] if unlike == "rank" else found
        if name == "bias":
            return (x[1] + (relation == "unlike"),)
        weight = call.shapes[1]
        batch, channels = x[0] + (relation == "unlike_batch"), x[1] + (relation == "unlike_channels")
        return (batch, channels, weight[-1] - 1 + (relation == "unlike_length"))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, shapes and the name of the activation."""
        x, weight = call.shapes[:2]
        if len(x) != 3:
            return "input has the shape (batch_size, channels, length)"
        if len(weight) != 3 or weight[:2] != (x[1], 1) or weight[2] < 1:
            return "weight has the shape (channels, 1, k)"
        bias, state = call.inputs.get("bias"), call.inputs.get("past_state")
        if bias is not None and bias.shape != x[1:2]:
            return "bias has the shape (channels)"
        if state is not None and state.shape != (*x[:2], weight[2] - 1):
            return "past_state has the shape (batch_size, channels, k - 1)"
        known = call.parameter("activation") in ACTIVATIONS
        return None if known else "activation is none, silu or swish"

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shape of the input, and that of the state."""
        x, weight = call.shapes[:2]
        return (x, (*x[:2], weight[2] - 1))


OPERATOR = Operator("CausalConvWithState", CausalConvolving(), bounded(causal_conv))
