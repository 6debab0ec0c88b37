"""Descriptions in the structures of DirectML.h: layouts, every field, and what is refused before DirectML
sees it."""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_void_p
from typing import Any

import numpy as np
import pytest

from harness.model.reference.feature_levels import load
from harness.worker.windows import device
from harness.worker.windows.directml import layouts
from harness.worker.windows.directml.operators import (
    ITEMSIZES,
    LEVELS,
    DescriptionError,
    NativeDescription,
    TensorView,
)
from harness.worker.windows.directml.session import CompiledOperator, OutputError
from tests.windows.directml_units import gather_elements, gather_nd, rounding, tensor

DATA = np.zeros((2, 3), np.float16)
INDICES = np.zeros((2, 1), np.int64)


def test_structures_have_the_sizes_of_the_headers() -> None:
    sizes = {
        layouts.HeapProperties: 20, layouts.ResourceDesc: 56, layouts.Transition: 32, layouts.BufferTensorDesc: 48, layouts.TypedDesc: 16,
        layouts.BindingProperties: 24, layouts.BindingTableDesc: 32, layouts.BufferBinding: 24,
    }  # fmt: skip
    assert {kind.__name__: ctypes.sizeof(kind) for kind in sizes} == {
        kind.__name__: size for kind, size in sizes.items()
    }


def test_numbers_agree_with_the_published_tables() -> None:
    enums = load("directml.yaml")["enums"]
    types = {name.lower(): number for name, number in enums["DML_TENSOR_DATA_TYPE"].items() if number}
    assert {name: device.TENSOR_DATA_TYPES[name] for name in ITEMSIZES} == types
    assert {
        level: int(value, 16) for level, value in load("directml.yaml")["feature_levels"].items()
    } == LEVELS


def test_each_field_arrives_where_directml_reads_it() -> None:
    data, indices = np.zeros((1, 2, 3), np.float16), np.zeros((1, 1, 2), np.uint32)
    attributes = {"InputDimensionCount": 2, "IndicesDimensionCount": 1, "BatchDimensionCount": 7}
    given, _ = gather_nd("DML_OPERATOR_GATHER_ND1", data, indices, attributes, (1, 1, 1), ())
    given["tensors"]["InputTensor"].update(strides=[0, 5, 2], alignment=64, flags=2)
    made = NativeDescription(given)
    assert made.desc.kind == 140
    fields = ctypes.cast(made.desc.desc, ctypes.POINTER(c_void_p * 3)).contents
    numbers = ctypes.cast(made.desc.desc + 24, ctypes.POINTER(c_uint32 * 3)).contents
    assert list(numbers) == [2, 1, 7]
    views = []
    for address in fields:
        desc = layouts.TypedDesc.from_address(address)
        assert desc.kind == 1
        view = layouts.BufferTensorDesc.from_address(desc.desc)
        sizes = (c_uint32 * view.dimension_count).from_address(view.sizes)
        strides = (c_uint32 * view.dimension_count).from_address(view.strides) if view.strides else None
        views.append(
            (
                view.data_type,
                view.flags,
                list(sizes),
                strides and list(strides),
                view.total_bytes,
                view.alignment,
            )
        )
    assert views == [
        (2, 2, [1, 2, 3], [0, 5, 2], 12, 64),
        (3, 0, [1, 1, 2], None, 8, 0),
        (2, 0, [1, 1, 1], None, 4, 0),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": []}, "members are written Name:type, and not left out"),
        ({"members": ["Axis"]}, "members are written Name:type, and not Axis"),
        ({"members": ["Axis:number"]}, "Axis: no type of member is called 'number'; known: uint, int"),
        (
            {"members": ["InputTensor:input", "Axis:uint"]},
            "tensors are IndicesTensor, InputTensor, OutputTensor where the operator has InputTensor",
        ),
        ({"number": -1}, "number: -1 does not fit"),
        ({"outputs": ["Output"]}, "'Output' is bound and not described"),
        ({"output_shapes": []}, "0 output_shapes for 1 outputs"),
        ({"attributes": {"Axis": -1}}, "Axis: -1 does not fit an unsigned integer of 32 bits"),
        ({"attributes": {"Axis": 1 << 32}}, "Axis: 4294967296 does not fit"),
        ({"attributes": {"Axis": True}}, "Axis: True does not fit"),
        ({"attributes": {}}, "attributes are none where the operator has Axis"),
        ({"attributes": {"Axis": 1, "Mode": 1}}, "attributes are Axis, Mode where the operator has Axis"),
        ({"inputs": ["Input"]}, "'Input' is bound and not described"),
        ({"in_place": "Input"}, "'Input' is bound and not described"),
        ({"output_shapes": [[-1]]}, "output_shapes: -1 does not fit"),
        ({"minimum_feature_level": "9_9"}, "unknown feature level '9_9'; known: 1_0"),
        ({"flags": "0"}, "flags: '0' does not fit"),
    ],
)
def test_what_no_structure_could_hold_is_refused(change: dict[str, Any], message: str) -> None:
    given, _ = gather_elements(DATA, INDICES, 1)
    with pytest.raises(DescriptionError) as caught:
        NativeDescription({**given, **change})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "bfloat16"}, "InputTensor: DirectML has no element type 'bfloat16'; it has float32"),
        ({"sizes": [2, 1 << 32]}, "InputTensor.sizes: 4294967296 does not fit"),
        ({"strides": [1]}, "InputTensor: 1 strides for 2 sizes"),
        (
            {"bytes": 1 << 64},
            "InputTensor.bytes: 18446744073709551616 does not fit an unsigned integer of 64 bits",
        ),
        ({"alignment": -4}, "InputTensor.alignment: -4 does not fit"),
    ],
)
def test_a_tensor_that_no_structure_could_hold_is_refused(change: dict[str, Any], message: str) -> None:
    given, _ = gather_elements(DATA, INDICES, 1)
    given["tensors"]["InputTensor"].update(change)
    with pytest.raises(DescriptionError) as caught:
        NativeDescription(given)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("sizes", "strides", "needed"),
    [
        ([2, 3], None, 24),
        ([2, 3], [4, 1], 28),
        ([4], [0], 4),
        ([2, 0], None, 0),
        ([], None, 4),
        ([2, 2], [1, 2], 16),
    ],
)
def test_needed_bytes_reach_to_the_last_element(
    sizes: list[int], strides: list[int] | None, needed: int
) -> None:
    assert TensorView("float32", sizes, strides, 0, 0, 0).needed_bytes() == needed


