"""Pad: elements put before and after those of a tensor, or taken away from its ends. CenterCropPad: the middle of a
tensor, or the tensor in the middle of zeros, axis by axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

import numpy as np

from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode
from harness.operators.base import DATA_TYPES, Call, DirectmlCall, Operator, Shape, one_to_one
from harness.operators.data_movement.moving import all_or_some_axes, rank, wrong_axes
from harness.operators.data_movement.reshaping import MOVING
from harness.operators.formulas import moved

# output[.., i, ..] = data[.., f(i - begin), ..]
#
# f(j) = j within the data; outside of it the nearest place (edge), the place that mirrors it about the first
# or last element (reflect), j modulo the extent (wrap), or a constant instead. A pad below 0 takes elements
# away.

Mode = Literal["constant", "edge", "reflect", "wrap"]
_MODES = {"constant": 7, "edge": 7, "reflect": 7, "wrap": 19}
"""The opset since which there is a mode."""


def pad(
    data: Array,
    call: Call,
    mode: str,
    value: float = 0.0,
    constant_value: Array | None = None,
    pads: object = None,
    axes: object = None,
) -> Array:
    """Take away, then put on, by the formula above."""
    del pads, axes  # elements that are known before a run: the call has them
    given = _widths(call)
    inner = [
        slice(max(0, -before), extent + min(0, after))
        for (before, after), extent in zip(given, data.shape, strict=True)
    ]
    places: tuple[Any, ...] = (..., *inner)
    kept = data[places]
    widths = np.array([(max(0, before), max(0, after)) for before, after in given], np.int64).reshape(-1, 2)
    if not kept.ndim or mode != "constant":
        return np.pad(kept, widths, cast(Mode, mode)) if kept.ndim else kept
    if constant_value is None:
        dtype = call.first.dtype
        zero = "" if dtype == "string" else encode(dtype, value)
        constant_value = np.asarray(zero, data.dtype)
    return np.pad(kept, widths, constant_values=constant_value.reshape(()))


def _widths(call: Call) -> list[tuple[int, int]]:
    """Return the widths of padding before and after each dimension."""
    pads, axes = call.parameter("pads"), _axes(call)
    found = [(0, 0)] * rank(call)
    for place, axis in enumerate(axes):
        found[axis] = (pads[place], pads[place + len(axes)])
    return found


def _cannot_pad(call: Call) -> str | None:
    pads, axes, mode = (
        call.parameter("pads"),
        call.parameter("axes"),
        str(call.attributes.get("mode", "constant")),
    )
    if not isinstance(pads, tuple) or len(pads) != 2 * (rank(call) if axes is None else len(axes)):
        return "pads hold a begin and an end for each axis"
    if not rank(call):
        return "what is put before and after a scalar, which has no axis"
    if axes is not None and (wrong := wrong_axes(call, axes, rank(call))):
        return wrong
    if mode not in _MODES or call.opset < _MODES[mode]:
        return "mode is constant, reflect, edge, or since version 19 wrap"
    for (before, after), extent in zip(_widths(call), call.first.shape, strict=True):
        left = extent + min(0, before) + min(0, after)
        if left < 0:
            return "no more is taken away than there is"
        if mode != "constant" and (min(before, after) < 0 < max(before, after)):
            return "whether what is taken away is mirrored or repeated is not said"
        if mode != "constant" and left == 0 and max(before, after) > 0:
            return "there is an element to repeat"
        if mode == "reflect" and max(before, after) > max(0, left - 1):
            return "what is mirrored lies within the data"
    return None


def _pads(call: Call) -> Iterable[tuple[int, ...]]:
    """1 at both ends; nothing; less than there is; other widths at each end; taken away; taken away at one
    end, put on at the other."""
    extents = [call.first.shape[axis] for axis in _axes(call)]
    count = len(extents)
    ones, zeros = (1,) * count, (0,) * count
    less = tuple(max(0, extent - 1) for extent in extents)
    cut = tuple(-1 if extent > 1 else 0 for extent in extents)
    last = (*zeros[1:], 3)
    tried = [
        ones + ones,
        zeros + zeros,
        less + less,
        last + zeros,
        zeros + last,
        cut + zeros,
        cut + ones,
        ones + cut,
        tuple(range(2 * count)),
    ]
    return [pads for pads in dict.fromkeys(tried) if len(pads) == 2 * count]


def _padded(call: Call, outputs: tuple[Shape, ...]) -> DirectmlCall | None:
    """PADDING1, whose sizes are not below 0: no call where a pad takes elements away."""
    widths = _widths(call)
    mode = str(call.attributes.get("mode", "constant"))
    if mode == "wrap" or 0 in outputs[0] or any(min(pair) < 0 for pair in widths):
        return None
    value, dtype = (
        call.parameter("constant_value", call.attributes.get("value", 0)),
        "uint8" if call.first.dtype == "bool" else call.first.dtype,
    )
    if dtype not in DATA_TYPES:
        return None
    members = {
        "PaddingMode": ("constant", "edge", "reflect").index(mode),
        "PaddingValueDataType": DATA_TYPES.index(dtype) + 1,
        "PaddingValue": {dtype: float(value) if DTYPES[dtype].is_float else int(value)},
        "StartPadding": tuple(before for before, _ in widths),
        "EndPadding": tuple(after for _, after in widths),
    }
    made = one_to_one("DML_OPERATOR_PADDING1", members, call, outputs[0])
    return made._replace(per_dimension={"StartPadding": 0, "EndPadding": 0})


# of n elements, s are kept from (n - s) // 2 on; s > n: s - n zeros are added, (s - n) // 2 of them before


def center_crop_pad(input_data: Array, call: Call) -> Array:
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


PAD = Operator(
    "Pad",
    MOVING,
    moved(pad),
    _cannot_pad,
    constants={"pads": 1, "axes": 1, "constant_value": 0},
    domains={"pads": _pads, "axes": all_or_some_axes},  # type: ignore[dict-item] # None leaves out
    options=_padded,
)
OPERATORS = (
    PAD,
    Operator(
        "CenterCropPad",
        MOVING,
        moved(center_crop_pad),
        _cannot_crop,
        constants={"shape": 1},
        domains={"shape": _every_shape, "axes": all_or_some_axes},  # type: ignore[dict-item] # None leaves out
    ),
)
