"""Add, Sub, Mul: one operation on each pair of elements; integers wrap, floats round."""

from __future__ import annotations

import numpy as np

from harness.operators.base import Operator
from harness.operators.elementwise import ELEMENTWISE
from harness.operators.formulas import bounded

# Add: C = A + B      Sub: C = A - B      Mul: C = A * B

OPERATORS = (
    Operator("Add", ELEMENTWISE, bounded(np.add)),
    Operator("Sub", ELEMENTWISE, bounded(np.subtract)),
    Operator("Mul", ELEMENTWISE, bounded(np.multiply)),
)
