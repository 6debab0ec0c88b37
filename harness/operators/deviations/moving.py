"""Deviating results of operators that move or generate elements, and of those on texts."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import decode
from harness.operators.data_movement.slicing import INT_MAX, LEAST
from harness.operators.deviations.base import Deviating, changed, deviation, low_bits, register


@deviation
def first_of_each_slice(asked: Deviating) -> tuple[Expected, ...]:
    """Gather: of each slice the first text alone, the others empty."""
    found = asked.exact()
    data, axis = asked.inputs["data"].array, asked.call.parameter("axis")
    slices = found.tensor.array.reshape(-1, prod(data.shape[axis % data.ndim + 1 :])).copy()
    slices[:, 1:] = ""
    return (Exact(Tensor("string", slices.reshape(found.shape))),)


@deviation
def gathered_by_products(asked: Deviating) -> tuple[Expected, ...]:
    """GatherND: the n-th tuple takes of the batch n // (tuples / batches), whatever the single sizes are; a tuple of
    nothing takes the whole of it."""
    data, indices = (each.array for each in asked.inputs.values())
    batch_dims, width = asked.call.parameter("batch_dims", 0), indices.shape[-1]
    batches, sizes = prod(data.shape[:batch_dims]), data.shape[batch_dims : batch_dims + width]
    tuples = indices.reshape(prod(indices.shape[:-1]), width).astype(np.int64)
    places = np.arange(len(tuples)) // max(1, len(tuples) // batches)
    for number, size in enumerate(sizes):
        places = places * size + tuples[:, number] % size
    rest = data.shape[batch_dims + width :]
    rows = data.reshape(batches * prod(sizes), *rest)[places]
    dtype = asked.call.first.dtype
    return (Exact(Tensor(dtype, rows.reshape(*indices.shape[:-1], *rest))),)


@deviation
def int_max_ends_before_the_first(asked: Deviating) -> tuple[Expected, ...]:
    """Slice: an end of INT_MAX lies before the first element where the step is negative."""
    ends, steps = (asked.inputs[name] for name in ("ends", "steps"))
    held = np.where((steps.array < 0) & np.isin(ends.array, INT_MAX), LEAST, ends.array.astype(np.int64))
    return asked.formula(inputs={**asked.inputs, "ends": Tensor("int64", held)})


@deviation
def parts_without_their_axis(asked: Deviating) -> tuple[Expected, ...]:
    """SplitToSequence: parts of one lose their dimension, though split is given."""
    count, *parts = asked.formula()
    axis = asked.call.parameter("axis")
    squeezed = [
        Tensor(each.dtype, np.squeeze(each.tensor.array, axis)) for each in parts if isinstance(each, Exact)
    ]
    return (count, *map(Exact, squeezed))


@deviation
def triangle_beyond_64_bits(asked: Deviating) -> tuple[Expected, ...]:
    """Trilu: k plus the row is beyond 64 bits, and elements that should be 0 stay: all but those of the first row where
    upper is set."""
    given = next(iter(asked.inputs.values()))
    found = given.array.copy()
    if asked.call.parameter("upper", 1):
        found[..., :1, :] = np.zeros((), found.dtype)
    return (Exact(Tensor(given.dtype, found)),)


# ScatterElements, ScatterND: updates replace, whatever reduction says.
changed("replaced", reduction="none")


# Split: as many equal parts as there are outputs.
changed("outputs_as_parts", num_outputs=lambda asked: len(asked.call.outputs))


# Expand: a dimension below 0 is 1.
changed(
    "ones_for_negative_extents", {"shape": lambda shape: np.where(shape < 0, 1, shape).astype(shape.dtype)}
)


# Sequences: of several positions the first.
changed("first_position", {"position": lambda position: position.reshape(-1)[0]})


# SplitToSequence: split in one dimension.
changed("flat_sizes", {"split": lambda split: split.reshape(-1)})


@deviation
def rows_alike_from_a_nan_on(asked: Deviating) -> tuple[Expected, ...]:
    """Unique along an axis: a slice is that before it which is equal up to the first NaN of either."""
    x, axis = asked.inputs["X"], asked.call.parameter("axis")
    rows = np.moveaxis(x.array, axis, 0).copy()
    for n, row in enumerate(rows):
        for before in rows[:n]:
            unlike = np.flatnonzero(row.reshape(-1) != before.reshape(-1))
            if not unlike.size or np.isnan((row + before).reshape(-1)[unlike[0]]):
                rows[n] = before
                break
    return asked.formula(inputs=asked.having(X=np.moveaxis(rows, 0, axis)))


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


@deviation
def split_at_spaces(asked: Deviating) -> tuple[Expected, ...]:
    """StringSplit: without a delimiter at spaces alone, not at other white space."""
    texts = asked.inputs["X"].array
    kept = [text.translate({9: "\ue009", 10: "\ue00a", 13: "\ue00d"}) for text in texts.reshape(-1).tolist()]
    held = np.array(kept, object).reshape(texts.shape)
    parts, counts = asked.formula(inputs={"X": Tensor("string", held)})
    assert isinstance(parts, Exact)
    back = [text.translate({0xE009: 9, 0xE00A: 10, 0xE00D: 13}) for text in parts.tensor.array.reshape(-1)]
    return (Exact(Tensor("string", np.array(back, object).reshape(parts.shape))), counts)


@deviation
def counts_of_nothing(asked: Deviating) -> tuple[Expected, ...]:
    """TfIdfVectorizer: no n-gram is found."""
    places = asked.call.parameter("ngram_indexes")
    return (Exact(Tensor("float32", np.zeros((*asked.call.first.shape[:-1], max(places) + 1), np.float32))),)


@deviation
def weights_by_coordinate(asked: Deviating) -> tuple[Expected, ...]:
    """TfIdfVectorizer: the weight of an n-gram is weights[ngram_indexes[i]]; of what lies behind nothing is claimed."""
    weights, places = (asked.call.parameter(name) for name in ("weights", "ngram_indexes"))
    behind = [place for place in places if place >= len(weights)]
    found = asked.approx(weights=tuple(0.0 if place in behind else weights[place] for place in places))
    bound = found.bound.copy()
    bound[..., behind] = np.inf
    return (Approx(found.dtype, found.value, bound),)


# TfIdfVectorizer: the pool is pool_strings.
changed("texts_alone", without=("pool_int64s",))


# TfIdfVectorizer: a scalar is a row of one item.
changed("one_row", {"X": lambda x: x.reshape(1)})


@deviation
def as_many_indexes(asked: Deviating) -> tuple[Expected, ...]:
    """TfIdfVectorizer of single integers: those that have no index are not in the pool, indexes without one are found
    nowhere."""
    pool, places = (asked.call.parameter(name) for name in ("pool_int64s", "ngram_indexes"))
    absent = range(max(pool) + 1, max(pool) + 1 + len(places))
    return asked.formula(pool_int64s=(*pool, *absent)[: len(places)])
