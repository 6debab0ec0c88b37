"""DFT, STFT, windows and determinants against sums over every element, and against NumPy."""

from __future__ import annotations

from cmath import exp
from itertools import product
from math import cos, pi
from typing import Any

import numpy as np
import pytest

from harness.model.case import Value
from tests.operators.test_windows import run


def complex_of(array: Any) -> Any:
    wide = array.astype(np.float64)
    return wide[..., 0] + (1j * wide[..., 1] if array.shape[-1] == 2 else 0)


def summed(signal: list[complex], length: int, inverse: bool) -> list[complex]:
    """Transform one signal, cut or padded, term by term."""
    held = [*signal[:length], *[0j] * (length - len(signal))]
    sign = 1 if inverse else -1
    found = [sum(x * exp(sign * 2j * pi * k * n / length) for n, x in enumerate(held)) for k in range(length)]
    return [each / length for each in found] if inverse else found


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize(("length", "axis"), [(None, 1), (3, 1), (8, 1), (None, 0), (4, -3)])
def test_dft_is_the_sum_by_roots_of_unity(parts: int, inverse: int, length: int | None, axis: int) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (3, 5, parts)).astype(np.float32)
    arrays = {"input": x, "axis": np.array(axis)} | (
        {} if length is None else {"dft_length": np.array(length)}
    )
    (found,) = run("DFT", arrays, {"inverse": inverse}, opset=20)
    lanes = np.moveaxis(complex_of(x), axis % 3, -1)
    wanted = [summed(list(lane), length or lanes.shape[-1], bool(inverse)) for lane in lanes]
    np.testing.assert_allclose(np.moveaxis(complex_of(found), axis % 3, -1), wanted, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_one_side_is_the_first_half_and_back_again(length: int) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (2, length, 1)).astype(np.float32)
    axis = np.array(1)
    (half,) = run("DFT", {"input": x, "axis": axis}, {"onesided": 1}, opset=20)
    (full,) = run("DFT", {"input": x, "axis": axis}, {}, opset=20)
    assert half.shape == (2, length // 2 + 1, 2)
    np.testing.assert_allclose(half, full[:, : length // 2 + 1], atol=1e-6)
    back: dict[str, Value] = {"inverse": 1, "onesided": 1}
    (again,) = run("DFT", {"input": half, "axis": axis, "dft_length": np.array(length)}, back, opset=20)
    np.testing.assert_allclose(again, x, atol=1e-6)


def test_the_axis_is_1_by_default_at_version_17_and_the_last_of_the_signal_later() -> None:
    x = np.random.default_rng(3).uniform(-1, 1, (2, 3, 4, 1)).astype(np.float32)
    by_version = [run("DFT", {"input": x}, {}, opset=opset)[0] for opset in (17, 20)]
    by_axis = [run("DFT", {"input": x, "axis": np.array(axis)}, {}, opset=20)[0] for axis in (1, 2)]
    for found, wanted in zip(by_version, by_axis, strict=True):
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("framed", [True, False])
def test_stft_transforms_each_frame(given: bool, framed: bool) -> None:
    rng = np.random.default_rng(4)
    x, window = rng.uniform(-1, 1, (2, 9, 1)).astype(np.float32), rng.uniform(0, 1, 4).astype(np.float32)
    arrays = {"signal": x, "frame_step": np.array(2)}
    arrays |= {"window": window} if given else {}
    arrays |= {"frame_length": np.array(4)} if framed else {}
    (found,) = run("STFT", arrays, {"onesided": 0})
    length = 4 if given or framed else 9
    for batch, frame in product(range(2), range((9 - length) // 2 + 1)):
        part = x[batch, 2 * frame : 2 * frame + length, 0] * (window if given else 1)
        np.testing.assert_allclose(complex_of(found)[batch, frame], np.fft.fft(part), atol=1e-5)
    (half,) = run("STFT", arrays, {"onesided": 1})
    np.testing.assert_allclose(half, found[:, :, : length // 2 + 1], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("HannWindow", (0.5, 0.5, 0)),
        ("HammingWindow", (25 / 46, 21 / 46, 0)),
        ("BlackmanWindow", (0.42, 0.5, 0.08)),
    ],
)
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_are_sums_of_cosines(name: str, factors: tuple[float, float, float], periodic: int) -> None:
    (found,) = run(name, {"size": np.array(7)}, {"periodic": periodic, "output_datatype": 11})
    assert found.dtype == np.float64
    period = 7 if periodic else 6
    wanted = [
        factors[0] - factors[1] * cos(2 * pi * n / period) + factors[2] * cos(4 * pi * n / period)
        for n in range(7)
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_det_is_that_of_numpy(size: int) -> None:
    x = np.random.default_rng(size).integers(-8, 9, (6, size, size)).astype(np.float32)
    (found,) = run("Det", {"X": x}, {})
    assert found.tolist() == np.rint(np.linalg.det(x.astype(np.float64))).tolist()
