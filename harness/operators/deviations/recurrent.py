"""Deviating results of recurrent layers."""

from __future__ import annotations

from functools import partial

from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, changed, deviation, replaced
from harness.operators.formulas import bounded
from harness.operators.recurrence.recurrences import FUNCTIONS, named
from harness.operators.recurrence.recurrent import rnn


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


# RNN with HardSigmoid in each direction: of NaN it is 0.
replaced("zero_of_nan_in_hard_sigmoid", bounded(partial(rnn, of_nan=0.0)))


@deviation
def cell_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: Ht = ot (.) h(Ct), Ct not bounded by clip; all other arguments are."""
    clip = asked.call.parameter("clip")
    return asked.formula(clip=(clip, clip, None))


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
