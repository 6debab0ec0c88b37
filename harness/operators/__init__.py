"""The operators that the harness knows; each is a module here and a file in `specs/`."""

from __future__ import annotations

from harness.operators import gather_elements, gather_nd
from harness.operators import round as round_
from harness.operators.base import Operator

OPERATORS: dict[str, Operator] = {module.OPERATOR.name: module.OPERATOR for module in (gather_elements, gather_nd, round_)}
