"""Outputs that a node leaves out before others: its graph, its import, and what the real CPU provider gives."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from harness.compile.prepare import refusal
from harness.model.expected import nearest
from harness.model.query import parse_all
from harness.model.target_info import DIRECTML
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.run.judge import judge
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs
from harness.specs.selection import Selection
from tests.prepared import PROVIDER, answered, compiled, graph_of, placed, prepared_case
from tests.running import SPECS, complaint, harness, results_of

LSTM = """\
operator: LSTM
opsets: [14]
sweeps:
  - name: a
    X: {{dtype: float32, shape: [[3, 2, 4]], values: [unit]}}
    W: {{values: [unit]}}
    R: {{values: [unit]}}
    attributes: {{hidden_size: [3]}}
    options: {options}
"""


def spec(folder: Path, options: str) -> Path:
    (path := folder / "LSTM.yaml").write_text(LSTM.format(options=options), "utf-8")
    return path


@pytest.mark.parametrize(
    ("omit", "node", "graph"),
    [
        ("Y", ["", "Y_h", "Y_c"], ["Y_h", "Y_c"]),
        ('"Y,Y_h"', ["", "", "Y_c"], ["Y_c"]),
        ("Y_h", ["Y", "", "Y_c"], ["Y", "Y_c"]),
    ],
)
@pytest.mark.parametrize("neighbours", ["false", "true"])
def test_the_node_has_an_empty_name_and_the_graph_none(
    tmp_path: Path, omit: str, node: list[str], graph: list[str], neighbours: str
) -> None:
    options = f"{{outputs: 3, omit: {omit}, neighbours: {neighbours}}}"
    (case,) = Selection(expand(load_specs([spec(tmp_path, options)]))).cases(valid=True)
    model = ModelProto.FromString(compiled(case).model)
    onnx.checker.check_model(model, full_check=True)
    (tested,) = (each for each in model.graph.node if each.name == "tested")
    assert [name.removesuffix("_after") for name in tested.output] == node
    assert [value.name for value in model.graph.output] == graph


def test_every_way_to_omit_gives_the_outputs_that_all_together_have(tmp_path: Path) -> None:
    options = (
        '{outputs: 3, omit: [null, Y, Y_h, "Y,Y_h"], neighbours: [false, true], optimization: ["off", all]}'
    )
    assert (
        harness("run", spec(tmp_path, options), "-t", "cpu", "-t", "fake", "-o", tmp_path / "run").code == 0
    )
    results = results_of(tmp_path / "run", "cpu")
    assert len(results) == 16
    assert {each["outcome"] for each in results.values()} == {"pass"}


@pytest.mark.parametrize(
    ("omit", "node"),
    [("outputs.0", ["", "outputs.1", "outputs.2"]), ('"outputs.0,outputs.1"', ["", "", "outputs.2"])],
)
def test_one_of_a_variadic_output_may_have_an_empty_name(tmp_path: Path, omit: str, node: list[str]) -> None:
    (path := tmp_path / "Split.yaml").write_text(
        "operator: Split\nopsets: [18]\nsweeps:\n  - name: a\n    validity: unspecified\n    rule: none\n"
        f"    input: {{dtype: float32, shape: [[6]]}}\n    options: {{outputs: 3, omit: {omit}}}\n",
        "utf-8",
    )
    (case,) = Selection(expand(load_specs([path]))).cases(valid=False)
    (tested,) = ModelProto.FromString(compiled(case).model).graph.node
    assert list(tested.output) == node


def test_the_state_in_place_of_the_cell_turns_red(tmp_path: Path) -> None:
    """A kernel that numbers only the outputs that it is asked for gives Y_h where Y_c is wanted."""
    (case,) = Selection(expand(load_specs([spec(tmp_path, '{outputs: 3, omit: "Y,Y_h"}')]))).cases(valid=True)
    prepared = prepared_case(case)
    inputs = dict(zip(prepared.call.inputs, prepared.inputs, strict=True))
    _, state, cell = map(nearest, OPERATORS["LSTM"].oracle(prepared.call, inputs, "ieee"))
    graph = graph_of(prepared)
    judged = [
        judge(prepared, graph, answered(output, placed("LSTM")), PROVIDER).outcome for output in (cell, state)
    ]
    assert judged == [Outcome.PASS, Outcome.MISMATCH]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("{outputs: 3, omit: y}", "LSTM has no optional output 'y'; did you mean 'Y'?; allowed: Y, Y_h, Y_c"),
        ("{outputs: 2, omit: Y_h}", "the last of 2 outputs is omitted"),
        ("{omit: Y}", "say by 'outputs' how many outputs there are"),
    ],
)
def test_what_cannot_be_left_out_so_is_said(tmp_path: Path, options: str, told: str) -> None:
    ended = harness("check", spec(tmp_path, options))
    assert ended.code == 2
    assert complaint(ended).partition("options.omit: ")[2].startswith(told)


def test_a_model_comes_back_as_the_case_that_it_was(tmp_path: Path) -> None:
    path = spec(tmp_path, '{outputs: [3], omit: [Y, Y_h, "Y,Y_h"], neighbours: [false, true]}')
    assert harness("export", "--spec", path, tmp_path / "tests").code == 0
    assert harness("import", tmp_path / "tests", "-o", tmp_path / "specs").code == 0
    found = Selection(expand(load_specs([tmp_path / "specs"]))).cases(valid=True)
    assert sorted((each.options.omit, each.options.neighbours) for each in found) == sorted(
        (omit, neighbours) for omit in ("Y", "Y_h", "Y,Y_h") for neighbours in (False, True)
    )


def test_directml_has_no_such_call(tmp_path: Path) -> None:
    cases = Selection(expand(load_specs([SPECS / "LSTM.yaml"])), parse_all(["sweep=last_cell_alone"])).cases(
        valid=True
    )
    assert {refusal(each, DIRECTML) for each in cases} == {"an output that a graph leaves out before others"}
