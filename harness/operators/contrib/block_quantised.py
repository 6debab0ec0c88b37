"""MatMulNBits, MatMulBnb4 and GatherBlockQuantized: weights of a few bits, packed, with a scale and a zero point for each block."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import MINIFLOATS, decode
from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.bounded import Bounded, number, take, where
from harness.operators.dimensioned import SCALES, Chosen, Dimensioned, Dimensions
from harness.operators.formulas import bounded

# w[n, k] = (q[n, k] - zero_points[n, k / block_size]) * scales[n, k / block_size]; without zero points 2**(bits - 1)
# MatMulNBits:          Y = A w^T + bias
# GatherBlockQuantized: output = w[.., indices, ..]; 0 for an index out of range

_ALLOWED = {2: 2.0**-11, 3: 2.0**-8, 4: 1 / 254 * 1.01}
"""By accuracy_level how far A may be rounded, of its elements or of the largest of a block."""


_FP4 = np.array([0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25])
_CODES = {
    0: np.concatenate([_FP4, -_FP4]),
    1: np.array(
        [
            -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
            -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
            0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
        ]
    ),
}  # fmt: skip
"""The numbers of FP4 and of NF4 by their four bits, the first number of a byte in its upper ones (bitsandbytes,
csrc/kernels.cu: dDequantizeFP4Tree, dDequantizeNF4)."""


def unpacked(data: Array, bits: int) -> Array:
    """Return the numbers of some bits in each byte, the lowest first, along the last dimension."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = data[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return np.asarray(numbers.reshape(*data.shape[:-1], data.shape[-1] * len(shifts)), np.int64)


def blockwise(zero: Any, block: int, extent: int, axis: int = -1) -> Any:
    """Repeat what stands for each block of an axis."""
    repeated = np.repeat(zero, block, axis=axis)
    return repeated[(slice(None),) * (axis % zero.ndim) + (slice(extent),)]


def matmul_nbits(
    A: Bounded,
    B: Array,
    scales: Bounded,
    bits: int,
    block_size: int,
    accuracy_level: int,
    N: int,
    zero_points: Any = None,
    bias: Bounded | None = None,
) -> Bounded:
    """Multiply by the formula above."""
    if not B.size and A.size:  # an omitted projection
        zeros = number(np.zeros((*A.shape[:-1], N)), A.arithmetic)
        return zeros if bias is None else zeros + bias
    k, scales = A.shape[-1], scales.reshape(N, -1)
    blocks = scales.shape[1]
    q = unpacked(B, bits).reshape(N, blocks * block_size)[:, :k].astype(float)
    if zero_points is None:
        zero_points = 2.0 ** (bits - 1)
    else:
        zero_points = zero_points.reshape(N, -1)
        if not isinstance(zero_points, Bounded):
            zero_points = unpacked(zero_points, bits)[:, :blocks]
    zero = blockwise(zero_points + scales * 0.0, block_size, k)
    y: Bounded = allowed(A, accuracy_level, block_size) @ ((q - zero) * blockwise(scales, block_size, k)).T
    return y if bias is None else y + bias


def allowed(a: Bounded, level: int, block: int) -> Bounded:
    """Return A with the error that `accuracy_level` allows: rounding to float16 or bfloat16, or at 4 to integers of 8
    bits, with 127 for the largest of a block."""
    size = np.abs(a.value)
    if level == 4:
        pad = [(0, 0)] * (a.ndim - 1) + [(0, -a.shape[-1] % block)]
        blocks = np.pad(size, pad).reshape(*a.shape[:-1], -1, block)
        size = blockwise(blocks.max(-1, initial=0.0), block, a.shape[-1])
    return Bounded(a.value, a.error + _ALLOWED.get(level, 0.0) * size, a.arithmetic)


# w[n, k] = CODES[quant_type][q[n, k]] absmax[i / block_size], q and absmax in the order i = n K + k; Y = A w^T, A w without transB
def matmul_bnb4(
    A: Bounded, B: Array, absmax: Bounded, block_size: int, quant_type: int, K: int, N: int, transB: int = 1
) -> Bounded:
    """Multiply by the formula above."""
    w = decoded(B, absmax, block_size, quant_type, N * K).reshape(N, K)
    return A @ (w.T if transB else w)


