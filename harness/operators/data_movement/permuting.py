"""Operators that put elements into another order: Transpose, DepthToSpace, SpaceToDepth, ReverseSequence,
Trilu."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, DirectmlCall, Operator, Shape, one_to_one
from harness.operators.broadcasting import packed
from harness.operators.data_movement.moving import IDENTITY, rank
from harness.operators.data_movement.reshaping import MOVING
from harness.operators.formulas import moved

# Transpose:    transposed[i_perm[0], i_perm[1], ...] = data[i_0, i_1, ...]
# DepthToSpace: output[n, c, h*b + y, w*b + x] = input[n, (y*b + x)*C + c, h, w]     DCR; C = depth / b²
#                                              = input[n, (c*b + y)*b + x, h, w]     CRD
# SpaceToDepth: the other way round
# Trilu:        output[..., i, j] = input[..., i, j] where j - i >= k (upper) or j - i <= k (lower), else 0


def transpose(data: Array, perm: tuple[int, ...] | None = None) -> Array:
    """Transpose: without perm the dimensions are turned round."""
    return np.transpose(data, perm)


def depth_to_space(input: Array, blocksize: int, mode: str = "DCR") -> Array:
    """Depth to space."""
    (n, depth, high, wide), b = input.shape, blocksize
    parts: Array
    if mode == "DCR":
        parts = input.reshape(n, b, b, depth // b**2, high, wide).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = input.reshape(n, depth // b**2, b, b, high, wide).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, depth // b**2, high * b, wide * b)


def space_to_depth(input: Array, blocksize: int, mode: str = "DCR") -> Array:
    """Space to depth."""
    (n, depth, high, wide), b = input.shape, blocksize
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    parts: Array = input.reshape(n, depth, high // b, b, wide // b, b).transpose(order)
    return parts.reshape(n, depth * b**2, high // b, wide // b)


def trilu(input: Array, upper: int, k: Array | None = None) -> Array:
    """Keep a triangle of each matrix; above or below a limit that no matrix reaches, nothing changes."""
    rows, columns = input.shape[-2:]
    place = 0 if k is None else int(np.clip(int(k), -rows - columns, rows + columns))
    keep = np.tri(rows, columns, place - 1 if upper else place, bool) ^ bool(upper)
    return np.where(keep, input, np.zeros((), input.dtype))


def _cannot_transpose(call: Call) -> str | None:
    perm = call.parameter("perm")
    fitting = perm is None or sorted(perm) == list(range(rank(call)))
    return None if fitting else "perm is a permutation of 0 to r-1"


def _orders(call: Call) -> Iterable[tuple[int, ...] | None]:
    """None, which turns round; as it is, the last two, the first two, the first and the last changed; turned
    by one, both ways; halves."""
    every = tuple(range(rank(call)))
    tried = [None, every, every[1:] + every[:1], every[-1:] + every[:-1]]
    if len(every) > 1:
        tried += [
            every[:-2] + every[:-3:-1],
            every[1::-1] + every[2:],
            every[-1:] + every[1:-1] + every[:1],
            every[::2] + every[1::2],
        ]
    return list(dict.fromkeys(tried))


def _strided(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    """Copy, the input read with its strides in the order of the output's dimensions."""
    shape = call.first.shape
    perm: tuple[int, ...] = call.parameter("perm", tuple(range(len(shape)))[::-1])
    steps = packed(shape)
    strides = tuple(steps[axis] for axis in perm)
    return one_to_one(IDENTITY, {}, call, outputs[0], outputs[0], strides)


def _block(call: Call) -> int:
    block = call.attributes.get("blocksize")
    return block if isinstance(block, int) else 0


def _not_blocked(call: Call) -> str | None:
    if rank(call) != 4:
        return "the input is [N, C, H, W]"
    if _block(call) < 1:
        return "blocksize is positive"
    if call.attributes.get("mode", "DCR") not in ("DCR", "CRD"):
        return "mode is DCR or CRD"
    return None


def _too_flat(call: Call) -> str | None:
    return _not_blocked(call) or (
        "the depth is divisible by blocksize²" if call.first.shape[1] % _block(call) ** 2 else None
    )


def _uneven(call: Call) -> str | None:
    high, wide = call.first.shape[-2:] if rank(call) == 4 else (0, 0)
    return _not_blocked(call) or (
        "height and width are divisible by blocksize" if high % _block(call) or wide % _block(call) else None
    )


def _to_space(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall:
    members = {
        "BlockSize": _block(call),
        "Order": ("DCR", "CRD").index(str(call.attributes.get("mode", "DCR"))),
    }
    return one_to_one("DML_OPERATOR_DEPTH_TO_SPACE1", members, call, outputs[0])


def _to_depth(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall | None:
    if call.attributes.get("mode", "DCR") == "CRD":
        return None
    return one_to_one("DML_OPERATOR_SPACE_TO_DEPTH", {"BlockSize": _block(call)}, call, outputs[0])


def _no_matrix(call: Call) -> str | None:
    if call.inputs.get("k") is not None and call.inputs["k"].shape not in ((), (1,)):
        return "k is one number"
    return None if rank(call) >= 2 else "the input is a matrix, or a batch of them"


OPERATORS = (
    Operator(
        "Transpose",
        MOVING,
        moved(transpose),
        _cannot_transpose,
        domains={"perm": _orders},  # type: ignore[dict-item] # None leaves out
        options=_strided,
    ),
    Operator("DepthToSpace", MOVING, moved(depth_to_space), _too_flat, options=_to_space),
    Operator("SpaceToDepth", MOVING, moved(space_to_depth), _uneven, options=_to_depth),
    Operator("Trilu", MOVING, moved(trilu), _no_matrix, constants={"k": 0}),
)
