"""The packaged facts of DirectML's operators: what they are held against, and what holds for all of them."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from harness.model.reference.directml import (
    ByValue,
    Constraint,
    Member,
    directml_operator,
    operator_names,
    sources,
)
from harness.model.reference.feature_levels import level_key, level_order, load

BY_HAND = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "directml_tables_by_hand.yaml").read_text(encoding="utf-8")
)["operators"]
TYPES = {
    "input", "output", "inputs", "outputs", "uint", "int", "float", "uint_array", "int_array", "float_array", "scale_bias", "scalar_union",
    "size_2d", "operator_desc", "operator_desc_array",
}  # fmt: skip

ARRAYS = {"uint_array", "int_array", "float_array", "operator_desc_array", "inputs", "outputs"}


@pytest.mark.parametrize("name", BY_HAND)
def test_tables_read_by_hand_come_out_identical(name: str) -> None:
    made, given = directml_operator(name), BY_HAND[name]
    assert f"DML_FEATURE_LEVEL_{made.introduced}" == given["introduced_in"]
    wanted = {level.removeprefix("DML_FEATURE_LEVEL_"): table for level, table in given["levels"].items()}
    assert list(made.tables) == list(wanted)
    for level, table in wanted.items():
        found = {
            tensor: {"dims": list(row.dims), "dtypes": list(row.dtypes), "kind": row.kind.title()}
            for tensor, row in made.tables[level].items()
        }
        assert found == table, level
        assert list(found) == list(table)


def test_numbers_are_those_of_the_header() -> None:
    """DML_OPERATOR_TYPE of DirectML.h: 177 operators, numbered 1 to 177 but for the four of the graph, which
    have no document."""
    numbers = {name: directml_operator(name).number for name in operator_names()}
    assert len(numbers) == len(set(numbers.values())) == 177
    known = {
        "GATHER": 67,
        "ELEMENT_WISE_ROUND": 99,
        "GATHER_ELEMENTS": 107,
        "GATHER_ND": 108,
        "GATHER_ND1": 140,
        "ELEMENT_WISE_IDENTITY": 1,
    }
    assert {name: numbers[f"DML_OPERATOR_{name}"] for name in known} == known


@pytest.mark.parametrize("name", operator_names())
def test_an_operator_agrees_with_itself(name: str) -> None:
    operator = directml_operator(name)
    members = {member.name: member for member in operator.members}
    assert len(members) == len(operator.members)
    assert {member.type for member in operator.members} <= TYPES
    for member in operator.members:
        if member.type in ARRAYS:
            assert member.count is not None
            counter = operator.members.index(members[member.count])
            assert members[member.count].type == "uint"
            assert counter < operator.members.index(member)
        else:
            assert member.count is None
    tensors = {member.name: member for member in operator.tensors}
    tables = operator.all_tables()
    assert any(tables)
    for by_level in tables:
        assert all(level in level_order() for level in by_level)
        assert all(level_key(first) < level_key(second) for first, second in pairwise(by_level))
        for table in by_level.values():
            assert set(table) <= set(tensors)
            for tensor, row in table.items():
                assert row.kind.removeprefix("optional_") == tensors[tensor].type, tensor
                assert 1 <= row.dims[0] <= row.dims[1] <= 8
    assert min(operator.table_levels, key=level_key) == operator.introduced
    for constraint in operator.constraints:
        assert set(constraint.same) <= {"dtype", "dimension_count", "sizes"}
        assert set(constraint.of) <= set(tensors)
    assert operator.document.count("@") == 1


def test_members_of_each_type() -> None:
    """Written down from DirectML.h by hand."""
    assert directml_operator("DML_OPERATOR_JOIN").members == (
        Member("InputCount", "uint"), Member("InputTensors", "inputs", count="InputCount"), Member("OutputTensor", "output"),
        Member("Axis", "uint"),
    )  # fmt: skip
    assert directml_operator("DML_OPERATOR_ELEMENT_WISE_CLIP1").members == (
        Member("InputTensor", "input"), Member("OutputTensor", "output"), Member("ScaleBias", "scale_bias", optional=True),
        Member("MinMaxDataType", "uint"), Member("Min", "scalar_union"), Member("Max", "scalar_union"),
    )  # fmt: skip
    resample = {member.name: member for member in directml_operator("DML_OPERATOR_RESAMPLE3").members}
    assert resample["Scales"] == Member("Scales", "float_array", count="DimensionCount")
    assert resample["InterpolationMode"].type == resample["Antialiased"].type == "uint"
    convolution = {member.name: member for member in directml_operator("DML_OPERATOR_CONVOLUTION").members}
    assert convolution["BiasTensor"].optional
    assert convolution["FusedActivation"] == Member("FusedActivation", "operator_desc", optional=True)
    assert directml_operator("DML_OPERATOR_UPSAMPLE_2D").members[2] == Member("ScaleSize", "size_2d")
    assert not directml_operator("DML_OPERATOR_BATCH_NORMALIZATION_GRAD").members[-1].optional


def test_tables_that_depend_on_a_value() -> None:
    reduce = directml_operator("DML_OPERATOR_REDUCE")
    assert reduce.tables == {}
    assert reduce.tables_for({"Function": 1})["1_0"]["OutputTensor"].dtypes == ("UINT32",)
    assert reduce.tables_for({"Function": 10})["1_0"]["OutputTensor"].dtypes == ("FLOAT32", "FLOAT16")
    assert reduce.tables_for({"Function": 99}) == {}
    assert sorted(value for each in reduce.by_value for value in each.values) == list(range(12))
    assert all(isinstance(each, ByValue) for each in reduce.by_value)
    assert (
        directml_operator("DML_OPERATOR_GATHER").tables_for({"Axis": 0})
        == directml_operator("DML_OPERATOR_GATHER").tables
    )


def test_constraints_and_aliasing() -> None:
    add = directml_operator("DML_OPERATOR_ELEMENT_WISE_ADD")
    assert add.constraints == (
        Constraint(("dtype", "dimension_count", "sizes"), ("ATensor", "BTensor", "OutputTensor")),
    )
    assert directml_operator("DML_OPERATOR_ELEMENT_WISE_ROUND").in_place == ("InputTensor",)
    assert directml_operator("DML_OPERATOR_GATHER_ND1").in_place is None


def test_sources_name_their_commits() -> None:
    assert len(sources().sources) == 3
    assert all(len(each.partition("@")[2].split()[0]) == 40 for each in sources().sources.values())


def test_an_unknown_operator_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        directml_operator("DML_OPERATOR_NOTHING")


def test_levels_have_numbers() -> None:
    assert {directml_operator(name).introduced for name in operator_names()} <= set(
        load("directml.yaml")["feature_levels"]
    )


def test_the_command_line_starts_without_the_facts() -> None:
    code = (
        "import sys; import harness.commands.cli; from harness.model.reference import files; "
        "print(files.data_file.cache_info().misses if 'harness.model.reference.files' in sys.modules else 0)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "0\n"
    )
