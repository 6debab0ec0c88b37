"""The kernels of the CPU provider by release: how the lists of releases are read, and how a target's release is answered for."""

from __future__ import annotations

import pytest
from packaging.version import Version

from harness.model.reference.kernels import cpu_kernels, registered
from harness.model.target_info import CPU, TargetInfo
from tools.cpu_kernels import FIRST, PATH, Listed, changes, kernels, listed, minors, text

_OPEN = 2**31 - 1


def test_an_open_ended_kernel_serves_its_first_version_alone() -> None:
    release: Listed = {
        "Add": [
            (13, _OPEN, {"T": ["int8", "float32"]}),
            (7, 12, {"T": ["float32"]}),
            (7, 12, {"T": ["int64"]}),
        ]
    }
    assert kernels("Add", (7, 13, 14), release) == [
        {"versions": [7], "types": {"T": ["float32", "int64"]}},
        {"versions": [13], "types": {"T": ["float32"]}},  # ONNX allows int8 from 14 on
    ]


def test_types_that_come_together_stay_together() -> None:
    halves = [{"T1": [each], "T2": [each], "U": ["bool", each]} for each in ("float16", "float32")]
    found = kernels("Attention", (23,), {"Attention": [(23, 23, each) for each in halves]})
    assert found == [{"versions": [23], "types": each} for each in halves]


def test_the_kernels_of_all_versions_serve_an_operator_that_onnx_does_not_define() -> None:
    release: Listed = {
        "ai.onnx.ml.LabelEncoder": [(4, _OPEN, {"T1": ["float64"]}), (2, 3, {"T1": ["int64"]})]
    }
    assert kernels("ai.onnx.ml.LabelEncoder", (2,), release) == [
        {"versions": [2], "types": {"T1": ["float64", "int64"]}}
    ]


def test_a_release_is_named_where_the_kernels_are_others_than_before() -> None:
    there: Listed = {"ConvInteger": [(10, _OPEN, {"T1": ["uint8"], "T2": ["uint8"]})]}
    found = dict(changes("ConvInteger", {"1.16": there, "1.17": {}, "1.18": there, "1.19": there}))
    assert (list(found), found["1.17"]) == (["1.16", "1.17", "1.18"], [])


def test_a_release_has_the_kernels_of_the_newest_list_up_to_it() -> None:
    found = [
        len(cpu_kernels("Attention", each))
        for each in ("1.10.0", "1.22.9", "1.23.0", "1.24.4", "9.0.0", None)
    ]
    assert found == [0, 0, 2, 4, 4, 4]


@pytest.mark.parametrize(
    ("operator", "opset", "types", "lacking", "having"),
    [
        ("ConvInteger", 10, {"x": "uint8", "w": "int8"}, "1.23.2", "1.24.4"),
        ("TensorScatter", 24, {"past_cache": "int64", "update": "int64"}, "1.24.4", "1.25.0"),
        ("Round", 22, {"X": "float32"}, "1.20.1", "1.21.0"),
        ("com.microsoft.LinearAttention", 1, {"query": "float32"}, "1.24.4", "1.25.0"),
        ("com.microsoft.MoEGroupRouter", 1, {"logits": "float32"}, "1.31.1", "1.32.0"),
    ],
)
def test_a_release_before_has_no_kernel(
    operator: str, opset: int, types: dict[str, str], lacking: str, having: str
) -> None:
    found = [
        registered(TargetInfo(CPU, onnxruntime=each), operator, opset, types) for each in (lacking, having)
    ]
    assert found == ["no", "yes"]
    assert registered(TargetInfo(CPU, onnxruntime="1.16.3"), "Add", 13, {"A": "float32"}) == "yes"


@pytest.mark.slow
def test_the_file_is_what_the_releases_list() -> None:
    assert PATH.read_text(encoding="utf-8") == text()


@pytest.mark.slow
def test_the_oldest_release_lists_its_kernels() -> None:
    oldest = minors()[0]
    assert oldest.release[:2] == FIRST.release[:2] == Version("1.16").release
    assert kernels("Add", (13,), listed(oldest))[0]["types"]["T"][0] == "float32"
