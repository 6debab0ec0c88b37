"""MaxRoiPool and RoiAlign: the greatest elements of the parts of regions of interest, and samples of regions,
interpolated between pixels."""

from __future__ import annotations

from math import copysign, floor
from typing import NamedTuple

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import Float64
from harness.operators.base import Call, Operator, Shape
from harness.operators.bounded import Bounded, either, maximum, number, stack
from harness.operators.bounded.number import surely_nan
from harness.operators.formulas import Either, bounded, decided, zeros_of_either_sign
from harness.operators.image.regions import Aligning, OnRegions

# Region r, with x1, y1, x2, y2 times spatial_scale, and with half_pixel less 0.5, is divided into output_height rows and
# output_width columns of bins; in a bin sampling_ratio (0: ceil(size of the bin)) samples lie along each axis,
#   y = y1 + ph * bin + (iy + 0.5) * bin / samples, and so for x
# Y[r, c, ph, pw] = the mean, or the maximum, of X[batch_indices[r], c] interpolated at the samples of the bin; the maximum as the text
# has it of the samples, or as in ONNX's reference of the weighted pixels about them


def roi_align(
    X: Bounded,  # noqa: N803 - as ONNX calls it
    rois: Bounded,
    batch_indices: Array,
    call: Call,
    mode: str,
    spatial_scale: float,
    sampling_ratio: int,
    output_height: int,
    output_width: int,
) -> Bounded:
    """Sample and pool by the formula above; version 10 has no shift of half a pixel."""
    shift = call.parameter("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"
    scaled = rois * spatial_scale
    corners = scaled - 0.5 if shift else scaled
    sizes = corners[:, 2:] - corners[:, :2]
    sizes = sizes if shift else maximum(sizes, 1.0)
    found = []
    for region, batch in enumerate(batch_indices.tolist()):
        x, y = (
            samples(corners[region, n], sizes[region, n], bins, sampling_ratio, X.shape[3 - n])
            for n, bins in ((0, output_width), (1, output_height))
        )
        bins_of = (X.shape[1], output_height, y.each, output_width, x.each)
        grid = interpolated(X[batch], y, x).reshape(*bins_of)
        if y.each * x.each == 0:
            pooled = number(np.zeros((X.shape[1], output_height, output_width)), X.arithmetic)
        elif mode == "avg":
            pooled = grid.mean((2, 4))
        else:
            parts = interpolated(X[batch], y, x, parts=True).reshape(*bins_of)
            pooled = either(grid.max((2, 4)), parts.max((2, 4)))
        unsure = y.unsure | x.unsure
        found.append(Bounded(pooled.value, np.where(unsure, np.inf, pooled.error), pooled.arithmetic))
    if not found:
        return number(np.zeros((0, X.shape[1], output_height, output_width)), X.arithmetic)
    return stack(found)


class Samples(NamedTuple):
    """Samples along one axis: their coordinates, how many there are in each bin, and whether an
    implementation may count another number."""

    at: Bounded
    each: int
    unsure: bool
    extent: int

    @property
    def place(self) -> Float64:
        """Coordinates within the pixels."""
        return np.clip(self.at.value, 0.0, self.extent - 1.0)

    @property
    def beyond(self) -> Array:
        """Say which lie further than a pixel beyond the image, where a sample is 0."""
        return (self.at.value < -1) | (self.at.value > self.extent)

    @property
    def open(self) -> Array:
        """Say of which an implementation may decide that otherwise."""
        away = np.minimum(np.abs(self.at.value + 1), np.abs(self.at.value - self.extent))
        return (away <= self.at.error) & (self.at.error > 0)


def samples(begin: Bounded, size: Bounded, bins: int, ratio: int, extent: int) -> Samples:
    """Return the samples of all bins; an exact number of pixels in a bin is their number, without
    rounding."""
    step = size / float(bins)
    low, high = (float(step.value + sign * step.error) for sign in (-1, 1))
    exact = float(step.value).is_integer()
    each = ratio if ratio > 0 else max(0, int(np.ceil(step.value)))
    unsure = ratio <= 0 and not exact and np.ceil(low) != np.ceil(high)
    within = (np.arange(each) + 0.5)[None, :]
    starts = begin + np.arange(bins, dtype=np.float64) * step
    inner = within * step / float(max(each, 1))
    return Samples((starts.reshape(bins, 1) + inner).reshape(bins * each), each, bool(unsure), extent)


def interpolated(image: Bounded, y: Samples, x: Samples, parts: bool = False) -> Bounded:
    """Interpolate [C, H, W] between the four pixels about each sample: [C, samples of y, samples of x]; `parts` gives the
    greatest of their weighted values in place of the sum.

    Beside its rounding an interpolated value errs by the coordinates' errors times the steepest slope of the
    plane.
    """
    low, high, less, more = zip(*(_between(s, image) for s in (y, x)), strict=True)
    terms = [
        (a[:, None] * b[None, :])[None] * image[:, p[:, None], q[None, :]]
        for a, p in ((less[0], low[0]), (more[0], high[0]))
        for b, q in ((less[1], low[1]), (more[1], high[1]))
    ]
    found = stack(terms).max(0) if parts else stack(terms).sum(0)
    steep = [
        np.abs(np.diff(image.value, axis=axis)).max((1, 2), initial=0.0)[:, None, None] for axis in (1, 2)
    ]
    moved = steep[0] * y.at.error[None, :, None] + steep[1] * x.at.error[None, None, :]
    gone = y.beyond[:, None] | x.beyond[None, :]
    unclear = y.open[:, None] | x.open[None, :]
    nan = np.logical_and.reduce([surely_nan(term) for term in terms])
    error = np.where(gone | nan, 0.0, found.error + np.nan_to_num(moved, nan=np.inf))
    return Bounded(np.where(gone, 0.0, found.value), np.where(unclear, np.inf, error), found.arithmetic)


def _between(s: Samples, image: Bounded) -> tuple[Array, Array, Bounded, Bounded]:
    """Return the pixels before and after each sample, and their weights."""
    low = np.minimum(np.floor(s.place), max(0, s.extent - 2)).astype(np.int64)
    more = number(s.place - low, image.arithmetic)
    return low, np.minimum(low + 1, s.extent - 1), 1.0 - more, more


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


OPERATORS = (
    Operator("MaxRoiPool", RegionPooling(), decided(max_roi_pool)),
    Operator("RoiAlign", Aligning(), bounded(roi_align)),
)
