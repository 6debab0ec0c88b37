"""The extraction of facts from checkouts: small repositories with pages in the form that Microsoft and ONNX
Runtime write them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.model.reference.files import file_bytes
from tools.refresh_directml import documents, kernel_table, package, provider, structures
from tools.refresh_directml.__main__ import main

PAGE = """\
# DML_TURN_OPERATOR_DESC structure

Turns [`InputTensor`](/x) around.

## Tensor constraints
* *InputTensor* and *OutputTensor* must have the same *DataType* and *DimensionCount*.
* *OutputTensor* is larger.

## In-place execution
The output tensor is permitted to alias *InputTensor* during binding.

## Tensor support
### DML_FEATURE_LEVEL_3_0 and above
| Tensor | Kind | Supported dimension counts | Supported data types |
| ------ | ---- | -------------------------- | -------------------- |
| InputTensor | Input | 1 to 8 | FLOAT32, FLOAT16 |
| BiasTensor | Optional input | 4 | FLOAT32 |
| OutputTensor | Output | 1 to 8 | FLOAT32, FLOAT16 |

### DML_FEATURE_LEVEL_2_0 and above
| Tensor | Kind | Dimensions | Supported dimension counts | Supported data types |
| ------ | ---- | ---------- | -------------------------- | -------------------- |
| InputTensor | Input | { N, C } | 4 | FLOAT32 |
| OutputTensor | Output | { N, C } | 4 | FLOAT32, FLOAT4 |

## Requirements
This operator was introduced in `DML_FEATURE_LEVEL_2_0`.
"""
SCHEMA = """\
constexpr DML_SCHEMA_FIELD DML_TURN_OPERATOR_SCHEMA_FIELDS[5] {
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_INPUT_TENSOR, DML_SCHEMA_FIELD_TYPE_TENSOR_DESC, "InputTensor", false },
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_INPUT_TENSOR, DML_SCHEMA_FIELD_TYPE_TENSOR_DESC, "BiasTensor", true },
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_OUTPUT_TENSOR, DML_SCHEMA_FIELD_TYPE_TENSOR_DESC, "OutputTensor", false },
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_ATTRIBUTE, DML_SCHEMA_FIELD_TYPE_UINT, "AxisCount", false },
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_ATTRIBUTE, DML_SCHEMA_FIELD_TYPE_UINT_ARRAY, "Axes", false },
};
"""
TYPES = """\
enum DML_OPERATOR_TYPE
{
  DML_OPERATOR_INVALID,
  DML_OPERATOR_IDENTITY,
  DML_OPERATOR_SCATTER,
  DML_OPERATOR_SCATTER_ELEMENTS,
  DML_OPERATOR_TURN = 0x10,
};
"""
HISTORY = """\
## DML_FEATURE_LEVEL_3_0
Introduced in DirectML version 1.4.0.

Added operators:
- DML_OPERATOR_TURN
- DML_OPERATOR_WITHOUT_PAGE
"""
REGISTRATION = """\
enum class SupportedTensorDataTypes : uint32_t
{
    Float32 = 1 << 1, // comment
    Float16 = 1 << 2,
    Int64 = 1 << 3,
    All = static_cast<uint32_t>(-1),
    Float16to32 = Float16 | Float32,
};
constexpr static std::array<const char*, 1> typeNameListDefault = {"T"};
constexpr static std::array<const char*, 2> typeNameListTwo = {"T", "Tind"};
constexpr static std::array<X, 1> supportedTypeListFloat16to32 = {SupportedTensorDataTypes::Float16to32};
constexpr static std::array<X, 2> supportedTypeListGather = {
    SupportedTensorDataTypes::Float32|SupportedTensorDataTypes::Float16, SupportedTensorDataTypes::Int64 /*indices*/};
