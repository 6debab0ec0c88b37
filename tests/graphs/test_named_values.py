"""Values that a branch takes, inputs with a default, and optional ones with empty names: the models that are made."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, numpy_helper

from harness.api import load
from harness.compile.prepare import by_graph
from tests.running import SPECS


def made(query: str, spec: str) -> tuple[ModelProto, list[object]]:
    """Return the first model that a query selects, and the elements of its inputs."""
    (first, *_) = by_graph(load([SPECS / spec], [query]), 0)
    return onnx.load_model_from_string(first.graph.model), [
        each.array.tolist() for each in first.cases[0].inputs
    ]


def test_both_branches_take_a_captured_value_that_no_node_beside_them_takes() -> None:
    model, _ = made("FastGelu:captured=halved", "graphs/FastGelu.yaml")
    (node,) = (each for each in model.graph.node if each.op_type == "If")
    assert [[inner.input[0] for inner in each.g.node] for each in node.attribute] == [["halved"], ["halved"]]
    assert [each.op_type for each in model.graph.node if "halved" in each.input] == ["Mul"]
    assert [each.name for each in model.graph.output] == ["Y", "halved_captured"]


def test_nodes_of_machine_learning_have_their_domain() -> None:
    model, _ = made("LabelLabel:shapes=static", "graphs/LabelLabel.yaml")
    assert [(each.domain, each.op_type) for each in model.graph.node] == [("ai.onnx.ml", "LabelEncoder")] * 2
    assert {each.domain: each.version for each in model.opset_import} == {"": 17, "ai.onnx.ml": 4}


def test_an_overridable_input_is_fed_and_has_other_elements_as_an_initializer() -> None:
    model, inputs = made("ConvAdd:overridable=A", "graphs/ConvAdd.yaml")
    (default,) = (each for each in model.graph.initializer if each.name == "A")
    held, given = numpy_helper.to_array(default), inputs[3]
    assert [each.name for each in model.graph.input] == ["X", "A"]
    assert held.shape == (3, 1, 1)
    assert held.tolist() != given
    assert sorted(held.ravel()) == sorted(each[0][0] for each in given)  # type: ignore[attr-defined] # nested lists


@pytest.mark.parametrize(
    ("query", "spec", "inputs", "outputs"),
    [
        ("DFT@20:left_out=empty_names", "DFT.yaml", ["input", "", ""], ["output"]),
        ("BatchNormalization@9:left_out=empty_names", "BatchNormalization.yaml", ["X", "scale", "B", "mean", "var"], ["Y", *[""] * 4]),
        ("BiasSkipLayerNorm:normal=[sum,scale];left_out=*", "graphs/BiasSkipLayerNorm.yaml", ["sum", "scale", ""], ["Y", "", ""]),
    ],
)  # fmt: skip
def test_what_is_left_out_has_an_empty_name(
    query: str, spec: str, inputs: list[str], outputs: list[str]
) -> None:
    node = made(query, spec)[0].graph.node[-1]
    assert [[*node.input], [*node.output]] == [inputs, outputs]
