"""Deviating results of operators that generate elements."""

from __future__ import annotations

from functools import partial

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES
from harness.model.expected import Exact, Expected
from harness.model.float_formats import decode
from harness.operators.deviations.base import Deviating, deviation, register


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
