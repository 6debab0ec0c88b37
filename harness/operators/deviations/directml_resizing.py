"""What ONNX Runtime's DirectML provider gives of Resize."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Expected
from harness.operators.base import TensorType, Undefined
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.deviations.directml_api_resizing import halved_before, line_of_earlier_neighbours


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
