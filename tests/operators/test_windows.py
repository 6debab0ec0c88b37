"""Pooling and convolutions against loops over every output and every element of its window."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.model.case import Value
from harness.model.expected import Approx, Exact, OneOf, nearest
from tests import calling

Floats = NDArray[Any]
WINDOWS: list[tuple[tuple[int, ...], dict[str, Value]]] = [
    ((1, 2, 7), {"kernel_shape": (3,), "strides": (2,), "pads": (1, 0)}),
    ((2, 1, 9), {"kernel_shape": (2,), "strides": (3,), "ceil_mode": 1}),
    ((1, 2, 5, 6), {"kernel_shape": (2, 3), "dilations": (2, 1), "pads": (1, 0, 1, 2)}),
    ((1, 1, 6, 5), {"kernel_shape": (3, 2), "strides": (2, 2), "ceil_mode": 1, "pads": (0, 1, 1, 0)}),
    ((1, 1, 4, 3, 5), {"kernel_shape": (2, 1, 3), "strides": (1, 2, 2), "dilations": (2, 1, 1)}),
]


def run(
    name: str,
    arrays: dict[str, Floats],
    attributes: dict[str, Value],
    opset: int = 22,
    outputs: int | None = None,
) -> list[Floats]:
    found = calling.expected(name, opset, arrays, attributes, outputs)
    assert all(isinstance(each, (Exact, OneOf, Approx)) for each in found)
    return [nearest(each).array for each in found]


def integers(shape: tuple[int, ...], seed: int = 0) -> Floats:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def reached(
    x: Floats, attributes: dict[str, Value], out: tuple[int, ...]
) -> list[tuple[list[float], list[int], int]]:
    """Return the elements of the window of an output, their flat places, and how many places lie within the
    padded input."""
    count = x.ndim - 2
    of = {
        key: attributes.get(key, default)
        for key, default in (("strides", (1,) * count), ("dilations", (1,) * count))
    }
    pads: Any = attributes.get("pads", (0,) * 2 * count)
    strides: Any = of["strides"]
    dilations: Any = of["dilations"]
    kernel: Any = attributes["kernel_shape"]
    found = []
    for n, c, *o in product(*map(range, out)):
        elements, places, inside = [], [], 0
        for k in product(*map(range, kernel)):
            at = [o[i] * strides[i] + k[i] * dilations[i] - pads[i] for i in range(count)]
            inside += all(-pads[i] <= at[i] < x.shape[2 + i] + pads[count + i] for i in range(count))
            if all(0 <= at[i] < x.shape[2 + i] for i in range(count)):
                there = (n, c, *at)
                elements.append(float(x[there]))
                places.append(int(np.ravel_multi_index(there, x.shape)))
        found.append((elements, places, inside))
    return found


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
def test_max_pool_is_the_greatest_of_each_window(
    shape: tuple[int, ...], attributes: dict[str, Value]
) -> None:
    x = np.random.default_rng(1).permutation(prod(shape)).reshape(shape).astype(np.float32)
    values, places = run("MaxPool", {"X": x}, attributes, outputs=2)
    windows = reached(x, attributes, values.shape)
    assert values.reshape(-1).tolist() == [max(elements) for elements, _, _ in windows]
    assert places.reshape(-1).tolist() == [
        where[elements.index(max(elements))] for elements, where, _ in windows
    ]


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
@pytest.mark.parametrize("include", [0, 1])
def test_average_pool_divides_by_what_it_counts(
    shape: tuple[int, ...], attributes: dict[str, Value], include: int
) -> None:
    x = integers(shape)
    (found,) = run("AveragePool", {"X": x}, {**attributes, "count_include_pad": include})
    windows = reached(x, attributes, found.shape)
    expected = [sum(elements) / (inside if include else len(elements)) for elements, _, inside in windows]
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-6)


@pytest.mark.parametrize(("shape", "attributes"), WINDOWS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool_is_the_norm_of_each_window(
    shape: tuple[int, ...], attributes: dict[str, Value], p: int
) -> None:
    x = integers(shape)
    (found,) = run("LpPool", {"X": x}, {**attributes, "p": p})
    expected = [
        sum(abs(e) ** p for e in elements) ** (1 / p)
        for elements, _, _ in reached(x, attributes, found.shape)
    ]
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-5)


def test_a_last_window_that_would_begin_in_the_padding_behind_is_left_out() -> None:
    x = np.array([[[1.0, 2.0]]], np.float32)
    (found,) = run(
        "MaxPool", {"X": x}, {"kernel_shape": (1,), "strides": (2,), "pads": (0, 0), "ceil_mode": 1}
    )
    assert found.tolist() == [[[1.0]]]


def test_valid_counts_the_windows_that_fit_also_with_ceil_mode() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 8)
    (found,) = run(
        "MaxPool", {"X": x}, {"kernel_shape": (3,), "strides": (2,), "auto_pad": "VALID", "ceil_mode": 1}
    )
    assert found.tolist() == [[[2.0, 4.0, 6.0]]]


def test_same_reckons_with_dilations() -> None:
    x = np.arange(7, dtype=np.float32).reshape(1, 1, 7)
    (found,) = run("MaxPool", {"X": x}, {"kernel_shape": (2,), "dilations": (2,), "auto_pad": "SAME_UPPER"})
    assert found.tolist() == [[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0]]]


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Value]]] = [
    ((1, 2, 4), (2, 3, 3), {"strides": (2,), "pads": (1, 0), "output_padding": (1,)}),
    ((2, 4, 3, 2), (4, 1, 2, 3), {"group": 2, "strides": (1, 2), "dilations": (2, 1)}),
    ((1, 1, 3, 3), (1, 2, 3, 3), {"strides": (3, 2), "pads": (1, 2, 1, 2)}),
]


@pytest.mark.parametrize(("shape", "filters", "attributes"), TRANSPOSED)
def test_conv_transpose_adds_each_element_times_the_filter(
    shape: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    x, w = integers(shape), integers(filters, 1)
    group, count = attributes.get("group", 1), len(shape) - 2
    b = integers((filters[1] * group,), 2)
    (found,) = run("ConvTranspose", {"X": x, "W": w, "B": b}, attributes)
    strides, dilations = (attributes.get(key, (1,) * count) for key in ("strides", "dilations"))
    pads = attributes.get("pads", (0,) * 2 * count)
    expected = np.zeros(found.shape) + b.reshape(-1, *[1] * count)
    for n, c, m, *rest in product(*map(range, (*shape[:2], filters[1], *shape[2:], *filters[2:]))):
        i, k = rest[:count], rest[count:]
        at = [i[d] * strides[d] + k[d] * dilations[d] - pads[d] for d in range(count)]
        if all(0 <= at[d] < found.shape[2 + d] for d in range(count)):
            target, source, weight = (
                (n, m + c // (shape[1] // group) * filters[1], *at),
                (n, c, *i),
                (c, m, *k),
            )
            expected[target] += x[source] * w[weight]
    assert found.tolist() == expected.tolist()


def test_conv_integer_takes_zero_points_off_before_it_pads() -> None:
    x = np.array([[[3, 5, 7]]], np.uint8)
    w = np.array([[[2, 4]], [[1, 255]]], np.uint8)
    zeros = {"x_zero_point": np.array(5, np.uint8), "w_zero_point": np.array([2, 1], np.uint8)}
    (found,) = run("ConvInteger", {"x": x, "w": w, **zeros}, {"pads": (1, 1)}, 10)
    assert found.tolist() == [[[-4, 0, 4, 0], [-508, 0, 508, 0]]]
