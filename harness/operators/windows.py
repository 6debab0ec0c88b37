"""The family of operators with a sliding window: kernels, strides, dilations, pads and what `auto_pad` makes of them.

Spatial axes are those after the first two, (N, C, spatial...). The window at o begins at o * stride - pad and reads every `dilation`-th
element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, ClassVar, NamedTuple

from harness.operators.base import Call, CallTensor, Choice, DirectmlCall, Operator, Shape
from harness.operators.computing import Computing


class Window(NamedTuple):
    """A call's window with every default filled in; `pads` are the begins of all spatial axes, then the ends."""

    kernel: Shape
    strides: Shape
    dilations: Shape
    pads: Shape

    def outputs(self, spatial: Shape) -> Shape:
        """Return how many windows fit along each axis."""
        count = len(spatial)
        return tuple(
            (extent + self.pads[n] + self.pads[n + count] - self.dilations[n] * (self.kernel[n] - 1) - 1) // self.strides[n] + 1
            for n, extent in enumerate(spatial)
        )


def window(call: Call, kernel: Shape) -> Window:
    """Return the window of a call on its first input; `auto_pad` SAME_* pads so that ceil(extent / stride) windows fit."""
    spatial = call.first.shape[2:]
    count = len(spatial)
    strides = tuple(call.parameter("strides") or (1,) * count)
    dilations = tuple(call.parameter("dilations") or (1,) * count)
    auto = call.attributes.get("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        return Window(kernel, strides, dilations, tuple(call.parameter("pads") or (0,) * 2 * count))
    if auto == "VALID":
        return Window(kernel, strides, dilations, (0,) * 2 * count)
    begins, ends = [], []
    for extent, size, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        total = max(0, (ceil(extent / stride) - 1) * stride + dilation * (size - 1) + 1 - extent)
        less, more = total // 2, total - total // 2
        begins.append(less if auto == "SAME_UPPER" else more)
        ends.append(more if auto == "SAME_UPPER" else less)
    return Window(kernel, strides, dilations, (*begins, *ends))


class Windowed(Computing):
    """Operators whose window slides over the spatial axes of the first input."""

    name = "windowed"

    def kernel(self, call: Call) -> Shape:
        """Return the kernel's spatial extents."""
        return tuple(call.parameter("kernel_shape"))

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Values for as many spatial axes as the first input has: one for each alike, and uneven ones."""
        count = max(0, len(call.first.shape) - 2)
        every = {
            "strides": [None, (1,) * count, (2,) * count, tuple(1 + n for n in range(count)), (3,) * count],
            "dilations": [None, (1,) * count, (2,) * count, tuple(2 - n % 2 for n in range(count))],
            "pads": [None, (0,) * 2 * count, (1,) * 2 * count, tuple(n % 3 for n in range(2 * count)), (2,) * count + (0,) * count],
        }
        return every[attribute]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Lengths, signs, and a window that does not fit."""
        count = len(call.first.shape) - 2
        if count < 1:
            return "the input has at least one spatial axis"
        kernel = self.kernel(call)
        for name, length in (("strides", count), ("dilations", count), ("pads", 2 * count)):
            given = call.parameter(name)
            if given is not None and len(given) != length:
                return f"{name} has a value for each spatial axis"
            if given is not None and min(given, default=1) < (0 if name == "pads" else 1):
                return f"{name} are positive"
        if len(kernel) != count:
            return "the kernel has the input's spatial axes"
        if call.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "") and any(call.parameter("pads") or ()):
            return "pads cannot be used with auto_pad"
        return None if min(window(call, kernel).outputs(call.first.shape[2:])) >= 1 else "the window fits at least once"


class Convolving(Windowed):
    """X [N, C, spatial], W [M, C / group, kernel], B [M]. The shape of W by `kernel`, an extent for all axes or `uneven`, and `outputs`,
    the outputs of each group; `unlike` gives W another number of channels.
    """

    name = "convolving"
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"kernel": ("uneven",), "unlike": ("channels",)}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"W": ("kernel", "outputs", "unlike"), "B": ("channels", "unlike")}

    def kernel(self, call: Call) -> Shape:
        """The spatial extents of W."""
        return call.shapes[1][2:]

    def shape(self, operator: Operator, name: str, relation: Mapping[str, Choice] | str, call: Call) -> Shape | None:
        """Derive the shapes of W and B."""
        x = call.first.shape
        group = call.attributes["group"]
        assert isinstance(group, int)
        if name == "B":
            return (call.shapes[1][0] + (relation == "unlike"),)
        if len(x) < 2 or x[1] % group or isinstance(relation, str):
            return None
        outputs, kernel = relation.get("outputs", 2), relation.get("kernel", 1)
        assert isinstance(outputs, int)
        extents = tuple(1 + n for n in range(len(x) - 2)) if kernel == "uneven" else (kernel,) * (len(x) - 2)
        return (outputs * group, x[1] // group + int(relation.get("unlike") == "channels"), *extents)  # type: ignore[arg-type] # integers

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Channels and groups, beside the window's rules."""
        x, w = call.shapes[:2]
        group = call.attributes["group"]
        assert isinstance(group, int)
        if len(w) != len(x):
            return "W has the rank of X"
        if group < 1 or x[1] != w[1] * group:
            return "C = W.shape[1] * group"
        if w[0] % group:
            return "M is a multiple of group"
        given = call.parameter("kernel_shape")
        if given is not None and given != w[2:]:
            return "kernel_shape is that of W"
        if len(call.shapes) > 2 and call.shapes[2] != w[:1]:
            return "B has the shape [M]"
        return super().broken_rule(operator, call)

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, M, windows]."""
        x, w = call.shapes[:2]
        if self.broken_rule(operator, call) is not None:
            return (x,)
        return ((x[0], w[0], *window(call, self.kernel(call)).outputs(x[2:])),)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """DML_OPERATOR_CONVOLUTION takes two or three spatial axes: one becomes the second of two."""
        if candidate != "DML_OPERATOR_CONVOLUTION" or self.broken_rule(operator, call) is not None:
            return None
        found = window(call, self.kernel(call))
        count = len(found.kernel)
        missing = 1 if count == 1 else 0

        def spatial(values: Shape, filler: int) -> Shape:
            return (filler,) * missing + values

        def widened(shape: Shape) -> Shape:
            return (*shape[:2], *(1,) * missing, *shape[2:])

        names = list(call.inputs)
        types = list(call.inputs.values())
        bias = None
        if len(names) > 2:
            bias = CallTensor(names[2], types[2].dtype, (1, *types[2].shape, *(1,) * (count + missing)))
        tensors = {
            "InputTensor": CallTensor(names[0], types[0].dtype, widened(types[0].shape)),
            "FilterTensor": CallTensor(names[1], types[1].dtype, widened(types[1].shape)),
            "BiasTensor": bias,
            "OutputTensor": CallTensor(0, call.outputs[0], widened(self.output_shapes(operator, call)[0])),
        }
        members = {
            "Mode": 1,  # DML_CONVOLUTION_MODE_CROSS_CORRELATION
            "Direction": 0,  # DML_CONVOLUTION_DIRECTION_FORWARD
            "DimensionCount": count + missing,
            "Strides": spatial(found.strides, 1),
            "Dilations": spatial(found.dilations, 1),
            "StartPadding": spatial(found.pads[:count], 0),
            "EndPadding": spatial(found.pads[count:], 0),
            "OutputPadding": (0,) * (count + missing),
            "GroupCount": call.attributes["group"],
            "FusedActivation": None,
        }
        return DirectmlCall(candidate, tensors, 2 + count + missing, members)


CONVOLVING = Convolving()
