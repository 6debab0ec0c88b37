"""DFT and STFT: discrete Fourier transforms of signals; the last dimension holds real and imaginary parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import pi
from typing import Any, ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import encode
from harness.operators.base import Call, Entropy, Operator, Shape, ValueKind
from harness.operators.bounded import (
    Bounded,
    concatenate,
    cos,
    einsum,
    moveaxis,
    number,
    pad,
    sin,
    stack,
    take,
)
from harness.operators.bounded.number import surely_nan
from harness.operators.bounded.sums import gamma
from harness.operators.computing import Computing
from harness.operators.formulas import bounded

# DFT:  y[m, k] = sum over n of e**(-2 pi j k n / N) x[m, n]; inverse: e**(2 pi j k n / N), and the sum divided by N
#       onesided: k from 0 to floor(N / 2); inverse and onesided: of the spectrum y[N - k] = conjugate of y[k], its real part
# STFT: the DFT of window[n] signal[m, frame * frame_step + n] for each frame

_NOT_ZERO = 2.0**-30
"""Below it is a part of a root of unity that is 0, as it is computed."""


def dft(input: Bounded, call: Call) -> Bounded:
    """Transform by the formula above; a signal is cut or padded with zeros to dft_length."""
    axis, length = axis_of(call) % input.ndim, length_of(call)
    inverse, onesided = bool(call.parameter("inverse")), bool(call.parameter("onesided"))
    x = moveaxis(input, axis, -2)
    held = x[..., : (length // 2 + 1 if inverse and onesided else length), :]
    if inverse and onesided:
        held = full_spectrum(held, length)
    missing = length - held.shape[-2]
    held = pad(held, [(0, 0)] * (held.ndim - 2) + [(0, missing), (0, 0)]) if missing > 0 else held
    count = length // 2 + 1 if onesided and not inverse else length
    y = transformed(held, count, inverse)
    y = y / float(length) if inverse else y
    y = y[..., :1] if inverse and onesided else y
    return moveaxis(y, -2, axis)


def full_spectrum(half: Bounded, length: int) -> Bounded:
    """Return a spectrum of N from its first N // 2 + 1 elements."""
    lacking = length // 2 + 1 - half.shape[-2]
    if lacking > 0:
        half = pad(half, [(0, 0)] * (half.ndim - 2) + [(0, lacking), (0, 0)])
    mirrored = half[..., (length - 1) // 2 : 0 : -1, :]
    turned = Bounded(mirrored.value * np.array([1.0, -1.0]), mirrored.error, mirrored.arithmetic)
    return concatenate([half, turned], axis=-2)


def transformed(x: Bounded, count: int, inverse: bool) -> Bounded:
    """Transform [..., N, 1 or 2] to [..., count, 2], by angles within a turn.

    ONNX does not say by which algorithm. In a fast one each result has the roundings of all elements, also
    of those whose root of unity has a part of 0 (Higham, "Accuracy and Stability", 2nd ed., theorem 24.2: an
    error in the norm of the signal), so that the bound has gamma of 2 N + 4 log2 N roundings of the sum of
    all magnitudes. In any of them a part is NaN where an element is, whose factor is not 0.
    """
    length, parts = x.shape[-2:]
    turns = np.outer(np.arange(length), np.arange(count)) % max(1, length)
    angles = number(2 * pi * np.arange(length) / max(1, length), x.arithmetic)
    real, imaginary = cos(angles)[turns], sin(angles)[turns]
    imaginary = imaginary if inverse else -imaginary
    of_real = stack([real, imaginary], axis=-1)
    factors = [of_real, stack([-imaginary, real], axis=-1)][:parts]
    matrix = stack(factors, axis=1).reshape(length * parts, count * 2)
    flat = x.reshape(-1, length * parts)
    y = einsum("mn,nk->mk", flat, matrix)
    if x.arithmetic.errs:
        roundings = 2 * length + 4 * int(np.ceil(np.log2(max(2, length))))
        size = (np.abs(flat.value) + flat.error).sum(1, keepdims=True)
        mixed = gamma(roundings, 2 * x.arithmetic.operations * x.arithmetic.accumulator.unit) * size
        nan = surely_nan(flat).astype(np.float64) @ (np.abs(matrix.value) > _NOT_ZERO) > 0
        y = Bounded(y.value, np.where(nan, 0.0, y.error + np.nan_to_num(mixed, nan=np.inf)), y.arithmetic)
    return y.reshape(*x.shape[:-2], count, 2)


def stft(signal: Bounded, call: Call, onesided: int, window: Bounded | None = None) -> Bounded:
    """Transform frames by the formula above."""
    length, step = frame_of(call), step_of(call)
    frames = (signal.shape[1] - length) // step + 1
    places = step * np.arange(frames)[:, None] + np.arange(length)
    x = take(signal, places, axis=1)
    x = x if window is None else x * window.reshape(1, 1, length, 1)
    return transformed(x, length // 2 + 1 if onesided else length, False)


def axis_of(call: Call) -> int:
    """Return the axis, by default 1 at version 17 and -2 later."""
    return int(call.parameter("axis", -2))


def length_of(call: Call) -> int:
    """Return dft_length, by default the extent, or that of the signal of a one-sided spectrum."""
    given = call.parameter("dft_length")
    if given is not None:
        return int(given)
    extent = call.first.shape[axis_of(call)]
    return 2 * (extent - 1) if call.parameter("inverse") and call.parameter("onesided") else extent


def frame_of(call: Call) -> int:
    """Return frame_length, by default that of the window, or of the signal."""
    given, window = call.parameter("frame_length"), call.inputs.get("window")
    if given is not None:
        return int(given)
    return window.shape[0] if window is not None and window.shape else call.first.shape[1]


def step_of(call: Call) -> int:
    """Return frame_step."""
    return int(call.parameter("frame_step"))


SPECTRUM = ValueKind("spectrum")
"""Multiples of 1/128 in -1..1, those without an imaginary part that a real signal has none of: the first, and
that of half the length."""
IMPULSE = ValueKind("impulse")
"""1 at the end of each signal and 0 before it: its spectrum shows each factor of the transform by itself."""


class Transforming(Computing):
    """A signal [..., 1 or 2], numbers, and a window with an element for `each` of a frame."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"window": ("each",)}

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Axes but the last."""
        rank = len(call.first.shape)
        return [*range(rank - 1), *range(-rank, -1)]

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """The usual ones, spectra of real signals, and impulses."""
        usual = super().kinds(operator, name)
        return usual if name == "window" or not usual else (*usual, SPECTRUM, IMPULSE)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Spectra have two parts; one side of a spectrum is that of a real signal."""
        two = call.first.shape[-1:] == (2,)
        if two and call.parameter("inverse") and call.parameter("onesided"):
            return kind == SPECTRUM.name
        if kind == SPECTRUM.name:
            return two
        return super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose elements by kind."""
        if kind == IMPULSE.name:
            signals = np.zeros(call.first.shape)
            np.moveaxis(signals, axis_of(call), 0)[-1:, ..., 0] = 1
            return encode(call.first.dtype, signals)
        if kind != SPECTRUM.name:
            return super().generate(operator, kind, name, call, entropy)
        found: Array = super().generate(operator, "unit", name, call, entropy).copy()
        lanes = np.moveaxis(found, axis_of(call), 0)
        lanes[:1, ..., 1] = 0
        if length_of(call) % 2 == 0 and length_of(call) // 2 < len(lanes):
            lanes[length_of(call) // 2, ..., 1] = 0
        return found

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Name the rule of ranks, axes, lengths or one-sidedness that is broken."""
        x = call.first.shape
        if any(each.ndim for each in call.constants.values()):
            return "lengths, steps and the axis are scalars"
        if len(x) < 2 or x[-1] not in (1, 2):
            return "the last dimension is 1 or 2"
        if operator.name == "STFT":
            return self.wrong_frames(call)
        if not (-len(x) <= axis_of(call) <= -2 or 0 <= axis_of(call) <= len(x) - 2):
            return "axis in [-r, -2] or [0, r-2]"
        if call.parameter("inverse") not in (0, 1) or call.parameter("onesided") not in (0, 1):
            return "inverse and onesided are 0 or 1"
        if call.parameter("onesided") and x[-1] != (2 if call.parameter("inverse") else 1):
            return "onesided transforms are of real signals, and of spectra with two parts"
        return None if length_of(call) >= 1 else "dft_length is positive"

    def wrong_frames(self, call: Call) -> str | None:
        """Return the rule that frames break, or None."""
        window = call.inputs.get("window")
        if len(call.first.shape) != 3:
            return "the signal is [batch_size, signal_length, 1 or 2]"
        if call.parameter("onesided") and call.first.shape[-1] != 1:
            return "onesided transforms are of real signals"
        if window is not None and len(window.shape) != 1:
            return "window has one dimension"
        if window is not None and window.shape[0] != frame_of(call):
            return "window has frame_length elements"
        if step_of(call) < 1 or frame_of(call) < 1:
            return "frame_step and frame_length are positive"
        return None if frame_of(call) <= call.first.shape[1] else "a frame is no longer than the signal"

    def shape(self, operator: Operator, name: str, relation: object, call: Call) -> Shape | None:
        """A window of a frame."""
        given = call.parameter("frame_length")
        return (int(given) if given else min(4, *call.first.shape[1:2], 4),)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The bins of the axis, or of each frame."""
        x = call.first.shape
        onesided, inverse = bool(call.parameter("onesided")), bool(call.parameter("inverse", 0))
        length = frame_of(call) if operator.name == "STFT" else length_of(call)
        bins = length // 2 + 1 if onesided and not inverse else length
        if operator.name == "STFT":
            return ((x[0], (x[1] - length) // step_of(call) + 1, bins, 2),)
        place = axis_of(call) % len(x)
        return ((*x[:place], bins, *x[place + 1 : -1], 1 if onesided and inverse else 2),)


TRANSFORMING = Transforming()
OPERATORS = (
    Operator("DFT", TRANSFORMING, bounded(dft), constants={"dft_length": 0, "axis": 0}),
    Operator("STFT", TRANSFORMING, bounded(stft), constants={"frame_step": 0, "frame_length": 0}),
)
