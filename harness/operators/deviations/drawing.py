"""What is drawn in place of an operator's law."""

from __future__ import annotations

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.model.float_formats import decode
from harness.operators.deviations.base import Deviating, deviation


@deviation
def ones_where_zeros_are_due(asked: Deviating) -> tuple[Expected, ...]:
    """Bernoulli: 1 with the probability 1 - p, 0 with p."""
    given = asked.inputs["input"]
    return asked.formula(inputs={"input": Tensor("float64", 1 - decode(given.dtype, given.array))})
