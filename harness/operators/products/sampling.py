"""Parts of products and convolutions that are too large to be judged whole: some of their columns, or channels, which
the same formula gives of a part of the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, TensorType

MOST = 1 << 27
"""Products of two elements up to which all of an output is judged."""


class Sample(NamedTuple):
    """The call of a part with its inputs, and which places along an axis of the output it has."""

    call: Call
    inputs: Mapping[str, Tensor]
    axis: int
    places: Array


def sampled(operator: str, call: Call, inputs: Mapping[str, Tensor]) -> Sample | None:
    """Return a part of a call that takes more than `MOST` products; None where all of it can be judged."""
    axes = _axes(operator, call, inputs)
    if axes is None:
        return None
    axis, cut = axes
    name, along = next(iter(cut.items()))
    extent = inputs[name].array.shape[along]
    count = max(1, extent * MOST // max(1, _products(operator, call, inputs)))
    if count >= extent:
        return None
    places = np.unique(np.linspace(0, extent - 1, count).astype(np.int64))
    held = dict(inputs)
    for name, along in cut.items():
        tensor = inputs[name]
        if tensor.array.shape[along] == extent:
            held[name] = Tensor(tensor.dtype, np.ascontiguousarray(tensor.array.take(places, along)))
    types = {name: TensorType(each.dtype, each.array.shape) for name, each in held.items()}
    return Sample(call._replace(inputs=types), held, axis, places)


def _axes(operator: str, call: Call, inputs: Mapping[str, Tensor]) -> tuple[int, dict[str, int]] | None:
    """Return the axis of the output, and of each input that has it too."""
    ranks = {name: each.array.ndim for name, each in inputs.items()}
    if operator == "Gemm":
        cut = {"B": 0 if call.parameter("transB", 0) else 1}
        return 1, cut | ({"C": -1} if ranks.get("C") else {})
    if operator == "MatMul" and ranks["B"] > 1:
        return -1, {"B": -1}
    if operator == "Conv" and call.parameter("group", 1) == 1:
        return 1, {"W": 0} | ({"B": 0} if "B" in inputs else {})
    return None


def _products(operator: str, call: Call, inputs: Mapping[str, Tensor]) -> int:
    """Return about how many products of two elements a call takes."""
    if operator == "Conv":
        x, w = inputs["X"].array.shape, inputs["W"].array.shape
        strides = call.parameter("strides") or (1,) * (len(x) - 2)
        return int(
            x[0] * prod(w) * prod(-(-extent // step) for extent, step in zip(x[2:], strides, strict=True))
        )
    a, b = inputs["A"].array.shape, inputs["B"].array.shape
    if operator == "MatMul":
        return int(max(prod(a) * b[-1], prod(b) * (a[-2] if len(a) > 1 else 1)))
    return int(a[1 if call.parameter("transA", 0) else 0] * prod(b))
