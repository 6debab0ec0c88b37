"""What ONNX Runtime's DirectML provider gives of Resize."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.operators.base import TensorType, Undefined
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.deviations.directml_api_resizing import halved_before, line_of_earlier_neighbours
from harness.operators.image.resampling import NEAREST
from harness.operators.image.resize_axes import axes


@deviation
def stretched(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: keep_aspect_ratio_policy is not read."""
    attributes = {**asked.call.attributes, "keep_aspect_ratio_policy": "stretch"}
    again = asked._replace(call=asked.call._replace(attributes=attributes))
    return halved_before(again) if asked.call.parameter("antialias") else again.formula()


# extent = floor(input_dimension * scale), whatever part of the axis roi names
@deviation
def extents_without_roi(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with tf_crop_and_resize: the part is resampled to the extents of the whole."""
    if "scales" not in asked.inputs:
        raise Undefined("no scales")
    scales = asked.inputs["scales"].array.astype(np.float64)
    shape = asked.inputs["X"].array.shape
    axes = asked.call.parameter("axes") or range(len(shape))
    sizes = np.floor(np.array([shape[axis] for axis in axes]) * scales).astype(np.int64)
    inputs = {name: each for name, each in asked.inputs.items() if name != "scales"}
    inputs["sizes"] = Tensor("int64", sizes)
    types = {name: TensorType(each.dtype, each.array.shape) for name, each in inputs.items()}
    constants = {name: each for name, each in asked.call.constants.items() if name != "scales"}
    call = asked.call._replace(inputs=types, constants={**constants, "sizes": sizes})
    again = asked._replace(call=call, inputs=inputs)
    return line_of_earlier_neighbours(again) if call.parameter("mode") == "linear" else again.formula()


@deviation
def part_of_one_element(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with tf_crop_and_resize: a part that spans less than the distance of two elements spans it."""
    if "roi" not in asked.inputs:
        raise Undefined("no roi")
    roi = asked.inputs["roi"].array.astype(np.float64)
    starts, ends = np.split(roi, 2)
    extents = np.array(asked.inputs["X"].array.shape[-len(starts) :])
    wide = np.maximum(ends, starts + 1 / np.maximum(extents - 1, 1))
    changed = np.concatenate([starts, wide]).astype(np.float32)
    return asked.formula(
        inputs={**asked.inputs, "roi": Tensor("float32", changed)}, constants={"roi": changed}
    )


@deviation
def modes_by_other_names(asked: Deviating) -> tuple[Expected, ...]:
    """Resize and Upsample: modes without regard to case, bilinear is linear, and an unknown nearest_mode the default."""
    mode = str(asked.call.parameter("mode")).lower()
    found = {"mode": {"bilinear": "linear"}.get(mode, mode)}
    if asked.call.parameter("nearest_mode", "floor") not in NEAREST:
        found["nearest_mode"] = "round_prefer_floor"
    if asked.operator.name == "Upsample" and found["mode"] == "linear":
        found["coordinate_transformation_mode"] = "half_pixel"
    call = asked.call._replace(attributes={**asked.call.attributes, **found})
    return asked._replace(call=call).formula()


# nearest: X[floor(x_original - 1 / 2)] = X[round_prefer_ceil(x_original) - 1]
@deviation
def half_an_element_before(asked: Deviating) -> tuple[Expected, ...]:
    """Resize with the nearest_mode simple: the formula above, held within X."""
    x = asked.inputs["X"]
    moved = x.array
    for n, axis in enumerate(axes(asked.call)):
        if not axis.kept:
            moved = np.take(moved, np.maximum(np.arange(axis.original) - 1, 0), n)
    return asked.formula(
        inputs={**asked.inputs, "X": Tensor(x.dtype, moved)}, nearest_mode="round_prefer_ceil"
    )
