"""Every type of member in the structures of DirectML.h, as DirectML reads it: offsets, values, arrays,
unions, nested operators."""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_float, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

import pytest

from harness.model.reference.directml import operator_names
from harness.operators.directml.description import structure
from harness.worker.windows.directml import layouts
from harness.worker.windows.directml.operators import DescriptionError, NativeDescription, layout_of
from tests.windows.directml_units import tensor

FLOATS = tensor("float32", (1, 1, 2, 2))


def describe(
    operator: str, tensors: dict[str, Any], attributes: dict[str, Any], **other: Any
) -> NativeDescription:
    number, members = structure(operator)
    roles: dict[str, list[str]] = {"input": [], "output": []}
    for member in members:
        name, role = member.split(":")[:2]
        given = tensors.get(name)
        names = (
            []
            if given is None
            else [name]
            if isinstance(given, dict)
            else [f"{name}.{place}" for place in range(len(given))]
        )
        roles.get(role.rstrip("s"), []).extend(names)
    given = {
        "operator": operator, "number": number, "members": members, "tensors": tensors, "attributes": attributes,
        "inputs": roles["input"], "outputs": roles["output"], "output_shapes": [[1]] * len(roles["output"]),
    }  # fmt: skip
    return NativeDescription({**given, **other})


def raw(made: NativeDescription, size: int) -> bytes:
    return ctypes.string_at(made.desc.desc, size)


def dtype_of(address: int) -> int:
    """Return the data type of the DML_TENSOR_DESC at an address."""
    desc = layouts.TypedDesc.from_address(address)
    assert desc.kind == 1
    return int(layouts.BufferTensorDesc.from_address(desc.desc).data_type)


SIZES = {
    # sizeof of structures of DirectML.h for 64-bit Windows, by hand: addresses and unions are aligned to 8
    # bytes
    "ELEMENT_WISE_IDENTITY": 24, "ELEMENT_WISE_ROUND": 24, "ELEMENT_WISE_CLIP1": 48, "FILL_VALUE_SEQUENCE": 32, "JOIN": 32, "SPLIT": 32,
    "CONVOLUTION": 104, "GEMM": 56, "UPSAMPLE_2D": 32, "RESAMPLE3": 64, "DIAGONAL_MATRIX1": 40, "PADDING1": 56, "SLICE1": 48,
    "VALUE_SCALE_2D": 32, "REDUCE": 40, "GRU": 88, "TOP_K1": 40, "ACTIVATION_ELU": 24,
}  # fmt: skip


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_structures_have_the_sizes_of_the_header(name: str, size: int) -> None:
    assert ctypes.sizeof(layout_of(structure(f"DML_OPERATOR_{name}")[1]).structure) == size


@pytest.mark.parametrize("name", operator_names())
def test_each_documented_operator_has_a_structure(name: str) -> None:
    number, members = structure(name)
    layout = layout_of(members)
    assert len(layout.members) == len(members)
    assert number > 0
    assert {member.type for member in layout.tensors} <= {"input", "output", "inputs", "outputs"}


def test_numbers_scale_and_union() -> None:
    attributes = {"ScaleBias": [0.5, -2.0], "MinMaxDataType": 6, "Min": {"int32": -3}, "Max": {"int32": 7}}
    made = describe(
        "DML_OPERATOR_ELEMENT_WISE_CLIP1", {"InputTensor": FLOATS, "OutputTensor": FLOATS}, attributes
    )
    assert made.desc.kind == 153
    source, output, scale_bias, kind, low, high = struct.unpack("<QQQIxxxxi4xi4x", raw(made, 48))
    assert dtype_of(source) == dtype_of(output) == 1
    assert list((c_float * 2).from_address(scale_bias)) == [0.5, -2.0]
    assert (kind, low, high) == (6, -3, 7)


@pytest.mark.parametrize(
    ("scalar", "wanted"),
    [
        ({"float32": 1.5}, "0000c03f00000000"),
        ({"float16": 1.5}, "003e000000000000"),
        ({"float64": -2}, "00000000000000c0"),
        ({"float32": "-inf"}, "000080ff00000000"),
        ({"int8": -1}, "ff00000000000000"),
        ({"uint8": 255}, "ff00000000000000"),
        ({"int16": -2}, "feff000000000000"),
        ({"uint16": 1}, "0100000000000000"),
        ({"uint32": 1 << 31}, "0000008000000000"),
        ({"int64": -1}, "ffffffffffffffff"),
        ({"uint64": 1 << 63}, "0000000000000080"),
    ],
)
def test_a_scalar_is_written_in_its_type(scalar: dict[str, Any], wanted: str) -> None:
    made = describe(
        "DML_OPERATOR_FILL_VALUE_CONSTANT", {"OutputTensor": FLOATS}, {"ValueDataType": 1, "Value": scalar}
    )
    assert raw(made, 24)[16:].hex() == wanted


