"""What transformers of ONNX Runtime's optimizer make of graphs of several operators, where that is not what the graph
says."""

from __future__ import annotations

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Exact, Expected
from harness.operators.deviations.base import Deviating, deviation


@deviation
def numerator_over_divisor(asked: Deviating) -> tuple[Expected, ...]:
    """Return Z / X in place of 1 / X * Z, or X / X in place of 1 / X * X."""
    other = next(name for name in asked.call.parameter("product") if name != "quotient")
    return asked.formula(divided=(other, "X"), product=("quotient", "one"), one=1)


@deviation
def slice_of_every_element(asked: Deviating) -> tuple[Expected, ...]:
    """Slice with steps of 1 in place of its steps."""
    return asked.formula(steps=(1, 1))


@deviation
def normalised_value_for_an_inner_one(asked: Deviating) -> tuple[Expected, ...]:
    """Return the graph's output also for the inner value from which it is computed."""
    normalised, _ = asked.formula()
    return normalised, normalised


@deviation
def initializer_without_its_transposition(asked: Deviating) -> tuple[Expected, ...]:
    """Take C as it is where the graph was rewritten for its inverse transposition."""
    c = asked.inputs["C"]
    array = c.array.reshape((1,) * (3 - c.array.ndim) + c.array.shape)
    turned = np.ascontiguousarray(array.transpose(asked.call.parameter("before")))
    return asked.formula(inputs={**asked.inputs, "C": Tensor(c.dtype, turned)})


@deviation
def vector_by_untransposed_matrix(asked: Deviating) -> tuple[Expected, ...]:
    """Multiply the elements of A by rows of the transposed shape, but in A's own order."""
    matrix = asked.inputs["A"]
    turned = Tensor(matrix.dtype, matrix.array.reshape(matrix.array.shape[::-1]))
    return asked.formula(inputs={**asked.inputs, "A": turned}, left=(0, 1))


@deviation
def slice_for_a_range_of_places(asked: Deviating) -> tuple[Expected, ...]:
    """data[start:limit:delta] as Slice takes it, with bounds below 0 from the end, in place of data[range(start, limit,
    delta)]."""
    data, given = asked.inputs["X"], asked.call.parameter
    last = data.array.shape[given("place")] - given("less")
    known = {"start": given("start"), "delta": given("delta"), "last": last, "back": -last}
    axis = given("axis") or 0
    places = np.arange(data.array.shape[axis])[slice(*(known[name] for name in given("range")))]
    return (Exact(Tensor(data.dtype, np.take(data.array, places, axis))),)
