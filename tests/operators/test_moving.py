"""Operators that move elements: the formulas against element loops that are written from ONNX's text, one
output element at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor, Value
from harness.model.dtypes import Array
from harness.model.expected import Exact
from tests import calling
from tests.operators.brute import assert_same, elements, legal_indices

DTYPES_TRIED = ("float32", "uint8", "int64", "string", "bfloat16")
Calls = Iterator[tuple[dict[str, Value], dict[str, Array]]]


def run(
    name: str,
    opset: int,
    dtype: str,
    attributes: dict[str, Value],
    inputs: dict[str, Array],
    outputs: int | None = None,
) -> tuple[Tensor, ...]:
    """Call an operator; inputs of int64 are indices or constants, the others of `dtype`. The shapes that it
    infers are checked."""
    tensors = {key: Tensor("int64" if key in INTEGERS else dtype, array) for key, array in inputs.items()}
    found = calling.expected(name, opset, tensors, attributes, outputs, "opencl")
    assert outputs in (None, len(found))
    assert all(isinstance(each, Exact) for each in found)
    return tuple(each.tensor for each in found if isinstance(each, Exact))


INTEGERS = {"indices", "pads", "axes", "starts", "ends", "steps", "split", "shape", "repeats"}


def shape_of(rng: np.random.Generator, least: int = 1, most: int = 5) -> tuple[int, ...]:
    """Draw a shape of rank `least` to `most`, with extents of 0 to 4."""
    return tuple(int(n) for n in rng.integers(0, 5, rng.integers(least, most + 1)))


def place(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every place of a tensor, by counting."""
    return product(*map(range, shape))


def cases(name: str, dtype: str, number: int = 60) -> Iterator[np.random.Generator]:
    """Yield a generator for each case, the same in every run."""
    for each in range(number):
        yield np.random.default_rng([each, *map(ord, name + dtype)])


@pytest.mark.parametrize("dtype", DTYPES_TRIED)
def test_gather(dtype: str) -> None:
    for rng in cases("gather", dtype):
        data = elements(rng, dtype, shape_of(rng))
        axis = int(rng.integers(-data.ndim, data.ndim))
        at = axis + data.ndim if axis < 0 else axis
        indices = legal_indices(
            rng, shape_of(rng, 0, 3) if data.shape[at] else (0, 2), data.shape[at], "int64"
        )
        wanted = np.empty(data.shape[:at] + indices.shape + data.shape[at + 1 :], data.dtype)
        for there in place(wanted.shape):
            index = int(indices[there[at : at + indices.ndim]])
            index = index + data.shape[at] if index < 0 else index
            wanted[there] = data[(*there[:at], index, *there[at + indices.ndim :])]
        (found,) = run("Gather", 13, dtype, {"axis": axis}, {"data": data, "indices": indices})
        assert_same(dtype, found, wanted, (data.shape, indices.shape, axis))


@pytest.mark.parametrize("dtype", DTYPES_TRIED)
def test_scatter_elements(dtype: str) -> None:
    for rng in cases("scatter", dtype):
        data = elements(rng, dtype, shape_of(rng))
        axis = int(rng.integers(-data.ndim, data.ndim))
        shape = tuple(int(rng.integers(0, n + 1)) for n in data.shape)
        indices = np.zeros(shape, np.int64)
        at = axis % data.ndim
        for there in place(tuple(n for d, n in enumerate(shape) if d != at)):
            lane = rng.permutation(data.shape[at])[: shape[at]] - data.shape[at] * rng.integers(
                0, 2, shape[at]
            )
            indices[(*there[:at], slice(None), *there[at:])] = lane
        updates = elements(rng, dtype, shape)
        wanted = data.copy()
        for there in place(shape):
            index = int(indices[there])
            wanted[(*there[:at], index if index >= 0 else index + data.shape[at], *there[at + 1 :])] = (
                updates[there]
            )
        (found,) = run(
            "ScatterElements",
            18,
            dtype,
            {"axis": axis},
            {"data": data, "indices": indices, "updates": updates},
        )
        assert_same(dtype, found, wanted, (data.shape, shape, axis))


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_scatter_elements_with_a_reduction(reduction: str) -> None:
    combine: dict[str, Any] = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": max, "min": min}
    for rng in cases(reduction, "int32"):
        data = rng.integers(-9, 9, tuple(int(n) for n in rng.integers(1, 4, 2))).astype(np.int32)
        indices = rng.integers(-data.shape[0], data.shape[0], (5, data.shape[1]))
        updates = rng.integers(-3, 4, indices.shape).astype(np.int32)
        wanted = data.copy()
        for row, column in place(indices.shape):
            wanted[indices[row, column], column] = combine[reduction](
                int(wanted[indices[row, column], column]), int(updates[row, column])
            )
        given = {"data": data, "indices": indices, "updates": updates}
        (found,) = run("ScatterElements", 18, "int32", {"reduction": reduction}, given)
        assert_same("int32", found, wanted, (data, indices, updates))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize(("reduction", "wanted"), [("add", 91032817498702820), ("mul", 273098452496108451)])
