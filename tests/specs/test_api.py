"""Entries of a spec that speak of DirectML's own API."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import indent

import pytest

from harness.model.case import (
    Case,
    DirectmlOptions,
    DirectmlTensor,
    Validity,
)
from harness.model.errors import SpecError
from harness.model.query import Query
from harness.specs.expand import Plan, expand
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.api import DTYPES_OF_DIRECTML
from tests.plans import PARTS, plan_in_parts

HEAD = """\
operator: GatherND
opsets: [12, 13]
lowers_to: {directml: [DML_OPERATOR_GATHER_ND, DML_OPERATOR_GATHER_ND1]}
because: elements are moved
"""
INPUTS = """\
inputs:
  data: {dtype: float32, values: [[1, 2], [3, 4]]}
  indices: {dtype: uint32, values: [[1], [0]]}
"""


def plan(tmp_path: Path, entry: str, kind: str = "cases") -> Plan:
    path = tmp_path / "GatherND.yaml"
    lines = "name: a\n" + (INPUTS if kind == "cases" else "") + entry
    path.write_text(f"{HEAD}{kind}:\n  -\n{indent(lines, '    ')}\n")
    return expand(load_specs([path]))


def only(tmp_path: Path, entry: str) -> Case:
    (case,) = plan(tmp_path, entry)
    return case


def problems(tmp_path: Path, entry: str, kind: str = "cases") -> tuple[str, ...]:
    with pytest.raises(SpecError) as raised:
        plan(tmp_path, entry, kind)
    return raised.value.problems


def test_an_entry_of_the_api_stands_once_and_says_so_in_its_id(tmp_path: Path) -> None:
    case = only(tmp_path, "directml: {}")
    assert case.id == "GatherND@13:case=a;data=float32[2,2];indices=uint32[2,1];api=directml"
    assert case.directml == DirectmlOptions()
    assert Query.parse("api=directml").matches(case.id)


def test_what_is_asked_for_stands_in_the_case(tmp_path: Path) -> None:
    case = only(
        tmp_path,
        "directml: {operator: DML_OPERATOR_GATHER_ND, dimension_count: 4, in_place: InputTensor, layout: {OutputTensor: padded},\n"
        "  attributes: {InputDimensionCount: 3}, tensors: {OutputTensor: {dtype: int32, sizes: [1, 1, 2, 2], bytes: 64}}}",
    )
    assert case.directml == DirectmlOptions(
        "DML_OPERATOR_GATHER_ND",
        4,
        "InputTensor",
        (("OutputTensor", "padded"),),
        (("InputDimensionCount", 3),),
        (("OutputTensor", DirectmlTensor("int32", (1, 1, 2, 2), None, 64)),),
    )
    assert case.id.endswith(
        ";api=directml;operator=DML_OPERATOR_GATHER_ND;dimension_count=4;in_place=InputTensor;layout.OutputTensor=padded"
    )


def test_the_level_is_that_of_the_call_as_it_is_written(tmp_path: Path) -> None:
    """Nothing is padded to the 4 dimensions of level 2_1 that the call does not have, and GATHER_ND1 begins at
    3_0."""

    def level(asked: str) -> str:
        return only(tmp_path, f"directml: {{{asked}}}").levels["directml"]

    assert level("operator: DML_OPERATOR_GATHER_ND") == "3_0"
    assert level("operator: DML_OPERATOR_GATHER_ND, dimension_count: 4") == "2_1"
    assert level("operator: DML_OPERATOR_GATHER_ND, dimension_count: 3") == "3_0"
    assert level("operator: DML_OPERATOR_GATHER_ND1, dimension_count: 4") == "3_0"
    assert level("dimension_count: 9") == "beyond"


def test_index_types_are_the_written_ones(tmp_path: Path) -> None:
    """An int32 index stands for UINT32 only where lowering may choose."""
    lines = (
        INPUTS.replace("uint32", "int32") + "directml: {operator: DML_OPERATOR_GATHER_ND, dimension_count: 4}"
    )
    path = tmp_path / "GatherND.yaml"
    path.write_text(f"{HEAD}cases:\n  -\n{indent('name: a' + chr(10) + lines, '    ')}\n")
    (case,) = expand(load_specs([path]))
    assert case.levels == {"directml": "3_0"}


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("directml: {operator: DML_OPERATOR_GATHER}", "GatherND does not lower to 'DML_OPERATOR_GATHER'"),
        ("directml: {dimension_count: 1}", "more dimensions than dimension_count 1"),
        ("directml: {attributes: {Axis: 1}}", "the operator's description has no member 'Axis'"),
        (
            "directml: {operator: DML_OPERATOR_GATHER_ND, attributes: {BatchDimensionCount: 1}}",
            "no member 'BatchDimensionCount'",
        ),
        ("directml: {tensors: {OutputTensor: {dtype: bfloat16}}}", "DML_TENSOR_DATA_TYPE has no bfloat16"),
        ("directml: {}\noptions: {shapes: static}", "shapes is an option of a graph"),
        ("directml: {}\noptions: {optimization: all}", "optimization is an option of a graph"),
    ],
)
def test_what_is_wrong_is_said_at_its_line(tmp_path: Path, entry: str, what: str) -> None:
    found = problems(tmp_path, entry)
    assert len(found) == 1
    assert what in found[0]
    assert "GatherND.yaml:" in found[0]


def test_round_has_no_indices(tmp_path: Path) -> None:
    path = tmp_path / "Round.yaml"
    path.write_text(
        "operator: Round\nopsets: [22]\nlowers_to: {directml: DML_OPERATOR_ELEMENT_WISE_ROUND}\n"
        "cases:\n"
        "  - name: a\n    inputs: {X: {dtype: float32, values: [1]}}\n"
        "    directml: {in_place: IndicesTensor, layout: {IndicesTensor: zero}}\n"
    )
    with pytest.raises(SpecError) as raised:
        expand(load_specs([path]))
    assert [problem.rpartition(": ")[2] for problem in raised.value.problems] != []
    assert all("the operator has no IndicesTensor" in problem for problem in raised.value.problems)
    assert len(raised.value.problems) == 2


def test_a_sweep_is_the_product_of_its_lists(tmp_path: Path) -> None:
    entry = (
        "data: {dtype: [float32], shape: [[3], [2, 3]]}\n"
        "indices: {dtype: [uint64, int8], shape: {outer: [[2]], tuple: 1}, values: [in_range]}\n"
        "directml: {operator: [DML_OPERATOR_GATHER_ND, DML_OPERATOR_GATHER_ND1], dimension_count: [null, 1, 4],\n"
        "  layout: {InputTensor: [packed, zero]}}"
    )
    made = plan(tmp_path, entry, "sweeps")
    cases = list(made)
    number, left_out = made.counted()
    assert left_out == Counter({"more dimensions than dimension_count 1": 2 * 2 * 2 * 2})
    assert len(cases) == number == len({case.id for case in cases}) == 2 * 2 * 2 * 2 * 2
    assert {case.opset for case in cases} == {13}


def test_all_means_the_types_of_directml(tmp_path: Path) -> None:
    entry = "data: {dtype: all, shape: [[3]]}\nindices: {dtype: [uint32], shape: {outer: [[]], tuple: 1}, values: [in_range]}\ndirectml: {}"
    dtypes = [case.inputs[0].dtype for case in plan(tmp_path, entry, "sweeps")]
    assert sorted(dtypes) == sorted(DTYPES_OF_DIRECTML)
    assert len(dtypes) == 11
    assert not {"bool", "string", "bfloat16"} & set(dtypes)


@pytest.mark.parametrize("part", PARTS)
def test_no_case_of_onnx_carries_a_mark_of_the_api(part: str) -> None:
    """Ids of cases that were there before stay as they were: nothing is added to them."""
    for case in plan_in_parts(part):
        assert ("api=directml" in case.id) is (case.directml is not None)
        if case.directml is not None:
            assert case.source, case.id
            assert case.validity is Validity.VALID or case.rule


def test_a_call_of_an_operator_with_a_list_of_inputs_is_checked(tmp_path: Path) -> None:
    spec = tmp_path / "Concat.yaml"
    spec.write_text(
        "operator: Concat\nopsets: [13]\nlowers_to: {directml: DML_OPERATOR_JOIN}\ncases:\n"
        "  - name: api_join\n    source: a test\n    attributes: {axis: 0}\n"
        "    inputs: {inputs: [{dtype: float32, values: [1, 2]}, {dtype: float32, values: [3]}]}\n"
        "    directml: {tensors: {OutputTensor: {alignment: 64}}}\n",
        encoding="utf-8",
    )
    (case,) = expand(load_specs([spec]))
    assert case.id.endswith("api=directml")
    spec.write_text(spec.read_text(encoding="utf-8").replace("OutputTensor", "InputTensor"), encoding="utf-8")
    with pytest.raises(SpecError, match="the operator has no InputTensor; did you mean 'InputTensors'"):
        expand(load_specs([spec]))
