"""Deviating results of reductions, of sums of products, and of operators along an axis."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Exact, Expected, nearest
from harness.operators.deviations.base import Deviating, changed, deviation, low_bits
from harness.operators.products.convolving import TRANSPOSED


@deviation
def nothing_reduced(asked: Deviating) -> tuple[Expected, ...]:
    """Reductions of no elements: axes from the end reduce nothing; where there are no others the output has the shape of
    data."""
    (dtype,) = asked.call.outputs
    front = [axis for axis in asked.call.parameter("axes") or () if axis >= 0]
    if front:
        return asked.formula(constants={"axes": np.array(front)})
    return (Exact(Tensor(dtype, np.zeros(asked.call.first.shape, DTYPES[dtype].storage))),)


# Of axis the lower 32 bits count.
changed("axis_in_32_bits", axis=lambda asked: int(low_bits(np.array(asked.call.parameter("axis")))))


@deviation
def maximum_without_nan(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign: the maximum begins with the least finite number, and NaN is none."""
    (expected,) = asked.formula()
    found = nearest(expected)
    array = np.where(np.isnan(found.array), np.finfo(found.array.dtype).min, found.array)
    return (Exact(Tensor(found.dtype, array)),)


# TopK: of K the lower 32 bits count.
changed("k_in_32_bits", {"K": low_bits})


# Losses: any reduction but none and mean is sum.
changed("summed", reduction="sum")


# Gemm: C in place of beta * C.
changed("whole_bias", beta=1.0)


# ConvTranspose: SAME stands for the pads that it takes away; where there are none, the output ends with what is added.
changed("same_as_pads", auto_pad="NOTSET", pads=lambda asked: TRANSPOSED.window(asked.call).pads)


@deviation
def nan_passed_over(asked: Deviating) -> tuple[Expected, ...]:
    """Maxima and minima: NaN is -inf, of ReduceMin inf, and of MaxRoiPool the least finite number."""
    name, x = next(iter(asked.inputs.items()))
    least = {"ReduceMin": np.inf, "MaxRoiPool": np.finfo(x.array.dtype).min}.get(asked.operator.name, -np.inf)
    passed = np.where(np.isnan(x.array), least, x.array).astype(x.array.dtype)
    return asked.formula(inputs=asked.having(**{name: passed}))