def decoded(B: Array, absmax: Bounded, block_size: int, quant_type: int, count: int) -> Bounded:
    """Return the numbers that bytes stand for, shape (count)."""
    q = np.stack([B >> 4, B & 15], -1).reshape(-1)[:count]
    codes = take(number(_CODES[quant_type], absmax.arithmetic), q)
    made: Bounded = codes * blockwise(absmax, block_size, count)
    return made


def gather_blocks(
    data: Array,
    indices: Array,
    scales: Bounded,
    call: Call,
    bits: int,
    block_size: int,
    gather_axis: int,
    quantize_axis: int,
    zero_points: Array | None = None,
) -> Bounded:
    """Dequantise by the formula above, then gather."""
    packed = call.inputs["data"].dtype == "uint8"
    q = unpacked(data, bits) if packed else data
    if call.first.dtype in MINIFLOATS:
        q = decode(call.first.dtype, data)
    zero = np.full(scales.shape, 2 ** (bits - 1) if packed else 0)
    if zero_points is not None:
        zero = (unpacked(zero_points, bits) if packed else zero_points)[..., : scales.shape[-1]]
    extent, at = q.shape[quantize_axis], gather_axis % q.ndim
    shift, scale = (blockwise(each, block_size or extent, extent, quantize_axis) for each in (zero, scales))
    w = scale * (q.astype(float) - shift.astype(float))
    inside = (indices >= -q.shape[at]) & (indices < q.shape[at])
    shown = inside.reshape(*(1,) * at, *indices.shape, *(1,) * (q.ndim - 1 - at))
    found = take(w, np.where(inside, indices, 0), axis=at)
    return where(np.broadcast_to(shown, found.shape), found, np.zeros(found.shape))


def _cannot_multiply(n: Dimensions, call: Call) -> str | None:
    block, zero = n["block_size"], call.inputs.get("zero_points")
    if 0 not in call.inputs["B"].shape and call.inputs["scales"].shape[-1] not in (n["blocks"], n["scales"]):
        return "scales are empty where B is"
    if n["bits"] not in (2, 4, 8):
        return "bits is 2, 4 or 8"
    if block < 16 or block & (block - 1):
        return "block_size is a power of 2 and not smaller than 16"
    each = n["packed" if zero is not None and zero.dtype == "uint8" else "blocks"]
    if zero is not None and zero.shape not in ((n["N"], each), (n["N"] * each,)):
        return "zero points are packed, or of the type of A one for each block"
    typed = zero is None or zero.dtype in ("uint8", call.first.dtype)
    return None if typed else "zero points are packed or of the type of A"


def _cannot_decode(n: Dimensions, call: Call) -> str | None:
    block = n["block_size"]
    if call.first.shape[-1] != n["K" if n["transB"] else "N"]:
        return "A has a column for each of K, of N without transB"
    if block < 16 or block & (block - 1):
        return "block_size is a power of 2 and not smaller than 16"
    return None if n["quant_type"] in _CODES else "quant_type is 0 or 1"


