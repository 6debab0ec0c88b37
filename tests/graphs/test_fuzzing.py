"""Fuzzing of graphs: what is drawn, how a failing graph becomes smaller, and a real defect that is found, written, and
as red again."""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from harness.model.case import DEPLOYMENTS, Options, Tensor
from harness.operators import OPERATORS
from harness.specs.expand import expand
from harness.specs.graphs.pattern import GraphNode
from harness.specs.graphs.plain import PlainGraph
from harness.specs.graphs.variations import LEVELS, misfit
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.sweeps.calls import call_of
from harness.triage.fuzzing.graphs import GraphDrawing
from harness.triage.fuzzing.random_calls import Drawn
from harness.triage.reduction.graphs import smallest
from tests.fuzzing import LONG, ends_with
from tests.running import SPECS, complaint, harness, results_of

PATTERNS = ("MatMulAdd", "QdqConv", "TransposeReduce", "DivMul", "LayerNorm")


@cache
def patterns() -> tuple[LoadedSpec, ...]:
    return tuple(load_specs([SPECS / "graphs" / f"{name}.yaml" for name in PATTERNS]))


def drawn(seed: int, number: int, alone: LoadedSpec | None = None) -> list[Drawn]:
    return list(islice(GraphDrawing(patterns(), seed, alone), number * len(LEVELS)))


def nodes(each: Drawn) -> int:
    assert each.spec.graph is not None
    return len(each.spec.graph.spec.nodes)


class TestDrawing:
    def test_each_graph_is_drawn_at_every_level_and_its_nodes_fit(self) -> None:
        found = drawn(1, 12)
        assert [each.case.options.optimization for each in found] == [*LEVELS] * 12
        for each in found[::4]:
            assert misfit(each.case) is None
            assert OPERATORS[each.case.operator].broken_rule(call_of(each.case)) is None

    def test_compositions_have_three_to_ten_connected_nodes(self) -> None:
        found = [each for each in drawn(2, 24)[::4] if each.case.operator not in PATTERNS]
        assert len(found) > 4
        assert {3 <= nodes(each) <= 10 for each in found} == {True}
        for each in found:
            assert each.spec.graph is not None
            spec = each.spec.graph.spec
            made = {name for node in spec.nodes for name in node.outputs}
            assert any(made & set(node.inputs) for node in spec.nodes)

    def test_members_reach_beyond_the_sweeps(self) -> None:
        known = {case.id for case in expand(list(patterns()))}
        found = [each for each in drawn(3, 36) if each.case.operator in PATTERNS]
        assert sum(each.case.id not in known for each in found) > len(found) // 2

    def test_of_one_pattern_each_graph_is_or_begins_with_a_member(self) -> None:
        alone = patterns()[2]
        members = {each.case.operator for each in drawn(4, 12, alone)}
        assert members & set(PATTERNS) == {alone.model.operator}

    @pytest.mark.slow
    def test_some_graphs_are_deployed_as_they_can_be(self) -> None:
        plain = Options()
        found = [each.case for each in drawn(7, 80)[:: len(LEVELS)]]
        deployed = {
            case.id: [name for name in DEPLOYMENTS if getattr(case.options, name) != getattr(plain, name)]
            for case in found
        }
        assert {len(names) for names in deployed.values()} == {0, 1}
        assert len({name for names in deployed.values() for name in names}) > 2
        assert all(names == [] or f";{names[0]}=" in case for case, names in deployed.items())

    def test_the_same_seed_draws_the_same_graphs(self) -> None:
        one, again, other = ([each.case.id for each in drawn(seed, 8)] for seed in (5, 5, 6))
        assert one == again
        assert one != other


def chain(*operators: str) -> PlainGraph:
    """Return a graph in which each operator takes what the one before makes."""
    made = tuple(
        GraphNode(operator, (f"v{number}" if number else "X",), (f"v{number + 1}",), {})
        for number, operator in enumerate(operators)
    )
    return PlainGraph(
        21,
        made,
        (f"v{len(operators)}", "v1"),
        {"X": Tensor("float32", np.array([1.0, 2.0], np.float32))},
        {},
        "https://example.org/",
        Options(shapes="static", initializer="X", binding="own"),
    )


class TestSmallest:
    def test_nodes_outputs_and_options_that_do_not_matter_go(self) -> None:
        def alike(case: object) -> bool:
            operators = [node.operator for node in OPERATORS[case.operator].options.spec.nodes]  # type: ignore[attr-defined]
            return "Exp" in operators and "Abs" in operators

        found = smallest(chain("Neg", "Exp", "Sin", "Abs", "Neg"), "Small", alike)
        assert [node.operator for node in found.nodes] == ["Exp", "Abs"]
        assert found.outputs == (found.nodes[-1].outputs[0],)
        assert found.options == Options()
        assert not any(name.startswith("Small") for name in OPERATORS)

    def test_nothing_smaller_leaves_it_as_it_is(self) -> None:
        graph = chain("Neg", "Exp")
        assert smallest(graph, "Small", lambda _case: False) == graph


class TestCommand:
    @pytest.mark.parametrize(
        ("graph", "end", "seed", "told", "culprits"),
        [
            ("ReluClip", "FuseReluClip", "3", "rejected at load (Fail) by FuseReluClip", {"FuseReluClip"}),
            (
                "PassedThrough",
                "binding=",
                "1",
                "by binding=",
                {"binding=own", "binding=outlived", "binding=device"},
            ),
        ],
    )
    def test_a_real_defect_is_found_and_is_as_red_again(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        graph: str,
        end: str,
        seed: str,
        told: str,
        culprits: set[str],
    ) -> None:
        """FuseReluClip throws for any type but float32 and float16; an output that is an input is not written where it
        was bound. No entry says so here."""
        ends_with(end, monkeypatch)
        none = tmp_path / "none.yaml"
        none.write_text("[]\n", encoding="utf-8")
        out = tmp_path / "out"
        asked = (
            "fuzz",
            "--graph",
            graph,
            *LONG,
            "--seed",
            seed,
            "--spec",
            SPECS / "graphs" / f"{graph}.yaml",
        )
        ended = harness(*asked, "--expectations", none, "-o", out)
        assert ended.code == 1, ended.err
        assert told in ended.out
        ran = harness("run", out, "-t", "cpu", "-o", tmp_path / "run", "--expectations", none)
        assert ran.code == 1
        found = results_of(tmp_path / "run").values()
        assert culprits & {name for each in found for name in each.get("culprit", ())}
        if graph == "ReluClip":
            assert ["FuseReluClip"] in [each.get("culprit") for each in found]
            assert {each["outcome"] for each in found} <= {"rejected", "mismatch"}
            written = [path.read_text("utf-8") for path in out.glob("*.yaml")]
            assert min(text.count("operator:") for text in written if "(Fail) by FuseReluClip" in text) == 2

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (
                ("--graph", "ReluClop", "--spec", SPECS / "graphs" / "ReluClip.yaml"),
                "no pattern is named 'ReluClop'; did you mean 'ReluClip'?; allowed: ReluClip",
            ),
            (("-t", "cpu"), "name an OPERATOR, or say --graph"),
        ],
    )
    def test_bad_input_is_one_line(self, arguments: tuple[str | Path, ...], told: str) -> None:
        ended = harness("fuzz", *arguments)
        assert ended.code == 2
        assert complaint(ended) == told