constexpr static auto operatorRegistrationInformationTable[] =
{
    {REG_INFO(      7,  Neg,    typeNameListDefault, supportedTypeListFloat16to32, DmlGraphSupport::Supported)},
    {REG_INFO(13, Gather, typeNameListTwo, supportedTypeListGather, DmlGraphSupport::Supported, requiredConstantCpuInputs(1), QueryGather)},
    {REG_INFO_MS(   1,  Gelu,   typeNameListDefault, supportedTypeListFloat16to32, DmlGraphSupport::NotSupported)},
#if DML_TARGET_VERSION >= 0x6400
    {REG_INFO_VER( 13,  Pad,    typeNameListDefault, supportedTypeListFloat16to32, DmlGraphSupport::Supported)},
#endif
};
MLOperatorEdgeDescription TensorEdgeDesc();
"""
VERSIONS = """\
namespace OnnxOperatorSet7 { static const int sc_sinceVer_Neg = 6; }
namespace OnnxOperatorSet13 { static const int sc_sinceVer_Gather = 13; static const int sc_sinceVer_Pad = 13; }
namespace MsftOperatorSet1 { static const int sc_sinceVer_Gelu = 1; }
"""
SOURCE = """\
template <typename TDesc> class DmlOperatorUnary : public DmlOperator { void f() { DML_OPERATOR_DESC d = {}; } };
class DmlOperatorGather : public DmlOperator { void f() { DML_GATHER_OPERATOR_DESC d = {}; /* DML_SLICE_OPERATOR_DESC */ } };
DML_OP_DEFINE_CREATION_FUNCTION(Neg, DmlOperatorUnary<DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC>);
DML_OP_DEFINE_CREATION_FUNCTION(Gather, DmlOperatorGather);
DML_OP_DEFINE_CREATION_FUNCTION(Gelu, DmlOperatorUnary<DML_ACTIVATION_GELU_OPERATOR_DESC>);
DML_OP_DEFINE_CREATION_FUNCTION(Pad13, VersionedKernel<DmlOperatorGather, 13>);
"""
KERNELS = """\
## Operators implemented by CPUExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Gather|*in* data:**T**|13+|**T** = tensor(float)<br/> **Tind** = tensor(int64)|
## Operators implemented by DmlExecutionProvider

