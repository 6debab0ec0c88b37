"""MaxPool, AveragePool, LpPool, and their global forms: one number for each window of the spatial axes."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, ClassVar, NamedTuple

import numpy as np

from harness.model.dtypes import Array
from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Shape, Undefined
from harness.operators.computing import Computing
from harness.operators.formulas import Either, bounded, decided, zeros_of_either_sign
from harness.operators.pooling.windows import Window, Windowed, members, widened, window

# MaxPool:           Y[n, c, o] = max over the window at o of X[n, c], without the padding; Indices: where in X, flattened, it stands
# AveragePool:       Y[n, c, o] = sum over the window at o of X[n, c] / its elements, those of the padding if count_include_pad
# LpPool:            Y[n, c, o] = (sum over the window at o of |X[n, c]| ** p) ** (1 / p)
# GlobalMaxPool, GlobalAveragePool, GlobalLpPool: the same, of one window as large as the spatial axes


def outputs(call: Call, found: Window) -> Shape:
    """Return how many windows there are along each spatial axis: what does not fit counts with `ceil_mode`,
    where nothing is padded automatically.
    """
    explicit = call.attributes.get("auto_pad", "NOTSET") in ("NOTSET", "")
    return found.outputs(call.first.shape[2:], bool(call.attributes.get("ceil_mode")) and explicit)


def windows_of(x: Any, call: Call, filler: Any) -> Any:
    """Return the elements of every window: [N, C, outputs, kernel], with a filler for those beyond X."""
    found = window(call, tuple(call.parameter("kernel_shape")))
    spatial = x.shape[2:]
    fitted = outputs(call, found)
    ends = [max(0, beyond) for beyond in found.behind(fitted, spatial)]
    padded = np.pad(x, [(0, 0), (0, 0), *zip(found.begins, ends, strict=True)], constant_values=filler)
    view = np.lib.stride_tricks.sliding_window_view(
        padded, found.reach, axis=tuple(range(2, 2 + len(spatial)))
    )
    steps = (slice(None, n * s, s) for n, s in zip(fitted, found.strides, strict=True))
    taken = (slice(None), slice(None), *steps, *(slice(None, None, d) for d in found.dilations))
    return view[taken]


def kernel_axes(call: Call) -> Shape:
    """Return the axes of `windows_of` that are a window's."""
    count = len(call.first.shape) - 2
    return tuple(range(2 + count, 2 + 2 * count))


def max_pool(x: Array, call: Call, storage_order: int = 0) -> tuple[Array | Either, Array | Either]:
    """Choose by the formula above; of equal elements any may be the one that Indices name."""
    taken = windows_of(x, call, _least(x.dtype))
    found = taken.max(axis=kernel_axes(call))
    planes, extents = x.shape[:2], x.shape[2:]
    plane = np.arange(int(np.prod(extents))).reshape(extents, order="F" if storage_order else "C")
    flat = np.arange(planes[0] * planes[1]).reshape(*planes, *[1] * len(extents)) * plane.size + plane
    elements = int(np.prod(call.parameter("kernel_shape")))
    places = windows_of(flat, call, -1).reshape(*found.shape, elements)
    each = taken.reshape(*found.shape, elements)
    here = ((each == found[..., None]) | (each != each)) & (places >= 0)  # a NaN is the greatest here
    first = np.take_along_axis(places, np.argmax(here, axis=-1)[..., None], axis=-1)
    choices = np.where(here, places, first)
    return zeros_of_either_sign(found, taken, kernel_axes(call)), Either(
        first[..., 0], *np.moveaxis(choices, -1, 0)
    )


