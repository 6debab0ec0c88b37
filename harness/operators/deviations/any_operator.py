"""What is given of calls that break a rule."""

from __future__ import annotations

from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def as_if_allowed(asked: Deviating) -> tuple[Expected, ...]:
    """The operator's own formula."""
    return asked.formula()
