"""Not, And, Or, Xor: logic on truth values."""

from __future__ import annotations

import numpy as np

from harness.operators.base import Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import decided

# Not: Y = not X      And: C = A and B      Or: C = A or B      Xor: C = A or B, not both

OPERATORS = (
    Operator("Not", ELEMENTWISE, decided(np.logical_not)),
    Operator("And", ELEMENTWISE, decided(np.logical_and)),
    Operator("Or", ELEMENTWISE, decided(np.logical_or)),
    Operator("Xor", ELEMENTWISE, decided(np.logical_xor)),
)
