"""NonMaxSuppression: the boxes of the greatest scores, none of which overlaps another too much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm, prod
from typing import Any, ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.operators import elements
from harness.operators.base import (
    UNKNOWN,
    Call,
    Entropy,
    Family,
    Operator,
    Relation,
    Shape,
    Undefined,
    ValueKind,
    value_kinds,
)
from harness.operators.formulas import decided

# For each batch and class, by descending score: a box is selected where score >= score_threshold, and IOU <=
# iou_threshold with each box selected before, until there are max_output_boxes_per_class.
# IOU = area(a and b) / (area(a) + area(b) - area(a and b))


def non_max_suppression(boxes: Array, scores: Array, call: Call, center_point_box: int) -> Array:
    """Select by the rule above, in exact arithmetic; Undefined for boxes that are no rectangles, for NaN, and for a
    limit below 0."""
    most, overlap, least = limits(call)
    if not np.isfinite(boxes).all() or (center_point_box and (boxes[..., 2:] < 0).any()):
        raise Undefined("how boxes overlap that are not finite, or whose extents are below 0")
    if most < 0 or np.isnan(scores).any() or np.isnan(0.0 if least is None else least):
        raise Undefined("what a score or a threshold that is NaN, or fewer than no boxes, mean")
    threshold = overlap.as_integer_ratio()
    found: list[tuple[int, int, int]] = []
    for batch, each in enumerate(boxes):
        corners = whole([rectangle(box, bool(center_point_box)) for box in each.tolist()])
        for number, row in enumerate(scores[batch]):
            chosen: list[int] = []
            for place in np.argsort(-row, kind="stable").tolist():
                enough = least is None or row[place] >= least
                if (
                    len(chosen) < most
                    and enough
                    and all(within(corners[place], corners[other], threshold) for other in chosen)
                ):
                    chosen.append(place)
            found += [(batch, number, place) for place in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


def limits(call: Call) -> tuple[int, float, float | None]:
    """Return max_output_boxes_per_class, iou_threshold and score_threshold, the first two by default 0."""
    names = ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
    given = [call.parameter(name) for name in names]
    most, overlap, least = (each[0] if isinstance(each, tuple) and each else each for each in given)
    return int(most or 0), float(overlap or 0), None if least is None else float(least)


Rectangle = tuple[Fraction, Fraction, Fraction, Fraction]


def rectangle(box: list[float], centred: bool) -> Rectangle:
    """Return the least and greatest coordinates on both axes."""
    a, b, c, d = map(Fraction, box)
    if centred:
        return a - c / 2, b - d / 2, a + c / 2, b + d / 2
    return min(a, c), min(b, d), max(a, c), max(b, d)


def whole(rectangles: list[Rectangle]) -> list[tuple[int, int, int, int]]:
    """Return rectangles enlarged alike, until their coordinates are integers: their overlap is the ratio of areas."""
    scale = lcm(*(each.denominator for rectangle in rectangles for each in rectangle))
    return [(int(a * scale), int(b * scale), int(c * scale), int(d * scale)) for a, b, c, d in rectangles]


def within(a: tuple[int, int, int, int], b: tuple[int, int, int, int], threshold: tuple[int, int]) -> bool:
    """Say whether two boxes overlap by no more than the threshold, a ratio."""
    shared = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared * threshold[1] <= threshold[0] * union


BOXES = value_kinds("corners", "flipped", "centred", "apart", "same", "flat", "vast", "tiny")
"""corners: of whole coordinates in 0..15, the first corner below the second; flipped: any two opposite
corners; centred: centre and even extents; apart: no two overlap; same: all alike; flat: of no area; vast and tiny: as
corners, times 2^90 and 2^-90, so that areas are beyond float32."""
_SIZES = {"vast": 2.0**90, "tiny": 2.0**-90}
SCORES = value_kinds("different", "negative", "alike")
"""different: no two alike, in -1..1 (negative: -1..0), multiples of 2**-10; alike: four values only."""


class Suppressing(Family):
    """Boxes [batches, N, 4] and scores [batches, classes, N]: by `classes`, and `unlike` in `boxes` or
    `batches`."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {
        "boxes": BOXES,
        "scores": (*SCORES, *elements.ELEMENT_KINDS[5:7]),
    }
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"scores": ("classes", "unlike")}
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"unlike": ("boxes", "batches", "rank")}
    dtypes = ("int64",)

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Scores of all boxes."""
        given = {} if isinstance(relation, str) else relation
        batches, count, *_ = *call.first.shape, 1, 1
        classes, unlike = given.get("classes", 1), given.get("unlike")
        found = (batches + (unlike == "batches"), classes, count + (unlike == "boxes"))
        return found[1:] if unlike == "rank" else found

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Both formats."""
        return [0, 1]

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Boxes of a centre belong to their format; they are not flipped."""
        if name != "boxes":
            return True
        return (
            kind in ("centred", "same", "apart") if call.parameter("center_point_box") else kind != "centred"
        )

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose coordinates and scores whose overlaps and order are exact."""
        shape = call.inputs[name].shape
        raw = np.frombuffer(entropy, "<u4", prod(shape)).astype(np.int64)
        if name == "boxes":
            found = _boxes(kind, raw.reshape(shape), bool(call.parameter("center_point_box")))
            return np.asarray(found * np.float32(_SIZES.get(kind, 1.0)))
        if kind == "alike":
            return (raw % 4 / 4).reshape(shape).astype(np.float32)
        if kind not in ("different", "negative"):
            return elements.choose(kind, "float32", shape, entropy)
        rank = np.argsort(np.argsort(raw.reshape(shape), -1, kind="stable"), -1, kind="stable")
        found = (rank * 2 - shape[-1]) / 1024
        return (found - (1 if kind == "negative" else 0)).astype(np.float32)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Shapes that belong together, and thresholds."""
        boxes, scores = call.shapes[:2]
        if len(boxes) != 3 or boxes[2] != 4:
            return "boxes are [num_batches, spatial_dimension, 4]"
        if len(scores) != 3 or (scores[0], scores[2]) != boxes[:2]:
            return "scores are [num_batches, num_classes, spatial_dimension]"
        if any(each not in ((), (1,)) for each in call.shapes[2:]):
            return "the limits are scalars, or have one element"
        if call.parameter("center_point_box") not in (0, 1):
            return "center_point_box is 0 or 1"
        return None if 0 <= limits(call)[1] <= 1 else "iou_threshold in [0, 1]"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return [boxes, 3] for the boxes that are selected."""
        return ((UNKNOWN, 3),)


def _boxes(kind: str, raw: Array, centred: bool) -> Array:
    """Choose boxes of whole coordinates."""
    if raw.ndim != 3 or raw.shape[-1] != 4:
        return (raw % 16).astype(np.float32)
    first, size = raw[..., :2] % 12, 1 + raw[..., 2:] % 8
    if kind == "apart":
        first = first * 0 + 16 * np.arange(raw.shape[1])[:, None]
    if kind == "same":
        first, size = first * 0 + 3, size * 0 + 4
    if kind == "flat":
        size = size * np.array([0, 1])
    if centred:
        return np.concatenate([first, 2 * size], -1).astype(np.float32)
    corners = np.stack([first, first + size], -2)
    if kind == "flipped":
        swapped = (raw[..., None, :2] >> 16 & 1).astype(bool)
        corners = np.where(swapped, corners[..., ::-1, :], corners)
    return corners.reshape(raw.shape).astype(np.float32)


OPERATOR = Operator(
    "NonMaxSuppression",
    Suppressing(),
    decided(non_max_suppression),
    constants={"max_output_boxes_per_class": UNKNOWN, "iou_threshold": UNKNOWN, "score_threshold": UNKNOWN},
)
