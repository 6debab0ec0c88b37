"""The operators as plain element loops, written from the ONNX text, and random small cases for them.

Nothing here is taken from `harness.operators`: no shared helper, no vectorised NumPy, one output element at a
time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array

LETTERS = ("", "a", "b", "\u00e9", "\u4e2d\u6587", "a longer text than any that is stored in place")


def gather_elements(data: Array, indices: Array, axis: int) -> Array:
    """ONNX GatherElements: out[i][j][k] = input[index[i][j][k]][j][k] if axis = 0, and so on; negative
    indices count from the end."""
    axis = axis + data.ndim if axis < 0 else axis
    out = np.empty(indices.shape, data.dtype)
    for position in np.ndindex(*indices.shape):
        index = int(indices[position])
        if index < 0:
            index += data.shape[axis]
        source = list(position)
        source[axis] = index
        out[position] = data[tuple(source)]
    return out


def gather_nd(data: Array, indices: Array, batch_dims: int) -> Array:
    """ONNX GatherND: every tuple indices[..., :] picks a slice of the data of its own batch; rank q + r - k -
    1 - b."""
    width = indices.shape[-1]
    rest = data.shape[batch_dims + width :]
    out = np.empty(indices.shape[:-1] + rest, data.dtype)
    for outer in np.ndindex(*indices.shape[:-1]):
        start = list(outer[:batch_dims])
        for coordinate in range(width):
            index = int(indices[(*outer, coordinate)])
            start.append(index + data.shape[batch_dims + coordinate] if index < 0 else index)
        for inner in np.ndindex(*rest):
            out[outer + inner] = data[(*start, *inner)]
    return out


def round_bits(bits: int, width: int, mantissa: int, mode: str | None) -> int | None:
    """Round one binary float given by its bits, in integer arithmetic alone; None stands for NaN.

    The value is m * 2**e. Where e >= 0 it is an integer; otherwise it lies between q and q + 1 for q, r =
    divmod(m, 2**-e).
    """
    sign = bits >> (width - 1)
    bias = (1 << (width - mantissa - 2)) - 1
    biased = (bits >> mantissa) & (2 * bias + 1)
    fraction = bits & ((1 << mantissa) - 1)
    if biased == 2 * bias + 1:
        return None if fraction else bits
    m, e = (
        (fraction, 1 - bias - mantissa)
        if biased == 0
        else (fraction | 1 << mantissa, biased - bias - mantissa)
    )
    if e >= 0 or m == 0:
        return bits
    q, r = divmod(m, 1 << -e)
    twice, whole = 2 * r, 1 << -e
    if (mode is None and (twice > whole or (twice == whole and q % 2))) or (
        mode == "halves_away_from_zero" and twice >= whole
    ):
        q += 1
    return sign << (width - 1) | encode_integer(q, mantissa, bias)


def encode_integer(value: int, mantissa: int, bias: int) -> int:
    """Return the bits of a non-negative integer that the type holds exactly."""
    if not value:
        return 0
    exponent = value.bit_length() - 1
    shift = mantissa - exponent
    assert shift >= 0 or value % (1 << -shift) == 0
    significand = value << shift if shift >= 0 else value >> -shift
    return (exponent + bias) << mantissa | significand & ((1 << mantissa) - 1)


def elements(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return random bit patterns of a dtype: every element of a small tensor is told apart from the others
    with high probability."""
    count = int(np.prod(shape))
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = [f"{LETTERS[rng.integers(len(LETTERS))]}{n}" for n in range(count)]
        return array.reshape(shape)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(count * DTYPES[dtype].itemsize), DTYPES[dtype].storage).reshape(shape)


def legal_indices(rng: np.random.Generator, shape: tuple[int, ...], sizes: Any, dtype: str) -> Array:
    """Return indices in [-s, s-1] for sizes that broadcast along the last axis."""
    high = np.broadcast_to(np.asarray(sizes), shape)
    return (
        rng.integers(-high, high).astype(DTYPES[dtype].storage)
        if np.prod(shape)
        else np.zeros(shape, DTYPES[dtype].storage)
    )


def assert_same(dtype: str, found: Tensor, wanted: Array, what: object) -> None:
    """Compare dtype, shape and every bit."""
    assert found.dtype == dtype, what
    assert found.array.shape == wanted.shape, what
    if dtype == "string":
        assert found.array.tolist() == wanted.tolist(), what
    else:
        assert found.array.dtype == wanted.dtype, what
        assert found.array.tobytes() == wanted.tobytes(), what
