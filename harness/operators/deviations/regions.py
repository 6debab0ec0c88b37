"""What is given in place of boxes and regions."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def scores_above_the_threshold(asked: Deviating) -> tuple[Expected, ...]:
    """NonMaxSuppression: a box is selected where score > score_threshold, which is at least the next float32."""
    least = asked.inputs["score_threshold"]
    above = Tensor(least.dtype, np.nextafter(least.array, np.float32(np.inf)))
    return asked.formula(inputs={**asked.inputs, "score_threshold": above})


@deviation
def mode_in_lower_case(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign: mode without regard to case."""
    return asked.formula(mode=str(asked.call.parameter("mode")).lower())


@deviation
def output_half_pixel(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign: any coordinate_transformation_mode but half_pixel is output_half_pixel."""
    return asked.formula(coordinate_transformation_mode="output_half_pixel")