def test_scattered_sums_and_products_of_64_bits_are_exact(dtype: str, reduction: str, wanted: int) -> None:
    """Both are above 2**53, where a float64 has no odd numbers."""
    data, updates = (np.array([[each]], dtype) for each in (3, 91032817498702817))
    given = {"data": data, "indices": np.array([[0]]), "updates": updates}
    (found,) = run("ScatterElements", 16, dtype, {"reduction": reduction}, given)
    assert found.array.tolist() == [[wanted]]


@pytest.mark.parametrize("dtype", DTYPES_TRIED)
def test_scatter_nd(dtype: str) -> None:
    for rng in cases("scatter_nd", dtype):
        data = elements(rng, dtype, shape_of(rng))
        width = int(rng.integers(1, data.ndim + 1))
        every = list(place(data.shape[:width]))
        chosen = [every[n] for n in rng.permutation(len(every))[: rng.integers(0, len(every) + 1)]]
        indices = np.array(chosen, np.int64).reshape(len(chosen), width)
        below = indices - np.array(data.shape[:width]) * rng.integers(0, 2, indices.shape)
        updates = elements(rng, dtype, (len(chosen), *data.shape[width:]))
        wanted = data.copy()
        for number, there in enumerate(chosen):
            for rest in place(data.shape[width:]):
                wanted[(*there, *rest)] = updates[(number, *rest)]
        (found,) = run("ScatterND", 18, dtype, {}, {"data": data, "indices": below, "updates": updates})
        assert_same(dtype, found, wanted, (data.shape, below))


@pytest.mark.parametrize("dtype", DTYPES_TRIED)
def test_concat_and_split(dtype: str) -> None:
    for rng in cases("concat", dtype):
        shape, count = shape_of(rng), int(rng.integers(1, 5))
        axis = int(rng.integers(-len(shape), len(shape)))
        at = axis % len(shape)
        sizes = [int(n) for n in rng.integers(0, 4, count)]
        parts = [elements(rng, dtype, (*shape[:at], size, *shape[at + 1 :])) for size in sizes]
        wanted = np.empty((*shape[:at], sum(sizes), *shape[at + 1 :]), parts[0].dtype)
        for there in place(wanted.shape):
            number, rest = 0, there[at]
            while rest >= sizes[number]:
                rest -= sizes[number]
                number += 1
            wanted[there] = parts[number][(*there[:at], rest, *there[at + 1 :])]
        (found,) = run(
            "Concat", 13, dtype, {"axis": axis}, {f"inputs.{n}": part for n, part in enumerate(parts)}
        )
        assert_same(dtype, found, wanted, (shape, sizes, axis))
        again = run(
            "Split", 18, dtype, {"axis": axis}, {"input": wanted, "split": np.array(sizes, np.int64)}, count
        )
        for one, part in zip(again, parts, strict=True):
            assert_same(dtype, one, part, (shape, sizes, axis))