def _cannot_gather(n: Dimensions, call: Call) -> str | None:
    packed, rank = call.first.dtype == "uint8", len(call.first.shape)
    gather, block = n["gather_axis"], n["block_size"]
    if not (-rank <= gather < rank and -rank <= n["quantize_axis"] < rank):
        return "axes in [-r, r-1]"
    if packed and (gather % rank or (n["bits"] < 8 and n["quantize_axis"] % rank == 0)):
        return "bytes are gathered on axis 0, and quantised along another"
    if call.first.dtype in ("int4", "uint4") and n["bits"] != 4:
        return "integers of 4 bits have 4 bits"
    floats, scales, zero = call.first.dtype in MINIFLOATS, _blocks(call), call.inputs.get("zero_points")
    if (block < 16 or block & (block - 1)) and not (floats and block == 0):
        return "block_size is a power of 2 and not smaller than 16, or 0 for floats"
    if floats and zero is not None:
        return "floats have no zero points"
    shape, axis = call.inputs["scales"].shape, n["quantize_axis"] % rank
    alike = (
        one == held or (floats and one == 1 and at != axis)
        for at, (one, held) in enumerate(zip(shape, scales, strict=False))
    )
    if len(shape) != rank or not all(alike):
        return "one scale for each block"
    held = (*scales[:-1], -(-scales[-1] // (8 // n["bits"]))) if packed else scales
    return None if zero is None or zero.shape == held else "one zero point for each block"


def _blocks(call: Call) -> Shape:
    """Return the shape of scales: that of the data with blocks for elements along the quantised axis."""
    shape, bits = list(call.first.shape), call.parameter("bits")
    shape[-1] *= 8 // bits if call.first.dtype == "uint8" else 1
    axis = call.parameter("quantize_axis") % len(shape)
    block = call.parameter("block_size") or shape[axis] or 1
    return tuple(-(-n // block) if at == axis else n for at, n in enumerate(shape))


def _gathered(call: Call) -> tuple[Shape, ...]:
    shape = call.first.shape
    if _cannot_gather({**call.attributes}, call):
        return (shape,)
    wide = (*shape[:-1], shape[-1] * (8 // call.parameter("bits") if call.first.dtype == "uint8" else 1))
    at = call.parameter("gather_axis") % len(shape)
    return ((*wide[:at], *call.inputs["indices"].shape, *wide[at + 1 :]),)


def _extent(n: Dimensions) -> int:
    return int(n["..."][n["gather_axis"]])


class GatheringBlocks(Dimensioned):
    """Scales for each block, zero points as they are packed."""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of scales and zero points."""
        rank = len(call.first.shape)
        if not -rank <= call.parameter("quantize_axis") < rank:
            return None
        found = _blocks(call)
        if name == "zero_points" and call.first.dtype == "uint8":
            found = (*found[:-1], -(-found[-1] // (8 // call.parameter("bits"))))
        if relation == "one":
            axis = call.parameter("quantize_axis") % rank
            return tuple(extent if at == axis else 1 for at, extent in enumerate(found))
        return (*found[:-1], found[-1] + (relation == "unlike"))


BITS = (Chosen("bits", lambda raw, _: raw),)
INDEX = (
    Chosen("in_range", lambda raw, n: raw % max(1, _extent(n))),
    Chosen("negative", lambda raw, n: raw % max(1, _extent(n)) - _extent(n)),
    Chosen("beyond", lambda raw, n: raw % (4 * _extent(n) + 1) - 2 * _extent(n)),
)
OPERATORS = (
    Operator(
        "com.microsoft.MatMulNBits",
        Dimensioned(
            "A: ... K; B: N blocks blob | 0 blocks blob | N 0 blob | N blocks 0; scales: N blocks | N 0 | scales; "
            "zero_points: N packed | N blocks | zeros | scales; bias: N",
            "... N",
            {
                "blocks": lambda n: -(-n["K"] // n["block_size"]),
                "blob": lambda n: n["block_size"] * n["bits"] // 8,
                "packed": lambda n: -(-n["blocks"] * n["bits"] // 8),
                "scales": lambda n: n["N"] * n["blocks"],  # of one dimension, as older exporters write them
                "zeros": lambda n: n["N"] * n["packed"],
            },
            _cannot_multiply,
            {"scales": (SCALES,), "B": BITS, "zero_points": BITS},
        ),
        bounded(matmul_nbits),
    ),
    Operator(
        "com.microsoft.MatMulBnb4",
        Dimensioned(
            "A: ... K | ... N; B: bytes; absmax: blocks",
            "... outer",
            {
                "outer": lambda n: n["N"] if n["transB"] else n["K"],
                "bytes": lambda n: -(-n["N"] * n["K"] // 2),
                "blocks": lambda n: -(-n["N"] * n["K"] // n["block_size"]),
            },
            _cannot_decode,
            {"absmax": (SCALES,), "B": BITS},
        ),
        bounded(matmul_bnb4),
    ),
    Operator(
        "com.microsoft.GatherBlockQuantized",
        GatheringBlocks(
            "data: ...; indices: *; scales: *; zero_points: *",
            "*",
            rule=_cannot_gather,
            chosen={"data": BITS, "indices": INDEX, "scales": (SCALES,), "zero_points": BITS},
        ),
        bounded(gather_blocks),
        outputs=_gathered,
    ),
)
