"""The activation functions that RNN, GRU and LSTM name, with their scales, and the clipping before each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.operators.base import Call
from harness.operators.bounded import Bounded, choose, maximum, minimum, sigmoid, tanh, where
from harness.operators.elementwise import activations

Activation = Callable[[Bounded], Bounded]


class Function(NamedTuple):
    """A function of x, alpha and beta, and their defaults, where it has them."""

    of: Callable[[Bounded, float, float], Bounded]
    alpha: float | None = None
    beta: float | None = None


def _or(value: float, x: Bounded, found: Bounded) -> Bounded:
    """Return what is found of x, and a value of which nothing is claimed where x is NaN: ONNX's Relu and clip do not say."""
    open_ = Bounded(np.full(x.shape, value), np.full(x.shape, np.inf), x.arithmetic)
    return where(np.isnan(x.value), open_, found)


# f(x, alpha, beta), as ONNX RNN lists them
FUNCTIONS: dict[str, Function] = {
    "Relu": Function(lambda x, a, b: _or(0.0, x, maximum(x, 0.0))),
    "Tanh": Function(lambda x, a, b: tanh(x)),
    "Sigmoid": Function(lambda x, a, b: sigmoid(x)),
    "Affine": Function(lambda x, a, b: x * a + b, 1.0, 0.0),
    "LeakyRelu": Function(lambda x, a, b: activations.leaky_relu(x, a), 0.01),
    "ThresholdedRelu": Function(lambda x, a, b: choose(x, a, x * 0.0, x), 1.0),
    "ScaledTanh": Function(lambda x, a, b: tanh(x * b) * a, 1.0, 1.0),
    "HardSigmoid": Function(activations.hard_sigmoid, 0.2, 0.5),
    "Elu": Function(lambda x, a, b: activations.elu(x, a), 1.0),
    "Softsign": Function(lambda x, a, b: activations.softsign(x)),
    "Softplus": Function(lambda x, a, b: activations.softplus(x)),
}


def named(call: Call, defaults: Sequence[str], directions: int) -> tuple[str, ...]:
    """Return the names of the functions, of all directions."""
    found = call.parameter("activations")
    return tuple(found or tuple(defaults) * directions)[: len(defaults) * directions]


def chosen(call: Call, defaults: Sequence[str], directions: int) -> list[tuple[Activation, ...]]:
    """Return the functions of each direction; those that have an alpha or a beta consume the next one."""
    alphas, betas = (iter(call.parameter(name) or ()) for name in ("activation_alpha", "activation_beta"))
    clip, each = call.parameter("clip"), len(defaults)
    clips = clip if isinstance(clip, tuple) else (clip,) * each  # several: those of a deviation
    found = [
        _made(name, alphas, betas, clips[n % each])
        for n, name in enumerate(named(call, defaults, directions))
    ]
    return [tuple(found[n * each : (n + 1) * each]) for n in range(directions)]


def _made(name: str, alphas: Iterator[float], betas: Iterator[float], clip: float | None) -> Activation:
    function = FUNCTIONS[name]
    alpha = 0.0 if function.alpha is None else next(alphas, float(np.float32(function.alpha)))
    beta = 0.0 if function.beta is None else next(betas, float(np.float32(function.beta)))

    def apply(x: Bounded) -> Bounded:
        held = x if clip is None else _or(-clip, x, maximum(minimum(x, clip), -clip))
        return function.of(held, alpha, beta)

    return apply
