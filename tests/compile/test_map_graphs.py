"""Graphs with maps among their inputs and outputs: what the worker passes and takes, and where a map cannot be."""

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
from harness.worker.worker import CannotFeedError, OnnxRuntime, run_with_maps
from tests.prepared import compiled
from tests.running import harness

worker.np = np  # a worker imports it after it has limited its memory
VOCABULARY: dict[str, Any] = {"string_vocabulary": ("a", "b")}


def vectorizer(dtype: str = "float32", **options: Any) -> Graph:
    inputs = (
        TensorSpec("X_keys", "string", (1,), "distinct"),
        TensorSpec("X_values", dtype, (1,), "ordinary"),
    )
    name = "ai.onnx.ml.DictVectorizer"
    return compiled(Case(f"{name}@1:case=a", name, 1, VOCABULARY, inputs, Options(**options)))


def zipped(attributes: dict[str, Any], rows: int, **options: Any) -> Graph:
    inputs = (TensorSpec("X", "float32", (rows, 2), "ordinary"),)
    return compiled(Case("z", "ai.onnx.ml.ZipMap", 1, attributes, inputs, Options(outputs=2, **options)))


def session_of(graph: Graph) -> Any:
    return onnxruntime.InferenceSession(graph.model, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("shapes", ["symbolic", "static", "undeclared"])
@pytest.mark.parametrize("neighbours", [False, True])
def test_a_map_is_one_input_of_the_graph(shapes: str, neighbours: bool) -> None:
    graph = vectorizer(shapes=shapes, neighbours=neighbours)
    if shapes != "undeclared":
        onnx.checker.check_model(onnx.ModelProto.FromString(graph.model), full_check=True)
    session = session_of(graph)
    assert [(each.name, each.type) for each in session.get_inputs()] == [("X", "map(string,tensor(float))")]
    assert (graph.inputs, graph.maps) == ((("X_keys", 8), ("X_values", 1)), ("X",))
    assert len(onnx.ModelProto.FromString(graph.model).graph.node) == (2 if neighbours else 1)
    fed = {"X_keys": np.array(["b"], object), "X_values": np.array([0.1], "f4")}
    (given,) = run_with_maps(session, graph.maps, graph.outputs, fed)
    assert given.reshape(-1).tolist() == [0, np.float32(0.1)]


@pytest.mark.parametrize("keys", [("b", "a"), (7, -2)])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_maps_that_are_given_are_rows_in_the_order_of_their_keys(keys: tuple[Any, ...], rows: int) -> None:
    texts = isinstance(keys[0], str)
    graph = zipped({"classlabels_strings" if texts else "classlabels_int64s": keys}, rows, neighbours=True)
    fed = {"X": np.arange(2 * rows, dtype="f4").reshape(rows, 2)}
    names, values = run_with_maps(session_of(graph), graph.maps, graph.outputs, dict(fed))
    assert (names.dtype, values.dtype) == (np.dtype(object if texts else np.int64), np.dtype("f4"))
    if rows:
        assert names.tolist() == [list(reversed(keys))] * rows
        assert values.tolist() == fed["X"][:, ::-1].tolist()
    else:
        assert names.shape == values.shape == (0, 0)


def test_maps_of_unlike_sizes_have_no_rows() -> None:
    class Session:
        def run(self, asked: list[str], _fed: Any) -> Any:
            assert asked == ["Z"]
            return [[{3: 0.5, 1: 2.0}, {7: 4.0}]]

    outputs = (("Z_keys", 7), ("Z_values", 1))
    keys, values = run_with_maps(Session(), ("Z",), outputs, {})
    assert (keys.tolist(), values.tolist()) == ([1, 3, 7], [2, 0.5, 4])


@pytest.mark.parametrize(("dtype", "count"), [("float64", 1), ("float32", 0)])
def test_what_python_passes_no_map_to_is_said(dtype: str, count: int) -> None:
    graph = vectorizer(dtype)
    unit = {"inputs": graph.inputs, "outputs": graph.outputs, "maps": graph.maps, "in_place": False}
    fed = [np.array(["a"][:count], object), np.zeros(count, dtype)]
    with pytest.raises(CannotFeedError, match="maps to float32 alone"):
        OnnxRuntime.run(OnnxRuntime.__new__(OnnxRuntime), None, unit, fed, 0)


SPEC = """
operator: DictVectorizer
domain: ai.onnx.ml
opsets: [1]
cases:
  - name: a
    source: by hand
    attributes: {string_vocabulary: [a, b]}
    inputs:
      X_keys: {dtype: string, values: [b]}
      X_values: {dtype: float32, values: [2]}
    output: [0, 2]
"""


@pytest.mark.parametrize("more", ["    options: {initializer: X_values}\n", "sweeps:\n  - use: binary\n"])
def test_a_map_is_no_initializer(tmp_path: Path, more: str) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text(SPEC + more, encoding="utf-8")
    assert "'X_values' is of a map, which is no initializer" in harness("check", spec).err


@pytest.mark.slow
def test_a_reproduction_passes_maps(tmp_path: Path) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    harness("run", spec, "-t", "cpu", "-o", tmp_path / "run")
    case = "ai.onnx.ml.DictVectorizer@1:case=a;X_keys=string[1];X_values=float32[1];string_vocabulary=[a,b]"
    assert harness("repro", tmp_path / "run", case, "-o", tmp_path / "repro").code == 0
    found = subprocess.run(
        [sys.executable, str(tmp_path / "repro" / "repro.py")], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert "actual:    float32[1, 2] [[0., 2.]]" in found.stdout
