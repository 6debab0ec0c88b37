"""InstanceNormalization, GroupNormalization, BatchNormalization: X [N, C, ...], and vectors with an element
for each channel or group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from harness.model.dtypes import FLOATS_BY_NUMBER
from harness.model.float_formats import Float64
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape
from harness.operators.bounded import Bounded, converted, either, sqrt
from harness.operators.bounded.number import may_overflow
from harness.operators.computing import Conditioned
from harness.operators.formulas import bounded

# InstanceNormalization: y = scale (x - mean) / sqrt(variance + epsilon) + B, of each instance and channel
# GroupNormalization:    y = scale (x - mean) / sqrt(variance + epsilon) + bias, of each instance and group of channels;
#                        scale and bias for each group, from version 21 on for each channel, the first stage in `stash_type`
# BatchNormalization:    Y = (X - mean) / sqrt(var + epsilon) * scale + B; in training (from version 14 on) mean and var are those of X by
#                        channel, and running_mean = input_mean * momentum + mean * (1 - momentum), running_var likewise
#
# In InstanceNormalization and BatchNormalization either as written, or as X * factor + rest with factor =
# scale / sqrt(variance + epsilon) and rest = B - mean * factor, which are computed once for each channel:
# ONNX prescribes no order.

BY_CHANNEL = 21
"""The version of GroupNormalization from which scale and bias have an element for each channel."""


def _standardised(x: Bounded, axes: tuple[int, ...], epsilon: float) -> Bounded:
    d = x - x.mean(axes, keepdims=True)
    return d / sqrt((d * d).mean(axes, keepdims=True) + epsilon)


def _scaled(x: Bounded, mean: Bounded, square: Bounded, weight: Bounded, bias: Bounded) -> Bounded:
    root = sqrt(square)
    factor = weight / root
    standard = (x - mean) * factor + bias
    once = Bounded(standard.value, standard.error + _rounding(x, mean, factor, bias), x.arithmetic)
    return either((x - mean) / root * weight + bias, once)


def _rounding(x: Bounded, mean: Bounded, factor: Bounded, bias: Bounded) -> Float64:
    """Return the distance of X * factor + (B - mean * factor) from (X - mean) * factor + B for one factor and mean.
    The errors of these are the same in both products, and those of the latter; the rounding of sums and products
    of this size remains, and nothing is claimed where these may be infinities of two signs."""
    x, mean, factor, bias = (
        Bounded(np.abs(each.value) + each.error, np.zeros(each.shape), x.arithmetic)
        for each in (x, mean, factor, bias)
    )
    scaled, rest = x * factor, bias + mean * factor
    return np.where(may_overflow(scaled) | may_overflow(rest), np.inf, (scaled + rest).error)


def _wide(vector: Bounded, x: Bounded) -> Bounded:
    return vector.reshape(-1, *[1] * (x.ndim - 2))


def instance_norm(x: Bounded, weight: Bounded, bias: Bounded, *, epsilon: float) -> Bounded:
    """Normalise by the formula above."""
    axes = tuple(range(2, x.ndim))
    mean = x.mean(axes, keepdims=True)
    d = x - mean
    return _scaled(x, mean, (d * d).mean(axes, keepdims=True) + epsilon, _wide(weight, x), _wide(bias, x))


def group_norm(
    x: Bounded, weight: Bounded, offset: Bounded, *, call: Call, epsilon: float, num_groups: int
) -> Bounded:
    """Normalise by the formula above."""
    groups = x.reshape(x.shape[0], num_groups, -1)
    if call.opset < BY_CHANNEL:
        y = _standardised(groups, (2,), epsilon) * weight.reshape(-1, 1) + offset.reshape(-1, 1)
        return y.reshape(x.shape)
    wide = converted(groups, FLOATS_BY_NUMBER[call.parameter("stash_type")])
    y = converted(_standardised(wide, (2,), epsilon), x.arithmetic.form.dtype).reshape(x.shape)
    return y * _wide(weight, x) + _wide(offset, x)


def batch_norm(
    x: Bounded,
    weight: Bounded,
    bias: Bounded,
    centre: Bounded,
    square: Bounded,
    *,
    epsilon: float,
    momentum: float,
    training_mode: int = 0,
) -> tuple[Bounded, ...]:
    """Normalise by the formula above; of unlike types in the least precise."""
    least = min(
        (each.arithmetic.form for each in (x, weight, bias, centre, square)), key=lambda form: form.precision
    ).dtype
    x, weight, bias, centre, square = (converted(each, least) for each in (x, weight, bias, centre, square))
    running: tuple[Bounded, ...] = ()
    if training_mode:
        given, axes = (centre, square), (0, *range(2, x.ndim))
        centre = x.mean(axes)
        d = x - _wide(centre, x)
        square = (d * d).mean(axes)
        running = tuple(
            old * momentum + new * (1 - momentum) for old, new in zip(given, (centre, square), strict=True)
        )
    return (
        _scaled(x, _wide(centre, x), _wide(square, x) + epsilon, _wide(weight, x), _wide(bias, x)),
        *running,
    )


class Channels(NamedTuple):
    """The differences of operators: the extent of the vectors, the least rank of X, and the members of a call of
    DirectML."""

    extent: Callable[[Call], int] = lambda call: call.first.shape[1] if len(call.first.shape) > 1 else 1
    rank: Callable[[Call], int] = lambda _: 3
    lower: Callable[[str, Call], DirectmlCall | None] = lambda _candidate, _call: None


class ChannelNormalising(Conditioned):
    """X and vectors; `unlike` has another extent. `options` are `Channels`."""

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"*": ("each", "unlike")}
    lowers = ""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """One element for each channel or group."""
        return (operator.options.extent(call) + (relation == "unlike"),)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The rank of X, groups that do not divide its channels, vectors of another extent."""
        shape = call.first.shape
        if len(shape) < operator.options.rank(call):
            return "X has a batch, channels and further axes"
        groups = call.parameter("num_groups", 1)
        if groups < 1 or (groups > 1 and shape[1] % groups):
            return "num_groups divides the number of channels"
        if call.parameter("stash_type", 1) not in FLOATS_BY_NUMBER:
            return "stash_type is a type of floats"
        if len(call.outputs) > 1 and not call.parameter("training_mode", 0):
            return "further outputs are there in training alone"
        fits = all(each == (operator.options.extent(call),) for each in call.shapes[1:])
        return None if fits else "scale, bias and statistics have an element for each channel or group"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shape of X, and for statistics an element for each channel."""
        return (call.first.shape, *call.shapes[3:])

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Return the operator's own call; training has none."""
        if call.parameter("training_mode", 0):
            return None
        found: DirectmlCall | None = operator.options.lower(candidate, call)
        return found


