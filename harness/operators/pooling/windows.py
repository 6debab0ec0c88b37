"""The family of operators with a sliding window: kernels, strides, dilations, pads and the effect of
`auto_pad` on them.

Spatial axes are those after the first two, (N, C, spatial...). The window at o begins at o * stride - pad and
reads every `dilation`-th element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

from harness.operators.base import Call, Operator, Shape
from harness.operators.computing import Computing


class Window(NamedTuple):
    """A call's window with every default filled in; `pads` are the begins of all spatial axes, then the
    ends."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    pads: Shape

    def outputs(self, spatial: Shape, ceil_mode: bool = False) -> Shape:
        """Return how many windows fit along each axis; with `ceil_mode` also a last one that begins before
        the padding behind and ends beyond it.
        """
        found = []
        axes = zip(spatial, self.begins, self.rooms(spatial), self.strides, strict=True)
        for extent, begin, room, stride in axes:
            fit = room // stride + 1
            found.append(fit + 1 if ceil_mode and room % stride and fit * stride < extent + begin else fit)
        return tuple(found)

    def as_written(self, spatial: Shape) -> Shape:
        """Return ceil((padded extent - reach) / stride) + 1 along each axis: with windows that begin in the padding behind."""
        axes = zip(self.rooms(spatial), self.strides, strict=True)
        return tuple(-(-room // stride) + 1 for room, stride in axes)

    def rooms(self, spatial: Shape) -> list[int]:
        """Return by how much each padded axis is longer than a window."""
        axes = zip(spatial, self.begins, self.ends, self.reach, strict=True)
        return [extent + begin + end - reach for extent, begin, end, reach in axes]

    def behind(self, counts: Shape, spatial: Shape) -> list[int]:
        """Return how far the last of so many windows along each axis reaches beyond the end of it."""
        axes = zip(counts, self.strides, self.reach, spatial, self.begins, strict=True)
        return [(n - 1) * stride + reach - extent - begin for n, stride, reach, extent, begin in axes]

    @property
    def begins(self) -> Shape:
        """The pads before each spatial axis."""
        return self.pads[: len(self.kernel)]

    @property
    def ends(self) -> Shape:
        """The pads behind each spatial axis."""
        return self.pads[len(self.kernel) :]

    @property
    def widths(self) -> list[tuple[int, int]]:
        """The pads as NumPy takes them for (N, C, spatial...)."""
        return [(0, 0), (0, 0), *zip(self.begins, self.ends, strict=True)]

    @property
    def reach(self) -> Shape:
        """How many elements lie between the first and the last of a window, both counted."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def window(call: Call, kernel: Shape) -> Window:
    """Return the window of a call on its first input; `auto_pad` SAME_* pads so that ceil(extent / stride)
    windows fit."""
    spatial, count = call.first.shape[2:], len(kernel)
    strides = tuple(call.parameter("strides") or (1,) * count)
    dilations = tuple(call.parameter("dilations") or (1,) * count)
    auto = call.attributes.get("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        return Window(kernel, strides, dilations, tuple(call.parameter("pads") or (0,) * 2 * count))
    if auto == "VALID":
        return Window(kernel, strides, dilations, (0,) * 2 * count)
    found = Window(kernel, strides, dilations, (0,) * 2 * count)
    missing = found.behind(
        tuple(ceil(n / stride) for n, stride in zip(spatial, strides, strict=True)), spatial
    )
    return found._replace(pads=halved([max(0, total) for total in missing], auto == "SAME_UPPER"))


def halved(totals: Sequence[int], upper: bool) -> Shape:
    """Return pads that put a half of each total before an axis; of an odd one the greater half lies behind it if `upper`
    says so."""
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    return (*less, *more) if upper else (*more, *less)


class Windowed(Computing):
    """Operators whose window slides over the spatial axes of the first input."""

    def kernel(self, call: Call) -> Shape:
        """Return the kernel's spatial extents."""
        return tuple(call.parameter("kernel_shape"))

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Values for as many spatial axes as the first input has: one for each alike, and uneven ones."""
        count = max(0, len(call.first.shape) - 2)
        every: dict[str, list[Any]] = {
            "kernel_shape": [(2,) * count, (3,) * count, tuple(1 + n for n in range(count)), (1,) * count],
            "strides": [None, (1,) * count, (2,) * count, tuple(1 + n for n in range(count)), (3,) * count],
            "dilations": [None, (1,) * count, (2,) * count, tuple(2 - n % 2 for n in range(count))],
            "pads": [
                None,
                (0,) * 2 * count,
                (1,) * 2 * count,
                tuple(n % 3 for n in range(2 * count)),
                (2,) * count + (0,) * count,
            ],
        }
        return every[attribute]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Lengths, signs, and a window that does not fit."""
        count = len(call.first.shape) - 2
        if count < 1:
            return "the input has at least one spatial axis"
        kernel = self.kernel(call)
        if len(kernel) != count:
            return "the kernel has the input's spatial axes"
        if min(kernel) < 1:
            return "the kernel is positive"
        if wrong := wrong_lists(call, count):
            return wrong
        auto = call.attributes.get("auto_pad", "NOTSET")
        if auto not in ("NOTSET", "") and any(call.parameter("pads") or ()):
            return "pads cannot be used with auto_pad"
        if auto not in ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"):
            return "auto_pad is NOTSET, VALID, SAME_UPPER or SAME_LOWER"
        return self.fits(call)

    def fits(self, call: Call) -> str | None:
        """Return the rule that a window breaks that has no place, or None."""
        counts = window(call, self.kernel(call)).outputs(call.first.shape[2:])
        return None if min(counts) >= 1 else "the window fits at least once"


def wrong_lists(call: Call, count: int) -> str | None:
    """Return the rule that strides, dilations or pads of some spatial axes break, or None."""
    for name, length in (("strides", count), ("dilations", count), ("pads", 2 * count)):
        given = call.parameter(name)
        if given is not None and len(given) != length:
            return f"{name} has a value for each spatial axis"
        if given is not None and min(given, default=1) < (0 if name == "pads" else 1):
            return f"{name} are positive"
    return None


def widened(shape: Shape) -> Shape:
    """Return a shape (N, C, spatial...) for DirectML, whose windows have two or three axes: one becomes the
    second of two."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else shape


def members(found: Window) -> dict[str, Any]:
    """Return the members of a DirectML structure that hold a window, for the axes of `widened`."""

    def spatial(values: Shape, filler: int) -> Shape:
        return (filler, *values) if len(found.kernel) == 1 else values

    return {
        "Strides": spatial(found.strides, 1),
        "Dilations": spatial(found.dilations, 1),
        "StartPadding": spatial(found.begins, 0),
        "EndPadding": spatial(found.ends, 0),
    }
