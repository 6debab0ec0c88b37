"""What is given in place of products of 8-bit integers, on processors that add two of them in 16 bits."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators.base import Call
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.formulas import decided
from harness.operators.quantised import requantized
from harness.operators.windows import window


@deviation
def products_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """MatMulInteger, QLinearMatMul: sums over k of A[.., k] B[k, ..] with two neighbours added in 16 bits."""
    if asked.operator.name == "MatMulInteger":
        return decided(_products)(asked.call, asked.inputs, asked.arithmetic)
    held = {name: each.array for name, each in asked.inputs.items()}
    found = _products(held["a"], held["b"], held["a_zero_point"], held["b_zero_point"])
    return requantized(asked.call, asked.inputs, found, asked.arithmetic, "ab", ())


def _products(A: Array, B: Array, a_zero_point: Any = 0, b_zero_point: Any = 0) -> Array:
    a, b = np.atleast_2d(A), B if B.ndim > 1 else B[:, None]
    one, other = (np.asarray(zero, np.int64) for zero in (a_zero_point, b_zero_point))
    found = _less_zero_points(_in_pairs(a, b), a, b, one, other)
    found = found if A.ndim > 1 else found[..., 0, :]
    return np.asarray(found if B.ndim > 1 else found[..., 0]).astype(np.int32)


@deviation
def windows_in_pairs(asked: Deviating) -> tuple[Expected, ...]:
    """ConvInteger, QLinearConv: sums over channels and kernel with two neighbours added in 16 bits."""
    return decided(_windows)(asked.call, asked.inputs, asked.arithmetic)


def _windows(x: Array, w: Array, group: int, call: Call, x_zero_point: Any = 0, w_zero_point: Any = 0) -> Array:
    zero, other = np.asarray(x_zero_point).reshape(()), np.asarray(w_zero_point).reshape(())
    columns = _columns(x, w, zero, call)
    parts = zip(np.split(columns, group, axis=1), np.split(w, group), strict=True)
    found = []
    for part, filters in parts:
        flat = part.reshape(len(x), -1, part.shape[-1])
        rows = filters.reshape(len(filters), -1)
        one, two = (np.asarray(each, np.int64) for each in (other, zero))
        found.append(_less_zero_points(_in_pairs(rows, flat), rows, flat, one, two))
    together = np.concatenate(found, axis=1)
    extents = window(call, w.shape[2:]).outputs(x.shape[2:])
    return np.asarray(together.reshape(*together.shape[:2], *extents)).astype(np.int32)


def _columns(x: Array, w: Array, zero: Any, call: Call) -> Array:
    """Return the elements of every window, [N, C, kernel, outputs]."""
    found = window(call, w.shape[2:])
    count = len(found.kernel)
    spread = [(0, 0), (0, 0), *zip(found.pads[:count], found.pads[count:], strict=True)]
    padded = np.pad(x, spread, constant_values=zero)
    view = np.lib.stride_tricks.sliding_window_view(padded, found.reach, axis=tuple(range(2, x.ndim)))
    steps = (*(slice(None, None, s) for s in found.strides), *(slice(None, None, d) for d in found.dilations))
    taken = view[(slice(None), slice(None), *steps)]
    turned = np.moveaxis(taken, range(2, 2 + count), range(-count, 0))
    return turned.reshape(*x.shape[:2], int(np.prod(found.kernel)), -1)


def _in_pairs(a: Array, b: Array) -> Array:
    """Multiply [.., m, k] of uint8 by [.., k, n] of int8: two neighbours are added in 16 bits that saturate."""
    more = a.shape[-1] % 2
    a = np.pad(a.astype(np.int64), [(0, 0)] * (a.ndim - 1) + [(0, more)])
    b = np.pad(b.astype(np.int64), [(0, 0)] * (b.ndim - 2) + [(0, more), (0, 0)])
    pairs = [a[..., n::2, None] * b[..., None, n::2, :] for n in (0, 1)]
    return np.asarray(np.clip(pairs[0] + pairs[1], -(2**15), 2**15 - 1).sum(-2))


# sum of (a - za) (b - zb) = sum of a b - za (sum of b) - zb (sum of a) + K za zb
def _less_zero_points(products: Array, a: Array, b: Array, za: Array, zb: Array) -> Array:
    a, b = (each.astype(np.int64) for each in (a, b))
    corrected = products - za * b.sum(-2, keepdims=True) - zb * a.sum(-1, keepdims=True)
    return np.asarray(corrected + a.shape[-1] * za * zb)
