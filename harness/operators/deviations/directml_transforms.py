"""What ONNX Runtime's DirectML provider gives of Fourier transforms."""

from __future__ import annotations

import numpy as np

from harness.model.expected import Approx, Expected
from harness.operators.bounded.sums import gamma
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.signal.fourier import axis_of, length_of


# y[k] = DFT of the first N + sum over n >= N, |k - n| < N, of e**(-pi j (2 k n - n**2) / N) x[n]; inverse: conjugate, divided by N
@deviation
def signal_beyond_length(asked: Deviating) -> tuple[Expected, ...]:
    """DFT by the chirp transform of all of the signal, of which elements from N on are not multiplied by the chirp."""
    (found,) = asked.formula()
    assert isinstance(found, Approx)
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
