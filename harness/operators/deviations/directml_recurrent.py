"""What ONNX Runtime's DirectML provider gives of recurrent operators."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.model.case import Value
from harness.model.expected import Expected
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.recurrent_activations import FUNCTIONS


@deviation
def not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """RNN and GRU: clip is not read. LSTM: it bounds the arguments of f and g, and not that of h."""
    return _formula(asked, _clips(asked))


# log(1 + exp(steepness * x)) / steepness, with a steepness of 0
@deviation
def infinite_softplus(asked: Deviating) -> tuple[Expected, ...]:
    """Recurrent operators: Softplus is infinite, and clip is what `not_clipped` makes of it."""
    names = asked.call.parameter("activations") or ()
    if "Softplus" not in names or asked.call.parameter("activation_alpha") is not None:
        raise Undefined("no Softplus of its own")
    scales: dict[str, Value] = {
        "activations": tuple("Affine" if name == "Softplus" else name for name in names),
        "activation_alpha": _floats(0.0 if n == "Softplus" else FUNCTIONS[n].alpha for n in names),
        "activation_beta": _floats(np.inf if n == "Softplus" else FUNCTIONS[n].beta for n in names),
    }
    return _formula(asked, {**_clips(asked), **scales})


def _floats(given: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(each for each in given if each is not None)


def _formula(asked: Deviating, changed: dict[str, Value]) -> tuple[Expected, ...]:
    """Return what the operator's own formula gives with other attributes."""
    call = asked.call._replace(attributes={**asked.call.attributes, **changed})
    return asked._replace(call=call).formula()


def _clips(asked: Deviating) -> dict[str, Value]:
    clip = asked.call.parameter("clip")
    if clip is None:
        return {}
    return {"clip": (clip, clip, np.inf) if asked.operator.name == "LSTM" else np.inf}
