"""`harness model` on nodes whose attributes are graphs and on what passes through sequences: each is judged as a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from tests.models import FLOAT, INT64, Builder, value
from tests.run.test_models import judged, report, saved
from tests.running import harness

pytestmark = pytest.mark.usefixtures("in_folder")
BOOL = TensorProto.BOOL


def graph(name: str, inputs: list[Any], outputs: list[Any], *nodes: Any, **weights: Any) -> GraphProto:
    """Return a graph of nodes, each an operator with what it takes, what it gives and its attributes."""
    made = [
        helper.make_node(
            operator,
            takes.split(),
            gives.split(),
            name=f"{name}_{operator}_{gives}".replace(" ", "_"),
            **attributes,
        )
        for operator, takes, gives, attributes in nodes
    ]
    held = [numpy_helper.from_array(np.asarray(each), key) for key, each in weights.items()]
    return helper.make_graph(made, name, inputs, outputs, held)


def branch(operator: str, takes: str, gives: str, *shape: int, **attributes: Any) -> GraphProto:
    return graph(f"of_{gives}", [], [value(gives, FLOAT, *shape)], (operator, takes, gives, attributes))


def choice(*, then: bool) -> ModelProto:
    """A branch of a sum with a weight of its own, the other of a product with a value around it."""
    first = graph("sum", [], [value("a", FLOAT, 2, 3)], ("Add", "x own", "a", {}), own=np.float32([1, 2, 3]))
    b = Builder()
    b.node("Exp", ["x"], "around")
    b.nodes.append(
        helper.make_node(
            *("If", ["c"], ["y"], "choice"),
            then_branch=first,
            else_branch=branch("Mul", "x around", "b", 2, 3),
        )
    )
    np.savez("given.npz", x=np.arange(6, dtype="f").reshape(2, 3), c=np.array(then))
    return b.model([value("x", FLOAT, 2, 3), value("c", BOOL)], [value("y", FLOAT, 2, 3)])


def counting(trips: int | None = 9, limit: float = 20) -> ModelProto:
    """A loop that doubles its state until it is large, or for some trips, and keeps each; a branch in it halves where the sum
    is odd."""
    b = Builder()
    inner = {
        "then_branch": branch("Mul", "twice by", "less", 2),
        "else_branch": branch("Neg", "twice", "turned", 2),
    }
    body = graph(
        "body",
        [value("i", INT64), value("on", BOOL), value("state", FLOAT, 2)],
        [value("stays", BOOL), value("next", FLOAT, 2), value("kept", FLOAT, 2)],
        ("Add", "state state", "twice", {}),
        ("If", "on", "next", inner),
        ("ReduceMax", "next", "most", {"keepdims": 0}),
        ("Less", "most limit", "stays", {}),
        ("Identity", "twice", "kept", {}),
        limit=np.float32(limit),
    )
    b.weight("by", np.float32(0.9))
    trip = "" if trips is None else b.weight("trips", np.array(trips))
    b.nodes.append(helper.make_node("Loop", [trip, "c", "x"], ["y", "every"], "loop", body=body))
    np.savez("given.npz", x=np.float32([1, 2]), c=np.array(True))
    return b.model(
        [value("x", FLOAT, 2), value("c", BOOL)], [value("y", FLOAT, 2), value("every", FLOAT, "n", 2)]
    )


def scanning() -> ModelProto:
    """A running sum along rows, with a projection whose weight is around."""
    body = graph(
        "body",
        [value("state", FLOAT, 4), value("row", FLOAT, 3)],
        [value("next", FLOAT, 4), value("seen", FLOAT, 4)],
        ("MatMul", "row w", "projected", {}),
        ("Add", "state projected", "next", {}),
        ("Tanh", "next", "seen", {}),
    )
    b = Builder()
    b.drawn("w", 3, 4)
    b.nodes.append(
        helper.make_node("Scan", ["zero", "x"], ["last", "y"], "scan", body=body, num_scan_inputs=1)
    )
    np.savez(
        "given.npz", x=np.random.default_rng(0).standard_normal((5, 3)).astype("f"), zero=np.zeros(4, "f")
    )
    return b.model(
        [value("zero", FLOAT, 4), value("x", FLOAT, "rows", 3)],
        [value("last", FLOAT, 4), value("y", FLOAT, "rows", 4)],
    )


def joining() -> ModelProto:
    """Steps that a loop collects in a sequence, of which a node takes one and another all."""
    steps = helper.make_tensor_sequence_value_info("kept", FLOAT, None)
    body = graph(
        "body",
        [value("i", INT64), value("on", BOOL), value("state", FLOAT, 2), steps],
        [
            value("stays", BOOL),
            value("next", FLOAT, 2),
            helper.make_tensor_sequence_value_info("longer", FLOAT, None),
        ],
        ("Neg", "state", "next", {}),
        ("SequenceInsert", "kept next", "longer", {}),
        ("Identity", "on", "stays", {}),
    )
    b = Builder()
    b.node("SequenceEmpty", [], "none")
    b.weight("trips", np.array(3))
    b.nodes.append(helper.make_node("Loop", ["trips", "", "x", "none"], ["last", "steps"], "loop", body=body))
    b.node("ConcatFromSequence", ["steps"], "y", axis=0)
    b.node("SequenceAt", ["steps", b.weight("one", np.array(1))], "z")
    np.savez("given.npz", x=np.float32([1, 2]))
    return b.model([value("x", FLOAT, 2)], [value("y", FLOAT, "n"), value("z", FLOAT, 2)])


GRAPHS = {
    "then": (lambda: choice(then=True), ["choice"]),
    "else": (lambda: choice(then=False), ["choice"]),
    "until": (counting, ["loop", "loop/body_If_next"]),
    "trips": (lambda: counting(trips=2, limit=1e9), ["loop"]),
    "endless": (lambda: counting(trips=None), ["loop"]),
    "scan": (scanning, ["scan"]),
    "sequence": (joining, ["loop", "/y", "/z"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_node_of_graphs_is_judged_and_named_where_it_is_wrong(name: str) -> None:
    made, nodes = GRAPHS[name]
    model = saved(made())
    judged(model, "--data", "given.npz")
    found = report("out")
    verdicts = dict(
        zip(
            (each["name"] for each in found["nodes"]),
            (found["verdicts"]["cpu"][each["call"]] for each in found["nodes"]),
            strict=True,
        )
    )
    assert {verdicts[node] for node in nodes} == {"correct"}, verdicts
    for node in nodes:
        (call,) = (each["call"] for each in found["nodes"] if each["name"] == node)
        case = found["calls"][call]["case"].partition(";")[0]
        Path("script.yaml").write_text(f'rules:\n  - {{match: "{case}", do: nan}}\n')
        target = "fake,script=script.yaml"
        assert harness("model", model, "-t", target, "--data", "given.npz", "-o", "bad", "--force").code == 1
        assert report("bad")["wrong"][target] == [node]


def test_the_node_within_is_named_before_the_node_around() -> None:
    Path("script.yaml").write_text('rules:\n  - {match: "NodeLoop*", do: nan}\n  - {match: "Add", do: nan}\n')
    ended = harness(
        "model", saved(counting()), "-t", "fake,script=script.yaml", "--data", "given.npz", "-o", "out"
    )
    assert "node loop/body_Add_twice and 1 more are wrong" in ended.out.replace("\n", " ")
    assert "wrong within: loop/body_Add_twice" in ended.out
