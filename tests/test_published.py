from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from harness.published import level_order, load, operator_version, registered, table_levels
from harness.records import TargetInfo
from harness.specs import source

CPU = TargetInfo("CPUExecutionProvider", onnxruntime="1.24.4")
DML = TargetInfo("DmlExecutionProvider", onnxruntime="1.24.4", device_dtypes=("int64",))


def test_levels_run_from_the_lowest_to_beyond() -> None:
    order = level_order()
    assert order[0] == "1_0"
    assert order[-2:] == ("6_4", "beyond")
    assert table_levels() == ("2_1", "3_0", "4_1", "beyond")


@pytest.mark.parametrize("path", sorted(Path(str(files("harness.data"))).glob("*.yaml")), ids=lambda path: path.name)
def test_a_data_file_holds_nothing_that_readers_of_yaml_disagree_on(path: Path) -> None:
    """Read by the rules of specs, which are those of YAML 1.2, it is the same: no `no`, no `2_1` without quotes."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, (tuple, list)) else value

    assert plain(source.read(path).tree) == load(path.name)


def test_the_data_files_keep_their_sources() -> None:
    assert "DML_OPERATOR_GATHER_ND1" in load("directml.yaml")["meta"]["sources"]


@pytest.mark.parametrize(("opset", "version"), [(10, None), (11, 11), (21, 11), (22, 22), (25, 22)])
def test_a_model_uses_the_newest_version_up_to_its_opset(opset: int, version: int | None) -> None:
    assert operator_version("Round", opset) == version


@pytest.mark.parametrize(
    ("target", "operator", "opset", "dtype", "index_dtype", "expected"),
    [
        (CPU, "GatherElements", 13, "bfloat16", "int32", "yes"),
        (CPU, "GatherElements", 11, "bfloat16", "int32", "no"),
        (CPU, "GatherND", 13, "float32", "int32", "no"),
        (CPU, "Round", 22, "float16", "", "yes"),
        (TargetInfo("CPUExecutionProvider", onnxruntime="1.20.1"), "Round", 22, "float16", "", "no"),
        (TargetInfo("CPUExecutionProvider", onnxruntime="not a version"), "Round", 22, "float16", "", "yes"),
        (DML, "Round", 11, "float16", "", "yes"),
        (DML, "Round", 21, "float16", "", "yes"),
        (DML, "Round", 22, "float16", "", "no"),
        (DML, "GatherND", 13, "int64", "int64", "yes"),
        (DML, "GatherND", 13, "float64", "int64", "device"),
        (DML, "Gather", 13, "float32", "int64", "unknown"),
        (TargetInfo("CUDAExecutionProvider"), "Round", 11, "float32", "", "unknown"),
    ],
)
def test_registered_kernels(target: TargetInfo, operator: str, opset: int, dtype: str, index_dtype: str, expected: str) -> None:
    assert registered(target, operator, opset, dtype, index_dtype) == expected
