"""Conv: the sum of products of a window and each filter, in groups of channels."""

from __future__ import annotations

from typing import Any

from harness.operators import functions
from harness.operators.base import Call, Operator
from harness.operators.formulas import bounded
from harness.operators.windows import CONVOLVING, window


def conv(X: Any, W: Any, group: int, call: Call, B: Any = None) -> Any:  # noqa: N803 - as ONNX calls them
    """Convolve as `functions.conv` writes the formula."""
    found = window(call, W.shape[2:])
    return functions.conv(X, W, B, found.strides, found.pads, found.dilations, group)


OPERATORS = (Operator("Conv", CONVOLVING, bounded(conv)),)
