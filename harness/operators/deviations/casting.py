"""What is given in place of elements in another type."""

from __future__ import annotations

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.operators.casting import converted
from harness.operators.deviations.base import Deviating, deviation


@deviation
def rounded_twice(asked: Deviating) -> tuple[Expected, ...]:
    """Cast: rounded to float32 first, and that to the type that is asked for."""
    narrow = {name: Tensor("float32", converted(each, "float32")) for name, each in asked.inputs.items()}
    return asked.formula(inputs=narrow)
