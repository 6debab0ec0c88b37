"""RNN, GRU and LSTM: one layer, step by step."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.bounded import Bounded, concatenate, either, number, split, stack, where
from harness.operators.formulas import bounded
from harness.operators.recurrence.recurrences import Activation, Recurrence, Recurrent, chosen

# RNN:  Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)
# GRU:  zt = f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz + Rbz)
#       rt = f(Xt*(Wr^T) + Ht-1*(Rr^T) + Wbr + Rbr)
#       ht = g(Xt*(Wh^T) + (rt (.) Ht-1)*(Rh^T) + Rbh + Wbh)        linear_before_reset = 0
#       ht = g(Xt*(Wh^T) + (rt (.) (Ht-1*(Rh^T) + Rbh)) + Wbh)      linear_before_reset != 0
#       Ht = (1 - zt) (.) ht + zt (.) Ht-1
# LSTM: it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi + Rbi)
#       ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf + Rbf)   input_forget: 1 - it
#       ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc + Rbc)
#       Ct = ft (.) Ct-1 + it (.) ct
#       ot = f(Xt*(Wo^T) + Ht-1*(Ro^T) + Po (.) Ct + Wbo + Rbo)
#       Ht = ot (.) h(Ct)
# clip bounds the arguments of f, g and h

States = tuple[Bounded, ...]
Step = Callable[[Bounded, States], States]
Cell = Callable[[int, Sequence[Activation], Bounded | None], Step]


def rnn(
    X: Any,
    W: Any,
    R: Any,
    call: Call,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    *,
    of_nan: float | None = None,
) -> Any:
    """Go through the sequences by the formula above; `of_nan` is what a deviation has for f of NaN."""

    def cell(d: int, functions: Sequence[Activation], bias: Bounded | None) -> Step:
        (f,) = functions

        def step(x: Bounded, states: States) -> States:
            argument = gates(x, states[0], W[d], R[d], bias)
            return (f(argument) if of_nan is None else where(np.isnan(argument.value), of_nan, f(argument)),)

        return step

    return layer(call, RNN, X, B, sequence_lens, (initial_h,), cell)


def gru(
    X: Any, W: Any, R: Any, call: Call, B: Any = None, sequence_lens: Any = None, initial_h: Any = None
) -> Any:
    """Go through the sequences by the formula above."""
    linear_first = bool(call.parameter("linear_before_reset", 0))

    def cell(d: int, functions: Sequence[Activation], bias: Bounded | None) -> Step:
        f, g = functions
        hidden = R.shape[2]
        both, last = slice(0, 2 * hidden), slice(2 * hidden, 3 * hidden)
        w_bias, r_bias = (None, None) if bias is None else split(bias, 2)

        def step(x: Bounded, states: States) -> States:
            (h,) = states
            z, r = split(f(gates(x, h, W[d][both], R[d][both], of(bias, 6, (0, 1, 3, 4)))), 2, 1)
            if linear_first:
                linear = product([h], [R[d][last]], [None if r_bias is None else r_bias[last]])
                hidden_gate = g(
                    product([x], [W[d][last]], [None if w_bias is None else w_bias[last]]) + r * linear
                )
            else:
                hidden_gate = g(gates(x, r * h, W[d][last], R[d][last], of(bias, 6, (2, 5))))
            return ((1.0 - z) * hidden_gate + z * h,)

        return step

    return layer(call, GRU, X, B, sequence_lens, (initial_h,), cell)


def lstm(
    X: Any,
    W: Any,
    R: Any,
    call: Call,
    B: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    P: Any = None,
    *,
    as_seen: Callable[[Bounded], Bounded] = lambda h: h,
) -> Any:
    """Go through the sequences by the formula above, each step of what is `as_seen` of the step before."""
    coupled = bool(call.parameter("input_forget", 0))

    def cell(d: int, functions: Sequence[Activation], bias: Bounded | None) -> Step:
        f, g, h = functions
        peep = None if P is None else split(P[d], 3)

        def seen(argument: Bounded, gate: int, c: Bounded) -> Bounded:
            return argument if peep is None else argument + peep[gate] * c

        def step(x: Bounded, states: States) -> States:
            i, o, forget, c = split(gates(x, as_seen(states[0]), W[d], R[d], bias), 4, 1)
            i = f(seen(i, 0, states[1]))
            forget = 1.0 - i if coupled else f(seen(forget, 2, states[1]))
            new = forget * states[1] + i * g(c)
            return f(seen(o, 1, new)) * h(new), new

        return step

    return layer(call, LSTM, X, B, sequence_lens, (initial_h, initial_c), cell)


def product(xs: Sequence[Bounded], weights: Sequence[Bounded], biases: Sequence[Bounded | None]) -> Bounded:
    """Sum x times the transposed weights, and biases: each product for itself, or all in one sum, in any
    order."""
    given = [each for each in biases if each is not None]
    ones = [number(np.ones((len(xs[0]), 1)), xs[0].arithmetic) for _ in given]
    columns = [*weights, *(each.reshape(-1, 1) for each in given)]
    together = concatenate([*xs, *ones], axis=1) @ concatenate(columns, axis=1).T
    apart = [x @ w.T for x, w in zip(xs, weights, strict=True)] + given
    return either(together, reduce(add, apart))


def gates(x: Bounded, h: Bounded, w: Bounded, r: Bounded, bias: Bounded | None) -> Bounded:
    """Return the arguments of gates: X W^T + H R^T + Wb + Rb."""
    return product([x, h], [w, r], () if bias is None else split(bias, 2))


def of(bias: Bounded | None, parts: int, wanted: Sequence[int]) -> Bounded | None:
    """Return some of the equal parts of a bias."""
    if bias is None:
        return None
    found = split(bias, parts)
    return concatenate([found[n] for n in wanted])


def layer(
    call: Call,
    kind: Recurrence,
    X: Bounded,
    B: Bounded | None,
    lengths: Array | None,
    initial: Sequence[Bounded | None],
    cell: Cell,
) -> tuple[Bounded, ...]:
    """Go through the sequences in each direction: Y, and the last of each state.

    A sequence ends at its length, from where it is reversed. Of Y beyond it ONNX says nothing, and nothing is
    claimed.
    """
    batchwise = bool(call.parameter("layout", 0))
    x = X.transpose(1, 0, 2) if batchwise else X
    steps, batch, _ = x.shape
    counts = np.full(batch, steps) if lengths is None else np.asarray(lengths, np.int64)
    directions = kind.directions(call)
    functions = chosen(call, kind.functions, len(directions))
    outputs, states = [], []
    for d, reverse in enumerate(directions):
        start = tuple(
            number(np.zeros((batch, kind.hidden(call))), x.arithmetic)
            if each is None
            else (each[:, d] if batchwise else each[d])
            for each in initial
        )
        y, last = through(x, counts, start, reverse, cell(d, functions[d], None if B is None else B[d]))
        outputs.append(y)
        states.append(last)
    y = stack(outputs, axis=1)
    ends = [stack(each, axis=0) for each in zip(*states, strict=True)]
    if batchwise:
        return y.transpose(2, 0, 1, 3), *(each.transpose(1, 0, 2) for each in ends)
    return y, *ends


def through(x: Bounded, counts: Array, states: States, reverse: bool, step: Step) -> tuple[Bounded, States]:
    """Go through sequences of their own lengths; return their outputs by time, and the last states."""
    times, batch = len(x), np.arange(x.shape[1])
    value = np.zeros((times, *states[0].shape))
    error = np.full(value.shape, np.inf)
    for number_of_step in range(times):
        active = number_of_step < counts
        at = np.maximum(counts - 1 - number_of_step, 0) if reverse else np.full(len(batch), number_of_step)
        made = step(x[at, batch], states)
        states = tuple(where(active[:, None], new, old) for new, old in zip(made, states, strict=True))
        value[at[active], batch[active]] = states[0].value[active]
        error[at[active], batch[active]] = states[0].error[active]
    return Bounded(value, error, x.arithmetic), states


RNN = Recurrence(1, ("Tanh",), 1)
GRU = Recurrence(3, ("Sigmoid", "Tanh"), 1)
LSTM = Recurrence(4, ("Sigmoid", "Tanh", "Tanh"), 2)
RECURRENT = Recurrent()
OPERATORS = (
    Operator("RNN", RECURRENT, bounded(rnn), options=RNN, seldom=("layout",)),
    Operator("GRU", RECURRENT, bounded(gru), options=GRU, seldom=("layout",)),
    Operator("LSTM", RECURRENT, bounded(lstm), options=LSTM, seldom=("layout",)),
)
