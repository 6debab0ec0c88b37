"""Dropout in inference: its input unchanged, and a mask that keeps every element."""

from __future__ import annotations

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import decode
from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.computing import Computing
from harness.operators.formulas import moved

# output = data; mask = true everywhere          (without training_mode, where it is false, or of a ratio of 0)


def dropout(data: Array, call: Call) -> tuple[Array, Array]:
    """Keep everything."""
    return data, np.ones(data.shape, DTYPES[call.outputs[1]].storage if len(call.outputs) > 1 else np.bool_)


def _ratio(call: Call) -> float:
    if "ratio" not in call.constants:
        return float(call.parameter("ratio", 0.5))
    return float(decode(call.inputs["ratio"].dtype, call.constants["ratio"]).item())


class Dropping(Computing):
    """Data, and the scalars `ratio` and `training_mode`."""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Both are scalars."""
        return ()

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Say that it trains, whose results are random, or that the ratio is out of range, as ONNX Runtime does in
        every mode."""
        if call.parameter("training_mode", False) and _ratio(call) != 0:
            return "in training the results are random"
        return None if 0 <= _ratio(call) < 1 else "ratio in [0, 1)"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of data, twice."""
        return (call.first.shape,) * 2


OPERATOR = Operator("Dropout", Dropping(), moved(dropout), constants={"ratio": 0, "training_mode": 0})
