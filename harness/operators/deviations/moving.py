"""Deviating results of operators that move elements."""

from __future__ import annotations

from math import prod

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Exact, Expected
from harness.operators.data_movement.slicing import INT_MAX, LEAST
from harness.operators.deviations.base import Deviating, changed, deviation


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
