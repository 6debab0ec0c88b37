"""Deviating results of Fourier transforms and windows."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Approx, Expected
from harness.operators.bounded.sums import gamma
from harness.operators.deviations.base import Deviating, deviation, moved, register
from harness.operators.signal.fourier import axis_of, frame_of, length_of, step_of
from harness.operators.signal.weights import TERMS, Terms, window


@deviation
def scaled_by_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Inverse DFT of float64: the sum times 1 / N, which is rounded to float32."""
    found = asked.approx()
    return (_scaled(found, length_of(asked.call)),)


def _scaled(found: Approx, length: int) -> Approx:
    ratio = float(np.float32(1) / np.float32(length)) * length if found.dtype == "float64" else 1.0
    return Approx(found.dtype, found.value * ratio, found.bound * ratio)


# One-sided inverse DFT: y[N - k] is the conjugate of every y[k] that is given, but of the last where N is even; a
# place may be written more than once, and N - k below 0 is a place modulo N where N is a power of 2. From behind: y[N] is
# mirrored to the place 0, too.
def _mirrored(asked: Deviating, beyond: int) -> tuple[Expected, ...]:
    axis, length = axis_of(asked.call) % len(asked.call.first.shape), length_of(asked.call)
    given = asked.inputs["input"]
    half = np.moveaxis(given.array, axis, 0)
    whole = np.zeros((length, *half.shape[1:]), half.dtype)
    whole[: len(half)] = half[:length]
    for place in range(1, len(half) - (length % 2 == 0)):
        if place < length + beyond or length & (length - 1) == 0:
            whole[(length - place) % length] = half[place]
            np.negative(half[place, ..., 1], out=whole[(length - place) % length, ..., 1])
    found = asked.approx(inputs=asked.having(input=np.moveaxis(whole, 0, axis)), onesided=0)
    return (_scaled(moved(found, lambda held: held[..., :1]), length),)


register("all_mirrored", partial(_mirrored, beyond=0))
register("all_mirrored_from_behind", partial(_mirrored, beyond=1))


@deviation
def frames_twice_as_far(asked: Deviating) -> tuple[Expected, ...]:
    """STFT of complex signals without a window: where the elements of a signal stand in a row, a frame begins at twice its
    place; what lies behind the last signal is any number."""
    signal, length, step = asked.inputs["signal"], frame_of(asked.call), step_of(asked.call)
    batches, extent, parts = signal.array.shape
    frames = (extent - length) // step + 1
    begins = 2 * (extent * np.arange(batches)[:, None] + step * np.arange(frames))
    places = (begins[..., None] + np.arange(length)).reshape(batches, -1)
    row = np.pad(signal.array.reshape(-1, parts), ((0, int(places.max(initial=0)) + 1), (0, 0)))
    inputs = {
        **asked.inputs,
        "signal": Tensor(signal.dtype, row[places]),
        "frame_step": Tensor("int64", np.array(length)),
    }
    found = asked.approx(inputs=inputs)
    outside = (begins + length > batches * extent)[..., None, None]
    return (Approx(found.dtype, found.value, np.where(outside, np.inf, found.bound)),)


@deviation
def factors_of_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Windows: the factors of the cosines rounded to float32, and in float32 what they leave of 1."""
    _, once, twice = map(np.float32, TERMS[asked.operator.name])
    terms = Terms(float(np.float32(1) - once - twice), float(once), float(twice))
    return window(terms, asked.call, asked.inputs, asked.arithmetic)


# y[k] = DFT of the first N + sum over n >= N, |k - n| < N, of e**(-pi j (2 k n - n**2) / N) x[n]; inverse: conjugate, divided by N
@deviation
def signal_beyond_length(asked: Deviating) -> tuple[Expected, ...]:
    """DFT by the chirp transform of all of the signal, of which elements from N on are not multiplied by the chirp."""
    found = asked.approx()
    call, length = asked.call, length_of(asked.call)
    signal = np.moveaxis(asked.inputs["input"].array.astype(np.float64), axis_of(call), -2)
    x = signal[..., 0] + 1j * (signal[..., 1] if signal.shape[-1] == 2 else 0.0)
    value, bound = (np.moveaxis(each, axis_of(call), -2) for each in (found.value, found.bound))
    n, k = np.arange(length, x.shape[-1])[:, None], np.arange(value.shape[-2])
    inverse = bool(call.parameter("inverse"))
    turned = np.exp((1j if inverse else -1j) * np.pi * (2 * k * n - n * n) / length) * (n - k < length)
    more = x[..., length:] @ turned / (length if inverse else 1)
    unit = gamma(4 * x.shape[-1], 2.0**-23) * np.abs(signal).sum((-2, -1))[..., None, None]
    given = value + np.stack([more.real, more.imag], -1), bound + unit
    return (Approx("float32", *(np.moveaxis(each, -2, axis_of(call)) for each in given)),)
