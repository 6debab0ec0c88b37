"""Graphs with optionals among their inputs and outputs: what the worker passes and takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from harness.model.case import Case, Options, TensorSpec
from harness.targets.execution import Graph
from harness.worker import worker
from harness.worker.worker import run_with_optionals
from tests.prepared import compiled
from tests.running import harness

worker.np = np  # a worker imports it after it has limited its memory


def graph_of(operator: str, attributes: dict[str, Any] | None = None, **options: Any) -> Graph:
    inputs = () if attributes else (TensorSpec("input", "float32", (2,), "ordinary"),)
    return compiled(Case("c", operator, 18, attributes or {}, inputs, Options(**options)))


def ran(graph: Graph, shapes: str = "symbolic") -> list[Any]:
    if shapes != "undeclared":  # ONNX asks for shapes, ONNX Runtime does not
        onnx.checker.check_model(onnx.ModelProto.FromString(graph.model), full_check=True)
    session = onnxruntime.InferenceSession(graph.model, providers=["CPUExecutionProvider"])
    fed = {name: np.array([1, 2], "f4") for name, _ in graph.inputs}
    return [each.tolist() for each in run_with_optionals(session, graph.optionals, graph.outputs, fed)]


@pytest.mark.parametrize("shapes", ["symbolic", "static", "undeclared"])
@pytest.mark.parametrize(
    ("variant", "kind", "optionals", "has"),
    [
        (None, "graph", (("input_held", "input"),), True),
        ("sequence", "graph", (("held", "input", "input"),), True),
        ("empty", "graph", (("held",),), False),
        ("empty_sequence", "graph", (("held",),), False),
        ("empty", "left_out", (), False),
        ("empty_sequence", "left_out", (), False),
    ],
)
def test_an_optional_is_an_input_of_the_graph(
    shapes: str, variant: str | None, kind: str, optionals: Any, has: bool
) -> None:
    graph = graph_of("OptionalHasElement", variant=variant, optionals=kind, shapes=shapes)
    model = onnx.ModelProto.FromString(graph.model).graph
    assert [node.op_type for node in model.node] == list(graph.tested) == ["OptionalHasElement"]
    assert [(each.name, each.type.WhichOneof("value")) for each in model.input] == [
        ("held" if variant else "input_held", "optional_type")
    ]
    assert (graph.optionals, ran(graph, shapes)) == (optionals, [has])
    assert [name for name, _ in graph.inputs] == (["input"] if has else [])


@pytest.mark.parametrize(("variant", "element"), [(None, [1, 2]), ("sequence", [1, 2])])
def test_the_element_of_an_input_is_taken(variant: str | None, element: list[float]) -> None:
    assert ran(graph_of("OptionalGetElement", variant=variant, optionals="graph")) == [element]


@pytest.mark.parametrize(
    ("attributes", "given"), [(None, [True, [1, 2]]), ({"type": "tensor(float)"}, [False])]
)
def test_an_optional_is_an_output_of_the_graph(attributes: dict[str, Any] | None, given: list[Any]) -> None:
    graph = graph_of("Optional", attributes, optionals="graph")
    model = onnx.ModelProto.FromString(graph.model).graph
    assert [node.op_type for node in model.node] == ["Optional"]
    assert [each.type.WhichOneof("value") for each in model.output] == ["optional_type"]
    assert ran(graph) == given


def test_an_optional_without_the_element_that_is_wanted_is_an_output_that_was_not_made() -> None:
    class Session:
        def get_inputs(self) -> list[Any]:
            return []

        def run(self, asked: list[str], _fed: Any) -> list[Any]:
            return [None for _ in asked]

    outputs = (("has", 9), ("element", 1))
    has, element = run_with_optionals(Session(), (("held", "has", "element"),), outputs, {})
    assert not has
    with pytest.raises(worker.NoOutputError, match="was not made"):
        worker.numbered(element)


SPEC = """
operator: {0}
opsets: [18]
cases:
  - name: a
    source: by hand
    inputs:
      {1}: {{dtype: float32, values: [1, 2]}}
    options: {{optionals: graph}}
    output: {2}
"""


def test_an_operator_without_optionals_has_none_to_pass(tmp_path: Path) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text(SPEC.format("Abs", "X", "[1, 2]"), encoding="utf-8")
    assert "no input or output of Abs is an optional" in harness("check", spec).err


@pytest.mark.slow
def test_a_reproduction_passes_optionals(tmp_path: Path) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text(SPEC.format("OptionalHasElement", "input", "false"), encoding="utf-8")
    harness("run", spec, "-t", "cpu", "-o", tmp_path / "run")
    case = "OptionalHasElement@18:case=a;input=float32[2];optionals=graph"
    assert harness("repro", tmp_path / "run", case, "-o", tmp_path / "repro").code == 0
    found = subprocess.run(
        [sys.executable, str(tmp_path / "repro" / "repro.py")], capture_output=True, text=True, check=False
    )
    assert "actual:    bool[] True" in found.stdout
