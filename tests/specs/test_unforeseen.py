"""Mistakes in a spec that no check foresees: one line at their entry, and in the harness's own specs a defect."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.specs.reading import literal_cases, sweep_problems
from tests.running import SPECS, complaint, harness

SPEC = """\
operator: Abs
opsets: [13]
because: of one bit
cases:
  - name: example
    source: a test
    inputs: {X: {dtype: float32, values: [-1, 2]}}
    output: [1, 2]
sweeps:
  - name: sizes
    X: {dtype: [float32], shape: [[3]]}
"""
GRAPH = """\
graph: Parametric
source: a test
opsets: [17]
inputs: {X: {type: float32, shape: [2]}}
parameters: {which: Abs}
nodes:
  - {operator: $which, inputs: [X], outputs: [Y]}
outputs: [Y]
sweeps:
  - name: names
    factors: {which: [Abs, Nonsense]}
"""


def _fails(*_: object, **__: object) -> None:
    raise TypeError("'<' not supported\nhere")


@pytest.mark.parametrize(
    ("module", "name", "line", "entry"),
    [(literal_cases, "call_of", 5, "cases[0]"), (sweep_problems, "option_problems", 10, "sweeps[0]")],
)
def test_what_an_entry_runs_into_is_a_problem_of_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str, line: int, entry: str
) -> None:
    (tmp_path / "Abs.yaml").write_text(SPEC)
    assert harness("check", tmp_path / "Abs.yaml").code == 0
    monkeypatch.setattr(module, name, _fails)
    ended = harness("check", tmp_path / "Abs.yaml")
    assert ended.code == 2
    assert complaint(ended).startswith(
        f"{tmp_path / 'Abs.yaml'}:{line}: {entry}: this cannot be planned: TypeError in specs/test_unforeseen.py:"
    )
    assert complaint(ended).endswith(": '<' not supported here")


def test_in_a_spec_of_the_harness_it_is_a_defect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(literal_cases, "call_of", _fails)
    ended = harness("check", SPECS / "Abs.yaml")
    assert ended.code == 5
    assert "Traceback" in ended.err


def test_an_operator_that_a_level_of_a_graph_misspells(tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text(GRAPH)
    ended = harness("check", tmp_path / "graph.yaml")
    assert ended.code == 2
    assert "ONNX has no operator 'Nonsense'" in complaint(ended)


def test_a_parameter_of_a_graph_may_have_the_name_of_an_attribute(tmp_path: Path) -> None:
    graph = GRAPH.replace("which", "axis").replace("Nonsense", "Neg")
    (tmp_path / "graph.yaml").write_text(graph)
    ended = harness("coverage", tmp_path / "graph.yaml")
    assert (ended.code, ended.err) == (0, "")
    assert "cells" not in ended.out
