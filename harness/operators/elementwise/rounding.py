"""Ceil and Floor: to the next integer above or below; X itself where it is integral, NaN or infinite."""

from __future__ import annotations

import numpy as np

from harness.operators.base import Operator
from harness.operators.elementwise.elementwise_family import ELEMENTWISE
from harness.operators.formulas import decided

# Ceil:  Y = the least integer that is not below X
# Floor: Y = the greatest integer that is not above X

OPERATORS = (
    Operator("Ceil", ELEMENTWISE, decided(np.ceil)),
    Operator("Floor", ELEMENTWISE, decided(np.floor)),
)
