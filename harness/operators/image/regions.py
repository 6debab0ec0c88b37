"""The families of operators on regions of interest: images [N, C, H, W] and regions in the image's
coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode
from harness.operators.base import Call, Entropy, Operator, Relation, Shape, ValueKind, value_kinds
from harness.operators.computing import Computing
from harness.operators.formulas import values

BATCHES = "batch indices within the batch"
SCALE = "what a spatial_scale that is not finite, or not above 0, makes of a region"
NO_REGION = "where a region lies of which a corner is not finite"
REGIONS = value_kinds("inside", "whole", "pixels", "thin", "outside", "far_outside", "flipped", "empty")
"""In pixels of X. inside: corners at quarters, at least one pixel wide and high; whole: the image; pixels:
corners at pixels, sizes of which the output's are divisors; thin: less than a pixel; outside: beyond the
image by up to 3 pixels; far_outside: none of it within; flipped: the second corner first; empty: of no
size."""
INDICES = (ValueKind("in_range"), *value_kinds("above", "below", "far_above", breaks=BATCHES))
LEVEL, PEAKED = value_kinds("level", "peaked")
"""Of X. level: all elements of a plane are alike, no two planes; peaked: whole numbers in -8..8, and 100 or
more about the middle of each plane."""


def regions(kind: str, raw: Array, image: Shape, output: Shape) -> Array:
    """Choose regions [x1, y1, x2, y2] in pixels."""
    corners = np.empty(raw.shape)
    for axis, extent in ((0, image[1]), (1, image[0])):
        first, last = raw[:, axis], raw[:, axis + 2]
        if kind == "pixels":
            each = output[1 - axis]
            times = max(1, extent // each)
            size = np.minimum(each * (1 + last % times), extent)
            begin = first % (extent - size + 1)
        else:
            size = np.minimum(1 + (last % max(1, 4 * extent)) / 4, extent)
            begin = (first % (4 * (extent - size) + 1).astype(np.int64)) / 4
        if kind == "whole":
            begin, size = begin * 0, size * 0 + extent
        elif kind == "thin":
            size = (1 + last % 3) / 4
            begin = (first % max(1, 4 * extent - 3)) / 4
        elif kind == "empty":
            size = size * 0
        elif kind == "outside":
            begin = begin - 3 + (first >> 8) % 7
        elif kind == "far_outside":
            begin = begin + np.where(first >> 8 & 1, extent + 2, -2 * extent - 2)
        corners[:, axis], corners[:, axis + 2] = begin, begin + size
    return corners[:, [2, 3, 0, 1]] if kind == "flipped" else corners


class OnRegions(Computing):
    """X, and `count` regions; `unlike`: another number of columns."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"rois": ("count", "unlike")}
    columns = 4
    """Numbers of a region: those before the last four say where in the batch it is."""
    inclusive = 0
    """1 where the second corner may belong to the region, which then ends a pixel earlier."""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """[regions, columns]."""
        count = 3 if isinstance(relation, str) else relation.get("count", 3)
        return (count, self.columns + (relation == "unlike"))

    def output(self, call: Call) -> Shape:
        """Return how many bins there are in a column and in a row."""
        raise NotImplementedError

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Regions by where they lie."""
        usual = super().kinds(operator, name)
        return REGIONS if name == "rois" else usual if name in self.own else (*usual, LEVEL, PEAKED)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning for the input."""
        if name == "rois":
            within = self.broken_rule(operator, call) is not None or all(
                bins <= extent - self.inclusive
                for bins, extent in zip(self.output(call), call.first.shape[2:], strict=True)
            )
            return kind != "pixels" or within
        return kind in (LEVEL.name, PEAKED.name) or super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose regions, or elements."""
        dtype, shape = call.inputs[name]
        raw = np.frombuffer(entropy, "<u4", prod(shape)).astype(np.int64).reshape(shape)
        if name == "rois":
            if self.broken_rule(operator, call) is not None or not prod(shape) or not prod(call.first.shape):
                return encode(dtype, raw % 4 + 0.0).reshape(shape)
            pixels = (call.first.shape[2] - self.inclusive, call.first.shape[3] - self.inclusive)
            found = regions(kind, raw[:, -4:], pixels, self.output(call))
            found = found / call.parameter("spatial_scale")
            before = raw[:, :-4] % call.first.shape[0]
            return encode(dtype, np.concatenate([before, found], 1)).reshape(shape)
        if kind == LEVEL.name:
            planes = np.arange(prod(shape[:2])).reshape(*shape[:2], 1, 1) + raw[:1, :1, :1, :1] % 7
            return encode(dtype, np.broadcast_to(planes + 1.0, shape)).reshape(shape)
        if kind == PEAKED.name:
            found = raw % 17 - 8.0
            if found.size:
                found[..., shape[2] // 2, shape[3] // 2] = 100 + raw[..., 0, 0] % 17
            return encode(dtype, found).reshape(shape)
        return super().generate(operator, kind, name, call, entropy)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Ranks, and the shapes of regions."""
        if len(call.first.shape) != 4:
            return "X is [N, C, H, W]"
        rois = call.inputs["rois"].shape
        if len(rois) != 2 or rois[1] != self.columns:
            return f"rois are [num_rois, {self.columns}]"
        if min(self.output(call)) < 1:
            return "the output has elements"
        return None if 0 < call.parameter("spatial_scale") < inf else SCALE

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Regions that are some, and batch indices within the batch."""
        if not np.isfinite(values(inputs["rois"])).all():
            return NO_REGION
        found = self.batches(inputs)
        return BATCHES if ((found < 0) | (found >= call.first.shape[0])).any() else None

    def batches(self, inputs: Mapping[str, Tensor]) -> Array:
        """Return where in the batch each region is."""
        return values(inputs["rois"])[:, 0]

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[regions, C, bins]."""
        return ((call.inputs["rois"].shape[0], call.first.shape[1], *self.output(call)),)


class Aligning(OnRegions):
    """X, regions, and for each of them where in the batch it is; `unlike`: one more."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"batch_indices": INDICES}

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "rois": ("count", "unlike"),
        "batch_indices": ("unlike",),
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """One index for each region."""
        if name == "batch_indices":
            return (call.inputs["rois"].shape[0] + (relation == "unlike"),)
        return super().shape(operator, name, relation, call)

    def output(self, call: Call) -> Shape:
        """Return output_height and output_width."""
        return (call.parameter("output_height"), call.parameter("output_width"))

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Without a region there is one kind of indices."""
        if name == "batch_indices":
            return kind == "in_range" or prod(call.inputs[name].shape) > 0
        return super().applies(operator, kind, name, call)

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose indices of the batch, of which one may be illegal."""
        size = max(1, call.first.shape[0])
        found = raw % size
        if kind != "in_range":
            found.reshape(-1)[-1] = {"above": size, "below": -1, "far_above": size + 2**31}[kind]
        return found.astype(DTYPES[call.inputs[name].dtype].storage)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Modes, and one index for each region."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        if call.inputs["batch_indices"].shape != call.inputs["rois"].shape[:1]:
            return "batch_indices are [num_rois]"
        if call.parameter("mode") not in ("avg", "max"):
            return "mode is avg or max"
        shift = call.parameter("coordinate_transformation_mode", "half_pixel")
        if shift not in ("half_pixel", "output_half_pixel"):
            return "coordinate_transformation_mode is half_pixel or output_half_pixel"
        return None if call.parameter("sampling_ratio") >= 0 else "sampling_ratio is 0 or more"

    def batches(self, inputs: Mapping[str, Tensor]) -> Array:
        """Return where in the batch each region is."""
        return inputs["batch_indices"].array