def _tensors(call: Call, members: tuple[str, ...]) -> dict[str, CallTensor]:
    """Return the tensors of a call: vectors along the second dimension, all others of the size 1."""
    x = call.first
    found = {}
    for member, (name, given) in zip(members, call.inputs.items(), strict=True):
        shape = x.shape if member == "InputTensor" else (1, *given.shape, *(1,) * (len(x.shape) - 2))
        found[member] = CallTensor(name, given.dtype, shape)
    return {**found, "OutputTensor": CallTensor(0, call.outputs[0], x.shape)}


def _instance(candidate: str, call: Call) -> DirectmlCall | None:
    axes = tuple(range(2, len(call.first.shape)))
    members = {"Axes": axes, "NormalizeVariance": 1, "Epsilon": call.parameter("epsilon")}
    tensors = _tensors(call, ("InputTensor", "ScaleTensor", "BiasTensor"))
    return DirectmlCall(candidate, tensors, 1, members, axes=("Axes",))


def _batch(candidate: str, call: Call) -> DirectmlCall | None:
    if len(call.first.shape) < 2 or len({each.dtype for each in call.inputs.values()}) > 1:
        return None
    tensors = _tensors(call, ("InputTensor", "ScaleTensor", "BiasTensor", "MeanTensor", "VarianceTensor"))
    return DirectmlCall(candidate, tensors, 1, {"Spatial": 1, "Epsilon": call.parameter("epsilon")})


def _batch_rank(call: Call) -> int:
    """The least rank of BatchNormalization; from version 9 on one dimension is that of a single channel's elements."""
    return 1 if call.opset >= 9 else 2


def _groups(call: Call) -> int:
    return int(call.first.shape[1] if call.opset >= BY_CHANNEL else call.parameter("num_groups"))


FAMILY = ChannelNormalising()
OPERATORS = (
    Operator("InstanceNormalization", FAMILY, bounded(instance_norm), options=Channels(lower=_instance)),
    Operator("GroupNormalization", FAMILY, bounded(group_norm), options=Channels(_groups)),
    Operator(
        "BatchNormalization", FAMILY, bounded(batch_norm), options=Channels(rank=_batch_rank, lower=_batch)
    ),
)
