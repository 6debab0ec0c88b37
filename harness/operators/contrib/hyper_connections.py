"""Streams of a network with hyper-connections: mixed before a block, and behind it with what the block gives."""

from __future__ import annotations

from typing import Any

from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.bounded import Bounded, converted, swapaxes
from harness.operators.dimensioned import Dimensioned
from harness.operators.formulas import bounded


class Branches(Dimensioned):
    """Streams with branches C of features H: `... C H`, or `... F` where num_branches divides them."""

    def __init__(self, others: str, output: str, flat: str = "") -> None:
        super().__init__(f"streams: ... C H; {others}", output)
        self.flattened = Dimensioned(
            f"streams: ... F; {others}{flat}",
            output.replace("C H", "F"),
            {"C": lambda n: n["num_branches"], "H": lambda n: n["F"] // n["C"]},
            lambda n, _: None if n["F"] % n["C"] == 0 else "num_branches divides the last dimension",
        )
        self.relations = {"*": tuple(dict.fromkeys((*self.relations["*"], *self.flattened.relations["*"])))}  # type: ignore[misc] # of this operator alone

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of a further input."""
        if call.parameter("num_branches", 0) > 0:
            return self.flattened.shape(operator, name, relation, call)
        return super().shape(operator, name, relation, call)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Shapes that are not as written."""
        branches = call.parameter("num_branches", 0)
        if branches < 0:
            return "num_branches is 0 or above"
        return self.flattened.broken_rule(operator, call) if branches else super().broken_rule(operator, call)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The outputs as written."""
        if call.parameter("num_branches", 0) > 0:
            return self.flattened.inferred(operator, call)
        return super().inferred(operator, call)


def _grouped(x: Bounded, call: Call) -> Bounded:
    branches = call.parameter("num_branches", 0)
    return x.reshape(*x.shape[:-1], branches, x.shape[-1] // branches) if branches else x


def _gates(mix: Bounded, x: Bounded) -> Bounded:
    """Return gates of branches, or of their features, in the type of the streams."""
    mix = converted(mix, x.arithmetic.form.dtype)
    if mix.shape in (x.shape, (*x.shape[:-1], 1)):
        return mix
    return mix.reshape(x.shape) if mix.size == x.size else mix.reshape(*x.shape[:-1], 1)


# output[h] = reduction_scale sum over c of streams[c, h] pre_mix[c, h]                     (HyperConnectionPreMix)
def pre_mix(streams: Bounded, pre_mix: Bounded, reduction_scale: float, call: Call) -> Bounded:
    x = _grouped(streams, call)
    return (x * _gates(pre_mix, x)).sum(-2) * reduction_scale


# output[k, h] = sum over c of stream_mix[c, k] streams[c, h] + post_mix[k, h] block_output[h]
# without stream_mix the streams themselves                                                (HyperConnectionPostMix)
def post_mix(
    streams: Bounded, block_output: Bounded, post_mix: Bounded, call: Call, stream_mix: Any = None
) -> Bounded:
    """Mix by the formula above."""
    x = _grouped(streams, call)
    mixed = x
    if stream_mix is not None:
        mixed = swapaxes(converted(stream_mix, x.arithmetic.form.dtype), -1, -2) @ x
    block = block_output.reshape(*block_output.shape[:-1], 1, block_output.shape[-1])
    return (mixed + _gates(post_mix, x) * block).reshape(streams.shape)


OPERATORS = (
    Operator(
        "com.microsoft.HyperConnectionPreMix",
        Branches("pre_mix: ... C | ... C H | ... C 1", "... H", flat=" | ... F"),
        bounded(pre_mix),
    ),
    Operator(
        "com.microsoft.HyperConnectionPostMix",
        Branches("block_output: ... H; post_mix: ... C | ... C H | ... C 1; stream_mix: ... C C", "... C H"),
        bounded(post_mix),
    ),
)
