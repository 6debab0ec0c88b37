"""Runs of graphs on ONNX Runtime: levels, placement, transformers, the culprit of a wrong result, and what is made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.api import load
from harness.compile.prepare import by_graph
from harness.model.case import Case, Validity
from harness.model.target_info import CPU
from harness.run import held_back
from harness.run.probe import Probes
from harness.run.transformer_coverage import transformer_coverage
from harness.targets.execution import Graph
from harness.targets.registry import parse_target
from harness.worker.worker import nodes_of_model, transformers_of
from tests.graphs.specs import SCALED, cases
from tests.running import SPECS, harness, results_of

BIAS = """\
graph: QuantisedBias
source: https://onnx.ai/onnx/operators/onnx__Gemm.html
fuses_to: QGemm
opsets: [13]
inputs:
  A: {type: uint8, shape: [2, 3], values: digits}
  B: {type: int8, shape: [3, 4], values: integers}
  C: {type: int32, shape: [4], values: integers}
constants:
  sa: {type: float32, values: 0.5}
  sc: {type: float32, values: $scale}
  za: {type: uint8, values: 4}
  zy: {type: uint8, values: 100}
  zb: {type: int8, values: 0}
parameters: {scale: 0.25}
nodes:
  - {operator: DequantizeLinear, inputs: [A, sa, za], outputs: a}
  - {operator: DequantizeLinear, inputs: [B, sa, zb], outputs: b}
  - {operator: DequantizeLinear, inputs: [C, sc], outputs: c}
  - {operator: Gemm, inputs: [a, b, c], outputs: gemm}
  - {operator: QuantizeLinear, inputs: [gemm, sa, zy], outputs: Y}
outputs: Y
sweeps:
  - name: scale
    factors:
      scale: [0.25, 2.0]
      initializer: ["B,C"]
"""
"""The integer kernel adds the bias without its scale, which is right where that is the product of the others' (0.25)."""


def _run(folder: Path, text: str, *more: str) -> dict[str, dict[str, object]]:
    path = folder / "graph.yaml"
    path.write_text(text, encoding="utf-8")
    harness("run", path, "-t", "cpu", "-o", folder / "r", *more)
    return dict(results_of(folder / "r", "cpu"))


def test_every_level_is_a_result(tmp_path: Path) -> None:
    found = _run(tmp_path, SCALED)
    assert {each["outcome"] for each in found.values()} == {"pass"}
    assert {each["placed_on"] for each in found.values()} == {"CPUExecutionProvider"}
    base = "ScaledSum@13:sweep=scale;A=float32[2,3];B=float32[3]"
    assert {case for case in found if case.split(";optimization")[0] == base} == {
        base,
        *(f"{base};optimization={level}" for level in ("basic", "extended", "all")),
    }


def test_the_culprit_of_a_wrong_result_is_named(tmp_path: Path) -> None:
    found = _run(tmp_path, BIAS)
    assert len(found) == 8
    wrong = {case: each for case, each in found.items() if each["outcome"] == "mismatch"}
    assert {case.rpartition("=")[2] for case in wrong} == {"extended", "all"}
    assert all("scale=2.0" in case for case in wrong)
    for each in wrong.values():
        assert each["culprit"] == ["QDQSelectorActionTransformer"]
        assert each["graph_nodes"] == ["com.microsoft.QGemm"]
        assert "QDQSelectorActionTransformer" in each["transformers"]  # type: ignore[operator]
    (well,) = [
        each
        for case, each in found.items()
        if case.endswith("B,C;optimization=all") and "scale=2" not in case
    ]
    assert (well["outcome"], well["graph_nodes"], well.get("culprit")) == (
        "pass",
        ["com.microsoft.QGemm"],
        None,
    )


def test_an_entry_speaks_of_one_transformer(tmp_path: Path) -> None:
    known = tmp_path / "known.yaml"
    entry = (
        '- {match: "QuantisedBias:scale=2.0", when: {transformer: %s}, sometimes: true, expect: mismatch, '
        'difference: {error: 255}, reason: a test, link: "https://example.org/"}\n'
    )
    for transformer, verdict in (
        ("QDQSelectorActionTransformer", "expected"),
        ("ConstantFolding", "regression"),
    ):
        known.write_text(entry % transformer, encoding="utf-8")
        found = _run(tmp_path, BIAS, "--expectations", str(known), "--force")
        assert {each["verdict"] for each in found.values() if each["outcome"] == "mismatch"} == {verdict}


