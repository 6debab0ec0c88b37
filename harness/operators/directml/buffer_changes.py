"""Calls beside a base call that change the buffer of a tensor of any operator, on each side of the sentences of
DML_BUFFER_TENSOR_DESC."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.case import DirectmlTensor, Validity
from harness.model.dtypes import DTYPES
from harness.operators.directml.changes import CallChange
from harness.operators.directml.description import BufferTensor, Description
from harness.operators.directml.layout import elements

DOCUMENT = "DML_BUFFER_TENSOR_DESC"
_SIZE, _ALIGNMENT = "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"
_LARGE_ENOUGH = f"{_SIZE} must be at least as large as the minimum implied size"
_UNIT = 4
"""Bytes that a size is rounded up to (DMLCalcBufferTensorSize in DirectML's helper functions)."""
_SPARE = 64
_ALIGNED = 16
"""The least alignment in bytes that a buffer tensor has, whatever its description says."""


def buffer_changes(base: Description) -> Iterator[CallChange]:
    """Yield the calls with other sizes and alignments of the first input's and the first output's buffer."""
    output = base.outputs[0]
    first = base.inputs[0] if base.inputs else output
    input_tensor = base.view(first)
    width, output_width = (DTYPES[base.view(name).dtype].itemsize for name in (first, output))

    def valid(name: str, section: str, **tensors: DirectmlTensor) -> CallChange:
        return CallChange(name, section, None, tensors, None, DOCUMENT, Validity.VALID)

    def invalid(name: str, section: str, rule: str, tensor: str, changed: DirectmlTensor) -> CallChange:
        return CallChange(name, section, rule, {tensor: changed}, None, DOCUMENT)

    larger = {name: DirectmlTensor(bytes=tensor.bytes + _SPARE) for name, tensor in base.views()}
    yield valid("api_larger_buffer", _SIZE, **larger)
    for way, names in (("input", base.inputs[:1]), ("output", base.outputs[:1])):
        for name in names:
            smaller = DirectmlTensor(bytes=base.view(name).bytes - _UNIT)
            yield invalid(f"api_smaller_{way}_buffer", _SIZE, _LARGE_ENOUGH, name, smaller)
    exact = {name: DirectmlTensor(bytes=_unrounded(base.view(name))) for name in (first, output)}
    if any(changed.bytes != base.view(name).bytes for name, changed in exact.items()):
        rule = f"whether {_SIZE} is rounded up to {_UNIT} bytes"
        yield CallChange("api_bytes_not_rounded", _SIZE, rule, exact, None, DOCUMENT, Validity.UNSPECIFIED)
    half, own, three, most, other, twice = (
        DirectmlTensor(alignment=each) for each in (width // 2, width, 3, 64, _ALIGNED, 2 * output_width)
    )
    yield valid("api_aligned", _ALIGNMENT, **{output: other, first: most})
    yield valid("api_alignment_of_the_element", _ALIGNMENT, **{first: own})
    if 2 * output_width < _ALIGNED:
        yield valid("api_alignment_of_twice_the_element", _ALIGNMENT, **{output: twice})
    rule = f"{_ALIGNMENT} must be a power of two"
    yield invalid("api_alignment_of_3", _ALIGNMENT, rule, first, three)
    if width > 1:
        rule = f"{_ALIGNMENT} must be at least as large as the element size"
        yield invalid("api_alignment_below_the_element", _ALIGNMENT, rule, first, half)
    rule = "a size of zero in any dimension is invalid, and will result in an error"
    empty = DirectmlTensor(sizes=(0, *input_tensor.sizes[1:]), bytes=input_tensor.bytes)
    yield invalid("api_size_of_zero", "Sizes", rule, first, empty)


def _unrounded(tensor: BufferTensor) -> int:
    return elements(tensor.sizes, tensor.strides) * DTYPES[tensor.dtype].itemsize