def test_split_by_number_makes_the_last_part_smaller() -> None:
    parts = run("Split", 18, "int32", {"num_outputs": 4}, {"input": np.arange(10, dtype=np.int32)})
    assert [part.array.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


@pytest.mark.parametrize("dtype", DTYPES_TRIED)
def test_transpose(dtype: str) -> None:
    for rng in cases("transpose", dtype):
        data = elements(rng, dtype, shape_of(rng))
        perm = tuple(int(n) for n in rng.permutation(data.ndim))
        wanted = np.empty([data.shape[axis] for axis in perm], data.dtype)
        for there in place(data.shape):
            wanted[tuple(there[axis] for axis in perm)] = data[there]
        (found,) = run("Transpose", 25, dtype, {"perm": perm}, {"data": data})
        assert_same(dtype, found, wanted, (data.shape, perm))


@pytest.mark.parametrize("dtype", DTYPES_TRIED)
def test_slice(dtype: str) -> None:
    for rng in cases("slice", dtype, 150):
        data = elements(rng, dtype, shape_of(rng, 1, 4))
        axes = rng.permutation(data.ndim)[: rng.integers(1, data.ndim + 1)]
        starts, ends = rng.integers(-7, 8, len(axes)), rng.integers(-7, 8, len(axes))
        steps = rng.choice([1, 1, 2, 3, -1, -2, -3], len(axes))
        lists = []
        for axis, extent in enumerate(data.shape):
            lists.append(list(range(extent)))
            for n in np.flatnonzero(axes == axis):
                lists[axis] = walked(int(starts[n]), int(ends[n]), int(steps[n]), extent)
        wanted = np.empty([len(each) for each in lists], data.dtype)
        for there in place(wanted.shape):
            wanted[there] = data[tuple(each[n] for each, n in zip(lists, there, strict=True))]
        given = {
            "data": data,
            "starts": starts,
            "ends": ends,
            "axes": axes - data.ndim * rng.integers(0, 2, len(axes)),
            "steps": steps,
        }
        (found,) = run("Slice", 13, dtype, {}, given)
        assert_same(dtype, found, wanted, (data.shape, given))


def walked(start: int, end: int, step: int, extent: int) -> list[int]:
    """Return the places that Slice-13 names in a dimension, by its text: add the extent, hold within,
    walk."""
    start, end = start + extent if start < 0 else start, end + extent if end < 0 else end
    low, high = (0, extent) if step > 0 else (0, extent - 1)
    start = low if start < low else start
    start = high if start > high else start
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    end = low if end < low else end
    end = high if end > high else end
    found = []
    while start < end if step > 0 else start > end:
        found.append(start)
        start += step
    return found


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    for rng in cases(mode, "int32", 150):
        data = rng.integers(-99, 99, tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))).astype(
            np.int32
        )
        least = -1 if mode == "constant" else 0
        begins = [int(rng.integers(least if n > 1 else 0, n if mode == "reflect" else 6)) for n in data.shape]
        ends = [int(rng.integers(least if n > 1 else 0, n if mode == "reflect" else 6)) for n in data.shape]
        wanted = np.empty([n + b + e for n, b, e in zip(data.shape, begins, ends, strict=True)], np.int32)
        for there in place(wanted.shape):
            source = [
                mirrored(mode, n - b, extent) for n, b, extent in zip(there, begins, data.shape, strict=True)
            ]
            wanted[there] = 7 if None in source else data[tuple(source)]
        given = {"data": data, "pads": np.array(begins + ends), "constant_value": np.array(7, np.int32)}
        (found,) = run("Pad", 25, "int32", {"mode": mode}, given)
        assert_same("int32", found, wanted, (data.shape, begins, ends))


def mirrored(mode: str, n: int, extent: int) -> int | None:
    """Return the place of data that stands n places behind its first element; None for the constant."""
    if 0 <= n < extent:
        return n
    if mode == "constant":
        return None
    if mode == "edge":
        return 0 if n < 0 else extent - 1
    if mode == "wrap":
        return n - extent * (n // extent)
    return -n if n < 0 else 2 * (extent - 1) - n
