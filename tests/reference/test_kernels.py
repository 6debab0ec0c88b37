"""Registered kernels, and what the DirectML provider makes of an operator."""

from __future__ import annotations

import itertools

import pytest

from harness.model.reference.kernels import (
    directml_operators,
    formal_inputs,
    lowers_to,
    onnx_operator,
    operator_version,
    registered,
    release,
)
from harness.model.target_info import TargetInfo

CPU = TargetInfo("CPUExecutionProvider", onnxruntime="1.24.4")
NEWER = TargetInfo("CPUExecutionProvider", onnxruntime="9.0.0")
DML = TargetInfo("DmlExecutionProvider", onnxruntime="1.24.4", device_dtypes=("int64",))
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DATA = ("bool", "float16", "float32", "float64", *INTEGERS)
STRINGS = (*DATA, "string")
BFLOATS = (*STRINGS, "bfloat16")
BY_HAND = {
    ("CPUExecutionProvider", "GatherElements"): [
        ((11,), STRINGS, ("int32", "int64")),
        ((13,), BFLOATS, ("int32", "int64")),
    ],
    ("CPUExecutionProvider", "GatherND"): [((11, 12), STRINGS, ("int64",)), ((13,), BFLOATS, ("int64",))],
    ("CPUExecutionProvider", "Round"): [((11, 22), ("float16", "float32", "float64"), ())],
    ("DmlExecutionProvider", "GatherElements"): [((11, 13), DATA, ("int32", "int64"))],
    ("DmlExecutionProvider", "GatherND"): [((11, 12, 13), DATA, ("int64",))],
    ("DmlExecutionProvider", "Round"): [((11,), ("float16", "float32"), ())],
}
"""Provider and operator: (versions, types of data, types of indices), as a person read them in the sources of
the providers."""
VERSIONS = {"GatherElements": (11, 13), "GatherND": (11, 12, 13), "Round": (11, 22)}


@pytest.mark.parametrize(("provider", "operator"), BY_HAND)
def test_kernels_read_by_hand_come_out_identical(provider: str, operator: str) -> None:
    """Every type against every version: the packaged table answers as the one that was typed from the
    sources."""
    target = TargetInfo(provider, onnxruntime="1.24.4")
    indices = ("int32", "int64", "uint32") if operator != "Round" else ("",)
    kinds = ((data, index) for data in (*BFLOATS, "complex64", "complex128") for index in indices)
    for (data, index), version in itertools.product(kinds, VERSIONS[operator]):
        rows = [row for row in BY_HAND[provider, operator] if version in row[0]]
        known = any(data in types and index in (*indexed, "") for _, types, indexed in rows)
        device = provider == "DmlExecutionProvider" and data in ("float64", "int64", "uint64")
        wanted = ("device" if device else "yes") if known else "no"
        names = [name for name, _ in formal_inputs(operator, version)]
        assert (
            registered(target, operator, version, dict(zip(names, (data, index), strict=False))) == wanted
        ), (version, data, index)


@pytest.mark.parametrize(("opset", "version"), [(10, None), (11, 11), (21, 11), (22, 22), (25, 22)])
def test_a_model_uses_the_newest_version_up_to_its_opset(opset: int, version: int | None) -> None:
    assert operator_version("Round", opset) == version


@pytest.mark.parametrize(
    ("target", "operator", "opset", "types", "expected"),
    [
        (CPU, "GatherElements", 13, {"data": "bfloat16", "indices": "int32"}, "yes"),
        (CPU, "GatherElements", 13, {"T": "bfloat16", "Tind": "int32"}, "yes"),
        (CPU, "GatherElements", 11, {"T": "bfloat16", "Tind": "int32"}, "no"),
        (CPU, "GatherND", 13, {"T": "float32", "indices": "int32"}, "no"),
        (CPU, "Round", 22, {"T": "float16"}, "yes"),
        (TargetInfo("CPUExecutionProvider", onnxruntime="1.20.1"), "Round", 22, {"T": "float16"}, "no"),
        (
            TargetInfo("CPUExecutionProvider", onnxruntime="not a version"),
            "Round",
            22,
            {"T": "float16"},
            "yes",
        ),
        (DML, "Round", 11, {"T": "float16"}, "yes"),
        (DML, "Round", 21, {"T": "float16"}, "yes"),
        (DML, "Round", 22, {"T": "float16"}, "no"),
        (DML, "GatherND", 13, {"T": "int64", "indices": "int64"}, "yes"),
        (DML, "GatherND", 13, {"T": "float64", "indices": "int64"}, "device"),
        (TargetInfo("CUDAExecutionProvider"), "Round", 11, {"T": "float32"}, "unknown"),
        # operators that nobody typed
        (DML, "Gather", 13, {"data": "float32", "indices": "int64"}, "yes"),
        (DML, "Gather", 13, {"data": "string", "indices": "int64"}, "no"),
        (DML, "Add", 14, {"T": "uint64"}, "device"),
        (DML, "Add", 14, {"T": "int64"}, "yes"),
        (DML, "Add", 14, {"T": "float64"}, "no"),
        (CPU, "Ceil", 13, {"X": "float16"}, "no"),
        (CPU, "QuantizeLinear", 21, {"x": "float32", "y_zero_point": "int4"}, "yes"),
        (DML, "QuantizeLinear", 23, {"x": "float32", "y_zero_point": "int8"}, "no"),
        (CPU, "Concat", 13, {"inputs": "string"}, "yes"),
        # what the tables do not tell
        (CPU, "NoSuchOperator", 13, {"T": "float32"}, "unknown"),
        (CPU, "Round", 10, {"T": "float32"}, "unknown"),
        (NEWER, "Ceil", 13, {"X": "float16"}, "unknown"),
        (NEWER, "Ceil", 13, {"X": "float32"}, "yes"),
    ],
)
def test_registered_kernels(
    target: TargetInfo, operator: str, opset: int, types: dict[str, str], expected: str
) -> None:
    assert registered(target, operator, opset, types) == expected


def test_a_version_that_is_newer_than_the_tables_is_unknown() -> None:
    cast = onnx_operator("Cast")
    assert cast is not None
    assert cast.versions[-1] > 25
    assert registered(DML, "Cast", 13, {"T1": "float32"}) == "yes"
    assert registered(DML, "Cast", cast.versions[-1], {"T1": "float32"}) == "unknown"
    assert registered(CPU, "Cast", cast.versions[-1], {"T1": "float32"}) == "no"
    assert release().newest_opset == 25
    assert release().onnxruntime == "1.25.0"


def test_what_directml_makes_of_an_operator() -> None:
    assert lowers_to("GatherND", 13) == ("DML_OPERATOR_GATHER_ND1",)
    assert lowers_to("Softmax", 12) == ("DML_OPERATOR_ACTIVATION_SOFTMAX",)
    assert lowers_to("Softmax", 13) == ("DML_OPERATOR_ACTIVATION_SOFTMAX1",)
    assert lowers_to("ArgMax", 13) == ("DML_OPERATOR_ARGMAX",)
    assert lowers_to("Round", 22) is None
    assert lowers_to("NoSuchOperator", 13) is None
    assert directml_operators("Softmax") == (
        "DML_OPERATOR_ACTIVATION_SOFTMAX",
        "DML_OPERATOR_ACTIVATION_SOFTMAX1",
    )
    assert directml_operators("NoSuchOperator") == ()
