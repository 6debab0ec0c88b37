"""What ONNX Runtime's DirectML provider gives of recurrent operators."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from harness.model.expected import Expected
from harness.operators.base import Call
from harness.operators.bounded import Bounded
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.formulas import bounded
from harness.operators.recurrent import LSTM, Step, layer, lstm_cell
from harness.operators.recurrent_activations import FUNCTIONS, Activation, chosen


@deviation
def not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """RNN and GRU: without clip."""
    return asked.formula(without=("clip",))


@deviation
def cell_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: clips the arguments of f and g, not that of h."""
    return bounded(_lstm)(asked.call, asked.inputs, asked.arithmetic)


def _lstm(
    X: Any, W: Any, R: Any, call: Call, B: Any = None, sequence_lens: Any = None, initial_h: Any = None,
    initial_c: Any = None, P: Any = None,
) -> Any:  # fmt: skip
    unclipped = {name: value for name, value in call.attributes.items() if name != "clip"}
    free = chosen(call._replace(attributes=unclipped), LSTM.functions, len(W))
    clipping = lstm_cell(W, R, P, call)

    def cell(d: int, functions: Sequence[Activation], bias: Bounded | None) -> Step:
        return clipping(d, (*functions[:2], free[d][2]), bias)

    return layer(call, LSTM, X, B, sequence_lens, (initial_h, initial_c), cell)


@deviation
def infinite_softplus(asked: Deviating) -> tuple[Expected, ...]:
    """Recurrent operators: Softplus is infinite, as 0 x + infinity is, and clip as above."""
    names = asked.call.parameter("activations")
    scales: dict[str, Any] = {}
    for which, infinite in (("alpha", 0.0), ("beta", inf)):
        left = iter(asked.call.parameter(f"activation_{which}") or ())
        usual = [getattr(FUNCTIONS[name], which) for name in names]
        scales[f"activation_{which}"] = tuple(
            infinite if name == "Softplus" else next(left, default)
            for name, default in zip(names, usual, strict=True)
            if name == "Softplus" or default is not None
        )
    affine = tuple("Affine" if name == "Softplus" else name for name in names)
    attributes = {**asked.call.attributes, "activations": affine, **scales}
    again = asked._replace(call=asked.call._replace(attributes=attributes))
    return cell_not_clipped(again) if asked.operator.name == "LSTM" else not_clipped(again)
