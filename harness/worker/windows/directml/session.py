"""A compiled operator of a unit: the places of its tensors in one buffer, and how its outputs are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .api import Range
from .layouts import BindingProperties
from .operators import ITEMSIZES, DescriptionError, NativeDescription, TensorView

_ALIGNMENT = 256
_LIMIT_BYTES = 1 << 30
_DTYPES = {name: np.dtype(name) for name in ITEMSIZES}


class OutputError(ValueError):
    """The output's description does not say where its elements are: sizes, strides and bytes contradict each
    other or `output_shape`."""


class Placement(NamedTuple):
    """(offset, bytes) of every input and output in the shared buffer, and the bytes of all."""

    inputs: list[tuple[int, int]]
    outputs: list[tuple[int, int]]
    bytes: int


class Output:
    """An output: how its elements are read out of the bytes of its buffer."""

    def __init__(self, view: TensorView, shape: tuple[int, ...]) -> None:
        self.view = view
        self.shape = shape
        self._dtype = _DTYPES[view.dtype]
        self._count = math.prod(shape)
        self._readable = self._count == math.prod(view.sizes) and view.needed_bytes() <= view.bytes

    def elements(self, data: bytes) -> Any:
        """Return the elements in the shape that the description names for the output; raises OutputError."""
        view = self.view
        if not self._readable:
            raise OutputError(
                f"{list(view.sizes)} in {view.bytes} bytes, strides {view.strides}, is no output of shape {list(self.shape)}"
            )
        if view.strides is None:
            return np.frombuffer(data, self._dtype, self._count).reshape(self.shape)
        strides = [stride * self._dtype.itemsize for stride in view.strides]
        return np.ndarray(view.sizes, self._dtype, data, strides=strides).reshape(self.shape)


class CompiledOperator:
    """A compiled operator, and where its tensors are in the one buffer that all of them share."""

    def __init__(self, description: NativeDescription, compiled: int, needs: BindingProperties) -> None:
        self.description = description
        self.compiled = compiled
        self.needs = needs
        self.views = [description.tensors[name] for name in description.inputs]
        self.outputs = [
            Output(description.tensors[name], shape)
            for name, shape in zip(description.outputs, description.output_shapes)
        ]
        self.aliased = (
            None if description.in_place is None else description.inputs.index(description.in_place)
        )
        """The input whose buffer the first output is."""
        self.placed_for: Any = None
        """The sizes of the arrays and the buffer that the placement was made for."""
        self.placement = Placement([], [], 0)
        self.bound: list[Range | None] = []
        self.bound_outputs: list[Range | None] = []

    def place(self, sizes: Sequence[int]) -> Placement:
        """Return where arrays of these many bytes go; raises DescriptionError where they need more than this
        worker spends."""
        at, inputs, outputs = 0, [], []
        for number, (view, size) in enumerate(zip(self.views, sizes)):
            room = max(whole_words(view.bytes), whole_words(size))
            if number == self.aliased:
                room = max(room, whole_words(self.outputs[0].view.bytes))
            offset = _aligned(at, view)
            inputs.append((offset, room))
            at = offset + room
        for number, output in enumerate(self.outputs):
            if number == 0 and self.aliased is not None:
                outputs.append(inputs[self.aliased])
                continue
            outputs.append((_aligned(at, output.view), whole_words(output.view.bytes)))
            at = sum(outputs[-1])
        if at > _LIMIT_BYTES:
            raise DescriptionError(
                f"the tensors take {at} bytes, more than the {_LIMIT_BYTES} that this worker spends on a case"
            )
        return Placement(inputs, outputs, at)

    def bind(self, arena: int) -> None:
        """Say what of a buffer is bound: a range for each tensor of the operator, None for one that is left
        out."""
        description, placement = self.description, self.placement
        inputs = [(arena, at, whole_words(view.bytes)) for (at, _), view in zip(placement.inputs, self.views)]
        outputs = [
            (arena, at, whole_words(output.view.bytes))
            for (at, _), output in zip(placement.outputs, self.outputs)
        ]
        self.bound = [None if place is None else inputs[place] for place in description.bound_inputs]
        self.bound_outputs = [
            None if place is None else outputs[place] for place in description.bound_outputs
        ]


def whole_words(size: int) -> int:
    """Round up to whole 32-bit words, as DirectML asks of buffers."""
    return max(4, (size + 3) & ~3)


def _aligned(at: int, view: TensorView) -> int:
    step = max(_ALIGNMENT, view.alignment)
    return -(-at // step) * step
