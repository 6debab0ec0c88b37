"""Deviating results of operators that generate elements, and what DirectML gives of those that generate or move some."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import decode
from harness.operators.deviations.base import Deviating, changed, deviation, low_bits, register


@deviation
def ones_where_zeros_are_due(asked: Deviating) -> tuple[Expected, ...]:
    """Bernoulli: 1 with the probability 1 - p, 0 with p."""
    given = asked.inputs["input"]
    return asked.formula(inputs={"input": Tensor("float64", 1 - decode(given.dtype, given.array))})


@deviation
def no_step_counted(asked: Deviating) -> tuple[Expected, ...]:
    """Range: no element."""
    (dtype,) = asked.call.outputs
    return (Exact(Tensor(dtype, np.zeros(0, DTYPES[dtype].storage))),)


def _everywhere(asked: Deviating, number: float) -> tuple[Expected, ...]:
    drawn = asked.formula()
    return tuple(
        Exact(Tensor(one.dtype, np.full(one.shape, number, DTYPES[one.dtype].storage))) for one in drawn
    )


# RandomUniform: infinity everywhere. Multinomial: class_size everywhere.
register("infinities", partial(_everywhere, number=np.inf))
register("class_behind_the_last", lambda asked: _everywhere(asked, asked.call.first.shape[1]))


@deviation
def low_bits_of_k(asked: Deviating) -> tuple[Expected, ...]:
    """EyeLike and Trilu: the diagonal that the lower 32 bits of k name."""
    if "k" in asked.inputs:
        return asked.formula(inputs=asked.having(k=low_bits))
    return asked.formula(k=int(low_bits(np.array(asked.call.parameter("k")))))


# OneHot: the class that the lower 32 bits of an index name.
changed("low_bits_of_indices", {"indices": low_bits})


@deviation
def counts_steps_of_cut_quotient(asked: Deviating) -> tuple[Expected, ...]:
    """Range of integers: the quotient is cut to an integer, and one more where a remainder is left."""
    start, limit, delta = (int(each.array) for each in asked.inputs.values())
    quotient = abs(limit - start) // abs(delta) * (1 if (limit - start) * delta >= 0 else -1)
    count = max(0, quotient + (quotient * delta != limit - start))
    dtype = asked.inputs["start"].dtype
    return (Exact(Tensor(dtype, np.array([start + n * delta for n in range(count)], dtype))),)


# NonZero: a scalar is taken for a vector of one element.
changed("scalar_as_vector", {"X": lambda x: x.reshape(1)})


@deviation
def nothing(asked: Deviating) -> tuple[Expected, ...]:
    """Slice: no element of the axis that is cut."""
    found = asked.exact()
    axis = (*(asked.call.parameter("axes") or ()), 0)[0]
    return (Exact(Tensor(found.dtype, np.take(found.tensor.array, [], axis))),)


@deviation
def lengths_by_place(asked: Deviating) -> tuple[Expected, ...]:
    """ReverseSequence: the length is that at the place which an element has among all dimensions but the time
    axis. Beyond sequence_lens it may be any, and beyond the extent the last element is taken."""
    given, lengths = asked.inputs["input"], asked.inputs["sequence_lens"].array
    data = np.moveaxis(given.array, asked.call.parameter("time_axis"), 0)
    columns = data.reshape(len(data), -1)
    times = np.arange(len(data))[:, None]
    found = []
    for beyond in range(2 * len(data) + 1):
        each = np.append(lengths, np.full(columns.shape[1], beyond))[: columns.shape[1]]
        places = np.where(times < each, np.minimum(each - 1 - times, len(data) - 1), times)
        turned = np.take_along_axis(columns, places, 0).reshape(data.shape)
        whole = np.moveaxis(turned, 0, asked.call.parameter("time_axis"))
        found.append(Tensor(given.dtype, whole))
    return (OneOf(tuple(found)),)


@deviation
def pads_before_as_unsigned(asked: Deviating) -> tuple[Expected, ...]:
    """Pad: a negative pad at the beginning of an axis moves everything beyond its end: the constant, or with edge
    the last element."""
    data, pads = asked.inputs["data"], asked.call.parameter("pads")
    axes = asked.call.parameter("axes") or tuple(range(data.array.ndim))
    below = [axis for axis, begin in zip(axes, pads, strict=False) if begin < 0]
    found = data.array
    if asked.call.parameter("mode") == "edge":
        for axis in below:
            found = np.repeat(np.take(found, [-1], axis), found.shape[axis], axis)
    else:
        given = asked.inputs.get("constant_value")
        found = np.full_like(found, 0 if given is None else given.array.reshape(-1)[0])
    return asked.formula(inputs=asked.having(data=found))


# Pad: with NaN, whatever `value` says.
changed("pads_with_nan", value=float("nan"))


# Pad: with the largest number of float32.
changed("pads_with_largest", value=float(np.finfo(np.float32).max))


@deviation
def shorter_shape_with_leading_1s(asked: Deviating) -> tuple[Expected, ...]:
    """GatherElements of different ranks: the shorter shape has 1s before it; the output has the shape of indices."""
    data, indices = asked.inputs["data"], asked.inputs["indices"]
    rank = max(data.array.ndim, indices.array.ndim)
    axis = asked.call.parameter("axis") % data.array.ndim + rank - data.array.ndim
    leading = dict.fromkeys(asked.inputs, lambda x: x.reshape((1,) * (rank - x.ndim) + x.shape))
    found = asked.exact(inputs=asked.having(**leading), axis=axis)
    return (Exact(Tensor(found.dtype, found.tensor.array.reshape(indices.array.shape))),)


# ConcatFromSequence: of each tensor as much as one that has a single row along its first axis.
changed("first_rows_alone", inputs=lambda asked: asked.having(**dict.fromkeys(asked.inputs, lambda x: x[:1])))


@deviation
def tiles_of_float64(asked: Deviating) -> tuple[Expected, ...]:
    """Tile: the bytes of a tensor of FLOAT32 as FLOAT64, of which half lie behind it and may be anything."""
    x = asked.inputs["input"].array
    held = np.frombuffer(x.tobytes(), np.float64)
    value = np.append(held, np.zeros(x.size - held.size)).reshape(x.shape)
    bound = np.where(np.arange(x.size) < held.size, 0.0, np.inf).reshape(x.shape)
    repeats = asked.inputs["repeats"].array
    return (Approx("float64", np.tile(value, repeats), np.tile(bound, repeats)),)