def test_arrays_of_numbers() -> None:
    attributes = {
        "DimensionCount": 2,
        "InputWindowOffsets": [1, 2],
        "InputWindowSizes": [3, 1 << 31],
        "InputWindowStrides": [-1, 5],
    }
    made = describe("DML_OPERATOR_SLICE1", {"InputTensor": FLOATS, "OutputTensor": FLOATS}, attributes)
    count, offsets, sizes, strides = struct.unpack("<I4xQQQ", raw(made, 48)[16:])
    assert count == 2
    assert list((c_uint32 * 2).from_address(offsets)) == [1, 2]
    assert list((c_uint32 * 2).from_address(sizes)) == [3, 1 << 31]
    assert list((c_int32 * 2).from_address(strides)) == [-1, 5]
    attributes = {
        "InterpolationMode": 1, "RoundingDirection": 1, "DimensionCount": 1, "Scales": [0.25], "InputPixelOffsets": None,
        "OutputPixelOffsets": ["nan"], "Antialiased": 1,
    }  # fmt: skip
    made = describe("DML_OPERATOR_RESAMPLE3", {"InputTensor": FLOATS, "OutputTensor": FLOATS}, attributes)
    mode, rounding, count, scales, source, output, antialiased = struct.unpack(
        "<IIIxxxxQQQI4x", raw(made, 64)[16:]
    )
    assert (mode, rounding, count, source, antialiased) == (1, 1, 1, 0, 1)
    assert c_float.from_address(scales).value == 0.25
    assert str(c_float.from_address(output).value) == "nan"


def test_size_and_signed_numbers() -> None:
    both = {"InputTensor": FLOATS, "OutputTensor": FLOATS}
    made = describe("DML_OPERATOR_UPSAMPLE_2D", both, {"ScaleSize": [3, 2], "InterpolationMode": 1})
    assert struct.unpack("<III", raw(made, 32)[16:28]) == (3, 2, 1)
    diagonal = {"ValueDataType": 1, "Value": {"float32": 1}, "DiagonalFillBegin": -2, "DiagonalFillEnd": 1}
    made = describe("DML_OPERATOR_DIAGONAL_MATRIX1", {"InputTensor": None, "OutputTensor": FLOATS}, diagonal)
    assert struct.unpack("<ii", raw(made, 40)[32:]) == (-2, 1)


def test_arrays_of_tensors_stand_one_behind_the_other() -> None:
    parts = [tensor("float32", (1, 1, 2, 2)), tensor("float16", (1, 1, 1, 2)), tensor("int8", (1, 1, 1, 2))]
    made = describe(
        "DML_OPERATOR_JOIN", {"InputTensors": parts, "OutputTensor": FLOATS}, {"InputCount": 3, "Axis": 2}
    )
    count, address, _, axis = struct.unpack("<I4xQQI4x", raw(made, 32))
    assert (count, axis) == (3, 2)
    assert [dtype_of(address + 16 * place) for place in range(3)] == [1, 2, 8]
    assert made.inputs == ["InputTensors.0", "InputTensors.1", "InputTensors.2"]
    assert made.bound_inputs == [0, 1, 2]
    split = describe(
        "DML_OPERATOR_SPLIT", {"InputTensor": FLOATS, "OutputTensors": parts}, {"OutputCount": 3, "Axis": 2}
    )
    assert split.bound_outputs == [0, 1, 2]


def test_an_optional_tensor_is_null_and_bound_to_nothing() -> None:
    attributes = {"TransA": 0, "TransB": 1, "Alpha": 2.0, "Beta": 0.5, "FusedActivation": None}
    tensors = {"ATensor": FLOATS, "BTensor": FLOATS, "CTensor": None, "OutputTensor": FLOATS}
    made = describe("DML_OPERATOR_GEMM", tensors, attributes)
    *addresses, first, second, alpha, beta, fused = struct.unpack("<QQQQIIffQ", raw(made, 56))
    assert [bool(each) for each in addresses] == [True, True, False, True]
    assert (first, second, alpha, beta, fused) == (0, 1, 2.0, 0.5, 0)
    assert made.bound_inputs == [0, 1, None]


def test_inputs_are_bound_in_the_order_of_the_structure_and_fed_in_that_of_the_description() -> None:
    tensors = {
        "ConditionTensor": tensor("uint8", (4,)),
        "ATensor": tensor("float32", (4,)),
        "BTensor": tensor("float32", (4,)),
    }
    tensors["OutputTensor"] = tensors["ATensor"]
    made = describe(
        "DML_OPERATOR_ELEMENT_WISE_IF", tensors, {}, inputs=["BTensor", "ConditionTensor", "ATensor"]
    )
    assert made.bound_inputs == [1, 2, 0]


