"""MatMulNBits and GatherBlockQuantized: weights of a few bits, packed, with a scale and a zero point for each block."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.bounded import Bounded, take, where
from harness.operators.dimensioned import SCALES, Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded

# w[n, k] = (q[n, k] - zero_points[n, k / block_size]) * scales[n, k / block_size]; without zero points 2**(bits - 1)
# MatMulNBits:          Y = A w^T + bias
# GatherBlockQuantized: output = w[.., indices, ..]; 0 for an index out of range

_ALLOWED = {2: 2.0**-11, 3: 2.0**-8, 4: 1 / 254 * 1.01}
"""By accuracy_level how far A may be rounded, of its elements or of the largest of a block."""


def unpacked(data: Array, bits: int) -> Array:
    """Return the numbers of some bits in each byte, the lowest first, along the last dimension."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = data[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return numbers.reshape(*data.shape[:-1], data.shape[-1] * len(shifts)).astype(np.int64)


def blockwise(zero: Any, block: int, extent: int, axis: int = -1) -> Any:
    """Repeat what stands for each block of an axis."""
    return np.take(np.repeat(zero, block, axis=axis), np.arange(extent), axis=axis)


def matmul_nbits(
    A: Bounded, B: Array, scales: Bounded, bits: int, block_size: int, accuracy_level: int, zero_points: Any = None,
    bias: Bounded | None = None,
) -> Bounded:  # fmt: skip
    """Multiply by the formula above."""
    k, (rows, blocks) = A.shape[-1], scales.shape
    q = unpacked(B, bits).reshape(rows, blocks * block_size)[:, :k].astype(float)
    if not isinstance(zero_points, Bounded):
        zero_points = 2.0 ** (bits - 1) if zero_points is None else unpacked(zero_points, bits)[:, :blocks]
    zero = blockwise(zero_points + scales * 0.0, block_size, k)
    y = allowed(A, accuracy_level, block_size) @ ((q - zero) * blockwise(scales, block_size, k)).T
    return y if bias is None else y + bias


def allowed(a: Bounded, level: int, block: int) -> Bounded:
    """Return A with the error that `accuracy_level` allows: of float16 or bfloat16, or at 4 of integers of 8 bits, of
    which 127 stand for the largest of a block."""
    size = np.abs(a.value)
    if level == 4:
        pad = [(0, 0)] * (a.ndim - 1) + [(0, -a.shape[-1] % block)]
        blocks = np.pad(size, pad).reshape(*a.shape[:-1], -1, block)
        size = blockwise(blocks.max(-1, initial=0.0), block, a.shape[-1])
    return Bounded(a.value, a.error + _ALLOWED.get(level, 0.0) * size, a.arithmetic)


def gather_blocks(
    data: Array, indices: Array, scales: Bounded, call: Call, bits: int, block_size: int, gather_axis: int,
    quantize_axis: int, zero_points: Array | None = None,
) -> Bounded:  # fmt: skip
    """Dequantise by the formula above, then gather."""
    packed = call.inputs["data"].dtype == "uint8"
    q, zero = (each if each is None or not packed else unpacked(each, bits) for each in (data, zero_points))
    extent, at = q.shape[quantize_axis], gather_axis % q.ndim
    if zero is None:
        zero = np.array(2 ** (bits - 1) if packed else 0)
    shift = blockwise(np.broadcast_to(zero[tuple(map(slice, scales.shape))] if zero.ndim else zero, scales.shape),
                      block_size, extent, quantize_axis)  # fmt: skip
    w = blockwise(scales, block_size, extent, quantize_axis) * (q.astype(float) - shift)
    inside = (indices >= -q.shape[at]) & (indices < q.shape[at])
    shown = inside.reshape(*(1,) * at, *indices.shape, *(1,) * (q.ndim - 1 - at))
    found = take(w, np.where(inside, indices, 0), axis=at)
    return where(np.broadcast_to(shown, found.shape), found, np.zeros(found.shape))


def _cannot_multiply(n: Dimensions, call: Call) -> str | None:
    block, zero = n["block_size"], call.inputs.get("zero_points")
    if n["bits"] not in (2, 4, 8):
        return "bits is 2, 4 or 8"
    if block < 16 or block & (block - 1):
        return "block_size is a power of 2 and not smaller than 16"
    packed = zero is None or (
        len(zero.shape) == 2 and zero.shape[1] == n["packed" if zero.dtype == "uint8" else "blocks"]
    )
    if not packed:
        return "zero points are packed, or of the type of A one for each block"
    return (
        None
        if zero is None or zero.dtype in ("uint8", call.first.dtype)
        else "zero points are packed or of the type of A"
    )


BITS = (Chosen("bits", lambda raw, _: raw),)
OPERATORS = (
    Operator(
        "com.microsoft.MatMulNBits",
        Dimensioned(
            "A: ... K; B: N blocks blob; scales: N blocks; zero_points: N packed | N blocks; bias: N",
            "... N",
            {
                "blocks": lambda n: -(-n["K"] // n["block_size"]),
                "blob": lambda n: n["block_size"] * n["bits"] // 8,
                "packed": lambda n: -(-n["blocks"] * n["bits"] // 8),
            },
            _cannot_multiply,
            {"scales": (SCALES,), "B": BITS, "zero_points": BITS},
        ),
        bounded(matmul_nbits),
    ),
)