def _least(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def average_pool(x: Any, call: Call, count_include_pad: int = 0) -> Any:
    """Average by the formula above."""
    counted = np.ones((1, 1, *x.shape[2:]))
    if count_include_pad:
        found = window(call, tuple(call.parameter("kernel_shape")))
        unpadded = call._replace(attributes={**call.attributes, "pads": (), "auto_pad": "NOTSET"})
        grown = np.pad(counted, found.widths, constant_values=1.0)
        wider = call.first._replace(shape=(*call.first.shape[:2], *grown.shape[2:]))
        number = windows_of(grown, unpadded._replace(inputs={"X": wider}), 0.0).sum(axis=kernel_axes(call))
        kept = (slice(None), slice(None), *(slice(0, n) for n in outputs(call, found)))
        number = number[kept]
    else:
        number = windows_of(counted, call, 0.0).sum(axis=kernel_axes(call))
    return windows_of(x, call, 0.0).sum(axis=kernel_axes(call)) / number


def lp_pool(x: Any, call: Call, p: int = 2) -> Any:
    """Take the norm by the formula above."""
    return norm(windows_of(x, call, 0.0), kernel_axes(call), p)


def norm(x: Any, axes: Shape, p: int, keepdims: bool = False) -> Any:
    """(sum |x| ** p) ** (1 / p)."""
    if p < 1:
        raise Undefined("what an order below 1 makes of a norm")
    if p == 1:
        return abs(x).sum(axes, keepdims)
    return (abs(x) ** float(p)).sum(axes, keepdims) ** (1 / p)


def spatial(x: Any) -> Shape:
    """Return the axes after the first two."""
    return tuple(range(2, x.ndim))


def global_max_pool(x: Array) -> Array | Either:
    """The greatest of each plane."""
    return zeros_of_either_sign(x.max(axis=spatial(x), keepdims=True), x, spatial(x), keepdims=True)


def global_average_pool(x: Any) -> Any:
    """The mean of each plane."""
    return x.mean(spatial(x), keepdims=True)


def global_lp_pool(x: Any, p: int = 2) -> Any:
    """The norm of each plane."""
    return norm(x, spatial(x), p, True)


class PoolCall(NamedTuple):
    """DirectML's operator and the members that only it has, from the attributes."""

    name: str
    members: Mapping[str, str] = {}


class Pooling(Windowed):
    """One input; `kernel_shape` is given."""

    lowers: ClassVar[str | None] = ""

    def fits(self, call: Call) -> str | None:
        """Each window has an element of the input; SAME pads, it does not cut."""
        found = window(call, self.kernel(call))
        if call.attributes.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER") and any(
            (ceil(extent / stride) - 1) * stride + reach < extent
            for extent, stride, reach in zip(call.first.shape[2:], found.strides, found.reach, strict=True)
        ):
            return "what SAME stands for where its formula gives a negative number of pads"
        fitted = outputs(call, found)
        if min(fitted) < 1:
            return "the window fits at least once"
        for n, extent in enumerate(call.first.shape[2:]):
            begins = np.arange(fitted[n]) * found.strides[n] - found.pads[n]
            before = np.maximum(
                0, -(begins // found.dilations[n])
            )  # elements of a window in front of the input
            if ((before >= found.kernel[n]) | (begins + before * found.dilations[n] >= extent)).any():
                return "each window has an element of the input"
        return None

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, C, windows], of Indices too."""
        return ((*call.first.shape[:2], *outputs(call, window(call, self.kernel(call)))),) * 2

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """The windows of `ceil_mode` are reached by padding behind, which no result but an average that
        counts it sees."""
        found, pool = window(call, self.kernel(call)), operator.options
        if pool is None or candidate != pool.name or call.parameter("storage_order", 0):
            return None
        shape = self.output_shapes(operator, call)[0]
        ends = tuple(map(max, found.ends, found.behind(shape[2:], call.first.shape[2:])))
        if ends != found.ends and call.parameter("count_include_pad", 0):
            return None
        return pooled(call, found._replace(pads=(*found.begins, *ends)), pool, shape)


def pooled(call: Call, found: Window, pool: PoolCall, shape: Shape) -> DirectmlCall:
    """Make the call of a window."""
    held = members(found)
    tensors = {
        "InputTensor": CallTensor("X", call.first.dtype, widened(call.first.shape)),
        "OutputTensor": CallTensor(0, call.outputs[0], widened(shape)),
    }
    if pool.name == "DML_OPERATOR_MAX_POOLING2" and len(call.outputs) > 1:
        tensors["OutputIndicesTensor"] = CallTensor(1, "uint64", widened(shape))
    held["WindowSize"] = (1,) * (len(held["Strides"]) - len(found.kernel)) + found.kernel
    held |= {key: call.parameter(name) for key, name in pool.members.items()}
    if pool.name in ("DML_OPERATOR_MAX_POOLING", "DML_OPERATOR_AVERAGE_POOLING", "DML_OPERATOR_LP_POOLING"):
        del held["Dilations"]
    held = {key: 0 if value is None else value for key, value in held.items()}
    return DirectmlCall(pool.name, tensors, 1, held)


class GlobalPooling(Computing):
    """One input, one window."""

    lowers, lowers_broken = "", True

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """At least one spatial axis."""
        return None if len(call.first.shape) > 2 else "the input has at least one spatial axis"

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, C, 1, ...]."""
        shape = call.first.shape
        return ((*shape[:2], *(1 for _ in shape[2:])),)

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """A window of the spatial extents."""
        extents = call.first.shape[2:]
        ones, zeros = (1,) * len(extents), (0,) * 2 * len(extents)
        pool: PoolCall = operator.options
        if candidate != pool.name or not 1 <= len(extents) <= 3:
            return None
        return pooled(call, Window(extents, ones, ones, zeros), pool, self.output_shapes(operator, call)[0])


POOLING, GLOBAL_POOLING = Pooling(), GlobalPooling()
PADDED = {"IncludePadding": "count_include_pad"}
OPERATORS = (
    Operator("MaxPool", POOLING, decided(max_pool), options=PoolCall("DML_OPERATOR_MAX_POOLING2")),
    Operator(
        "AveragePool",
        POOLING,
        bounded(average_pool),
        options=PoolCall("DML_OPERATOR_AVERAGE_POOLING1", PADDED),
    ),
    Operator("LpPool", POOLING, bounded(lp_pool), options=PoolCall("DML_OPERATOR_LP_POOLING1", {"P": "p"})),
    Operator(
        "GlobalMaxPool",
        GLOBAL_POOLING,
        decided(global_max_pool),
        options=PoolCall("DML_OPERATOR_MAX_POOLING"),
    ),
    Operator(
        "GlobalAveragePool",
        GLOBAL_POOLING,
        bounded(global_average_pool),
        options=PoolCall("DML_OPERATOR_AVERAGE_POOLING", PADDED),
    ),
    Operator(
        "GlobalLpPool",
        GLOBAL_POOLING,
        bounded(global_lp_pool),
        options=PoolCall("DML_OPERATOR_LP_POOLING", {"P": "p"}),
    ),
)