@pytest.mark.slow
def test_a_reduced_graph_runs_and_a_report_names_the_culprit(tmp_path: Path) -> None:
    case = next(iter(case for case, each in _run(tmp_path, BIAS).items() if each["outcome"] == "mismatch"))
    small = tmp_path / "small.yaml"
    assert harness("reduce", case, "-t", "cpu", "--spec", tmp_path / "graph.yaml", "-o", small).code == 0
    ended = harness("run", small, "-t", "cpu", "-o", tmp_path / "again")
    assert ended.code == 1, ended.err
    assert [each["culprit"] for each in results_of(tmp_path / "again", "cpu").values()] == [
        ["QDQSelectorActionTransformer"]
    ]
    ended = harness(
        "repro", tmp_path / "r", case, "-t", "cpu", "-o", tmp_path / "bug", "--spec", tmp_path / "graph.yaml"
    )
    assert ended.code == 0, ended.err
    said = (tmp_path / "bug" / "issue.md").read_text(encoding="utf-8")
    assert "Without `QDQSelectorActionTransformer` it gives what it should" in said
    assert "com.microsoft.QGemm" in said


def test_coverage_lists_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.model.progress._PLAIN_EVERY", 0.0)
    monkeypatch.setattr("harness.model.progress._PLAIN_AFTER", 0.0)
    path = tmp_path / "graph.yaml"
    path.write_text(BIAS, encoding="utf-8")
    ended = harness("coverage", path, "--transformers", "cpu", "--json")
    found = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "transformers: 100 %, 1 of 1 graphs\n")
    assert "QDQSelectorActionTransformer" in found["triggered"]
    assert "Pad_Fusion" in found["never"]
    assert found["unfused"] == []
    path.write_text(BIAS.replace("fuses_to: QGemm", "fuses_to: FusedGemm"), encoding="utf-8")
    ended = harness("coverage", path, "--transformers", "cpu")
    assert ended.code == 1
    first = (
        "QuantisedBias@13:sweep=scale;A=uint8[2,3];B=int8[3,4];C=int32[4];initializer=B,C;optimization=all"
    )
    assert f"not fused: {first}: FusedGemm expected, the graph became com.microsoft.QGemm" in ended.out
    others = harness("coverage", path, "--transformers", "cpu", "-k", "QuantisedBias:scale=2.0")
    assert (others.code, "not fused" in others.out) == (0, False), "fuses_to speaks of the first levels"


@pytest.mark.slow
def test_every_graph_becomes_what_it_says() -> None:
    """By its first cases, of which one is the case that `fuses_to` speaks of."""
    by_graph: dict[str, list[Case]] = {}
    for case in load([SPECS / "graphs"], ()):
        if case.options.optimization == "all" and case.validity is Validity.VALID:
            by_graph.setdefault(case.operator, []).append(case)
    with Probes(parse_target("cpu"), jobs=2) as probes:
        first = [case for found in by_graph.values() for case in found[:8]]
        found = transformer_coverage(first, probes, lambda _done, _total: None)
    assert found.unfused == []
    assert len(found.triggered) >= 55


def test_the_log_of_a_session_tells_its_transformers() -> None:
    log = (
        "2026 [I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer A modified: 1 with status: OK\n"
        "2026 [I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer B modified: 0 with status: OK\n"
        "2026 [I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer A modified: 1 with status: OK\n"
    )
    assert transformers_of(log.encode()) == transformers_of(log.encode("utf-16-le")) == ["A"]


def test_the_nodes_of_a_model_are_read() -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Add", ["A", "B"], ["C"]),
        helper.make_node("QGemm", ["C"], ["D"], domain="com.microsoft"),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [], []))
    edges = [[["A", "B"], ["C"]], [["C"], ["D"]]]
    assert nodes_of_model(model.SerializeToString()) == (["Add", "com.microsoft.QGemm"], edges)


def test_few_graphs_that_end_their_process_are_examined_by_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = cases(tmp_path, SCALED)
    graphs = [
        (group.graph, prepared)
        for group in by_graph([case for case in found if case.options.optimization == "all"], 0)
        for prepared in group.cases
    ]
    asked: list[tuple[str, ...]] = []

    def passing(
        _: object, __: str, each: Sequence[tuple[int, Graph, tuple[str, ...]]], ___: object
    ) -> dict[int, tuple[str, ...]]:
        asked.extend(chosen for _, graph, chosen in each if graph.optimization != "off")
        return {
            n: chosen for n, graph, chosen in each if graph.optimization == "off" or "E" in graph.disabled
        }

    monkeypatch.setattr(held_back, "_passing", passing)
    suspects = [held_back.WrongGraph(prepared, graph, "ABCDEF", ended=True) for graph, prepared in graphs * 9]
    assert held_back.culprits(object(), CPU, suspects) == dict.fromkeys(range(len(suspects)), ("E",))  # type: ignore[arg-type]
    halves = [(*"ABC",), (*"D",), (*"E",)]  # each ends two processes, which costs the start of others
    assert asked == [half for half in halves for _ in range(2)] + [("E",)] * (len(suspects) - 2)
