"""What DirectML's own API gives of operators that move elements."""

from __future__ import annotations

import numpy as np

from harness.model.expected import Approx, Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def tiles_of_float64(asked: Deviating) -> tuple[Expected, ...]:
    """Tile: the bytes of a tensor of FLOAT32 as FLOAT64, of which half lie behind it and may be anything."""
    x = asked.inputs["input"].array
    held = np.frombuffer(x.tobytes(), np.float64)
    value = np.append(held, np.zeros(x.size - held.size)).reshape(x.shape)
    bound = np.where(np.arange(x.size) < held.size, 0.0, np.inf).reshape(x.shape)
    repeats = asked.inputs["repeats"].array
    return (Approx("float64", np.tile(value, repeats), np.tile(bound, repeats)),)
