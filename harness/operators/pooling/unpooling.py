"""MaxUnpool and Col2Im: elements put back to where windows took them from, alone or summed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, Entropy, Operator, Relation, Shape, Undefined, ValueKind, value_kinds
from harness.operators.bounded import Bounded, stack
from harness.operators.computing import Computing
from harness.operators.data_movement.indexing import distinct
from harness.operators.formulas import Either, bounded, moved
from harness.operators.pooling.windows import Window, Windowed, window, wrong_lists

# MaxUnpool: output, flattened, is 0 but for output[I[n, c, x]] = X[n, c, x]; with an output_shape either so, or I counts places in
#            the shape that the window without pads implies, which is the first part of the output: texts and backend tests differ
# Col2Im:    output[n, c, l * stride + k * dilation - pad] += input[n, (c, k), l], of all blocks l and of all places k
#            in a block


def max_unpool(X: Array, I: Array, call: Call) -> Any:  # noqa: N803, E741 - as ONNX calls them
    """Put back by the formula above."""
    shape, counted = (
        unpooled(call),
        unpooled(call._replace(constants={}), padded="output_shape" not in call.inputs),
    )
    put = _put(X, I, shape)
    if (
        shape == counted
        or I.max(initial=-1) >= prod(counted)
        or any(a > b for a, b in zip(counted, shape, strict=True))
    ):
        return put
    within = np.zeros(shape, X.dtype)
    within[tuple(map(slice, counted))] = _put(X, I, counted)
    return Either(put, within)


def _put(X: Array, I: Array, shape: Shape) -> Array:  # noqa: N803, E741 - as ONNX calls them
    found = np.zeros(prod(shape), X.dtype)
    found[I.reshape(-1)] = X.reshape(-1)
    return found.reshape(shape)


def unpooled(call: Call, padded: bool = True) -> Shape:
    """Return output_shape, or (N, C, (x - 1) * stride + kernel - pads), of a window that is not `padded` without pads."""
    wanted = call.parameter("output_shape")
    if wanted is not None:
        return tuple(wanted)
    x, count = call.first.shape, len(call.first.shape) - 2
    kernel = call.parameter("kernel_shape")
    strides = call.parameter("strides") or (1,) * count
    pads = (padded and call.parameter("pads")) or (0,) * 2 * count
    return (
        *x[:2],
        *((x[2 + n] - 1) * strides[n] + kernel[n] - pads[n] - pads[n + count] for n in range(count)),
    )


INSIDE = "indices in [0, N x C x D1 x ... x Dn)"
PLACES = (
    *value_kinds("in_plane", "anywhere", "repeated"),
    ValueKind("above", breaks=INSIDE),
    ValueKind("below", negative=True, breaks=INSIDE),
    ValueKind("far_above", breaks=INSIDE),
)
"""in_plane: no two alike, each in the plane of its element, as MaxPool gives them; anywhere: no two alike in
the tensor; repeated: one place for all; with one illegal: above, one too high; below, -1; far_above, 2**32
too high."""


class Unpooling(Windowed):
    """X and places in the output, of its shape; `unlike`: one row more."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"I": PLACES}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"I": ("same", "unlike")}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Return the shape of X, longer by one element for `unlike`."""
        x = call.first.shape
        return (*x[:-1], x[-1] + 1) if relation == "unlike" else x

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """Return for output_shape the inferred shape, and one with a row and a column more; otherwise the choices of
        windows."""
        if attribute != "output_shape":
            return super().domain(operator, attribute, call)
        inferred = unpooled(call._replace(constants={}))
        return [inferred, tuple(extent + (n > 1) for n, extent in enumerate(inferred))]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Windows, and places for all elements."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        if "I" in call.inputs and call.inputs["I"].shape != call.first.shape:
            return "I has the dimensions of X"
        wanted = call.parameter("output_shape")
        if wanted is not None and len(wanted) != len(call.first.shape):
            return "output_shape has the rank of X"
        return None if min(unpooled(call)[2:]) >= 1 else "the output has elements"

    def fits(self, call: Call) -> str | None:
        """X holds windows, so that none has to fit in it."""
        return None

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Distinct places need an output of as many elements."""
        if name != "I":
            return super().applies(operator, kind, name, call)
        if self.broken_rule(operator, call) is not None or not prod(call.first.shape):
            return kind == "in_plane"
        return kind == "repeated" or prod(unpooled(call)[2:]) >= prod(call.first.shape[2:])

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose places within the output."""
        if name != "I":
            return super().generate(operator, kind, name, call, entropy)
        shape = call.inputs[name].shape
        if self.broken_rule(operator, call) is not None or not prod(shape):
            return np.zeros(shape, np.int64)
        planes, plane = prod(shape[:2]), prod(unpooled(call)[2:])
        if kind == "anywhere":
            return distinct("distinct", "int64", (1, prod(shape)), 1, planes * plane, entropy).reshape(shape)
        found = distinct("distinct", "int64", (planes, prod(shape[2:])), 1, plane, entropy)
        found = found + plane * np.arange(planes)[:, None]
        if kind == "repeated":
            found = found * 0 + found[0, 0]
        elif kind != "in_plane":
            found[-1, -1] = {"above": planes * plane, "below": -1, "far_above": found[-1, -1] + 2**32}[kind]
        return found.reshape(shape)

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Places within the output."""
        places = inputs["I"].array
        return INSIDE if ((places < 0) | (places >= prod(unpooled(call)))).any() else None

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """Return the unpooled shape."""
        return (unpooled(call),)


def col2im(input: Any, call: Call) -> Any:
    """Sum by the formula above: integers wrap."""
    if not isinstance(input, Bounded) and input.dtype.kind in "bcO":
        raise Undefined("what the sum of elements that are no real numbers is")
    found, image = blocks(call), tuple(call.parameter("image_shape"))
    places = prod(found.kernel)
    counted = found.outputs(image)
    given = input.reshape(input.shape[0], input.shape[1] // places, places, *counted)
    room = [sum(axis) for axis in zip(image, found.begins, found.ends, strict=True)]
    spread = []
    for number, place in enumerate(np.ndindex(*found.kernel)):
        at = [k * d for k, d in zip(place, found.dilations, strict=True)]
        steps = [slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(at, counted, found.strides, strict=True)]
        spread.append(_spread(given[:, :, number], room, steps))
    kept = (..., *(slice(begin, begin + extent) for begin, extent in zip(found.begins, image, strict=True)))
    if isinstance(input, Bounded):
        return stack(spread).sum(0)[kept]
    return np.sum(spread, 0, dtype=input.dtype)[kept]


def _spread(part: Any, room: list[int], steps: list[slice]) -> Any:
    """Put elements at steps of a larger room of zeros."""
    if isinstance(part, Bounded):
        return Bounded(_spread(part.value, room, steps), _spread(part.error, room, steps), part.arithmetic)
    wide = np.zeros((*part.shape[:2], *room), part.dtype)
    taken = (slice(None), slice(None), *steps)
    wide[taken] = part
    return wide


def blocks(call: Call) -> Window:
    """Return the window that made the blocks."""
    return window(call, tuple(call.parameter("block_shape")))


class Folding(Computing):
    """Columns of blocks [N, C * block, L]: by words for an image and blocks that are given, `channels` (1 or
    more) and `unlike`: another number of `blocks`, or of `rows`.
    """

    def domain(self, operator: Operator, attribute: str, call: Call) -> Iterable[Any]:
        """None: each follows from the number of axes of the image."""
        return [None]

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Lengths, signs, and the number of blocks."""
        image, block = call.parameter("image_shape"), call.parameter("block_shape")
        if len(image) < 2 or len(image) != len(block):
            return "image_shape and block_shape have the same size, at least 2"
        if wrong := wrong_lists(call, len(image)):
            return wrong
        if min(*image, *block) < 1:
            return "image_shape and block_shape are positive"
        columns = call.first.shape
        if len(columns) != 3:
            return "the input is [N, C * block, L]"
        if columns[1] % prod(block):
            return "the channels are a multiple of the elements of a block"
        counted = blocks(call).outputs(tuple(image))
        fits = min(counted) >= 1 and prod(counted) == columns[2]
        return None if fits else "L is the number of blocks"

    def inferred(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """[N, C, image]."""
        n, rows, _ = call.first.shape
        return ((n, rows // prod(call.parameter("block_shape")), *call.parameter("image_shape")),)


OPERATORS = (
    Operator("MaxUnpool", Unpooling(), moved(max_unpool), constants={"output_shape": 1}),
    Operator("Col2Im", Folding(), bounded(col2im), constants={"image_shape": 1, "block_shape": 1}),
)
