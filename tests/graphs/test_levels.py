"""A level of a sweep changes the graph of some case, or the case says nothing that another does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.case import DEPLOYMENTS, Case
from harness.operators import OPERATORS
from harness.specs.graphs.operator import filled_graph
from harness.specs.graphs.pattern import Pattern
from harness.specs.graphs.schema import GraphSweep
from harness.specs.graphs.variations import Levels, combined, made, misfit
from harness.specs.reading.load import load_specs
from harness.specs.sweeps.calls import call_of
from tests.graphs.specs import SCALED, loaded
from tests.sampled import one_of

GRAPHS = sorted((Path(__file__).parents[2] / "specs" / "graphs").glob("*.yaml"))


def what_runs(case: Case) -> str:
    """Write what a session gets of a case: the nodes that its outputs need, and the tensors that these take."""
    graph = filled_graph(OPERATORS[case.operator], call_of(case))
    needed, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if needed & set(node.outputs):
            nodes.append(node)
            needed |= set(node.taken)
    constants = {
        name: (each.dtype, each.array.tolist()) for name, each in graph.constants.items() if name in needed
    }
    constant = needed & set((case.options.initializer or "").split(","))
    inputs = [each for each in case.inputs if each.name in needed]
    given = case.options
    options = (given.shapes, given.optionals, given.left_out, sorted(constant), graph.constants_are_nodes)
    return repr((case.opset, nodes, graph.outputs, constants, inputs, options, graph.overridable))


def idle(pattern: Pattern, sweep: GraphSweep) -> list[tuple[str, object]]:
    """Return the levels of a sweep that change no graph: each case with one is the case of the first level too."""
    every = list(combined(pattern, sweep))

    def changes(levels: Levels, name: str) -> bool:
        case, other = (made(pattern, sweep, each) for each in (levels, {**levels, name: every[0][name]}))
        return misfit(case) is None and (misfit(other) is not None or what_runs(case) != what_runs(other))

    return [
        (name, level)
        for name, listed in sweep.factors.items()
        for level in (listed[1:] if name not in DEPLOYMENTS else ())
        if not any(changes(levels, name) for levels in every if levels[name] is level)
    ]


@pytest.mark.parametrize("path", one_of(4, GRAPHS), ids=lambda path: path.stem)
def test_each_level_changes_a_graph(path: Path) -> None:
    pattern = load_specs([path])[0].graph
    assert pattern is not None
    assert [(sweep.name, idle(pattern, sweep)) for sweep in pattern.spec.sweeps if idle(pattern, sweep)] == []


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("A.shape: [[2, 3], [0, 3]]", "exposed: ['', Y]", ("exposed", "Y")),
        ("A.shape: [[2, 3], [0, 3]]", "reused: ['', total]", None),
        ("sum: [[A, B], [B, A]]", "B.shape: [[3], [1]]\n      sum: [[A, A]]", ("B.shape", (1,))),
        ("sum: [[A, B], [B, A]]", "B.shape: [[3], [1]]\n      sum: [[A, A], [A, B]]", None),
    ],
)
def test_a_level_that_changes_nothing_is_found(
    tmp_path: Path, old: str, new: str, lost: tuple[str, object] | None
) -> None:
    assert old in SCALED
    pattern = loaded(tmp_path, SCALED.replace(old, new)).graph
    assert pattern is not None
    assert idle(pattern, pattern.spec.sweeps[0]) == [lost][: lost is not None]
