"""RoiAlign as plain loops over bins and samples, written from the ONNX text; with a name of a mistake, as a
kernel that makes it.

Nothing here is taken from `harness.operators`.
"""

from __future__ import annotations

from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

MISTAKES = (
    "never shifted",
    "always shifted",
    "spatial_scale ignored",
    "shifted before the scale",
    "batch_indices ignored",
    "x and y exchanged",
    "corners rounded",
    "second corner belongs to the region",
    "samples at the corners of bins",
    "as many samples as the floor",
    "as many samples as the region has pixels",
    "sampling_ratio ignored",
    "one sample",
    "nearest pixel",
    "weights exchanged",
    "last row lost",
    "a sum for a mean",
    "a mean for the greatest",
    "samples past the last pixel are 0",
    "bins of the first region for all",
    "float16",
)


def sampled(plane: Any, y: float, x: float, wrong: str = "") -> float:
    """Interpolate one sample, 0 beyond a pixel outside, and the border before."""
    high, wide = plane.shape
    if not (-1 <= y <= high and -1 <= x <= wide):
        return 0.0
    if wrong == "samples past the last pixel are 0" and (y > high - 1 or x > wide - 1):
        return 0.0
    y, x = min(max(y, 0.0), high - 1), min(max(x, 0.0), wide - 1)
    if wrong == "nearest pixel":
        return float(plane[floor(y + 0.5), floor(x + 0.5)])
    total = 0.0
    for i, j in product((floor(y), floor(y) + 1), (floor(x), floor(x) + 1)):
        weight = (1 - abs(y - i)) * (1 - abs(x - j))
        if wrong == "weights exchanged":
            weight = abs(y - i) * abs(x - j)
        if weight > 0 and i < high and j < wide:
            total += weight * float(plane[i, j])
    return total


def aligned(x: Any, rois: Any, batches: Any, given: dict[str, Any], shift: bool, wrong: str = "") -> Any:
    """Sample all bins."""
    rows, columns = given.get("output_height", 1), given.get("output_width", 1)
    ratio, scale = given.get("sampling_ratio", 0), given.get("spatial_scale", 1.0)
    ratio = {"sampling_ratio ignored": 0, "one sample": 1}.get(wrong, ratio)
    scale = 1.0 if wrong == "spatial_scale ignored" else scale
    shift = {"never shifted": False, "always shifted": True}.get(wrong, shift)
    y = np.zeros((len(rois), x.shape[1], rows, columns))
    for r, i, j in np.ndindex(len(rois), rows, columns):
        corners = [float(v) for v in rois[0 if wrong == "bins of the first region for all" else r]]
        if wrong == "shifted before the scale":
            corners = [(v - 0.5 * shift) * scale for v in corners]
        else:
            corners = [v * scale - 0.5 * shift for v in corners]
        if wrong == "corners rounded":
            corners = [float(floor(v + 0.5)) for v in corners]
        x1, y1, x2, y2 = (
            corners[n] for n in ((1, 0, 3, 2) if wrong == "x and y exchanged" else (0, 1, 2, 3))
        )
        more = 1 if wrong == "second corner belongs to the region" else 0
        wide, high = x2 - x1 + more, y2 - y1 + more
        if not shift:
            wide, high = max(wide, 1.0), max(high, 1.0)
        sizes = (
            (high, wide)
            if wrong == "as many samples as the region has pixels"
            else (high / rows, wide / columns)
        )
        down, across = (
            ratio or (max(1, floor(size)) if wrong == "as many samples as the floor" else ceil(size))
            for size in sizes
        )
        off = 0.0 if wrong == "samples at the corners of bins" else 0.5
        places = [
            (y1 + high / rows * (i + (m + off) / down), x1 + wide / columns * (j + (n + off) / across))
            for m, n in product(range(down), range(across))
        ]
        if wrong == "last row lost" and down > 1:
            places = places[: -1 * across]
        for c in range(x.shape[1]):
            plane = x[0 if wrong == "batch_indices ignored" else batches[r], c]
            values = [sampled(plane, *place, wrong) for place in places]
            greatest = given.get("mode") == "max" and wrong != "a mean for the greatest"
            mean = sum(values) / (1 if wrong == "a sum for a mean" else down * across)
            y[r, c, i, j] = max(values) if greatest else mean
    return y.astype(np.float16) if wrong == "float16" else y


def kernel(call: Any, arrays: dict[str, Any], wrong: str) -> list[Any]:
    """Give the output of a call; version 10 has no shift."""
    shift = call.parameter("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"
    return [
        aligned(arrays["X"], arrays["rois"], arrays["batch_indices"], dict(call.attributes), shift, wrong)
    ]
