"""What ONNX Runtime's DirectML provider gives of ConvTranspose."""

from __future__ import annotations

from harness.model.expected import Expected
from harness.operators.base import Undefined
from harness.operators.deviations.base import Deviating, deviation


# total = max(0, (ceil(extent / stride) - 1) * stride + kernel - extent): what Conv of X would need
@deviation
def pads_of_conv(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose with auto_pad SAME: the padding is that of a Conv of X."""
    extents, kernel, strides, dilations = _window(asked)
    if asked.call.parameter("auto_pad") not in ("SAME_UPPER", "SAME_LOWER"):
        raise Undefined("no auto_pad SAME")
    totals = [
        max(0, (-(-extent // stride) - 1) * stride + (size - 1) * dilation + 1 - extent)
        for extent, size, stride, dilation in zip(extents, kernel, strides, dilations, strict=True)
    ]
    begins = _begins(asked, totals)
    ends = [total - begin for total, begin in zip(totals, begins, strict=True)]
    return asked.formula(auto_pad="NOTSET", pads=(*begins, *ends))


# begin is half of (extent - 1) * stride + kernel - output_shape, without dilations and output_padding
@deviation
def pads_without_dilations(asked: Deviating) -> tuple[Expected, ...]:
    """ConvTranspose with output_shape: half of another padding lies before the first element."""
    extents, kernel, strides, dilations = _window(asked)
    shape = asked.call.parameter("output_shape")
    if shape is None:
        raise Undefined("no output_shape")
    more = asked.call.parameter("output_padding") or (0,) * len(extents)
    sizes = list(zip(extents, kernel, strides, shape[-len(extents) :], strict=True))
    begins = _begins(asked, [max(0, (n - 1) * stride + size - out) for n, size, stride, out in sizes])
    ends = [
        (n - 1) * stride + (size - 1) * dilation + 1 + padding - out - begin
        for (n, size, stride, out), dilation, padding, begin in zip(
            sizes, dilations, more, begins, strict=True
        )
    ]
    return asked.formula(without=("output_shape",), auto_pad="NOTSET", pads=(*begins, *ends))


def _window(asked: Deviating) -> tuple[tuple[int, ...], ...]:
    """Return the spatial extents of X and W, strides and dilations."""
    extents, kernel = asked.call.inputs["X"].shape[2:], asked.call.inputs["W"].shape[2:]
    ones = (1,) * len(extents)
    strides, dilations = (asked.call.parameter(name) or ones for name in ("strides", "dilations"))
    return extents, kernel, strides, dilations


def _begins(asked: Deviating, totals: list[int]) -> list[int]:
    upper = asked.call.parameter("auto_pad") == "SAME_UPPER"
    return [total // 2 if upper else total - total // 2 for total in totals]
