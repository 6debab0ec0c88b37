"""The family of convolutions: X [N, C, spatial], W [M, C / group, kernel] or, transposed, [C, M / group,
kernel], B [M]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from operator import mul
from typing import Any, ClassVar

from harness.operators.base import Call, CallTensor, DirectmlCall, Operator, Relation, Shape
from harness.operators.pooling.windows import Window, Windowed, halved, members, widened, window

OUTPUT = "output"
"""Stands for the output among the names of tensors."""


def weights(call: Call) -> Shape:
    """Return the shape of the filters."""
    return (call.inputs.get("W") or call.inputs["w"]).shape


class Convolving(Windowed):
    """The shape of W by `kernel`, an extent for all axes or `uneven`, and `outputs`, the outputs of each
    group; `unlike` gives W another number of channels. Other inputs are `channels`, one element for each
    output, or `scalar`; B `unlike` has one too many.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"kernel": ("uneven",), "unlike": ("channels",)}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "W": ("kernel", "outputs", "unlike"),
        "w": ("kernel", "outputs", "unlike"),
        "*": ("channels", "scalar", "unlike"),
    }
    lowers: ClassVar[str | None] = "DML_OPERATOR_CONVOLUTION"

    def kernel(self, call: Call) -> Shape:
        """The spatial extents of W."""
        return weights(call)[2:]

    def channels(self, call: Call) -> int:
        """Return the number of outputs, M."""
        return weights(call)[0]

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of W and of what belongs to it."""
        x = call.first.shape
        if name not in ("W", "w"):
            return (
                (self.channels(call) + (relation == "unlike"),) if relation in ("channels", "unlike") else ()
            )
        group = call.parameter("group")
        if len(x) < 2 or x[1] % group or isinstance(relation, str):
            return None
        outputs, kernel = relation.get("outputs", 2), relation.get("kernel", 1)
        extents = tuple(1 + n for n in range(len(x) - 2)) if kernel == "uneven" else (kernel,) * (len(x) - 2)
        return (*self.filters(x[1], outputs, group, relation.get("unlike") == "channels"), *extents)

    def filters(self, inputs: int, outputs: int, group: int, unlike: bool) -> Shape:
        """Return the first two extents of W."""
        return (outputs * group, inputs // group + unlike)

    def wrong_channels(self, call: Call, group: int) -> str | None:
        """Return the rule that channels and groups break, or None."""
        w = weights(call)
        if group < 1 or call.first.shape[1] != w[1] * group:
            return "C = W.shape[1] * group"
        return "M is a multiple of group" if w[0] % group else None

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Channels and groups, beside the window's rules."""
        x, w = call.first.shape, weights(call)
        group = call.parameter("group")
        if len(w) != len(x):
            return "W has the rank of X"
        if len(x) > 2 and (wrong := self.wrong_channels(call, group)):
            return wrong
        given = call.parameter("kernel_shape")
        if given is not None and given != w[2:]:
            return "kernel_shape is that of W"
        bias = call.inputs.get("B")
        if bias is not None and bias.shape != (self.channels(call),):
            return "B has the shape [M]"
        return super().broken_rule(operator, call)

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, M, windows]."""
        return ((call.first.shape[0], self.channels(call), *self.extents(call)),)

    def extents(self, call: Call) -> Shape:
        """Return the spatial extents of the output."""
        return window(call, self.kernel(call)).outputs(call.first.shape[2:])

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """A window forward."""
        return self.convolution(candidate, call, window(call, self.kernel(call)), 0, ())

    def tensors(self, call: Call, named: Mapping[str, str]) -> dict[str, CallTensor | None]:
        """Return tensors by member: X and W, the output, and vectors of channels, None for one that is left out."""
        found: dict[str, CallTensor | None] = {}
        for member, name in named.items():
            given = call.inputs.get(name)
            if name == OUTPUT:
                shape = (call.first.shape[0], self.channels(call), *self.extents(call))
                found[member] = CallTensor(0, call.outputs[0], widened(shape))
            elif given is not None and len(given.shape) > 1:
                found[member] = CallTensor(name, given.dtype, widened(given.shape))
            else:
                wide = (1,) * max(2, len(call.first.shape) - 2)
                found[member] = given and CallTensor(name, given.dtype, (1, prod(given.shape), *wide))
        return found

    def convolution(self, name: str, call: Call, found: Window, direction: int, more: Shape) -> DirectmlCall:
        """Make the call of a window, forward or backward, with `more` elements behind."""
        x, w, *_ = call.inputs
        named = {"InputTensor": x, "FilterTensor": w, "BiasTensor": "B", "OutputTensor": OUTPUT}
        held = members(found) | {
            "Mode": 1,  # DML_CONVOLUTION_MODE_CROSS_CORRELATION
            "Direction": direction,  # DML_CONVOLUTION_DIRECTION
            "OutputPadding": (0,) * (max(2, len(found.kernel)) - len(more)) + more,
            "GroupCount": call.attributes["group"],
        }
        return DirectmlCall(name, self.tensors(call, named), 1, held)


class Transposed(Convolving):
    """Convolutions the other way: each element of X adds a filter's multiple to the output, `stride`
    apart."""

    def channels(self, call: Call) -> int:
        """W holds the outputs of one group."""
        return int(weights(call)[1] * call.parameter("group"))

    def filters(self, inputs: int, outputs: int, group: int, unlike: bool) -> Shape:
        """[C, M / group]."""
        return (inputs + unlike, outputs)

    def wrong_channels(self, call: Call, group: int) -> str | None:
        """C is that of X, and a multiple of group."""
        x, w = call.first.shape, weights(call)
        if x[1] != w[0]:
            return "C = W.shape[0]"
        return "C is a multiple of group" if group < 1 or x[1] % group else None

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Beside the window's: `output_padding` of one, and uneven; an `output_shape` of twice the extents,
        and of one more."""
        spatial = call.first.shape[2:]
        if attribute == "output_padding":
            return [None, (1,) * len(spatial), tuple(n % 2 for n in range(len(spatial)))]
        if attribute == "output_shape":
            return [tuple(2 * extent for extent in spatial), tuple(2 * extent + 1 for extent in spatial)]
        return super().domain(operator, attribute, call)

    def window(self, call: Call) -> Window:
        """Return the window with the pads that follow from `output_shape` or `auto_pad`."""
        found = window(call, self.kernel(call))
        wanted = self.wanted(call, found)
        if wanted is None or len(wanted) != len(found.kernel):
            return found
        totals = [max(0, full - extent) for full, extent in zip(self.full(call, found), wanted, strict=True)]
        return found._replace(pads=halved(totals, call.attributes.get("auto_pad") == "SAME_UPPER"))

    def wanted(self, call: Call, found: Window) -> Shape | None:
        """Return output_shape, or by `auto_pad` SAME_* the extents times the strides; None where pads decide."""
        given = call.parameter("output_shape")
        if given is not None or call.attributes.get("auto_pad") not in ("SAME_UPPER", "SAME_LOWER"):
            return given and tuple(given)
        return tuple(map(mul, call.first.shape[2:], found.strides))

    def full(self, call: Call, found: Window) -> Shape:
        """Return the extents before pads are taken away: (extent - 1) * stride + output_padding + reach."""
        more = call.parameter("output_padding") or (0,) * len(found.kernel)
        terms = zip(call.first.shape[2:], found.strides, more, found.reach, strict=True)
        return tuple((extent - 1) * stride + beside + reach for extent, stride, beside, reach in terms)

    def extents(self, call: Call) -> Shape:
        """Return output_shape, whose elements beyond the full result are 0, or the full extents without the pads."""
        found = self.window(call)
        if wanted := self.wanted(call, found):
            return wanted
        axes = zip(self.full(call, found), found.begins, found.ends, strict=True)
        return tuple(full - begin - end for full, begin, end in axes)

    def fits(self, call: Call) -> str | None:
        """Paddings that there can be, and an output that is left."""
        more, wanted = call.parameter("output_padding"), call.parameter("output_shape")
        if any(given is not None and len(given) != len(self.kernel(call)) for given in (more, wanted)):
            return "output_padding and output_shape have a value for each spatial axis"
        found = self.window(call)
        if more is not None and any(
            n < 0 or n >= stride for n, stride in zip(more, found.strides, strict=True)
        ):
            return "output_padding is less than the stride"
        beyond = [
            extent - full for extent, full in zip(self.extents(call), self.full(call, found), strict=True)
        ]
        if any(more >= stride for more, stride in zip(beyond, found.strides, strict=True)):
            return "the output is no larger than output_padding can make it"
        return None if min(self.extents(call)) >= 1 else "the output has elements"

    def lowered(self, operator: Operator, candidate: str, call: Call) -> DirectmlCall | None:
        """A window backward."""
        more = call.parameter("output_padding") or (0,) * len(self.kernel(call))
        return self.convolution(candidate, call, self.window(call), 1, tuple(more))


CONVOLVING = Convolving()
TRANSPOSED = Transposed()
