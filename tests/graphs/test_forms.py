"""Element types and shapes of a graph, node by node: the same as its composition has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from harness.model.case import Tensor
from harness.operators.base import Shape
from harness.specs.graphs import operator
from harness.specs.graphs.composition import composed
from harness.specs.graphs.deployments import graph_cases
from harness.specs.graphs.forms import forms
from harness.specs.graphs.pattern import FilledGraph, GraphNode, Unfit
from harness.specs.reading.load import load_specs
from tests.graphs.specs import SCALED, cases
from tests.graphs.test_composition import OPSET, floats, node
from tests.prepared import compiled

FOLDER = Path("specs/graphs")


def of(*nodes: GraphNode, outputs: str, **inputs: Tensor) -> tuple[tuple[str, Shape], ...] | None:
    return forms(FilledGraph(nodes, tuple(outputs.split()), {}, False), OPSET, inputs, "opencl")


Forms = tuple[tuple[str, Shape], ...] | None


def of_composition(graph: FilledGraph, opset: int, inputs: Mapping[str, Tensor], declared: str) -> Forms:
    found = composed(graph, opset, inputs, declared, bounds=False)
    return tuple((each.dtype, each.shape) for each in found)


@pytest.mark.parametrize(
    "name", ["BiasGelu", "QdqConvChain", "ReshapeFromShape", "LayerNormCast", "GatherSplit"]
)
def test_forms_are_those_of_the_composition(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def both(*given: Any) -> Forms:
        try:
            found = forms(*given)
        except Unfit as error:
            with pytest.raises(Unfit, match=f"^{re.escape(str(error))}$"):
                of_composition(*given)
            raise
        if found is not None:
            assert found == of_composition(*given)
            asked.append(found)
        return found

    monkeypatch.setattr(operator, "forms", both)
    (spec,) = load_specs([FOLDER / f"{name}.yaml"])
    assert spec.graph is not None
    operator._inferred.cache_clear()
    cases = graph_cases(spec.graph, Counter())
    assert cases
    assert len(asked) > 10


def test_a_shape_that_nodes_compute_is_known() -> None:
    """Exp rounds, so its elements are not known; Shape asks for none of them."""
    nodes = (node("Exp", "X", "a"), node("Shape", "a", "s"), node("Reshape", "B s", "Y"))
    assert of(
        *nodes, outputs="Y a", X=Tensor("float32", np.ones((2, 3), np.float32)), B=floats(*range(6))
    ) == (
        ("float32", (2, 3)),
        ("float32", (2, 3)),
    )


def test_elements_that_rounding_decides_are_left_to_the_composition() -> None:
    nodes = (node("Exp", "X", "a"), node("Cast", "a", "s", to=7), node("Expand", "X s", "Y"))
    assert of(*nodes, outputs="Y", X=floats(1.0)) is None
    assert of(*nodes[:2], outputs="s", X=floats(1.0)) == (("int64", (1,)),)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ((node("Exp", "X", "a"), node("MatMul", "a X", "Y")), "breaks the rule"),
        ((node("Exp", "X", "a"), node("BitwiseNot", "a", "Y")), "does not take float32"),
    ],
)
def test_what_does_not_fit_is_said_in_the_words_of_the_composition(
    nodes: tuple[GraphNode, ...], says: str
) -> None:
    graph, inputs = (
        FilledGraph(nodes, ("Y",), {}, False),
        {"X": Tensor("float32", np.ones((2, 3), np.float32))},
    )
    with pytest.raises(Unfit, match=says) as found:
        forms(graph, OPSET, inputs, "opencl")
    with pytest.raises(Unfit) as composing:
        composed(graph, OPSET, inputs, "opencl", bounds=False)
    assert str(found.value) == str(composing.value)


@pytest.mark.parametrize(
    ("shapes", "declared"),
    [("static", [2, 3]), ("symbolic", ["Y_0", "Y_1"]), ("undeclared", None)],
)
def test_outputs_are_declared_as_inputs_are(tmp_path: Path, shapes: str, declared: list[Any] | None) -> None:
    text = SCALED.replace("A.shape: [[2, 3], [0, 3]]", f"shapes: [{shapes}]")
    (value,) = ModelProto.FromString(compiled(cases(tmp_path, text)[0][0]).model).graph.output
    tensor = value.type.tensor_type
    found = (
        [each.dim_value or each.dim_param for each in tensor.shape.dim] if tensor.HasField("shape") else None
    )
    assert found == declared
