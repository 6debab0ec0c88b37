from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.model.case import Validity
from harness.model.result import Diff, Error
from harness.model.target_info import TargetInfo
from harness.model.verdict import Outcome
from harness.render.directml import render_cells, render_directml
from harness.render.html import render_html
from harness.render.markup import case_id
from harness.render.report import render_markdown
from harness.results.counted import read_tables
from harness.results.report import Report
from harness.results.runfile import RunReader
from harness.results.tensor_support import FLOOR
from tests import synthetic

DML = TargetInfo("DmlExecutionProvider", directml_sha256="aa", adapter="GPU", max_feature_level="6_4")
API = TargetInfo("DirectML", directml_sha256="aa", adapter="GPU", max_feature_level="6_4")
ROUND = "Round@22:sweep=a;X=float32[2]"
ODD = "Round@22:case=api_no_such_mode;X=int8[2];api=directml"
CALL = "ELEMENT_WISE_ROUND InputTensor={0}[1] OutputTensor={0}[1]"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    diff = Diff(1, 1, 2, (0,), "1.0", "2.0")
    refused = Error("NotExpressible", "x")
    results = [
        synthetic.result(ROUND, Outcome.MISMATCH, target="dml", diff=diff, output="aa00aa00aa00aa00"),
        synthetic.result(ROUND, Outcome.PASS, target="directml", call=CALL.format("FLOAT32")),
        synthetic.result(ODD, Outcome.NOT_RUN, target="dml", validity=Validity.INVALID, error=refused),
        synthetic.result(ODD, Outcome.ACCEPTED_INVALID, target="directml", call=CALL.format("INT8")),
    ]
    return synthetic.write_results(tmp_path / "run.jsonl", results, {"dml": DML, "directml": API})


def test_every_cell_stands_in_the_csv_with_its_case(run: Path) -> None:
    rows = list(csv.DictReader(render_cells(run)))
    assert len(rows) == 198
    told = {
        (row["tensor"], row["data_type"], row["dimension_count"]): row
        for row in rows
        if row["status"] != "not run"
    }
    assert set(told) == {
        (tensor, dtype, "1") for tensor in ("InputTensor", "OutputTensor") for dtype in ("FLOAT32", "INT8")
    }
    odd = told["InputTensor", "INT8", "1"]
    assert (odd["status"], odd["case"], odd["outcome"], odd["documented_since"]) == (
        "undocumented, accepted", ODD, "accepted_invalid", "",
    )  # fmt: skip
    assert told["OutputTensor", "FLOAT32", "1"]["documented_since"] == "3_0"


def test_the_page_has_cells_rules_and_the_cross_check(run: Path) -> None:
    text = render_directml(run)
    assert FLOOR in text
    assert "| FLOAT32 | ✓ | ? | ? | ? | ? | ? | ? | ? | ? |" in text
    assert "| INT8 | + | ? |" in text
    assert "1 accepted_invalid" in text
    assert f"| {case_id(ODD)} |" in text
    assert "1 case ran on dml and on directml" in text
    assert "| 1 | ONNX Runtime's lowering | the outputs differ | Round | valid | mismatch | pass |" in text


def test_the_reports_say_it_too(run: Path) -> None:
    markdown = render_markdown(Report(read_tables(RunReader(run))))
    page = render_html(run)
    for text in (markdown, page):
        assert "undocumented, accepted" in text
        assert "ONNX Runtime&#39;s lowering" in text or "ONNX Runtime's lowering" in text
        assert ODD in text or case_id(ODD) in text


def test_a_run_without_the_api_says_how_to_make_one(tmp_path: Path) -> None:
    synthetic.write_results(tmp_path / "run.jsonl", [], {"dml": DML})
    said = "No target of this run is DirectML's own API: harness run -t directml"
    assert said in render_directml(tmp_path)
    assert len(list(render_cells(tmp_path))) == 1
    assert "tensor support" not in render_markdown(Report(read_tables(RunReader(tmp_path))))
