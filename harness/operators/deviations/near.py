"""What several formulas of deviations make of a value with a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.model.expected import Approx
from harness.model.float_formats import FORMATS, Float64, Format


def beyond(found: Approx, form: Format) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which elements may be infinite in a narrower format, and which are."""
    size = np.abs(found.value)
    return size + found.bound > form.largest, size - found.bound >= form.overflow


def neighbours(found: Approx) -> list[Float64]:
    """Return the numbers of float32 that lie within the bounds."""
    steps, nearest = FORMATS["float32"].spacing(found.value), FORMATS["float32"].rounded(found.value)
    most = int(np.max(found.bound / steps, initial=0.0))
    return [nearest + step * steps for step in range(-most, most + 1)]
