"""What ONNX Runtime's DirectML provider gives of recurrent operators."""

from __future__ import annotations

import numpy as np

from harness.model.case import Value
from harness.model.expected import Approx, Expected
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.recurrent_activations import FUNCTIONS


@deviation
def not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """RNN and GRU: clip is not read. LSTM: it bounds the arguments of f and g, and not that of h."""
    return asked.formula(**_clips(asked))


# log(1 + exp(steepness * x)) / steepness, with a steepness of 0
@deviation
def infinite_softplus(asked: Deviating) -> tuple[Expected, ...]:
    """Recurrent operators: Softplus is infinite, and clip is what `not_clipped` makes of it."""
    names = asked.call.parameter("activations") or ()
    if "Softplus" not in names or asked.call.parameter("activation_alpha") is not None:
        raise Undefined("no Softplus of its own")
    functions = [FUNCTIONS[name] for name in names]
    scales = {
        "activations": tuple("Affine" if name == "Softplus" else name for name in names),
        "activation_alpha": tuple(
            0.0 if n == "Softplus" else f.alpha
            for n, f in zip(names, functions, strict=True)
            if n == "Softplus" or f.alpha is not None
        ),
        "activation_beta": tuple(
            np.inf if n == "Softplus" else f.beta
            for n, f in zip(names, functions, strict=True)
            if n == "Softplus" or f.beta is not None
        ),
    }
    return asked.formula(**_clips(asked), **scales)


def _clips(asked: Deviating) -> dict[str, Value]:
    clip = asked.call.parameter("clip")
    if clip is None:
        return {}
    return {"clip": (clip, clip, np.inf) if asked.operator.name == "LSTM" else np.inf}
