"""What ONNX Runtime's DirectML provider gives of products, quantisations and norms."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Approx, Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def first_of_vector(asked: Deviating) -> tuple[Expected, ...]:
    """MatMul and MatMulInteger by a vector: every element of B is taken for the first."""
    b = asked.inputs["B"]
    return asked.formula(inputs={**asked.inputs, "B": Tensor(b.dtype, np.repeat(b.array[:1], len(b.array)))})


@deviation
def in_equal_blocks_from_the_last(asked: Deviating) -> tuple[Expected, ...]:
    """QuantizeLinear: scales belong to the last dimensions, each of which is divided into as many equal blocks as
    there are scales."""
    shape = asked.inputs["x"].array.shape

    def spread(values: Array) -> Array:
        found = values.reshape(*(1,) * (len(shape) - values.ndim), *values.shape)
        for axis, extent in enumerate(shape):
            found = np.take(found, np.arange(extent) * found.shape[axis] // extent, axis)
        return found

    spreaded = {
        name: Tensor(each.dtype, each.array if name == "x" else spread(each.array))
        for name, each in asked.inputs.items()
    }
    return asked.formula(inputs=spreaded, axis=0, block_size=1)


@deviation
def batches_for_channels(asked: Deviating) -> tuple[Expected, ...]:
    """LRN of three dimensions: sums along the batches."""
    x = asked.inputs["X"]
    (found,) = asked.formula(inputs={"X": Tensor(x.dtype, x.array.swapaxes(0, 1))})
    assert isinstance(found, Approx)
    return (Approx(found.dtype, found.value.swapaxes(0, 1), found.bound.swapaxes(0, 1)),)


@deviation
def scales_of_the_last_axis(asked: Deviating) -> tuple[Expected, ...]:
    """DequantizeLinear: scales belong to the last axis."""
    return asked.formula(axis=-1)
