"""CenterCropPad: the middle of a tensor, or the tensor in the middle of zeros, axis by axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, Operator
from harness.operators.data_movement.moving import all_or_some_axes, rank, wrong_axes
from harness.operators.data_movement.reshaping import MOVING
from harness.operators.formulas import moved

# of n elements, s are kept from (n - s) // 2 on; s > n: s - n zeros are added, (s - n) // 2 of them before


def formula(input_data: Array, call: Call) -> Array:
    """Crop and pad by the formula above; of text a zero is empty."""
    widths = [(0, 0)] * input_data.ndim
    kept = [slice(None)] * input_data.ndim
    for axis, wanted in zip(_axes(call), call.parameter("shape"), strict=True):
        extent = input_data.shape[axis]
        before, missing = (extent - wanted) // 2, wanted - extent
        kept[axis] = slice(before, before + wanted) if missing < 0 else slice(None)
        widths[axis] = (missing // 2, missing - missing // 2) if missing > 0 else (0, 0)
    middle: tuple[Any, ...] = (..., *kept)
    found = input_data[middle]
    zero = np.asarray("" if call.first.dtype == "string" else 0, input_data.dtype)
    return np.pad(found, widths, constant_values=zero) if found.ndim else found


def _axes(call: Call) -> tuple[int, ...]:
    given = call.parameter("axes")
    return tuple(range(rank(call))) if given is None else tuple(axis % rank(call) for axis in given)


def _cannot_crop(call: Call) -> str | None:
    axes, shape = call.parameter("axes"), call.parameter("shape")
    if axes is not None and (wrong := wrong_axes(call, axes, rank(call))):
        return wrong
    if not isinstance(shape, tuple) or len(shape) != (rank(call) if axes is None else len(axes)):
        return "shape has a size for each axis"
    return "sizes are not negative" if min(shape, default=0) < 0 else None


def _every_shape(call: Call) -> Iterable[tuple[int, ...]]:
    """The same; one less; two less; one more; two more; less and more by turns; 1; 0."""
    extents = [call.first.shape[axis] for axis in _axes(call)]
    changes = [(0, 0), (-1, -1), (-2, -2), (1, 1), (2, 2), (-1, 3), (3, -2)]
    tried = [tuple(max(0, extent + change[n % 2]) for n, extent in enumerate(extents)) for change in changes]
    return list(dict.fromkeys((*tried, (1,) * len(extents), (0,) * len(extents))))


OPERATOR = Operator(
    "CenterCropPad",
    MOVING,
    moved(formula),
    _cannot_crop,
    constants={"shape": 1},
    domains={"shape": _every_shape, "axes": all_or_some_axes},  # type: ignore[dict-item] # None leaves out
)
