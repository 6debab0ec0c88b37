"""What is given in place of Attention's results."""

from __future__ import annotations

from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def never_causal(asked: Deviating) -> tuple[Expected, ...]:
    """Attention: all keys are open, whatever is_causal says."""
    return asked.formula(is_causal=0)


@deviation
def softmax_in_its_own_type(asked: Deviating) -> tuple[Expected, ...]:
    """Attention: softmax_precision is not read."""
    return asked.formula(without=("softmax_precision",))
