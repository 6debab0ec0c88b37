"""Numbers with a bound on the error of an implementation: formulas written as for NumPy give their own bounds.

x = number(tensor, arithmetic("opencl", "float32"))
e = np.exp(x - x.max(axis, keepdims=True))
expected = (e / e.sum(axis, keepdims=True)).stored("float32")
"""

from __future__ import annotations

from harness.bounded import basic_operations as basic_operations  # it and `sums` bring the rules of NumPy's functions
from harness.bounded import sums as sums
from harness.bounded.arithmetic import EXACT, NAMES, Arithmetic, arithmetic
from harness.bounded.functions import erf, exp2, log2, rsqrt, sigmoid
from harness.bounded.number import Bounded, number
from harness.bounded.structure import choose
from harness.bounded.sums import contracted

__all__ = [
    "EXACT",
    "NAMES",
    "Arithmetic",
    "Bounded",
    "arithmetic",
    "choose",
    "contracted",
    "erf",
    "exp2",
    "log2",
    "number",
    "rsqrt",
    "sigmoid",
]
