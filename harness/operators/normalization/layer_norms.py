"""LayerNormalization and RMSNormalization: over all axes from one on, in the precision that `stash_type`
says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.model.dtypes import FLOATS_BY_NUMBER
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape
from harness.operators.bounded import Bounded, converted, sqrt
from harness.operators.broadcasting import broadcast
from harness.operators.computing import AlongAxis
from harness.operators.formulas import bounded

# LayerNormalization, over the axes from `axis` on, the first stage in float32 (stash_type 1) or bfloat16 (16):
#   Mean = mean(X); D = X - Mean; InvStdDev = 1 / sqrt(mean(D D) + epsilon); Y = D InvStdDev * Scale + B
# RMSNormalization: Y = X / sqrt(mean(X X) + epsilon) * scale


def layer_norm(
    x: Bounded, scale: Bounded, bias: Bounded | None = None, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Bounded, Bounded, Bounded]:
    """Normalise by the formula above."""
    over = tuple(range(axis % x.ndim, x.ndim))
    wide = converted(x, FLOATS_BY_NUMBER[stash_type])
    mean = wide.mean(over, keepdims=True)
    d = wide - mean
    inverse = 1.0 / sqrt((d * d).mean(over, keepdims=True) + epsilon)
    y = converted(d * inverse, x.arithmetic.form.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


def rms_norm(x: Bounded, weight: Bounded, *, axis: int, epsilon: float, stash_type: int) -> Bounded:
    """Normalise by the formula above; where scale has another type, in that type."""
    over = tuple(range(axis % x.ndim, x.ndim))
    wide = converted(x, FLOATS_BY_NUMBER[stash_type])
    normalised = wide / sqrt((wide * wide).mean(over, keepdims=True) + epsilon)
    return converted(converted(normalised, x.arithmetic.form.dtype), weight.arithmetic.form.dtype) * weight


class LayerNormalising(AlongAxis):
    """X and what can be broadcast to it: `normalized` (the axes from `axis` on), `same`, `last`, `scalar`,
    `one`, `ones`, `unlike`.

    `options` is the number of outputs that there can be.
    """

    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "*": ("normalized", "same", "last", "scalar", "one", "ones", "unlike")
    }
    lowers = "DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION2"

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of scale and bias."""
        shape, axis = call.first.shape, call.parameter("axis")
        if not shape or not -len(shape) <= axis < len(shape):
            return shape[-1:]
        found: dict[str, Shape] = {
            "same": shape,
            "last": shape[-1:],
            "scalar": (),
            "one": (1,),
            "ones": (1,) * len(shape),
        }
        found["unlike"] = (*shape[axis % len(shape) : -1], shape[-1] + 1)
        return found.get(str(relation), shape[axis % len(shape) :])

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """An axis out of range, scale or bias that cannot be broadcast to X."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        if call.parameter("stash_type") not in ((1, 16) if operator.options > 1 else FLOATS_BY_NUMBER):
            return "stash_type is a type of floats"
        fits = all(broadcast((call.first.shape, each)) == call.first.shape for each in call.shapes[1:])
        return None if fits else "scale and bias can be broadcast to X, in one direction"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the shape of X, and for the statistics one with the normalised axes of the extent 1."""
        shape = call.first.shape
        place = call.parameter("axis") % max(1, len(shape))
        kept = (*shape[:place], *(1,) * len(shape[place:]))
        return (shape, kept, kept)[: operator.options]

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return the type of X, and for the statistics the type that they are computed in."""
        stashed = FLOATS_BY_NUMBER.get(call.parameter("stash_type", 1))
        return (None, stashed, stashed)[: operator.options]

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """Scale and bias have as many dimensions, those that they lack of the size 1."""
        if len(call.outputs) > 1:
            return None
        shape, rank = call.first.shape, len(call.first.shape)
        tensors = {
            member: CallTensor(name, dtype, (1,) * (rank - len(own)) + own)
            for member, (name, (dtype, own)) in zip(
                ("InputTensor", "ScaleTensor", "BiasTensor"), call.inputs.items(), strict=False
            )
        }
        tensors["OutputTensor"] = CallTensor(0, call.outputs[0], shape)
        members = {
            "Axes": tuple(range(call.parameter("axis") % rank, rank)),
            "UseMean": int(operator.options > 1),
            "UseVariance": 1,
            "Epsilon": call.parameter("epsilon"),
        }
        return DirectmlCall(candidate, tensors, 1, members, axes=("Axes",))


LAYER_NORMALISING = LayerNormalising()
OPERATORS = (
    Operator("LayerNormalization", LAYER_NORMALISING, bounded(layer_norm), options=3),
    Operator("RMSNormalization", LAYER_NORMALISING, bounded(rms_norm), options=1),
)