def session(output: dict[str, Any], shape: tuple[int, ...], **other: Any) -> CompiledOperator:
    given, _ = rounding(np.zeros(4, np.float32), 0, output=output, shape=shape, **other)
    return CompiledOperator(NativeDescription(given), 0, layouts.BindingProperties())


def test_an_output_is_read_through_its_strides() -> None:
    data = np.arange(8, dtype=np.float32).tobytes()
    spread = session(tensor("float32", (2, 2), strides=[4, 2], bytes=28), (4,))
    assert spread.outputs[0].elements(data[:28]).tolist() == [0, 2, 4, 6]
    assert session(tensor("float32", (4,), strides=[0], bytes=4), (2, 2)).outputs[0].elements(
        data[:4]
    ).tolist() == [[0, 0], [0, 0]]
    assert session(tensor("float32", (1, 4)), (4, 1)).outputs[0].elements(data[:16]).tolist() == [
        [0],
        [1],
        [2],
        [3],
    ]


@pytest.mark.parametrize(
    ("output", "shape"),
    [
        (tensor("float32", (4,), strides=[2], bytes=24), (4,)),
        (tensor("float32", (4,), bytes=12), (4,)),
        (tensor("float32", (4,)), (5,)),
        ({**tensor("float32", (4,)), "sizes": [1 << 31, 1 << 31]}, (4,)),
    ],
)
def test_an_output_outside_of_its_bytes_is_not_read(output: dict[str, Any], shape: tuple[int, ...]) -> None:
    with pytest.raises(OutputError):
        session(output, shape).outputs[0].elements(b"\0" * output["bytes"])


def test_tensors_share_a_buffer_without_overlap_unless_they_alias() -> None:
    apart = session(tensor("float32", (4,), alignment=1024), (4,)).place([16])
    assert (apart.inputs, apart.outputs, apart.bytes) == ([(0, 16)], [(1024, 16)], 1040)
    long = session(tensor("float32", (4,)), (4,)).place([1000])
    assert (long.inputs, long.outputs) == ([(0, 1000)], [(1024, 16)])
    same = session(tensor("float32", (4,), strides=[2], bytes=28), (4,), in_place="InputTensor").place([16])
    assert (same.inputs, same.outputs, same.bytes) == ([(0, 28)], [(0, 28)], 28)
    with pytest.raises(DescriptionError, match="more than the 1073741824"):
        session(tensor("float32", (4,), bytes=1 << 30), (4,)).place([16])
