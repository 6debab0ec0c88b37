"""Calls of Resize or Upsample that ONNX forbids, and those whose result it leaves open."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf, isfinite

import numpy as np

from harness.model.dtypes import DTYPES
from harness.operators.base import Call
from harness.operators.image.resampling import NEAREST
from harness.operators.image.resize_axes import (
    HALF_FOR_NEAREST,
    MODES,
    TF,
    ResizedAxis,
    axes,
    chosen,
    mode,
    numbers,
)


def broken(call: Call) -> str | None:
    """Return the rule that a call breaks, or what ONNX leaves open of it."""
    return _wrong(call) or _open(call)


def _wrong(call: Call) -> str | None:
    rank, attributes = len(call.first.shape), call.attributes
    scales, sizes, roi = (numbers(call, name) for name in ("scales", "sizes", "roi"))
    listed = call.parameter("axes")
    if listed is not None and not all(-rank <= axis < rank for axis in listed):
        return "axes in [-r, r-1]"
    if call.opset == 11 and not {"roi", "scales"} <= set(call.inputs):
        return "roi and scales are given, if without elements"
    if (scales is None) == (sizes is None):
        return "either scales or sizes are given"
    count = len(chosen(call))
    if any(each is not None and len(each) != count for each in (scales, sizes)):
        return "scales and sizes have an element for each axis"
    if scales is not None and not all(0 < scale < inf for scale in scales):
        return "scales are greater than 0"
    if call.opset < 10 and scales is not None and min(scales, default=1.0) < 1:
        return "scales are at least 1"
    if sizes is not None and min(sizes, default=1) < 0:
        return "sizes are not negative"
    if attributes["mode"] not in (
        ("nearest", "linear", "cubic") if call.opset > 10 else ("nearest", "linear")
    ):
        return "mode is nearest, linear, or since version 11 cubic"
    if call.opset < 11:
        return None
    if mode(call) not in MODES or call.opset not in MODES[mode(call)]:
        return "coordinate_transformation_mode is one of those of the version"
    if attributes["nearest_mode"] not in NEAREST:
        return "nearest_mode is round_prefer_floor, round_prefer_ceil, floor or ceil"
    if mode(call) == TF and (roi is None or len(roi) != 2 * count or not all(map(isfinite, roi))):
        return "roi has a start and an end for each axis"
    if attributes.get("keep_aspect_ratio_policy", "stretch") not in ("stretch", "not_larger", "not_smaller"):
        return "keep_aspect_ratio_policy is stretch, not_larger or not_smaller"
    if scales is not None and attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "keep_aspect_ratio_policy belongs to sizes"
    return None


def _open(call: Call) -> str | None:
    """Return what ONNX does not say of a call that breaks no rule."""
    among, attributes = chosen(call), call.attributes
    if len(set(among)) < len(among):
        return "what an axis that is named twice means"
    if 0 in call.first.shape:
        return "what is resized of a tensor without elements"
    averaged = attributes["mode"] != "nearest"
    if averaged and DTYPES[call.first.dtype].storage[0] in "Obc":
        return "what the average of elements that are no real numbers is"
    found = axes(call)
    if call.opset < 11:
        whole = all(axis.scale.denominator == 1 for axis in found)
        return None if whole and not averaged else "where coordinates lie, version 11 says first"
    if any(_rounds_otherwise(axis) for axis in found):
        return "whether an extent that float32 rounds up to a whole number is one"
    if min((axis.resized for axis in found), default=1) < 1:
        return "what an output without elements is resized by"
    of_length = [axis for axis in found if not axis.kept]
    moves = averaged or attributes["nearest_mode"] in ("round_prefer_ceil", "ceil")
    if mode(call) == HALF_FOR_NEAREST and len(of_length) < len(found) and moves:
        return "whether an axis that stays as it is moves by half an element"
    if mode(call) in ("align_corners", TF) and any(axis.length.denominator > 1 for axis in of_length):
        return "whether the length of an output is a fraction where scales leave one"
    if mode(call) == "align_corners" and any(axis.resized == 1 < axis.original for axis in of_length):
        return "where the only element of an axis lies by align_corners"
    if averaged and attributes["mode"] == "cubic" and DTYPES[call.first.dtype].is_integer:
        return "what an average beyond the range of integers is"
    if attributes.get("antialias") and not averaged:
        return "what antialias means for nearest"
    if mode(call) == TF and not _held(call.first.dtype, call.parameter("extrapolation_value")):
        return "what an extrapolation_value is that the type does not hold"
    return None


def _held(dtype: str, number: float) -> bool:
    """Say whether an element type holds a number, of floats at least nearly."""
    entry = DTYPES[dtype]
    if entry.is_float:
        return True
    return entry.is_integer and number.is_integer() and entry.limits.min <= number <= entry.limits.max


def _rounds_otherwise(axis: ResizedAxis) -> bool:
    """Say whether the product of extent, part and scale, rounded to float32, has another whole part."""
    part = np.float32(axis.end) - np.float32(axis.start)
    product = float(np.float32(axis.original) * part * np.float32(axis.scale))
    return floor(axis.length * Fraction(float(part))) != floor(product)
