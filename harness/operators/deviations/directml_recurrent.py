"""What ONNX Runtime's DirectML provider gives of recurrent operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.model.case import Tensor, Value
from harness.model.expected import Approx, Expected
from harness.model.float_formats import FORMATS
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.recurrence.recurrences import FUNCTIONS


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
