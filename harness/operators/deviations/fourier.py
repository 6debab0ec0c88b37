"""What is given in place of Fourier transforms and windows."""

from __future__ import annotations

import numpy as np

from harness.model.expected import Approx, Expected
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.fourier import length_of


@deviation
def scaled_by_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Inverse DFT: the sum times 1 / N, rounded to float32."""
    (found,) = asked.formula()
    assert isinstance(found, Approx)
    length = length_of(asked.call)
    ratio = float(np.float32(1) / np.float32(length)) * length
    return (Approx(found.dtype, found.value * ratio, found.bound * ratio),)
