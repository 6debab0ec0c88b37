"""Units: consecutive cases of one graph that are run in the same way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from harness.compile.prepare import by_graph, refusal
from harness.model.case import (
    Case,
    DirectmlOptions,
    Options,
    TensorSpec,
)
from harness.specs.graphs.deployments import graph_cases
from harness.specs.reading.load import load_specs
from harness.targets.frames import tensor_bytes
from tests.plans import selected


def round_case(number: int, dtype: str = "float32", **options: object) -> Case:
    return Case(
        f"Round@22:case=n{number}",
        "Round",
        22,
        {},
        (TensorSpec("X", dtype, (number,), "ordinary"),),
        Options(**options),
    )


def test_cases_of_one_graph_are_one_unit() -> None:
    (unit,) = by_graph([round_case(n) for n in range(4)], 0)
    assert [prepared.case.inputs[0].shape for prepared in unit.cases] == [(0,), (1,), (2,), (3,)]


def test_another_graph_begins_a_unit() -> None:
    cases = [round_case(1), round_case(2, "float16"), round_case(3, "float16"), round_case(4)]
    assert [[p.case.inputs[0].shape[0] for p in unit.cases] for unit in by_graph(cases, 0)] == [
        [1],
        [2, 3],
        [4],
    ]


def test_what_the_same_graph_is_run_with_begins_a_unit() -> None:
    """One session has one optimisation level, and binds its output in one way."""
    ways = [{}, {"optimization": "basic"}, {"optimization": "all"}, {}, {"in_place": True}, {}]
    made = list(by_graph([round_case(n, **way) for n, way in enumerate(ways)], 0))
    assert len({unit.graph.digest for unit in made}) == 1
    assert [(unit.graph.optimization, unit.graph.in_place) for unit in made] == [
        ("off", False),
        ("basic", False),
        ("all", False),
        ("off", False),
        ("off", True),
        ("off", False),
    ]
    assert [len(unit.cases) for unit in made] == [1] * 6


def test_every_case_runs_as_it_says_whatever_is_selected() -> None:
    query = "GatherElements@13:sweep=optimized;data=float32[5];indices=int64"
    found = list(by_graph(selected(query).cases(valid=True), 0))
    assert sum(len(unit.cases) for unit in found) > 10
    for unit in found:
        assert {prepared.case.options.optimization for prepared in unit.cases} == {unit.graph.optimization}


@pytest.mark.parametrize("query", ["GatherElements@13:sweep=extent;data=float32", "Gather@13", "TopK@11"])
def test_a_case_is_prepared_as_it_is_alone(query: str) -> None:
    """What neighbours have in common is made once, and is the same as what is made for each."""
    cases = [case for case in selected(query).cases(valid=True) if refusal(case, "") is None][-150:]
    assert len({tuple(spec.shape for spec in case.inputs) for case in cases}) > 1
    together = [(unit.graph, prepared) for unit in by_graph(cases, 0) for prepared in unit.cases]
    assert len(together) == len(cases)
    for case, (graph, prepared) in zip(cases, together, strict=True):
        ((alone, (own,)),) = by_graph([msgspec.structs.replace(case, attributes=dict(case.attributes))], 0)
        assert graph == alone
        assert repr(prepared.call) == repr(own.call)
        assert prepared.inferred == own.inferred
        assert list(map(tensor_bytes, prepared.inputs)) == list(map(tensor_bytes, own.inputs))
        assert list(map(tensor_bytes, prepared.before or ())) == list(map(tensor_bytes, own.before or ()))


def test_a_graph_of_operators_is_prepared_once_for_its_levels_and_deployments() -> None:
    """Levels of optimisation and deployments share call, inputs and model; each is as it would be alone."""
    (spec,) = load_specs([Path("specs/graphs/BiasGelu.yaml")])
    assert spec.graph is not None
    cases = graph_cases(spec.graph, Counter())
    together = [(unit.graph, prepared) for unit in by_graph(cases, 0) for prepared in unit.cases]
    assert len({id(prepared.inputs) for _, prepared in together}) < len(cases) / 2
    assert len({graph.deployed for graph, _ in together}) > 4
    for case, (graph, prepared) in zip(cases, together, strict=True):
        ((alone, (own,)),) = by_graph([case], 0)
        assert graph == alone
        assert prepared.case is case
        assert repr(prepared.call) == repr(own.call)
        assert prepared.inferred == own.inferred
        assert list(map(tensor_bytes, prepared.inputs)) == list(map(tensor_bytes, own.inputs))


def test_cases_that_share_attributes_but_not_shapes_are_not_taken_for_alike() -> None:
    first = round_case(2)
    second = msgspec.structs.replace(
        first, id="Round@22:case=other", inputs=(TensorSpec("X", "float32", (3,), "ordinary"),)
    )
    made = [prepared for unit in by_graph([first, second], 0) for prepared in unit.cases]
    assert [prepared.inputs[0].array.shape for prepared in made] == [(2,), (3,)]
    assert [prepared.call.first.shape for prepared in made] == [(2,), (3,)]


def test_a_unit_has_at_most_some_hundred_cases() -> None:
    sizes = [len(unit.cases) for unit in by_graph([round_case(1 + n % 3) for n in range(1200)], 0)]
    assert sum(sizes) == 1200
    assert max(sizes) <= 512


def test_what_an_api_cannot_express_is_known_without_it() -> None:
    call = msgspec.structs.replace(round_case(1), directml=DirectmlOptions())
    assert [
        refusal(case, "CPUExecutionProvider") is None
        for case in (round_case(1), round_case(1, "bfloat16"), call)
    ] == [
        True,
        True,
        False,
    ]
    assert [
        refusal(case, "DirectML") is None for case in (round_case(1), round_case(1, "bfloat16"), call)
    ] == [True, False, True]
