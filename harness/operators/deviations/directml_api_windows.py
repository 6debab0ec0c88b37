"""What DirectML's own API gives of convolutions."""

from __future__ import annotations

import numpy as np

from harness.model.expected import Approx, Expected
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation


@deviation
def zeros_for_output_padding(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose: 0, without the bias, in the rows and columns that output_padding adds at the end."""
    (found,) = asked.formula()
    paddings = asked.call.parameter("output_padding")
    if paddings is None:
        raise Undefined("no output_padding")
    assert isinstance(found, Approx)
    added = np.zeros(found.shape, np.bool_)
    for axis, more in enumerate(paddings, 2):
        extent = found.shape[axis]
        added |= (np.arange(extent) >= extent - more).reshape(-1, *(1,) * (len(found.shape) - axis - 1))
    return (Approx(found.dtype, np.where(added, 0.0, found.value), np.where(added, 0.0, found.bound)),)
