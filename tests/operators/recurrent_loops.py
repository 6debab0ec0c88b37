"""RNN, GRU and LSTM as plain loops, one sequence and one neuron at a time, written from the ONNX text; with
a name of a mistake, as a kernel that makes it.

Nothing here is taken from `harness.operators`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log, tanh
from typing import Any

import numpy as np

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
ALPHA = {
    "LeakyRelu": 0.01,
    "ThresholdedRelu": 1.0,
    "HardSigmoid": 0.2,
    "Elu": 1.0,
    "Affine": 1.0,
    "ScaledTanh": 1.0,
}
BETA = {"HardSigmoid": 0.5, "Affine": 0.0, "ScaledTanh": 1.0}


def apply(name: str, x: float, alpha: float, beta: float) -> float:
    """Evaluate one activation function."""
    if name == "Relu":
        return max(0.0, x)
    if name == "Tanh":
        return tanh(x)
    if name == "Sigmoid":
        return 0.0 if x <= -700 else 1 / (1 + exp(-x))
    if name == "Affine":
        return alpha * x + beta
    if name == "LeakyRelu":
        return x if x >= 0 else alpha * x
    if name == "ThresholdedRelu":
        return x if x >= alpha else 0.0
    if name == "ScaledTanh":
        return alpha * tanh(beta * x)
    if name == "HardSigmoid":
        return min(max(alpha * x + beta, 0.0), 1.0)
    if name == "Elu":
        return x if x >= 0 else alpha * (exp(x) - 1)
    if name == "Softsign":
        return x / (1 + abs(x))
    return x if x > 700 else log(1 + exp(x))


class Functions:
    """The functions of one direction by their places."""

    def __init__(self, operator: str, attributes: Mapping[str, Any], direction: int, wrong: str) -> None:
        default = DEFAULTS[operator]
        count = 2 if attributes.get("direction") == "bidirectional" else 1
        names = attributes.get("activations") or default * count
        alphas, betas = (list(attributes.get(f"activation_{kind}") or ()) for kind in ("alpha", "beta"))
        self.found = []
        for name in names[: count * len(default)]:
            alpha = alphas.pop(0) if alphas and name in ALPHA else ALPHA.get(name, 0.0)
            beta = betas.pop(0) if betas and name in BETA else BETA.get(name, 0.0)
            if wrong == "activation_alpha ignored":
                alpha = ALPHA.get(name, 0.0)
            if wrong == "activation_beta ignored":
                beta = BETA.get(name, 0.0)
            if wrong == "no default of ThresholdedRelu" and not attributes.get("activation_alpha"):
                alpha = 0.0 if name == "ThresholdedRelu" else alpha
            self.found.append((name, alpha, beta))
        first = 0 if wrong == "activations of the first direction for both" else direction * len(default)
        self.found = self.found[first : first + len(default)]
        if wrong == "activations ignored":
            self.found = [(name, 0.0, 0.0) for name in default]
        if wrong == "activations of the last place at the one before" and len(default) > 1:
            self.found[-2] = self.found[-1]
        self.clip = None if wrong == "clip ignored" else attributes.get("clip")
        self.wrong = wrong

    def __call__(self, place: int, x: float) -> float:
        last = len(self.found) - 1
        unclipped = {"last activation not clipped": place == last, "first activation not clipped": place == 0}
        clip = None if unclipped.get(self.wrong) else self.clip
        if self.wrong == "clip after the activation" and self.clip is not None:
            return min(max(apply(self.found[place][0], x, *self.found[place][1:]), -self.clip), self.clip)
        if clip is not None:
            x = min(max(x, -clip), clip)
        return apply(self.found[place][0], x, *self.found[place][1:])


def cell(
    operator: str,
    x: Any,
    states: list[Any],
    part: Mapping[str, Any],
    f: Functions,
    given: Mapping[str, Any],
    wrong: str,
) -> list[Any]:
    """Take one step of one sequence: the new states."""
    hidden, gates = len(states[0]), GATES[operator]
    w, r = part["W"], part["R"]
    bias = part.get("B")
    bias = np.zeros(2 * gates * hidden) if bias is None or wrong == "bias ignored" else bias
    w_bias, r_bias = bias[: gates * hidden], bias[gates * hidden :]
    if wrong == "recurrence bias ignored":
        r_bias = r_bias * 0
    order = list(range(gates))
    if operator == "LSTM":
        order = {"gates in the order ifoc": [0, 2, 1, 3], "gates in the order iocf": [0, 1, 3, 2]}.get(
            wrong, order
        )
    if operator == "GRU":
        order = {"gates in the order rzh": [1, 0, 2], "gates in the order hzr": [1, 2, 0]}.get(wrong, order)
    h = states[0]

    def inputs(gate: int, n: int) -> float:
        row = order[gate] * hidden + n
        return float(w[row] @ x + w_bias[row])

    def recurrent(gate: int, n: int, state: Any) -> float:
        row = order[gate] * hidden + n
        weights = r[order[gate] * hidden : (order[gate] + 1) * hidden]
        return float(
            (weights[:, n] if wrong == "recurrence transposed" else weights[n]) @ state + r_bias[row]
        )

    if operator == "RNN":
        return [np.array([f(0, inputs(0, n) + recurrent(0, n, h)) for n in range(hidden)])]
    if operator == "GRU":
        z = np.array([f(0, inputs(0, n) + recurrent(0, n, h)) for n in range(hidden)])
        reset = np.array([f(0, inputs(1, n) + recurrent(1, n, h)) for n in range(hidden)])
        linear = bool(given.get("linear_before_reset"))
        linear = {"linear_before_reset ignored": False, "linear_before_reset always": True}.get(wrong, linear)
        if wrong == "reset ignored":
            reset = reset * 0 + 1
        if linear:
            rows = slice(order[2] * hidden, (order[2] + 1) * hidden)
            outside = r_bias[rows] if wrong == "recurrence bias not reset" else 0 * r_bias[rows]
            made = [
                f(1, inputs(2, n) + reset[n] * (recurrent(2, n, h) - outside[n]) + outside[n])
                for n in range(hidden)
            ]
        else:
            made = [f(1, inputs(2, n) + recurrent(2, n, reset * h)) for n in range(hidden)]
        new = np.array(made)
        return [z * new + (1 - z) * h if wrong == "update the other way round" else (1 - z) * new + z * h]
    c = states[1]
    peep = part.get("P")
    peep = np.zeros(3 * hidden) if peep is None or wrong == "peepholes ignored" else peep
    places = {"peepholes in the order ifo": (0, 2, 1)}.get(wrong, (0, 1, 2))
    p_i, p_o, p_f = (peep[k * hidden : (k + 1) * hidden] for k in places)
    if wrong == "peepholes of the input gate alone":
        p_o, p_f = p_o * 0, p_f * 0
    i = np.array([f(0, inputs(0, n) + recurrent(0, n, h) + p_i[n] * c[n]) for n in range(hidden)])
    forget = np.array([f(0, inputs(2, n) + recurrent(2, n, h) + p_f[n] * c[n]) for n in range(hidden)])
    if given.get("input_forget") and wrong != "input_forget ignored":
        forget = forget if wrong == "input coupled to forget" else 1 - i
        i = 1 - forget if wrong == "input coupled to forget" else i
    new = forget * c + i * np.array([f(1, inputs(3, n) + recurrent(3, n, h)) for n in range(hidden)])
    if wrong == "cell clipped as a state" and f.clip is not None:
        new = np.clip(new, -f.clip, f.clip)
    seen = c if wrong == "output gate sees the old cell" else new
    o = np.array([f(0, inputs(1, n) + recurrent(1, n, h) + p_o[n] * seen[n]) for n in range(hidden)])
    out = new if wrong == "cell without its activation" else np.array([f(2, v) for v in new])
    return [o * out, new]


def run(operator: str, given: Mapping[str, Any], arrays: Mapping[str, Any], wrong: str = "") -> list[Any]:
    """Return Y and the last states; what ONNX leaves open is 0."""
    wide = {
        name: array if name == "sequence_lens" else array.astype(np.float64) for name, array in arrays.items()
    }
    batchwise = bool(given.get("layout"))
    x = wide["X"].transpose(1, 0, 2) if batchwise else wide["X"]
    times, batch, _ = x.shape
    hidden = wide["R"].shape[2]
    way = given.get("direction", "forward")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[way]
    if wrong == "reverse ignored":
        ways = [False] * len(ways)
    count = 2 if operator == "LSTM" else 1
    y = np.zeros((times, len(ways), batch, hidden))
    last = np.zeros((count, len(ways), batch, hidden))
    lengths = wide.get("sequence_lens")
    for d, b in np.ndindex(len(ways), batch):
        weights = 0 if wrong == "weights of the first direction for both" else d
        part = {name: wide[name][weights] for name in ("W", "R", "B", "P") if name in wide}
        states = []
        for name in ("initial_h", "initial_c")[:count]:
            start = wide.get(name)
            start = None if wrong == f"{name} ignored" else start
            states.append(np.zeros(hidden) if start is None else (start[b, d] if batchwise else start[d, b]))
        f = Functions(operator, given, d, wrong)
        length = times if lengths is None or wrong == "sequence_lens ignored" else int(lengths[b])
        if wrong == "one length for the batch" and lengths is not None:
            length = int(lengths[0])
        order = list(range(length))
        if ways[d]:
            order = order[::-1]
            if wrong == "reverse from the end of the longest":
                order = list(range(times))[::-1][:length]
        for step, t in enumerate(order):
            states = cell(operator, x[t, b], states, part, f, given, wrong)
            if wrong == "float16":
                states = [each.astype(np.float16).astype(np.float64) for each in states]
            y[step if wrong == "reverse outputs in the order of steps" else t, d, b] = states[0]
        for n, state in enumerate(states):
            last[n, d, b] = state
        if wrong == "last output by time" and order:
            last[0, d, b] = y[max(order), d, b]
    if wrong == "last cell for the last output" and count == 2:
        last = last[::-1]
    ends = list(last)
    if wrong == "states with the batch first":
        ends = [each.transpose(1, 0, 2).reshape(each.shape) for each in ends]
    if batchwise:
        return [y.transpose(2, 0, 1, 3), *(each.transpose(1, 0, 2) for each in ends)]
    return [y, *ends]
