"""The family of recurrent operators: their shapes and rules, and the activation functions that they name, with their
scales, and the clipping before each.

X is [seq_length, batch, input], W [directions, gates * hidden, input], R [directions, gates * hidden,
hidden], B [directions, 2 * gates * hidden], P [directions, 3 * hidden], states [directions, batch, hidden];
with layout 1 the batch of X and of states comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, Operator, Relation, Shape, Undefined, ValueKind, value_kinds
from harness.operators.bounded import Bounded, choose, maximum, minimum, sigmoid, tanh, where
from harness.operators.computing import Computing, lengths
from harness.operators.elementwise import activations

Activation = Callable[[Bounded], Bounded]


OPEN = float("nan")
"""The default of a scale for which ONNX has none: there is no operator of the name of the function."""


class Function(NamedTuple):
    """A function of x, alpha and beta, and their defaults, where it has them."""

    of: Callable[[Bounded, float, float], Bounded]
    alpha: float | None = None
    beta: float | None = None


def _open_for_nan(x: Bounded, value: float, result: Bounded) -> Bounded:
    """Return the result, and `value` with an infinite bound where x is NaN, for which ONNX leaves Relu and clip open."""
    return where(np.isnan(x.value), x.unclaimed(value), result)


# f(x, alpha, beta), as ONNX RNN lists them
FUNCTIONS: dict[str, Function] = {
    "Relu": Function(lambda x, a, b: _open_for_nan(x, 0.0, maximum(x, 0.0))),
    "Tanh": Function(lambda x, a, b: tanh(x)),
    "Sigmoid": Function(lambda x, a, b: sigmoid(x)),
    "Affine": Function(lambda x, a, b: x * a + b, OPEN, OPEN),
    "LeakyRelu": Function(lambda x, a, b: activations.leaky_relu(x, a), 0.01),
    "ThresholdedRelu": Function(lambda x, a, b: choose(x, a, x * 0.0, x), 1.0),
    "ScaledTanh": Function(lambda x, a, b: tanh(x * b) * a, OPEN, OPEN),
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
    alpha, beta = _scale(alphas, function.alpha), _scale(betas, function.beta)

    def apply(x: Bounded) -> Bounded:
        held = x if clip is None else _open_for_nan(x, -clip, maximum(minimum(x, clip), -clip))
        return function.of(held, alpha, beta)

    return apply


def _scale(given: Iterator[float], default: float | None) -> float:
    if default is None:
        return 0.0
    found = next(given, default)
    if found is OPEN:
        raise Undefined("the alpha and beta of Affine and ScaledTanh by default")
    return float(np.float32(found))


DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
TOO_LONG = "lengths from 0 to seq_length"
LENGTHS = (
    *value_kinds("any_length", "full", "one", "none"),
    *value_kinds("too_long", "negative_length", breaks=TOO_LONG),
)
"""any_length: 1 to seq_length; none: 0 for the first."""


class Recurrence(NamedTuple):
    """The gates of an operator, its activation functions by default, and its states."""

    gates: int
    functions: tuple[str, ...]
    states: int

    def directions(self, call: Call) -> tuple[bool, ...]:
        """Say of each direction whether it is from the end."""
        return DIRECTIONS.get(str(call.parameter("direction")), (False,))

    def hidden(self, call: Call) -> int:
        """Return hidden_size, which R shows too."""
        r = call.inputs["R"].shape
        return r[-1] if r else 1


class Recurrent(Computing):
    """X, and what belongs to it for a hidden_size (without one 3); `unlike`: one element more at the end."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"sequence_lens": LENGTHS}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"*": ("each", "unlike", "other_directions")}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of weights, biases, lengths and states."""
        if len(call.first.shape) != 3:
            return (1,) * (1 if name == "sequence_lens" else 2 if name in ("B", "P") else 3)
        found = self.shapes(operator, call, call.parameter("hidden_size") or 3)[name]
        if relation == "unlike":
            return (*found[:-1], found[-1] + 1)
        return (3 - found[0], *found[1:]) if relation == "other_directions" else found

    def shapes(self, operator: Operator, call: Call, hidden: int) -> dict[str, Shape]:
        """Return the shapes of all inputs and outputs."""
        cell: Recurrence = operator.options
        x, count = call.first.shape, len(cell.directions(call))
        batchwise = bool(call.parameter("layout", 0))
        batch, steps = (x[0], x[1]) if batchwise else (x[1], x[0])
        state = (batch, count, hidden) if batchwise else (count, batch, hidden)
        return {
            "X": x,
            "W": (count, cell.gates * hidden, x[2]),
            "R": (count, cell.gates * hidden, hidden),
            "B": (count, 2 * cell.gates * hidden),
            "sequence_lens": (batch,),
            "initial_h": state,
            "initial_c": state,
            "P": (count, 3 * hidden),
            "Y": (batch, steps, count, hidden) if batchwise else (steps, count, batch, hidden),
            "Y_h": state,
        }

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose lengths within the sequences, of which one may be illegal."""
        steps = call.first.shape[1 if call.parameter("layout", 0) else 0] if len(call.first.shape) == 3 else 1
        return lengths(kind, raw, steps).astype(np.int32)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Words, activation functions, ranks and shapes."""
        if call.parameter("direction") not in DIRECTIONS:
            return "direction is forward, reverse or bidirectional"
        if call.parameter("layout", 0) not in (0, 1):
            return "layout is 0 or 1"
        if wrong := self.wrong_functions(operator, call):
            return wrong
        if any(len(call.inputs[name].shape) != 3 for name in ("X", "W", "R") if name in call.inputs):
            return "X, W and R have three dimensions"
        hidden = call.inputs["R"].shape[2]
        if call.parameter("hidden_size") not in (None, hidden):
            return "hidden_size is that of R"
        wanted = self.shapes(operator, call, hidden)
        for name, given in call.inputs.items():
            if given.shape != wanted[name]:
                return f"{name} has its shape"
        return None

    def wrong_functions(self, operator: Operator, call: Call) -> str | None:
        """Return the rule that activation functions break, or None."""
        cell: Recurrence = operator.options
        given = call.parameter("activations")
        needed = len(cell.functions) * len(cell.directions(call))
        if given is not None and not set(given) <= set(FUNCTIONS):
            return "activations are functions of the list"
        default = operator.name == "RNN" and given == ("Tanh", "Tanh")
        if given is not None and len(given) != needed and not default:
            return "activations has a function for each place and direction"
        return None

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Lengths within the sequences."""
        lengths = inputs.get("sequence_lens")
        steps = call.first.shape[1 if call.parameter("layout", 0) else 0]
        wrong = lengths is not None and ((lengths.array < 0) | (lengths.array > steps)).any()
        return TOO_LONG if wrong else None

    def output_count(self, operator: Operator, call: Call) -> int:
        """Y, and the last of each state."""
        cell: Recurrence = operator.options
        return 1 + cell.states

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shapes of Y and of the states."""
        cell: Recurrence = operator.options
        found: dict[str, Any] = self.shapes(operator, call, cell.hidden(call))
        return (found["Y"], *(found["Y_h"],) * cell.states)
