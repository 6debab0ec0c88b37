"""Families whose first input and output have the channels last, or may have: all else is as where they stand behind the
batch."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.operators.base import Call, Operator, Relation, Shape
from harness.operators.pooling.pooling import Pooling
from harness.operators.pooling.windows import Windowed
from harness.operators.products.convolving import Convolving
from harness.operators.quantization.quantised import QuantisedConvolving


def channels_first(call: Call) -> Call:
    """Return a call with the channels of the first input behind the batch, where an attribute says that they are last or
    there is none."""
    if not call.parameter("channels_last", 1):
        return call
    (name, x), *others = call.inputs.items()
    moved = x._replace(shape=(x.shape[0], x.shape[-1], *x.shape[1:-1])) if len(x.shape) > 2 else x
    return call._replace(inputs={name: moved, **dict(others)})


class _ChannelsLast(Windowed):
    """Asks the family that is behind of a call with its channels behind the batch."""

    lowers: ClassVar[str | None] = None

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Any:
        """Derive the shapes of the other inputs."""
        return super().shape(operator, name, relation, channels_first(call))

    def domain(self, operator: Operator, attribute: str, call: Call) -> Any:
        """Those of the family."""
        return super().domain(operator, attribute, channels_first(call))

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of the family."""
        return super().broken_rule(operator, channels_first(call))

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, windows, C]."""
        (shape, *_) = super().inferred(operator, channels_first(call))
        last = call.parameter("channels_last", 1)
        return ((shape[0], *shape[2:], shape[1]) if last else shape,)


class NhwcPooling(_ChannelsLast, Pooling):
    """As `Pooling`, with the channels last."""


class NhwcConvolving(_ChannelsLast, Convolving):
    """As `Convolving`, with the channels of X and of the output last."""


class QuantisedNhwcConvolving(_ChannelsLast, QuantisedConvolving):
    """As `QuantisedConvolving`, with channels_last the channels of x and of the output last."""