|**Operator Domain:** *ai.onnx*||||
|Gather|*in* data:**T**|13+|**T** = tensor(bfloat16), tensor(float), tensor(double)<br/> **Tind** = tensor(int32), tensor(int64)|
|||[11, 12]|**T** = tensor(bfloat16), tensor(float)<br/> **Tind** = tensor(int32)|
|||1|**T** = tensor(float)<br/> **Tind** = tensor(int64)|
|SequenceAt|*in* input_sequence:**S**|11+|**S** = seq(tensor(float))<br/> **I** = tensor(int32)|
|**Operator Domain:** *com.microsoft*||||
|Gelu|*in* X:**T**|1+|**T** = tensor(float)|
"""


def checkout(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(folder)]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "facts"]):
        subprocess.run([*git, *arguments], check=True)
    return folder


@pytest.fixture
def repositories(tmp_path: Path) -> dict[str, Path]:
    sdk, dml = "sdk-api-src/content/directml/", provider.OPERATORS
    return {
        "--sdk-api": checkout(
            tmp_path / "sdk",
            {
                f"{sdk}ns-directml-dml_turn_operator_desc.md": PAGE,
                f"{sdk}ne-directml-dml_operator_type.md": TYPES,
            },
        ),
        "--windows-ai-docs": checkout(
            tmp_path / "ai", {"docs/directml/dml-feature-level-history.md": HISTORY}
        ),
        "--directml": checkout(tmp_path / "dml", {structures.SCHEMA: SCHEMA}),
        "--onnxruntime": checkout(
            tmp_path / "ort",
            {
                "VERSION_NUMBER": "1.99.0\n",
                kernel_table.PATH: KERNELS,
                provider.REGISTRATION: REGISTRATION,
                provider.VERSIONS: VERSIONS,
                dml + "DmlOperatorSome.cpp": SOURCE,
            },
        ),
    }


def test_both_files_are_made_from_checkouts(
    repositories: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    given = [part for name, path in repositories.items() for part in (name, str(path))]
    assert main([*given, "--output", str(made)]) == 0
    said = capsys.readouterr().out
    assert "1 DirectML operators" in said
    assert "OutputTensor: data types ['FLOAT4']" in said
    assert "page 2_0, history 3_0" in said
    assert "DML_OPERATOR_WITHOUT_PAGE: added in 3_0 and has no page" in said
    operators = json.loads((made / "directml_operators.json").read_text(encoding="utf-8"))
    commit = subprocess.run(
        ["git", "-C", str(repositories["--sdk-api"]), "rev-parse", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert commit.stdout.strip() in operators["sources"]["sdk-api"]
    turn = operators["operators"]["DML_OPERATOR_TURN"]
    assert turn.pop("document").startswith(
        f"MicrosoftDocs/sdk-api:sdk-api-src/content/directml/ns-directml-dml_turn_operator_desc.md@{commit.stdout[:40]}"
    )
    assert turn == {
        "number": 16,
        "introduced": "2_0",
        "members": [
            {"name": "InputTensor", "type": "input"},
            {"name": "BiasTensor", "type": "input", "optional": True},
            {"name": "OutputTensor", "type": "output"},
            {"name": "AxisCount", "type": "uint"},
            {"name": "Axes", "type": "uint_array", "count": "AxisCount"},
        ],
        "tables": {
            "2_0": {"InputTensor": {"kind": "input", "dims": [4, 4], "dtypes": ["FLOAT32"], "shape": "N, C"}},
            "3_0": {
                "InputTensor": {"kind": "input", "dims": [1, 8], "dtypes": ["FLOAT32", "FLOAT16"]},
                "BiasTensor": {"kind": "optional_input", "dims": [4, 4], "dtypes": ["FLOAT32"]},
                "OutputTensor": {"kind": "output", "dims": [1, 8], "dtypes": ["FLOAT32", "FLOAT16"]},
            },
        },
        "constraints": [{"same": ["dtype", "dimension_count"], "of": ["InputTensor", "OutputTensor"]}],
        "in_place": ["InputTensor"],
    }
    kernels = json.loads((made / "onnxruntime_kernels.json").read_text(encoding="utf-8"))
    assert (kernels["onnxruntime"], kernels["newest_opset"]) == ("1.99.0", 13)
    gather = kernels["operators"]["Gather"]
    assert gather["versions"] == [1, 11, 13]
    assert gather["kernels"] == [  # ONNX allows bfloat16 from 13 on
        {"versions": [1], "types": {"T": ["float32"], "Tind": ["int64"]}},
        {"versions": [11], "types": {"T": ["float32"], "Tind": ["int32"]}},
        {"versions": [13], "types": {"T": ["bfloat16", "float32", "float64"], "Tind": ["int32", "int64"]}},
    ]
    assert gather["directml"] == [
        {"versions": [13], "creates": ["DML_OPERATOR_GATHER"], "constants": ["indices"], "query": "Gather"}
    ]
    assert kernels["operators"]["Neg"]["directml"] == [
        {"versions": [6], "creates": ["DML_OPERATOR_ELEMENT_WISE_NEGATE"]}
    ]
    pad = kernels["operators"]["Pad"]["directml"]
    assert pad == [{"versions": [13], "creates": ["DML_OPERATOR_GATHER"], "dml_target_version": "0x6400"}]
    assert kernels["operators"]["SequenceAt"]["kernels"][0]["types"]["S"] == ["seq(float32)"]


def test_missing_checkouts_are_named_and_nothing_is_downloaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--sdk-api", str(tmp_path)])
    assert ended.value.code == 2
    assert (
        "missing: --windows-ai-docs, --directml, --onnxruntime; nothing is downloaded here"
        in capsys.readouterr().err
    )


def test_a_folder_that_is_no_checkout_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("--sdk-api", "--windows-ai-docs", "--directml", "--onnxruntime")
    assert main([part for name in names for part in (name, str(tmp_path))]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["--facts", str(tmp_path)]) == 2
    assert (
        "directml_provider_registry.yaml" in (said := capsys.readouterr().err)
        or "onnxruntime_operator_kernels.yaml" in said
    )


def test_members_as_a_page_prints_them() -> None:
    lines = (
        "const DML_TENSOR_DESC *InputTensor;",
        "UINT DimensionCount;",
        "_Field_size_(DimensionCount) const UINT* Strides;",
    )
    text = "\n  ".join(("```cpp", "struct DML_FOLD_OPERATOR_DESC {", *lines, "};"))
    assert structures.printed_members(text) == [
        {"name": "InputTensor", "type": "const DML_TENSOR_DESC *"},
        {"name": "DimensionCount", "type": "UINT"},
        {"name": "Strides", "type": "const UINT *"},
    ]
    assert structures.enumeration(TYPES) == {
        "DML_OPERATOR_INVALID": 0, "DML_OPERATOR_IDENTITY": 1, "DML_OPERATOR_SCATTER": 2, "DML_OPERATOR_TURN": 16,
    }  # fmt: skip


def test_tables_by_function_and_aliasing_of_any_input() -> None:
    text = "## Tensor support\n### MIN and MAX\n#### DML_FEATURE_LEVEL_1_0 and above\n| InputTensor | Input | 4 | FLOAT32 |\n"
    assert documents.tensor_support(text, "1_0", []) == (
        {},
        {"MIN and MAX": {"1_0": {"InputTensor": {"kind": "input", "dims": [4, 4], "dtypes": ["FLOAT32"]}}}},
    )
    assert documents.aliasing("permitted to alias an input tensor during binding") == "any"
    assert documents.aliasing("nothing of it") is None


def test_the_packaged_files_are_in_the_form_that_the_tool_writes() -> None:
    for name in ("directml_operators.json", "onnxruntime_kernels.json"):
        text = file_bytes(name).decode()
        tree = json.loads(text)
        operators = tree.pop("operators")
        assert package._lines(tree, operators) == text
        assert list(operators) == sorted(operators)
