"""Activations with a fused addition, and elementwise functions of several tensors."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Operator
from harness.operators.bounded import Bounded, converted, number, sigmoid, tanh
from harness.operators.dimensioned import Dimensioned
from harness.operators.elementwise.activations import gelu, swish
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import between_zero_and_itself, bounded


# X + bias, then 0.5 X (1 + tanh(0.797885 X + 0.035677 X X X)), whose factors are sqrt(2 / pi) and 0.044715 times that
# in six places: a kernel may take either                                      (FastGelu)
def fast_gelu(X: Bounded, bias: Bounded | None = None) -> Bounded:
    x, root = X if bias is None else X + bias, sqrt(2 / pi)
    linear, cubic = (
        Bounded(short.value, short.error + np.abs(exact - short.value), X.arithmetic)
        for short, exact in (
            (number(0.797885, X.arithmetic), root),
            (number(0.035677, X.arithmetic), 0.044715 * root),
        )
    )
    return x * 0.5 * (tanh(x * linear + x * x * x * cubic) + 1.0)


def _on_its_side_of_zero(x: Array, bias: Array) -> tuple[Array, Array]:
    """Return the limits of a function that is x + bias, rounded, times something from 0 to 1."""
    x = x.astype(float) + bias
    return np.where(x > 0, 0.0, -np.inf), np.where(x < 0, 0.0, np.inf)


# gelu(A + B)                                                                  (BiasGelu)
def bias_gelu(A: Bounded, B: Bounded) -> Bounded:
    return gelu(A + B, "none")


# the left half of X + bias, times gelu of the right                           (BiasSplitGelu)
def bias_split_gelu(X: Bounded, bias: Bounded) -> Bounded:
    x, half = X + bias, X.shape[-1] // 2
    return x[..., :half] * gelu(x[..., half:], "none")


# X + bias + skip                                                              (BiasAdd)
def bias_add(X: Bounded, bias: Bounded, skip: Bounded) -> Bounded:
    return X + bias + skip


# Z sigmoid(Z), Z = scale X, by default alpha X                                (ScaledSiLU)
def scaled_silu(X: Bounded, alpha: float, scale: Bounded | None = None) -> Bounded:
    return swish(X * alpha if scale is None else X * converted(scale, X.arithmetic.form.dtype), 1.0)


# X + Y gate, with gate_weight X + Y sigmoid(gate gate_weight)                 (GatedAdd)
def gated_add(X: Bounded, Y: Bounded, gate: Bounded, gate_weight: Bounded | None = None) -> Bounded:
    return X + Y * (gate if gate_weight is None else sigmoid(gate @ gate_weight))


OPERATORS = (
    Operator("com.microsoft.Gelu", ELEMENTWISE, bounded(lambda x: gelu(x, "none"), between_zero_and_itself)),
    Operator(
        "com.microsoft.QuickGelu",
        ELEMENTWISE,
        bounded(lambda x, alpha: x * sigmoid(x * alpha)),
        lower=lambda _candidate, _call: None,
    ),
    Operator("com.microsoft.FastGelu", Dimensioned("X: ... D; bias: D", "... D"), bounded(fast_gelu)),
    Operator(
        "com.microsoft.BiasGelu",
        Dimensioned("A: ... D; B: D", "... D"),
        bounded(bias_gelu, _on_its_side_of_zero),
    ),
    Operator(
        "com.microsoft.BiasSplitGelu",
        Dimensioned(
            "X: N S D; bias: D",
            "N S half",
            {"half": lambda n: n["D"] // 2},
            lambda n, _: "D is even" if n["D"] % 2 else None,
        ),
        bounded(bias_split_gelu),
    ),
    Operator(
        "com.microsoft.BiasAdd", Dimensioned("X: N S C; bias: C; skip: N S C", "N S C"), bounded(bias_add)
    ),
    Operator("com.microsoft.ScaledSiLU", Dimensioned("X: ...; scale: ", "..."), bounded(scaled_silu)),
    Operator(
        "com.microsoft.GatedAdd",
        Dimensioned(
            "X: ... C; Y: ... C; gate: ... K; gate_weight: K 1",
            "... C",
            rule=lambda n, _: (
                None
                if n["K"] == 1 or "gate_weight" in n["inputs"]
                else "gate has one element for each row without gate_weight"
            ),
            defaults={"K": 1},
        ),
        bounded(gated_add),
        seldom=("gate_weight",),
    ),
)