def test_a_fused_activation_is_an_operator_without_tensors() -> None:
    number, members = structure("DML_OPERATOR_ACTIVATION_ELU")
    activation = {"number": number, "members": members, "attributes": {"Alpha": 0.75}}
    attributes = {"TransA": 0, "TransB": 0, "Alpha": 1, "Beta": 0, "FusedActivation": activation}
    made = describe(
        "DML_OPERATOR_GEMM",
        {"ATensor": FLOATS, "BTensor": FLOATS, "CTensor": None, "OutputTensor": FLOATS},
        attributes,
    )
    desc = layouts.TypedDesc.from_address(c_uint64.from_buffer_copy(raw(made, 56)[48:]).value)
    assert desc.kind == 35
    assert struct.unpack("<QQf4x", ctypes.string_at(desc.desc, 24)) == (0, 0, 0.75)
    given = {
        "ActivationDescCount": 2,
        "ActivationDescs": [activation, activation],
        "Direction": 0,
        "LinearBeforeReset": 0,
    }
    names = ("InputTensor", "WeightTensor", "RecurrenceTensor", "OutputSequenceTensor")
    others = dict.fromkeys(("BiasTensor", "HiddenInitTensor", "SequenceLengthsTensor", "OutputSingleTensor"))
    gru = describe("DML_OPERATOR_GRU", {**dict.fromkeys(names, FLOATS), **others}, given)
    address = c_void_p.from_buffer_copy(raw(gru, 88)[72:80]).value
    assert address is not None
    assert [layouts.TypedDesc.from_address(address + 16 * place).kind for place in range(2)] == [35, 35]
    assert gru.bound_inputs == [0, 1, 2, None, None, None]
    assert gru.bound_outputs == [0, None]


@pytest.mark.parametrize(
    ("operator", "change", "message"),
    [
        ("CLIP1", {"Min": 1.0}, "Min: a scalar is written {type: number} with one of float32, float16"),
        ("CLIP1", {"Min": {"float9": 1.0}}, "Min: a scalar is written"),
        ("CLIP1", {"Min": {"int8": 300}}, "Min: 300 does not fit int8"),
        ("CLIP1", {"Min": {"int8": 1.5}}, "Min: 1.5 does not fit int8"),
        ("CLIP1", {"ScaleBias": [1.0]}, "ScaleBias: 2 numbers are needed, and not [1.0]"),
        (
            "CLIP1",
            {"ScaleBias": [1.0, "one"]},
            "ScaleBias: 'one' is no number; one that is not finite is written inf, -inf or nan",
        ),
        ("ROUND", {"RoundingMode": 1.5}, "RoundingMode: 1.5 does not fit an unsigned integer of 32 bits"),
        ("REDUCE", {"AxisCount": 3}, "Axes has 2 elements where AxisCount says 3"),
        ("REDUCE", {"Axes": 1}, "Axes: an array is needed, and not 1"),
        ("REDUCE", {"Axes": [0, -1]}, "Axes: -1 does not fit an unsigned integer of 32 bits"),
        ("UPSAMPLE", {"ScaleSize": 2}, "ScaleSize: 2 numbers are needed, and not 2"),
        ("DIAGONAL", {"Offset": 1 << 31}, "Offset: 2147483648 does not fit a signed integer of 32 bits"),
        ("DIAGONAL", {"Value": True}, "Value: True is no number"),
        (
            "MVN",
            {"FusedActivation": "RELU"},
            "FusedActivation: an operator is described by number, members and attributes, and not by 'RELU'",
        ),
    ],
)
def test_what_no_member_could_hold_is_refused(operator: str, change: dict[str, Any], message: str) -> None:
    good: dict[str, tuple[str, dict[str, Any]]] = {
        "CLIP1": (
            "ELEMENT_WISE_CLIP1",
            {"ScaleBias": None, "MinMaxDataType": 1, "Min": {"float32": 0}, "Max": {"float32": 1}},
        ),
        "ROUND": ("ELEMENT_WISE_ROUND", {"RoundingMode": 0}),
        "REDUCE": ("REDUCE", {"Function": 10, "AxisCount": 2, "Axes": [0, 1]}),
        "UPSAMPLE": ("UPSAMPLE_2D", {"ScaleSize": [1, 1], "InterpolationMode": 0}),
        "DIAGONAL": ("DIAGONAL_MATRIX", {"Offset": 0, "Value": 1.0}),
        "MVN": (
            "MEAN_VARIANCE_NORMALIZATION2",
            {
                "AxisCount": 0,
                "Axes": None,
                "UseMean": 1,
                "UseVariance": 1,
                "Epsilon": 0.1,
                "FusedActivation": None,
            },
        ),
    }
    name, attributes = good[operator]
    names = [
        member.split(":")[0]
        for member in structure(f"DML_OPERATOR_{name}")[1]
        if member.split(":")[1] in ("input", "output")
    ]
    tensors = dict.fromkeys(names, FLOATS)
    describe(f"DML_OPERATOR_{name}", tensors, attributes)
    with pytest.raises(DescriptionError) as caught:
        describe(f"DML_OPERATOR_{name}", tensors, attributes | change)
    assert str(caught.value).startswith(message)


def test_an_array_of_tensors_shorter_than_its_count_is_refused() -> None:
    with pytest.raises(DescriptionError, match="InputTensors has 1 elements where InputCount says 2"):
        describe(
            "DML_OPERATOR_JOIN",
            {"InputTensors": [FLOATS], "OutputTensor": FLOATS},
            {"InputCount": 2, "Axis": 0},
        )
