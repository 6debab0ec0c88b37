"""What is given in place of pooled windows."""

from __future__ import annotations

from math import ceil

from harness.model.expected import Expected
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation


@deviation
def valid_as_pads_of_zero(asked: Deviating) -> tuple[Expected, ...]:
    """Pooling: auto_pad VALID stands for pads of 0, with which ceil_mode adds a window that does not fit."""
    return asked.formula(auto_pad="NOTSET", without=("pads",))


@deviation
def same_without_dilations(asked: Deviating) -> tuple[Expected, ...]:
    """Pooling: pads of SAME are those of a kernel without dilations, (ceil(extent / stride) - 1) stride + kernel -
    extent."""
    call = asked.call
    extents = call.first.shape[2:]
    strides = call.parameter("strides") or (1,) * len(extents)
    totals = [
        (ceil(extent / stride) - 1) * stride + size - extent
        for extent, stride, size in zip(extents, strides, call.parameter("kernel_shape"), strict=True)
    ]
    lower = call.parameter("auto_pad") == "SAME_LOWER"
    begins = [int((total + lower) / 2) for total in totals]
    if min(begins) < 0:
        raise Undefined("windows that begin inside")
    ends = [total - begin for total, begin in zip(totals, begins, strict=True)]
    return asked.formula(auto_pad="NOTSET", pads=(*begins, *ends))
