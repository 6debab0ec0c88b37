"""Deviating results of recurrent layers, those of ONNX Runtime's DirectML provider at the end."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.expected import Approx, Expected
from harness.model.float_formats import FORMATS
from harness.operators.base import Undefined
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


@deviation
def not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """RNN and GRU: clip is not read, and arguments are held to the largest number, NaN to the least.
    LSTM: it bounds the arguments of f and g, and not that of h."""
    clip = asked.call.parameter("clip")
    if clip is None:
        raise Undefined("no clip")
    changed: Value = (
        (clip, clip, np.inf) if asked.operator.name == "LSTM" else FORMATS[asked.call.first.dtype].largest
    )
    return tuple(_known(found) for found in asked.formula(clip=changed) if isinstance(found, Approx))


# log(1 + exp(steepness * x)) / steepness, with a steepness of 0
@deviation
def infinite_softplus(asked: Deviating) -> tuple[Expected, ...]:
    """Recurrent operators: Softplus is infinite, and a cell state that is not given is not multiplied by it."""
    names = asked.call.parameter("activations") or ()
    if "Softplus" not in names or asked.call.parameter("activation_alpha") is not None:
        raise Undefined("no Softplus of its own")
    inputs = dict(asked.inputs)
    if asked.operator.name == "LSTM" and "initial_c" not in inputs:
        x, r = inputs["X"], inputs["R"].array
        batch = x.array.shape[1 - asked.call.parameter("layout", 0)]
        least = np.finfo(x.array.dtype).smallest_subnormal  # infinity times this is no NaN
        inputs["initial_c"] = Tensor(x.dtype, np.full((len(r), batch, r.shape[2]), least))
    changed: dict[str, Any] = {
        "activations": tuple("Affine" if name == "Softplus" else name for name in names),
        "activation_alpha": _floats(0.0 if name == "Softplus" else FUNCTIONS[name].alpha for name in names),
        "activation_beta": _floats(np.inf if name == "Softplus" else FUNCTIONS[name].beta for name in names),
    }
    again = asked.again(inputs=inputs, **changed)
    given = not_clipped(again) if again.call.parameter("clip") is not None else again.formula()
    return tuple(_known(found) for found in given if isinstance(found, Approx))


def _known(found: Approx) -> Approx:
    """Return a result with a bound where gates that are saturated or infinite leave none: 8 units in the last place
    of 1, or of the value where that is greater."""
    finite = np.isfinite(found.value)
    steps = 8 * FORMATS[found.dtype].spacing(np.maximum(np.abs(np.where(finite, found.value, 0.0)), 1.0))
    bound = np.where(np.isfinite(found.bound), found.bound, steps)
    return Approx(found.dtype, found.value, np.where(finite, bound, 0.0))


def _floats(given: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(each for each in given if each is not None)
