"""Functions that move elements and compute none: they move errors as NumPy moves values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.model.float_formats import Float64
from harness.operators.bounded.number import Bounded, implements, number, same, shared, unknown_infinite


def _rule(function: Callable[..., Any]) -> Callable[..., Bounded]:
    """Move errors as a function of NumPy moves values."""

    @implements(function)
    def moved(x: Bounded, *arguments: Any, **keywords: Any) -> Bounded:
        value, error = (np.asarray(function(each, *arguments, **keywords)) for each in (x.value, x.error))
        return Bounded(value, error, x.arithmetic)

    return moved


def _joined(function: Callable[..., Any], parts: Sequence[Any], axis: int) -> Bounded:
    arithmetic = shared(parts)
    numbers = [part if isinstance(part, Bounded) else number(part, arithmetic) for part in parts]
    return Bounded(
        function([n.value for n in numbers], axis=axis),
        function([n.error for n in numbers], axis=axis),
        arithmetic,
    )


@implements(np.concatenate)
def concatenate(parts: Sequence[Any], axis: int = 0) -> Bounded:
    return _joined(np.concatenate, parts, axis)


@implements(np.stack)
def stack(parts: Sequence[Any], axis: int = 0) -> Bounded:
    return _joined(np.stack, parts, axis)


@implements(np.where)
def where(condition: Any, x: Any, y: Any) -> Bounded:
    """Choose by a plain condition, which no error can change."""
    if isinstance(condition, Bounded):
        raise TypeError("a condition with a bound decides nothing")
    x, y = same(x, y)
    return Bounded(np.where(condition, x.value, y.value), np.where(condition, x.error, y.error), x.arithmetic)


@implements(np.pad)
def pad(x: Bounded, pad_width: Any, mode: str = "constant", constant_values: float = 0.0) -> Bounded:
    """Pad with a constant without error, or with elements of x."""
    if mode != "constant":
        return Bounded(np.pad(x.value, pad_width, mode), np.pad(x.error, pad_width, mode), x.arithmetic)  # type: ignore[call-overload] # a mode by its name
    return Bounded(
        np.pad(x.value, pad_width, constant_values=constant_values), np.pad(x.error, pad_width), x.arithmetic
    )


@implements(np.split)
def split(x: Bounded, sections: Any, axis: int = 0) -> list[Bounded]:
    values: list[Float64] = np.split(x.value, sections, axis)
    return [
        Bounded(v, e, x.arithmetic) for v, e in zip(values, np.split(x.error, sections, axis), strict=True)
    ]


@np.errstate(all="ignore")
def choose(x: Bounded, cut: float, below: Bounded, above: Bounded) -> Bounded:
    """Take `below` where x < cut and `above` elsewhere; where an implementation's x may lie on either side,
    both results are admissible."""
    low = x.value < cut
    value = np.where(low, below.value, above.value)
    error = np.where(low, below.error, above.error)
    open_ = (x.error > 0) & (np.abs(x.value - cut) <= x.error)
    other = np.maximum(np.abs(below.value - value) + below.error, np.abs(above.value - value) + above.error)
    return Bounded(value, np.where(open_, unknown_infinite(other), error), x.arithmetic)


reshape = _rule(np.reshape)
ravel = _rule(np.ravel)
transpose = _rule(np.transpose)
swapaxes = _rule(np.swapaxes)
moveaxis = _rule(np.moveaxis)
squeeze = _rule(np.squeeze)
expand_dims = _rule(np.expand_dims)
broadcast_to = _rule(np.broadcast_to)
flip = _rule(np.flip)
roll = _rule(np.roll)
take = _rule(np.take)
take_along_axis = _rule(np.take_along_axis)
repeat = _rule(np.repeat)
tile = _rule(np.tile)
sliding_window_view = _rule(np.lib.stride_tricks.sliding_window_view)

implements(np.shape)(lambda x: x.shape)
implements(np.ndim)(lambda x: x.ndim)
