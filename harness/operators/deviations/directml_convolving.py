"""What ONNX Runtime's DirectML provider gives of transposed convolutions."""

from __future__ import annotations

from harness.model.expected import Expected
from harness.operators.convolving import TRANSPOSED
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.windows import window


@deviation
def pads_of_the_forward_convolution(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose with auto_pad SAME: with the pads that Conv would have on the same input."""
    found = window(asked.call, TRANSPOSED.kernel(asked.call))
    return asked.formula(auto_pad="NOTSET", pads=found.pads)


# total = (extent - 1) * stride + kernel - output_shape, of which the greater half is before, with SAME_UPPER the lesser
@deviation
def pads_of_the_dense_kernel(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose with output_shape: pads by the formula above, which leaves out dilations and output_padding."""
    call, found = asked.call, window(asked.call, TRANSPOSED.kernel(asked.call))
    wanted, spatial = call.parameter("output_shape"), call.first.shape[2:]
    terms = zip(spatial, found.strides, found.kernel, wanted, strict=True)
    totals = [max(0, (extent - 1) * stride + size - out) for extent, stride, size, out in terms]
    upper = call.attributes.get("auto_pad") == "SAME_UPPER"
    begins = tuple(total // 2 if upper else total - total // 2 for total in totals)
    full = TRANSPOSED.full(call, found)
    ends = tuple(all_ - begin - out for all_, begin, out in zip(full, begins, wanted, strict=True))
    return asked.formula(without=("output_shape",), auto_pad="NOTSET", pads=(*begins, *ends))
