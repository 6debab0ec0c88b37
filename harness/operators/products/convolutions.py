"""Conv, ConvTranspose, ConvInteger: sums of products of windows and filters, in groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import Float64
from harness.operators.base import Call, DirectmlCall, Operator, Shape
from harness.operators.bounded import Bounded, concatenate, contracted, pad, split
from harness.operators.bounded.number import Mask
from harness.operators.formulas import bounded, decided
from harness.operators.pooling.windows import Window, members, window
from harness.operators.products.convolving import CONVOLVING, OUTPUT, TRANSPOSED, Convolving, weights


def conv(X: Any, W: Any, group: int, call: Call, B: Any = None) -> Any:  # noqa: N803 - as ONNX calls them
    """Convolve by the formula below."""
    return convolution(X, W, B, window(call, W.shape[2:]), group)


# Y[n, m, o] = sum over c, k of X[n, c, o * stride + k * dilation - pad] W[m, c, k] + B[m]         (Conv, in each group)
def convolution(x: Bounded, w: Bounded, b: Bounded | None, found: Window, group: int) -> Bounded:
    """X is [N, C, spatial], W [M, C / group, kernel], B [M]."""
    strides, dilations = found.strides, found.dilations
    parts = zip(split(pad(x, found.widths), group, axis=1), split(w, group), strict=True)
    y = concatenate(
        [
            contracted(lambda p, q: convolved(p, q, strides, dilations), p, q, prod(q.shape[1:]))
            for p, q in parts
        ],
        axis=1,
    )
    if any(found.pads) and not np.isfinite(w.value).all():
        # 0 times infinity in the padding: implementations may leave it out, which shows where no other product is NaN
        inside = np.pad(np.ones(x.shape), found.widths)

        def touches(elements: Float64, marked: Mask) -> Mask:
            parts = zip(np.split(elements, group, axis=1), np.split(marked * 1.0, group), strict=True)
            return np.concatenate([convolved(p, q, strides, dilations) for p, q in parts], axis=1) > 0

        shows = touches(1 - inside, ~np.isfinite(w.value)) & ~touches(inside, np.isnan(w.value))
        y = Bounded(y.value, np.where(shows, np.inf, y.error), y.arithmetic)
    return y if b is None else y + b.reshape(-1, *[1] * (x.ndim - 2))


def windows(x: Array, kernel: Shape, strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return the windows of padded x [N, C, spatial]: [N, C, output, kernel]."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    taken: Any = (..., *(slice(None, None, step) for step in (*strides, *dilations)))
    return np.asarray(found[taken])


def convolved(x: Float64, w: Float64, strides: Sequence[int], dilations: Sequence[int]) -> Float64:
    """Sum windows of padded x [N, C, spatial] times w [M, C, kernel] over C and kernel: [N, M, output]."""
    taken = np.moveaxis(windows(x, w.shape[2:], strides, dilations), 1, x.ndim - 1)
    kept, count = taken.shape[: x.ndim - 1], prod(w.shape[1:])
    # not tensordot: one weight of 0 by itself makes 0 of NaN
    y = np.matmul(taken.reshape(prod(kept), count), w.reshape(len(w), count).T)
    return np.asarray(np.moveaxis(y.reshape(*kept, len(w)), -1, 1))


# Y[n, m, i * stride + k * dilation - pad] = sum over c, i, k of X[n, c, i] W[c, m, k] + B[m]   (ConvTranspose, in each group)
def conv_transpose(X: Any, W: Any, group: int, call: Call, B: Any = None) -> Any:  # noqa: N803 - as ONNX calls them
    """Convolve by the formula above: X is [N, C, spatial], W [C, M / group, kernel], B [M], the output [N, M, extents]."""
    found = TRANSPOSED.window(call)
    reached = [pad + extent for pad, extent in zip(found.begins, TRANSPOSED.extents(call), strict=True)]
    added = [
        contracted(
            lambda p, q: _scattered(p, q, found.strides, found.dilations, reached),
            p,
            q,
            q.shape[0] * prod(q.shape[2:]),
        )
        for p, q in zip(split(X, group, axis=1), split(W, group), strict=True)
    ]
    kept = (..., *(slice(pad, None) for pad in found.begins))
    y = concatenate(added, axis=1)[kept]
    return y if B is None else y + B.reshape(-1, *[1] * (X.ndim - 2))


def _scattered(
    x: Float64, w: Float64, strides: Sequence[int], dilations: Sequence[int], extents: Sequence[int]
) -> Float64:
    """Add x [N, C, spatial] times w [C, M, kernel], summed over C, to [N, M, extents] at i * stride + k *
    dilation, as far as it goes."""
    spatial = x.shape[2:]
    full = [
        max((n - 1) * s + (k - 1) * d + 1, e)
        for n, s, k, d, e in zip(spatial, strides, w.shape[2:], dilations, extents, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[1], *full))
    filters = np.moveaxis(w, (1, 0), (-2, -1))
    planes = x.reshape(*x.shape[:2], prod(spatial))
    for place in np.ndindex(*w.shape[2:]):
        begins = [k * d for k, d in zip(place, dilations, strict=True)]
        steps = (slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begins, spatial, strides, strict=True))
        taken = (slice(None), slice(None), *steps)
        y[taken] += np.matmul(filters[place], planes).reshape(x.shape[0], w.shape[1], *spatial)
    kept = (slice(None), slice(None), *(slice(0, e) for e in extents))
    return np.asarray(y[kept])


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
    parts = zip(np.split(np.pad(x, found.widths), group, axis=1), np.split(w, group), strict=True)
    return np.concatenate([convolved(p, q, found.strides, found.dilations) for p, q in parts], axis=1)


class IntegerConvolving(Convolving):
    """x, w and their zero points."""

    lowers = "DML_OPERATOR_CONVOLUTION_INTEGER"

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The shapes of the zero points, beside the rules of convolutions."""
        zero = call.inputs.get("x_zero_point")
        if zero is not None and zero.shape not in ((), (1,)):
            return "x_zero_point is a scalar"
        zero = call.inputs.get("w_zero_point")
        if zero is not None and zero.shape not in ((), (1,), (weights(call)[0],)):
            return "w_zero_point is a scalar or has one element for each output"
        return super().broken_rule(operator, call)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """One zero point for each tensor, or one for each output."""
        held = members(window(call, self.kernel(call))) | {"GroupCount": call.attributes["group"]}
        named = {"InputTensor": "x", "FilterTensor": "w", "OutputTensor": OUTPUT}
        named |= {"InputZeroPointTensor": "x_zero_point", "FilterZeroPointTensor": "w_zero_point"}
        return DirectmlCall(candidate, self.tensors(call, named), 1, held)


OPERATORS = (
    Operator("Conv", CONVOLVING, bounded(conv)),
    Operator("ConvTranspose", TRANSPOSED, bounded(conv_transpose)),
    Operator("ConvInteger", IntegerConvolving(), decided(conv_integer)),
)
