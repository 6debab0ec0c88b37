"""The specs' calls of DirectML's own API on the real DLL: from the case to the verdict, and to what reports
say."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from harness.render.directml import render_cells, render_directml
from tests.running import SPECS, harness, lines_of

pytestmark = pytest.mark.windows_runtime
RULES = ("Round:case=api_*", "GatherElements:case=api_*", "GatherND:case=api_*")
CELLS = ("Round:sweep=api_data_types", "Round:sweep=api_other_data_types", "Round:sweep=api_9_dimensions")
PASSING = (
    "GatherElements:sweep=api_data_layout;data=uint8[3,4]",
    "GatherND:sweep=api_output_layout;data=float16[3,4]",
    "Round:sweep=api_layout;X=float16[3,4]",
    "Round:sweep=api_in_place;X=float32[3,4]",
    "GatherND@13:sweep=batch;data=bool[2,3,4]",
    "GatherND@13:sweep=batch;data=uint8[2,3,4]",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of all that is asked here; it ends as expected."""
    folder = tmp_path_factory.mktemp("run") / "r"
    queries = [part for query in (*RULES, *CELLS, *PASSING) for part in ("-k", query)]
    ended = harness("run", SPECS, "-t", "directml", *queries, "-o", folder)
    assert ended.code == 0, ended.out + ended.err
    return folder


def results(run: Path, part: str) -> list[dict[str, Any]]:
    return [line for line in lines_of(run) if line["type"] == "result" and part in line["case"]]


def test_both_sides_of_the_rules_are_as_the_documents_and_expectations_say(run: Path) -> None:
    found = results(run, ":case=api_")
    assert len(found) > 80
    rejected = [result for result in found if result["outcome"] == "rejected"]
    assert len(rejected) > 45
    assert {(result["stage"], result["error"]["class"]) for result in rejected} == {
        ("load", "CreateOperator E_INVALIDARG")
    }
    by_name = {result["case"].partition("case=")[2].partition(";")[0]: result for result in found}
    assert by_name["api_nd_documented_sizes"]["outcome"] == "pass"
    assert by_name["api_nd_sizes_by_formula"]["outcome"] == "rejected"
    assert (
        by_name["api_documented"]["call"]
        == "GATHER_ELEMENTS InputTensor=FLOAT32[2] IndicesTensor=UINT32[2] OutputTensor=FLOAT32[2]"
    )
    assert "2 rejected at load: CreateOperator E_INVALIDARG" in render_directml(run)


def test_strides_bool_and_in_place_give_the_bits_of_the_oracle(run: Path) -> None:
    found = [
        result
        for name in ("_layout", "api_in_place", "sweep=batch")
        for result in results(run, name)
        if "sweep" in result["case"]
    ]
    assert len(found) > 80
    assert {result["outcome"] for result in found} == {"pass"}
    assert {result["placed_on"] for result in found} == {"DirectML"}


def test_the_cells_of_round_are_as_documented(run: Path) -> None:
    rows = [row for row in csv.DictReader(render_cells(run)) if row["operator"] == "ELEMENT_WISE_ROUND"]
    assert len(rows) == 2 * 11 * 9
    assert {row["status"] for row in rows} == {"as documented"}
    assert all(row["case"] for row in rows)
