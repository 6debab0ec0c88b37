"""Formulas of operators that compute, over numbers with a bound: each as the ONNX operator specification
writes it, and nothing else.

Inputs and results are `Bounded`; shapes and attributes are those of the ONNX operator, valid ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from harness.model.float_formats import Float64
from harness.operators.bounded import (
    Bounded,
    concatenate,
    contracted,
    exp,
    flip,
    log,
    pad,
    split,
    sqrt,
    squeeze,
    where,
)
from harness.operators.bounded.number import Mask

Axes = int | tuple[int, ...]


# S(x, axis) = exp(x - max(x)) / sum(exp(x - max(x)))              (Softmax, version 13: along one axis)
def softmax(x: Bounded, axis: int) -> Bounded:
    e = exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# log(S(x, axis)) = x - max(x) - log(sum(exp(x - max(x))))          (LogSoftmax, version 13)
def log_softmax(x: Bounded, axis: int) -> Bounded:
    d = x - x.max(axis, keepdims=True)
    return d - log(exp(d).sum(axis, keepdims=True))


# y = 1 / (1 + exp(-x))                                             (Sigmoid)
def sigmoid(x: Bounded) -> Bounded:
    return 1.0 / (1.0 + exp(-x))


# D = X - mean(X); y = D / sqrt(mean(D * D) + epsilon) * scale + bias   (LayerNormalization, over the axes from `axis` on)
def layer_norm(x: Bounded, scale: Bounded, bias: Bounded | None, axis: int, epsilon: float) -> Bounded:
    axes = tuple(range(axis % x.ndim, x.ndim))
    d = x - x.mean(axes, keepdims=True)
    y = d / sqrt((d * d).mean(axes, keepdims=True) + epsilon) * scale
    return y if bias is None else y + bias


# Y = alpha * A' B' + beta * C                                      (Gemm)
def gemm(
    a: Bounded, b: Bounded, c: Bounded | None, alpha: float, beta: float, transpose_a: bool, transpose_b: bool
) -> Bounded:
    y = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    y = y if alpha == 1 else alpha * y
    if c is None:
        return y
    return y + (c if beta == 1 else beta * c)


# Y[n, m, o] = sum over c, k of X[n, c, o * stride + k * dilation - pad] W[m, c, k] + B[m]         (Conv, in each group)
def conv(
    x: Bounded,
    w: Bounded,
    b: Bounded | None,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Bounded:
    """`pads` are the begins of all spatial axes, then the ends; X is [N, C, spatial], W [M, C / group,
    kernel], B [M]."""
    spatial = x.ndim - 2
    added = [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:], strict=True)]
    padded = pad(x, added)
    parts = zip(split(padded, group, axis=1), split(w, group), strict=True)
    y = concatenate(
        [
            contracted(lambda p, q: convolved(p, q, strides, dilations), p, q, prod(q.shape[1:]))
            for p, q in parts
        ],
        axis=1,
    )
    if any(pads) and not np.isfinite(w.value).all():
        # 0 times infinity in the padding: implementations may leave it out, which shows where no other product is NaN
        inside = np.pad(np.ones(x.shape), added)

        def touches(elements: Float64, marked: Mask) -> Mask:
            parts = zip(np.split(elements, group, axis=1), np.split(marked * 1.0, group), strict=True)
            return np.concatenate([convolved(p, q, strides, dilations) for p, q in parts], axis=1) > 0

        shows = touches(1 - inside, ~np.isfinite(w.value)) & ~touches(inside, np.isnan(w.value))
        y = Bounded(y.value, np.where(shows, np.inf, y.error), y.arithmetic)
    return y if b is None else y + b.reshape(-1, *[1] * spatial)


def convolved(x: Float64, w: Float64, strides: Sequence[int], dilations: Sequence[int]) -> Float64:
    """Sum windows of padded x [N, C, spatial] times w [M, C, kernel] over C and kernel: [N, M, output]."""
    spatial = x.ndim - 2
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    taken = (
        slice(None),
        slice(None),
        *(slice(None, None, s) for s in strides),
        *(slice(None, None, d) for d in dilations),
    )
    over = (1, *range(2 + spatial, 2 + 2 * spatial))
    return np.asarray(
        np.moveaxis(np.tensordot(windows[taken], w, axes=(over, tuple(range(1, w.ndim)))), -1, 1)
    )


# Y[n, m, i * stride + k * dilation - pad] = sum over c, i, k of X[n, c, i] W[c, m, k] + B[m]   (ConvTranspose, in each group)
def conv_transpose(
    x: Bounded, w: Bounded, b: Bounded | None, strides: Sequence[int], begins: Sequence[int], dilations: Sequence[int], group: int,
    extents: Sequence[int],
) -> Bounded:  # fmt: skip
    """`begins` are the pads before; X is [N, C, spatial], W [C, M / group, kernel], B [M], the output [N, M,
    extents]."""
    reached = [pad + extent for pad, extent in zip(begins, extents, strict=True)]
    parts = zip(split(x, group, axis=1), split(w, group), strict=True)
    added = [
        contracted(
            lambda p, q: _scattered(p, q, strides, dilations, reached), p, q, q.shape[0] * prod(q.shape[2:])
        )
        for p, q in parts
    ]
    kept = (slice(None), slice(None), *(slice(pad, None) for pad in begins))
    y = concatenate(added, axis=1)[kept]
    return y if b is None else y + b.reshape(-1, *[1] * (x.ndim - 2))


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


# sum x / n                                                         (ReduceMean)
def reduce_mean(x: Bounded, axes: Axes, keepdims: bool) -> Bounded:
    return x.mean(axes, keepdims)


# sqrt(sum x x)                                                     (ReduceL2)
def reduce_l2(x: Bounded, axes: Axes, keepdims: bool) -> Bounded:
    return sqrt((x * x).sum(axes, keepdims))


# log(sum x)                                                        (ReduceLogSum)
def reduce_log_sum(x: Bounded, axes: Axes, keepdims: bool) -> Bounded:
    return log(x.sum(axes, keepdims))


# log(sum exp x) = max x + log(sum exp(x - max x))                  (ReduceLogSumExp)
def reduce_log_sum_exp(x: Bounded, axes: Axes, keepdims: bool) -> Bounded:
    """The formula with the maximum, where that is finite: the one without it overflows for arguments whose
    result is finite."""
    most = x.max(axes, True)
    most = where(np.isfinite(most.value), most, np.zeros(most.shape))
    y = log(exp(x - most).sum(axes, True)) + most
    return y if keepdims else squeeze(y, axis=axes)


# y[k] = x[0] + ... + x[k]; exclusive: without x[k]; reverse: from the end         (CumSum)
def cumsum(x: Bounded, axis: int, exclusive: bool, reverse: bool) -> Bounded:
    x = flip(x, axis) if reverse else x
    y = x.cumsum(axis)
    if exclusive:
        first = [(0, 0)] * x.ndim
        first[axis % x.ndim] = (1, 0)
        kept = [slice(None)] * x.ndim
        kept[axis % x.ndim] = slice(0, x.shape[axis])
        y = pad(y, first)[tuple(kept)]
    return flip(y, axis) if reverse else y
