"""A compiled operator of a unit: where its tensors are in one buffer, and how its output is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .api import Range
from .layouts import BindingProperties
from .operators import ITEMSIZES, Description, DescriptionError, TensorView

_ALIGNMENT = 256
_LIMIT_BYTES = 1 << 30
_DTYPES = {name: np.dtype(name) for name in ITEMSIZES}


class OutputError(ValueError):
    """The output's description does not say where its elements are: sizes, strides and bytes contradict each other or `output_shape`."""


class Placement(NamedTuple):
    """(offset, bytes) of every input and of the output in the shared buffer, and the bytes of all."""

    inputs: list[tuple[int, int]]
    output: tuple[int, int]
    bytes: int


class Session:
    """A compiled operator, and where its tensors are in the one buffer that all of them share."""

    def __init__(self, description: Description, compiled: int, needs: BindingProperties) -> None:
        self.description = description
        self.compiled = compiled
        self.needs = needs
        self.views = [_view(description, name) for name in description.inputs]
        self.output = _view(description, description.output)
        self.aliased = None if description.in_place is None else description.inputs.index(description.in_place)
        self._dtype = _DTYPES[self.output.dtype]
        self._count = math.prod(description.output_shape)
        self._readable = self._count == math.prod(self.output.sizes) and self.output.needed_bytes() <= self.output.bytes
        self.placed_for: Any = None
        """The sizes of the arrays and the buffer that the placement was made for."""
        self.placement = Placement([], (0, 0), 0)
        self.bound: list[Range] = []
        self.bound_output: Range = (0, 0, 0)

    def place(self, sizes: Sequence[int]) -> Placement:
        """Return where arrays of these many bytes go; raises DescriptionError where they need more than this worker spends."""
        at, inputs = 0, []
        for number, (view, size) in enumerate(zip(self.views, sizes)):
            room = max(whole_words(view.bytes), whole_words(size))
            if number == self.aliased:
                room = max(room, whole_words(self.output.bytes))
            offset = _aligned(at, view)
            inputs.append((offset, room))
            at = offset + room
        if self.aliased is None:
            output = (_aligned(at, self.output), whole_words(self.output.bytes))
            at = sum(output)
        else:
            output = inputs[self.aliased]
        if at > _LIMIT_BYTES:
            raise DescriptionError(f"the tensors take {at} bytes, more than the {_LIMIT_BYTES} that this worker spends on a case")
        return Placement(inputs, output, at)

    def elements(self, data: bytes) -> Any:
        """Return the output's elements out of the bytes of its buffer, in the shape of `output_shape`; raises OutputError."""
        view, shape = self.output, self.description.output_shape
        if not self._readable:
            raise OutputError(f"{list(view.sizes)} in {view.bytes} bytes, strides {view.strides}, is no output of shape {list(shape)}")
        if view.strides is None:
            return np.frombuffer(data, self._dtype, self._count).reshape(shape)
        strides = [stride * self._dtype.itemsize for stride in view.strides]
        return np.ndarray(view.sizes, self._dtype, data, strides=strides).reshape(shape)


def _view(description: Description, name: str) -> TensorView:
    view = description.tensors[name]
    assert view is not None
    return view


def whole_words(size: int) -> int:
    """Round up to whole 32-bit words, as DirectML asks of buffers."""
    return max(4, (size + 3) & ~3)


def _aligned(at: int, view: TensorView) -> int:
    step = max(_ALIGNMENT, view.alignment)
    return -(-at // step) * step
