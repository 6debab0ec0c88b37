"""What DirectML's own API gives of Resize."""

from __future__ import annotations

from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def not_antialiased(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: antialias is not read."""
    return asked.formula(antialias=0)
