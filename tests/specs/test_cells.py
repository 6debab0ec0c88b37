"""`harness coverage --cells`: which types, ranks and attribute values have a case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import api
from harness.specs.coverage.attribute_cells import CellCoverage, cell_coverages, level_of
from tests.running import harness

SPEC = """\
operator: DepthToSpace
opsets: [11, 13]
lowers_to: {directml: DML_OPERATOR_DEPTH_TO_SPACE1}
sweeps:
  - name: modes
    opsets: [13]
    input: {dtype: [float32, int8, string], shape: [[1, 4, 2, 2]]}
    attributes: {blocksize: 2, mode: [DCR, CRD]}
  - name: earlier
    opsets: [11]
    input: {dtype: [float32], shape: [[1, 4, 2, 2]]}
    attributes: {blocksize: 2, mode: [DCR]}
  - name: no_such_mode
    validity: invalid
    rule: "DCR or CRD"
    input: {dtype: [uint8], shape: [[1, 4, 2, 2]]}
    attributes: {blocksize: 2, mode: RCD}
"""
REDUCE = """\
operator: ReduceMax
opsets: [18]
lowers_to: {directml: DML_OPERATOR_REDUCE}
sweeps:
  - name: axes
    data: {dtype: [float32], shape: [[2], [2, 3, 4]]}
    attributes: {axes: [[0], [-1], null], keepdims: [0, 1]}
"""
MOD = """\
operator: Mod
opsets: [13]
cases:
  - name: integers
    inputs: {A: {dtype: int32, values: [7]}, B: {dtype: int32, values: [3]}}
  - name: integers_as_in_c
    attributes: {fmod: 1}
    inputs: {A: {dtype: int32, values: [7]}, B: {dtype: int32, values: [3]}}
  - name: floats
    attributes: {fmod: 1}
    inputs: {A: {dtype: float32, values: [7]}, B: {dtype: float32, values: [3]}}
"""


def counted(folder: Path, text: str) -> CellCoverage:
    path = folder / f"{text.splitlines()[0].split()[-1]}.yaml"
    path.write_text(text, encoding="utf-8")
    (found,) = cell_coverages(api.load([path]))
    return found


def test_types_ranks_and_values_with_a_case_are_counted(tmp_path: Path) -> None:
    found = counted(tmp_path, SPEC)
    by_kind = {" × ".join(each.kind): (each.covered, each.possible) for each in found.counts}
    assert found.cases == 7
    assert by_kind == {
        "opset × type": (4, 31),
        "type × rank": (3, 16),
        "type × attribute": (6, 32),
        "rank × attribute": (2, 2),
        "type × rank × attribute": (6, 32),
    }
    missing = found.counts[0].missing
    assert (("opset", "11"), ("type", "int8")) in missing
    assert (("opset", "13"), ("type", "uint8")) in missing  # an invalid case covers nothing
    assert found.levels == {"2_1": (2, 9), "5_0": (0, 3), "beyond": (1, 4)}


def test_a_rank_is_possible_that_directml_documents_and_no_rule_forbids(tmp_path: Path) -> None:
    ranks = {dict(levels)["rank"] for levels in counted(tmp_path, REDUCE).counts[1].missing}
    assert ranks == set("12345678")
    assert {dict(levels)["rank"] for levels in counted(tmp_path, SPEC).counts[1].missing} == {"4"}


def test_an_input_that_decides_shapes_counts_as_an_attribute(tmp_path: Path) -> None:
    found = counted(tmp_path, REDUCE).counts[2]
    missing = {levels[1] for levels in found.missing if levels[0] == ("type", "float32")}
    assert missing == {("noop_with_empty_axes", "1")}


def test_what_a_rule_forbids_is_no_gap(tmp_path: Path) -> None:
    found = counted(tmp_path, MOD).counts[2]
    assert found.forbidden.total() >= 1
    missing = {(dict(levels)["type"], dict(levels).get("fmod")) for levels in found.missing}
    assert ("float32", "0") not in missing
    assert ("float16", "0") not in missing
    assert ("float16", "1") in missing


@pytest.mark.parametrize(
    ("lowers_to", "dtype", "rank", "level"),
    [
        ("DML_OPERATOR_ELEMENT_WISE_ABS", "float32", 4, "1_0"),
        ("DML_OPERATOR_ELEMENT_WISE_ABS", "float32", 6, "3_0"),
        ("DML_OPERATOR_ELEMENT_WISE_ABS", "float32", 9, "beyond"),
        ("DML_OPERATOR_ELEMENT_WISE_ABS", "string", 1, "beyond"),
        ("DML_OPERATOR_GATHER", "int64", 2, "4_1"),
    ],
)
def test_the_level_of_a_type_and_rank(lowers_to: str, dtype: str, rank: int, level: str) -> None:
    assert level_of((lowers_to,), dtype, rank) == level


def test_the_command_prints_what_has_no_case(tmp_path: Path) -> None:
    counted(tmp_path, SPEC)
    spec = tmp_path / "DepthToSpace.yaml"
    lines = harness("coverage", spec, "--cells").out.splitlines()
    assert lines[0].startswith("DepthToSpace, cells with a case: opset × type 4 of 31, type × rank 3 of 16, ")
    assert lines[1].startswith("  type × rank by feature level: 2_1 2 of 9, 5_0 0 of 3, beyond 1 of 4")
    assert sum("mode=CRD" in line for line in lines) == 1
    more = harness("coverage", spec, "--cells", "--missing").out.splitlines()
    assert any("mode=CRD × rank 4 × bfloat16, bool" in line for line in more)
    (found,) = [json.loads(line) for line in harness("coverage", spec, "--cells", "--json").out.splitlines()]
    assert [each["covered"] for each in found["cells"]] == [4, 3, 6, 2, 6]
    assert found["levels"]["2_1"] == {"covered": 2, "possible": 9}
    both = harness("coverage", spec).out
    assert "DepthToSpace, valid: " in both
    assert "DepthToSpace, cells with a case: " in both
