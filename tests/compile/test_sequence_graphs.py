"""Graphs around operators on sequences: their inputs and outputs are tensors, and the real CPU provider runs them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto

from harness.model.case import Case, Options, TensorSpec
from tests.prepared import compiled


def case(
    operator: str, names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], **options: object
) -> Case:
    dtypes = ["int64" if name == "position" else "float32" for name in names]
    inputs = tuple(map(TensorSpec, names, dtypes, shapes))
    return Case(f"{operator}@11:case=a", operator, 11, {}, inputs, Options(**options))


def model_of(of: Case) -> ModelProto:
    return ModelProto.FromString(compiled(of).model)


def kinds(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


PAIR = ("input_sequence.0", "input_sequence.1"), ((2,), (3, 1))


def test_a_sequence_is_made_of_tensors_and_taken_apart() -> None:
    model = model_of(case("SequenceErase", *PAIR))
    onnx.checker.check_model(model, full_check=True)
    assert kinds(model) == ["SequenceConstruct", "SequenceErase", "SequenceLength", "Constant", "SequenceAt"]
    assert [value.name for value in model.graph.input] == list(PAIR[0])
    assert [value.name for value in model.graph.output] == ["output_sequence_length", "output_sequence.0"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    fed = {"input_sequence.0": np.array([1, 2], "f4"), "input_sequence.1": np.zeros((3, 1), "f4")}
    length, left = session.run(None, fed)
    assert (int(length), left.tolist()) == (1, [1, 2])


def test_a_sequence_without_tensors_has_the_element_type_of_its_neighbour() -> None:
    model = model_of(case("SequenceInsert", ("tensor",), ((4,),)))
    assert kinds(model)[:2] == ["SequenceEmpty", "SequenceInsert"]
    assert model.graph.node[0].attribute[0].i == onnx.TensorProto.FLOAT
    assert list(model.graph.node[1].input) == ["input_sequence", "tensor"]


def test_only_the_tested_node_has_the_name_of_one() -> None:
    model = model_of(case("SequenceAt", (*PAIR[0], "position"), (*PAIR[1], ())))
    assert [node.op_type for node in model.graph.node if node.name == "tested"] == ["SequenceAt"]


@pytest.mark.parametrize(("names", "first"), [(PAIR, "Identity"), (((), ()), "SequenceEmpty")])
def test_neighbours_stand_about_what_there_is(
    names: tuple[tuple[str, ...], tuple[tuple[int, ...], ...]], first: str
) -> None:
    """A sequence of no tensors has none before it."""
    model = model_of(case("SequenceLength", *names, neighbours=True))
    onnx.checker.check_model(model, full_check=True)
    assert kinds(model)[0] == first
    assert kinds(model)[-1] == "Identity"
    onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
