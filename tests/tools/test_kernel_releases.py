"""Since which release the CPU provider has a kernel: what is told from the lists of releases, and what a target is told."""

from __future__ import annotations

import pytest
from packaging.version import Version

from harness.model.reference.kernels import registered
from harness.model.target_info import CPU, TargetInfo
from tools.kernel_releases import FIRST, PATH, Kernels, listed, minors, serves, since, text

_OPEN = 2**31 - 1


def test_an_open_ended_kernel_serves_its_first_version_alone() -> None:
    kernels: Kernels = {"Add": [(7, 12, {"T": ("float32",)}), (13, _OPEN, {"T": ("float32", "int8")})]}
    served = [(version, serves(kernels, "Add", version, "T", "float32")) for version in (6, 7, 12, 13, 14)]
    assert served == [(6, False), (7, True), (12, True), (13, True), (14, False)]
    assert [serves(kernels, "Add", version, "T", "int8") for version in (7, 13)] == [False, True]


def test_a_kernel_that_comes_and_goes_is_there_since_it_last_came() -> None:
    there: Kernels = {"ConvInteger": [(10, _OPEN, {"T1": ("int8", "uint8"), "T2": ("int8", "uint8")})]}
    found = since({"1.16": there, "1.17": {}, "1.18": there, "1.19": there})
    assert {each for each in found if each[0] == "ConvInteger" and each[2] != "T3"} == {
        ("ConvInteger", 10, parameter, dtype, "1.18")
        for parameter in ("T1", "T2")
        for dtype in ("int8", "uint8")
    }


@pytest.mark.parametrize(
    ("operator", "opset", "types", "lacking", "having"),
    [
        ("ConvInteger", 10, {"x": "uint8", "w": "int8"}, "1.23.2", "1.24.4"),
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
    assert serves(listed(oldest), "Add", 13, "T", "float32")
