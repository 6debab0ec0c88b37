"""Deviating results of reductions, of sums of products, and of operators along an axis."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Exact, Expected, nearest
from harness.operators.deviations.base import Deviating, by_attributes, deviation
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


@deviation
def axis_in_32_bits(asked: Deviating) -> tuple[Expected, ...]:
    """Of axis the lower 32 bits count."""
    return asked.formula(axis=int(np.int64(asked.call.parameter("axis")).astype(np.int32)))


@deviation
def maximum_without_nan(asked: Deviating) -> tuple[Expected, ...]:
    """RoiAlign: the maximum begins with the least finite number, and NaN is none."""
    (expected,) = asked.formula()
    found = nearest(expected)
    array = np.where(np.isnan(found.array), np.finfo(found.array.dtype).min, found.array)
    return (Exact(Tensor(found.dtype, array)),)


@deviation
def k_in_32_bits(asked: Deviating) -> tuple[Expected, ...]:
    """TopK: of K the lower 32 bits count."""
    k = asked.inputs["K"].array
    return asked.formula(inputs=asked.having(K=k.astype(np.int32).astype(np.int64)))


# Losses: any reduction but none and mean is sum.
by_attributes("summed", reduction="sum")


# Gemm: C in place of beta * C.
by_attributes("whole_bias", beta=1.0)


@deviation
def same_as_pads(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose: SAME stands for the pads that it takes away; where there are none, the output ends with what is
    added."""
    pads = TRANSPOSED.window(asked.call).pads
    return asked.formula(auto_pad="NOTSET", pads=pads)


@deviation
def nan_passed_over(asked: Deviating) -> tuple[Expected, ...]:
    """Maxima and minima: NaN is -inf, of ReduceMin inf, and of MaxRoiPool the least finite number."""
    name, x = next(iter(asked.inputs.items()))
    least = {"ReduceMin": np.inf, "MaxRoiPool": np.finfo(x.array.dtype).min}.get(asked.operator.name, -np.inf)
    passed = np.where(np.isnan(x.array), least, x.array).astype(x.array.dtype)
    return asked.formula(inputs=asked.having(**{name: passed}))
