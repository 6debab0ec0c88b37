"""MaxRoiPool: the greatest elements of the parts of regions of interest."""

from __future__ import annotations

from math import copysign, floor

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator, Shape
from harness.operators.formulas import Either, decided, zeros_of_either_sign
from harness.operators.image.regions import OnRegions

# Y[r, c, i, j] = max of X[batch_id, c] over the part (i, j) of region r, whose corners, times spatial_scale and rounded with halves
# away from 0, both belong to it (Girshick, Fast R-CNN, section 2.1): rows y1 + floor(i h / rows) to y1 + ceil((i + 1) h / rows),
# exclusive, with h = max(1, y2 - y1 + 1), cut at the image; 0 where nothing is left


def max_roi_pool(X: Array, rois: Array, call: Call, spatial_scale: float) -> Array | Either:  # noqa: N803 - as ONNX calls it
    """Pool by the formula above."""
    rows, columns = call.parameter("pooled_shape")
    shape = (len(rois), X.shape[1], rows, columns)
    low, high = np.zeros(shape, X.dtype), np.zeros(shape, X.dtype)
    for region, (batch, *corners) in enumerate(rois.astype(np.float64).tolist()):
        x1, y1, x2, y2 = (int(copysign(floor(abs(each * spatial_scale) + 0.5), each)) for each in corners)
        for place in np.ndindex(rows, columns):
            taken = tuple(
                slice(*part(begin, end, number, count, extent))
                for begin, end, number, count, extent in zip(
                    (y1, x1), (y2, x2), place, (rows, columns), X.shape[2:], strict=True
                )
            )
            window = X[int(batch)][slice(None), taken[0], taken[1]]
            if window.size:
                window = window.reshape(len(window), -1)
                found = zeros_of_either_sign(window.max(1), window, (1,))
                one, other = found.choices if isinstance(found, Either) else (found, found)
                at = (region, slice(None), *place)
                low[at], high[at] = one, other
    return Either(low, high)


def part(begin: int, end: int, number: int, count: int, extent: int) -> tuple[int, int]:
    """Return where a part begins and ends within the image."""
    size = max(1, end - begin + 1)
    low, high = begin + number * size // count, begin - (-(number + 1) * size // count)
    return min(max(low, 0), extent), min(max(high, 0), extent)


class RegionPooling(OnRegions):
    """X, and regions that begin with a batch index."""

    columns = 5
    inclusive = 1

    def output(self, call: Call) -> Shape:
        """Return pooled_shape, (1, 1) where it is no such pair."""
        found = tuple(call.parameter("pooled_shape", ()))
        return found if len(found) == 2 else (1, 1)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Two extents, and the shapes of regions."""
        if len(call.parameter("pooled_shape", ())) != 2:
            return "pooled_shape is (height, width)"
        return super().broken_rule(operator, call)


OPERATOR = Operator("MaxRoiPool", RegionPooling(), decided(max_roi_pool))
