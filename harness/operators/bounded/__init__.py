"""Numbers with a bound on the error of an implementation: formulas written as for NumPy yield their own
bounds.

    x = number(tensor, arithmetic("opencl", "float32"))
    e = exp(x - x.max(axis, keepdims=True))
    expected = (e / e.sum(axis, keepdims=True)).stored("float32")

NumPy's own functions take such numbers too (`np.exp(x)`); those of this package have the types.
"""

from __future__ import annotations

from harness.operators.bounded.arithmetic import EXACT, NAMES, Arithmetic, arithmetic, sources
from harness.operators.bounded.basic_operations import converted, either, maximum, minimum
from harness.operators.bounded.functions import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    power,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from harness.operators.bounded.number import Bounded, number
from harness.operators.bounded.structure import (
    broadcast_to,
    choose,
    concatenate,
    expand_dims,
    flip,
    moveaxis,
    pad,
    repeat,
    roll,
    sliding_window_view,
    split,
    squeeze,
    stack,
    swapaxes,
    take,
    take_along_axis,
    tile,
    where,
)
from harness.operators.bounded.sums import contracted, einsum

__all__ = [
    "EXACT", "NAMES", "Arithmetic", "Bounded", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "arithmetic", "broadcast_to", "choose", "concatenate", "contracted", "converted", "cos", "cosh", "einsum",
    "either", "erf", "exp", "exp2", "expand_dims", "expm1", "flip", "log", "log1p", "log2", "maximum", "minimum",
    "moveaxis", "number", "pad", "power", "repeat", "roll", "rsqrt", "sigmoid", "sin", "sinh",
    "sliding_window_view", "sources", "split", "sqrt", "squeeze", "stack", "swapaxes", "take", "take_along_axis",
    "tan", "tanh", "tile", "where",
]  # fmt: skip
