"""Activations that compute, each by the formula that the ONNX operator specification writes.

A formula that overflows where its result does not is evaluated there in another form of the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import numpy as np

from harness.operators import broadcasting
from harness.operators.base import Call, Operator, Undefined
from harness.operators.bounded import (
    Bounded,
    choose,
    either,
    erf,
    exp,
    log,
    log1p,
    maximum,
    minimum,
    sigmoid,
    tanh,
    where,
)
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import between_zero_and_itself, bounded


# alpha x for x < 0, x for x >= 0                                    (LeakyRelu)
def leaky_relu(x: Bounded, alpha: float) -> Bounded:
    return choose(x, 0.0, x * alpha, x)


# slope x for x < 0, x for x >= 0                                    (PRelu)
def p_relu(x: Any, by: Any) -> Any:
    return where(x.value < 0, by * x, x) if isinstance(x, Bounded) else np.where(x < 0, by * x, x)


# max(0, min(1, alpha x + beta))                                     (HardSigmoid)
def hard_sigmoid(x: Bounded, alpha: float, beta: float) -> Bounded:
    return maximum(minimum(x * alpha + beta, 1.0), 0.0)


# x max(0, min(1, x / 6 + 1 / 2))                                    (HardSwish)
def hard_swish(x: Bounded) -> Bounded:
    """Evaluate the formula above, or x max(0, min(6, x + 3)) / 6 as PyTorch documents it, where that does not overflow."""
    written, product = x * hard_sigmoid(x, 1 / 6, 0.5), x * maximum(minimum(x + 3.0, 6.0), 0.0)
    whole = either(product / 6.0, product * (1 / 6))
    return either(written, where(np.isfinite(whole.error), whole, written))


# x + bias for x < -lambd, x - bias for x > lambd, else 0            (Shrink)
def shrink(x: Any, bias: float, lambd: float) -> Any:
    if not isinstance(x, Bounded):
        kind, limits = x.dtype.type, np.iinfo(x.dtype)
        if not limits.min <= bias <= limits.max:
            raise Undefined("a bias that the type does not hold")
        return np.where(x < -lambd, x + kind(bias), np.where(x > lambd, x - kind(bias), kind(0)))
    return where(x.value < -lambd, x + bias, where(x.value > lambd, x - bias, 0.0))


# alpha (exp(x) - 1) for x < 0, x for x >= 0                         (Elu)
def elu(x: Bounded, alpha: float) -> Bounded:
    return choose(x, 0.0, (exp(x) - 1.0) * alpha, x)


# gamma (alpha exp(x) - alpha) for x <= 0, gamma x for x > 0         (Selu)
def selu(x: Bounded, alpha: float, gamma: float) -> Bounded:
    """Evaluate the formula above, or gamma alpha (exp(x) - 1), which is as good."""
    written, factored = (exp(x) * alpha - alpha) * gamma, (exp(x) - 1.0) * alpha * gamma
    below = Bounded(written.value, np.maximum(written.error, factored.error), x.arithmetic)
    return choose(x, 0.0, below, x * gamma)


# max(0, x) + min(0, alpha (exp(x / alpha) - 1))                     (Celu)
def celu(x: Bounded, alpha: float) -> Bounded:
    return maximum(x, 0.0) + minimum((exp(x / alpha) - 1.0) * alpha, 0.0)


# ln(exp(x) + 1) = x + ln(1 + exp(-x))                               (Softplus)
def softplus(x: Bounded) -> Bounded:
    """Evaluate the formula with log1p: relative to the result, as kernels are. The sum written out is 0 in the tail."""
    return where(x.value > 0, x + log1p(exp(-x)), log1p(exp(x)))


def softplus_as_written(x: Bounded) -> Bounded:
    """Evaluate ln(exp(x) + 1) with the sum, as the function body of Mish does in ONNX Runtime."""
    written = log(exp(x) + 1.0)
    return where(np.isfinite(written.error) | ~(x.value > 0), written, x + log(exp(-x) + 1.0))


# x / (1 + |x|)                                                      (Softsign)
def softsign(x: Bounded) -> Bounded:
    return x / (abs(x) + 1.0)


# x tanh(ln(1 + exp(x)))                                             (Mish)
def mish(x: Bounded) -> Bounded:
    return x * tanh(softplus_as_written(x))


# x sigmoid(alpha x)                                                 (Swish)
def swish(x: Bounded, alpha: float) -> Bounded:
    return x * sigmoid(x * alpha)


# a sigmoid(alpha a) b                                               (SwiGLU)
def swiglu(a: Bounded, b: Bounded, alpha: float) -> Bounded:
    return swish(a, alpha) * b


def _not_alike(call: Call) -> str | None:
    return None if len(set(call.shapes)) == 1 else "A and B have one shape"


# x (1 + erf(x / sqrt(2))) / 2; tanh: x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2       (Gelu)
def gelu(x: Bounded, approximate: str) -> Bounded:
    inner = tanh((x + x * x * x * 0.044715) * sqrt(2 / pi)) if approximate == "tanh" else erf(x / sqrt(2))
    return x * 0.5 * (inner + 1.0)


def _unidirectional(call: Call) -> str | None:
    return None if broadcasting.broadcast(call.shapes) == call.first.shape else "slope can be broadcast to X"


def _named(**members: str | float) -> Callable[[Call], dict[str, Any]]:
    """Name DirectML's members by the attributes that they are, or give their values."""
    return lambda call: {
        name: call.attributes[given] if isinstance(given, str) else given for name, given in members.items()
    }


OPERATORS = (
    Operator("LeakyRelu", ELEMENTWISE, bounded(leaky_relu), options=_named(Alpha="alpha")),
    Operator("PRelu", ELEMENTWISE, bounded(p_relu), rule=_unidirectional),
    Operator("HardSigmoid", ELEMENTWISE, bounded(hard_sigmoid), options=_named(Alpha="alpha", Beta="beta")),
    Operator(
        "HardSwish",
        ELEMENTWISE,
        bounded(hard_swish, between_zero_and_itself),
        options=_named(Alpha=1 / 6, Beta=0.5),
    ),
    Operator("Shrink", ELEMENTWISE, bounded(shrink), options=_named(Bias="bias", Threshold="lambd")),
    Operator("Elu", ELEMENTWISE, bounded(elu), options=_named(Alpha="alpha")),
    Operator("Selu", ELEMENTWISE, bounded(selu), options=_named(Alpha="alpha", Gamma="gamma")),
    Operator("Celu", ELEMENTWISE, bounded(celu), options=_named(Alpha="alpha")),
    Operator("Sigmoid", ELEMENTWISE, bounded(sigmoid, (0, 1))),
    Operator("Softplus", ELEMENTWISE, bounded(softplus, (0, np.inf)), options=_named(Steepness=1.0)),
    Operator("Softsign", ELEMENTWISE, bounded(softsign, (-1, 1))),
    Operator("Mish", ELEMENTWISE, bounded(mish, between_zero_and_itself)),
    Operator("SwiGLU", ELEMENTWISE, bounded(swiglu), _not_alike),
    Operator(
        "Swish",
        ELEMENTWISE,
        bounded(swish, between_zero_and_itself),
        options=_named(SigmoidInputScale="alpha"),
    ),
    Operator("Gelu", ELEMENTWISE, bounded(gelu, between_zero_and_itself)),
)
