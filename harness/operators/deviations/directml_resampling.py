"""What ONNX Runtime's DirectML provider gives of Resize."""

from __future__ import annotations

from math import floor

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Exact, Expected
from harness.model.float_formats import Float64
from harness.operators.base import Call
from harness.operators.bounded import Arithmetic, Bounded, arithmetic, either
from harness.operators.deviations.base import Deviating, deviation
from harness.operators.resampling import NEAREST, given, taken, weighted


@deviation
def stretched(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: to the sizes that are given, whatever keep_aspect_ratio_policy is."""
    return asked.formula(keep_aspect_ratio_policy="stretch")


@deviation
def middle_of_the_axis(asked: Deviating) -> tuple[Expected, ...]:
    """Resize by pytorch_half_pixel: as by half_pixel, also where the output has one element."""
    return asked.formula(coordinate_transformation_mode="half_pixel")


@deviation
def without_antialias(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: as if antialias were not set."""
    return asked.formula(antialias=0, keep_aspect_ratio_policy="stretch")


# x_original = start (length - 1) + x_resized * max((end - start) (length - 1), 1) / (length_resized - 1)
# nearest: X[n(x_original)], held within X; linear: X[i] + (x_original - i) (X[i + 1] - X[i]), i = floor(x_original - start (length - 1)),
#          or with scales, along some axes, i = floor(x_original)
@deviation
def crops_at_the_edge(asked: Deviating) -> tuple[Expected, ...]:
    """Resize by tf_crop_and_resize: by the formulas above; the extent has no part of roi."""
    call, x, a = asked.call, asked.inputs["X"], arithmetic(asked.arithmetic, "float32")
    linear = call.attributes["mode"] == "linear"
    moved, averaged = x.array, taken(x, a) if linear else None
    for axis, resized in enumerate(_extents(call)):
        start, end = (call.parameter("roi")[axis + n] for n in (0, x.array.ndim))
        last = x.array.shape[axis] - 1
        if (start, end, resized) == (0, 1, last + 1):
            continue
        steps = np.arange(resized) * max((end - start) * last, 1.0) / max(resized - 1, 1)
        places = start * last + steps
        if averaged is None:
            chosen = NEAREST[str(call.attributes["nearest_mode"])](places)
            moved = np.take(moved, np.clip(chosen, 0, last).astype(int), axis)
            continue
        first = weighted(averaged, axis, _weights(places, np.floor(steps), last, a))
        other = weighted(averaged, axis, _weights(places, np.floor(places), last, a))
        averaged = either(first, other) if call.parameter("scales") else first
    return (Exact(Tensor(x.dtype, moved)) if averaged is None else given(x.dtype, averaged),)


def _weights(places: Float64, low: Float64, last: int, a: Arithmetic) -> Bounded:
    """Return the weights of the elements at `low` and behind, held within the axis: [places, extent]."""
    found = np.zeros((len(places), last + 1))
    for n, (place, index) in enumerate(zip(places, low.astype(int), strict=True)):
        found[n, min(index, last)] += 1 - (place - index)
        found[n, min(index + 1, last)] += place - index
    error = np.where(found != 0, (1 + np.abs(found)) * (last + 1) * 2.0**-22, 0.0)
    return Bounded(found, error, a)


def _extents(call: Call) -> tuple[int, ...]:
    sizes = call.parameter("sizes")
    if sizes:
        return tuple(sizes)
    return tuple(
        floor(n * scale) for n, scale in zip(call.first.shape, call.parameter("scales"), strict=True)
    )
