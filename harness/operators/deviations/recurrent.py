"""Deviating results of recurrent layers."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.model.expected import Expected
from harness.operators.base import Call
from harness.operators.bounded import Bounded, where
from harness.operators.deviations.base import Deviating, changed, deviation
from harness.operators.formulas import bounded
from harness.operators.recurrence.recurrences import FUNCTIONS, Activation, chosen, named
from harness.operators.recurrence.recurrent import LSTM, RNN, States, Step, gates, layer, lstm_cell


@deviation
def scales_of_0(asked: Deviating) -> tuple[Expected, ...]:
    """RNN: an alpha or beta that is not given is 0."""
    kind = asked.operator.options
    functions = [
        FUNCTIONS[name] for name in named(asked.call, kind.functions, len(kind.directions(asked.call)))
    ]
    lacking = {
        which: (0.0,) * sum(getattr(each, which) is not None for each in functions)
        for which in ("alpha", "beta")
    }
    held = [asked.call.parameter(f"activation_{which}") or () for which in lacking]
    alphas, betas = ((*own, *zeros[len(own) :]) for own, zeros in zip(held, lacking.values(), strict=True))
    return asked.formula(activation_alpha=alphas, activation_beta=betas)


@deviation
def zero_of_nan_in_hard_sigmoid(asked: Deviating) -> tuple[Expected, ...]:
    """RNN with HardSigmoid in each direction: of NaN it is 0."""
    return bounded(_rnn_with_zero_of_nan)(asked.call, asked.inputs, asked.arithmetic)


def _rnn_with_zero_of_nan(
    X: Any, W: Any, R: Any, call: Call, B: Any = None, sequence_lens: Any = None, initial_h: Any = None
) -> Any:
    def cell(d: int, functions: Sequence[Activation], bias: Bounded | None) -> Step:
        def step(x: Bounded, states: States) -> States:
            argument = gates(x, states[0], W[d], R[d], bias)
            return (where(np.isnan(argument.value), 0.0, functions[0](argument)),)

        return step

    return layer(call, RNN, X, B, sequence_lens, (initial_h,), cell)


@deviation
def cell_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: Ht = ot (.) h(Ct), Ct not bounded by clip; all other arguments are."""
    return bounded(_lstm_without_clip_of_h)(asked.call, asked.inputs, asked.arithmetic)


@deviation
def thresholds_of_0_and_cell_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: Ht = ot (.) h(Ct), Ct not bounded by clip, and ThresholdedRelu has the alpha 0."""
    return cell_not_clipped(asked.again(activation_alpha=_with_thresholds_of_0(asked)))


def _with_thresholds_of_0(asked: Deviating) -> tuple[float, ...]:
    kind = asked.operator.options
    names = named(asked.call, kind.functions, len(kind.directions(asked.call)))
    alphas = [0.0 if name == "ThresholdedRelu" else FUNCTIONS[name].alpha for name in names]
    return tuple(alpha for alpha in alphas if alpha is not None)


# RNN, GRU, LSTM: ThresholdedRelu has the alpha 0.
changed("thresholds_of_0", activation_alpha=_with_thresholds_of_0)


def _lstm_without_clip_of_h(
    X: Any,
    W: Any,
    R: Any,
    call: Call,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    P: Any = None,
) -> Any:
    clipped = lstm_cell(call, W, R, P)
    unbounded = {name: value for name, value in call.attributes.items() if name != "clip"}
    functions = chosen(call._replace(attributes=unbounded), LSTM.functions, len(LSTM.directions(call)))

    def cell(d: int, held: Sequence[Activation], bias: Bounded | None) -> Step:
        return clipped(d, (held[0], held[1], functions[d][2]), bias)

    return layer(call, LSTM, X, B, sequence_lens, (initial_h, initial_c), cell)
