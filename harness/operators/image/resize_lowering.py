"""Resize and Upsample as calls of DML_OPERATOR_RESAMPLE3."""

from __future__ import annotations

from harness.operators.base import Call, CallTensor, DirectmlCall
from harness.operators.image.resize_axes import HALF_FOR_NEAREST, TF, ResizedAxis, axes, mode
from harness.operators.image.resize_rules import broken

RESAMPLE = "DML_OPERATOR_RESAMPLE3"
_DECREASING, _INCREASING = 1, 0
"""DML_AXIS_DIRECTION: toward lower elements, floor, and toward higher ones, ceil."""
_NEAREST = {
    "round_prefer_floor": (_INCREASING, 0.5),
    "round_prefer_ceil": (_DECREASING, -0.5),
    "floor": (_DECREASING, 0.0),
    "ceil": (_INCREASING, 0.0),
}
"""The direction, and what is added to input offsets: ceil(x - 0.5) rounds halves down, floor(x + 0.5) up."""
_MOST = 4
"""The most dimensions that the operator has."""


# input coordinate = (output coordinate - OutputPixelOffset) / Scale - InputPixelOffset
def lowered(candidate: str | None, call: Call) -> DirectmlCall | None:
    """Make the call; None for cubic, weights without the elements outside, and elements beyond the input."""
    averaged = call.attributes["mode"] != "nearest"
    if candidate not in (None, RESAMPLE) or broken(call) is not None:
        return None
    if call.attributes["mode"] == "cubic" or call.attributes.get("exclude_outside"):
        return None
    found = list(axes(call))
    while len(found) > _MOST and (one := next((a for a in found if a.original == a.resized == 1), None)):
        found.remove(one)
    default = "round_prefer_floor" if call.opset > 10 else "floor"
    direction, more = _NEAREST[str(call.attributes.get("nearest_mode", default))]
    mapped = [_mapped(mode(call), axis) for axis in found]
    if None in mapped:
        return None
    by_axis = [each for each in mapped if each is not None]
    members = {
        "InterpolationMode": int(averaged),
        "RoundingDirection": _DECREASING if averaged else direction,
        "Scales": tuple(scale for scale, _, _ in by_axis),
        "InputPixelOffsets": tuple(
            offset + (0.0 if averaged or axis.kept else more)
            for axis, (_, offset, _) in zip(found, by_axis, strict=True)
        ),
        "OutputPixelOffsets": tuple(offset for _, _, offset in by_axis),
        "Antialiased": int(bool(call.attributes.get("antialias"))),
    }
    dtype = call.first.dtype
    tensors = {
        "InputTensor": CallTensor("X", dtype, tuple(axis.original for axis in found)),
        "OutputTensor": CallTensor(0, dtype, tuple(axis.resized for axis in found)),
    }
    fillers = {"Scales": 1, "InputPixelOffsets": 0, "OutputPixelOffsets": 0}
    return DirectmlCall(RESAMPLE, tensors, max(1, len(found)), members, per_dimension=fillers)


def _mapped(how: str, axis: ResizedAxis) -> tuple[float, float, float] | None:
    """Return the scale, the input and the output offset of an axis; None for a part that DirectML has no
    words for."""
    scale = float(axis.scale)
    last = axis.original - 1
    if axis.kept:
        return 1.0, 0.0, 0.0
    if how == TF:
        part = (axis.end - axis.start) * last
        if not 0 <= min(axis.start, axis.end) <= max(axis.start, axis.end) <= 1 or part < 0:
            return None
        if axis.resized == 1 or part == 0:
            return 1.0, -(axis.start * last + part / 2), 0.0
        return (axis.resized - 1) / part, -axis.start * last, 0.0
    if how == "align_corners":
        return (axis.resized - 1) / last if last else 1.0, 0.0, 0.0
    if how == "asymmetric":
        return scale, 0.0, 0.0
    if how == HALF_FOR_NEAREST:
        return scale, 0.0, -0.5
    if how == "pytorch_half_pixel" and axis.resized == 1:
        return 1.0, 0.0, 0.0
    if how == "half_pixel_symmetric":
        moved = axis.original / 2 * (1 - axis.resized / float(axis.length))
        return scale, 0.5 - moved, -0.5
    return scale, 0.5, -0.5
