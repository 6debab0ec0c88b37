"""Conv, ConvTranspose, ConvInteger: sums of products of windows and filters, in groups of channels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators import functions
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator
from harness.operators.formulas import bounded, decided
from harness.operators.pooling.windows import members, widened, window
from harness.operators.products.convolving import CONVOLVING, TRANSPOSED, Convolving, weights


def conv(X: Any, W: Any, group: int, call: Call, B: Any = None) -> Any:  # noqa: N803 - as ONNX calls them
    """Convolve as `functions.conv` writes the formula."""
    found = window(call, W.shape[2:])
    return functions.conv(X, W, B, found.strides, found.pads, found.dilations, group)


def conv_transpose(X: Any, W: Any, group: int, call: Call, B: Any = None) -> Any:  # noqa: N803 - as ONNX calls them
    """Convolve as `functions.conv_transpose` writes the formula."""
    found = TRANSPOSED.window(call)
    begins = found.pads[: len(found.kernel)]
    return functions.conv_transpose(
        X, W, B, found.strides, begins, found.dilations, group, TRANSPOSED.extents(call)
    )


# y = the convolution of (x - x_zero_point), padded with 0, and (w - w_zero_point), in 32 bits
def conv_integer(
    x: Array, w: Array, group: int, call: Call, x_zero_point: Any = 0, w_zero_point: Any = 0
) -> Array:
    """Convolve by the formula above; a zero point of w may be one for each output."""
    zero = np.asarray(w_zero_point, np.int64)
    filters = w.astype(np.int64) - (zero.reshape(-1, *[1] * (w.ndim - 1)) if zero.ndim else zero)
    return integral(
        x.astype(np.int64) - np.asarray(x_zero_point, np.int64).reshape(()), filters, group, call
    ).astype(np.int32)


def integral(x: Array, w: Array, group: int, call: Call) -> Array:
    """Convolve integers of 64 bits."""
    found = window(call, w.shape[2:])
    count = len(found.kernel)
    padded = np.pad(x, [(0, 0), (0, 0), *zip(found.pads[:count], found.pads[count:], strict=True)])
    parts = zip(np.split(padded, group, axis=1), np.split(w, group), strict=True)
    return np.concatenate(
        [functions.convolved(p, q, found.strides, found.dilations) for p, q in parts], axis=1
    )


class IntegerConvolving(Convolving):
    """x, w and their zero points."""

    name = "convolving integers"

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The shapes of the zero points, beside the rules of convolutions."""
        zero = call.inputs.get("x_zero_point")
        if zero is not None and zero.shape not in ((), (1,)):
            return "x_zero_point is a scalar"
        zero = call.inputs.get("w_zero_point")
        if zero is not None and zero.shape not in ((), (1,), (weights(call)[0],)):
            return "w_zero_point is a scalar or has one element for each output"
        return super().broken_rule(operator, call)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """DML_OPERATOR_CONVOLUTION_INTEGER takes one zero point for each tensor, or one for each output."""
        if candidate != "DML_OPERATOR_CONVOLUTION_INTEGER" or operator.broken_rule(call) is not None:
            return None
        held = members(window(call, self.kernel(call))) | {"GroupCount": call.attributes["group"]}
        count = 2 + held["DimensionCount"]
        tensors: dict[str, CallTensor | None] = {
            "InputTensor": CallTensor("x", call.inputs["x"].dtype, widened(call.inputs["x"].shape)),
            "FilterTensor": CallTensor("w", call.inputs["w"].dtype, widened(call.inputs["w"].shape)),
            "OutputTensor": CallTensor(0, call.outputs[0], widened(self.output_shapes(operator, call)[0])),
        }
        for member, name in (
            ("InputZeroPointTensor", "x_zero_point"),
            ("FilterZeroPointTensor", "w_zero_point"),
        ):
            given = call.inputs.get(name)
            tensors[member] = given and CallTensor(
                name, given.dtype, (1, prod(given.shape), *(1,) * (count - 2))
            )
        return DirectmlCall(candidate, tensors, count, held)


OPERATORS = (
    Operator("Conv", CONVOLVING, bounded(conv)),
    Operator("ConvTranspose", TRANSPOSED, bounded(conv_transpose)),
    Operator("ConvInteger", IntegerConvolving(), decided(conv_integer)),
)
