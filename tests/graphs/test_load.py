"""What is wrong with a spec of a graph is told with file, line and remedy; what it expands to."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import SpecError
from harness.specs.graphs import composition
from tests.graphs.specs import SCALED, cases, loaded, planned
from tests.running import complaint, harness


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "inputs: $sum, outputs: total",
            "inputs: [Y, B], outputs: total",
            "graph.yaml:11: nodes[0].inputs: 'Y' is made by a later node, ",
        ),
        (
            "[total, $by]",
            "[tota, $by]",
            "graph.yaml:12: nodes[1].inputs: nothing makes 'tota'; did you mean 'total'?; allowed: A, B, half, total",
        ),
        (
            "[total, $by]",
            "[Y, $by]",
            "graph.yaml:12: nodes[1].inputs: the node takes its own output 'Y'; a graph has no cycle",
        ),
        ("outputs: Y\nsweeps", "outputs: Z\nsweeps", "graph.yaml:13: outputs: no node makes 'Z'"),
        ("outputs: Y}", "outputs: total}", "'total' is made already, "),
        ("operator: Add", "operator: Addd", "the harness has no oracle for 'Addd'; did you mean 'Add'?"),
        ("$sum, outputs", "$summe, outputs", "there is no parameter 'summe'; did you mean 'sum'?"),
        (
            "shape: [3]}",
            "shape: [4]}",
            "the nodes do not fit together at opset 13: Add of A, B breaks the rule: ",
        ),
        ("half: 0.5", "half: {type: float64, values: 0.5}", "Mul at opset 13 does not take float64 for B"),
        (
            "outputs: total}",
            "outputs: before}\n  - {operator: MaxPool, inputs: before, outputs: total}",
            "MaxPool needs the attribute kernel_shape",
        ),
        ("operator: Add", "operator: Dropout", "Dropout of A, B breaks the rule: ratio is a scalar"),
        ("T: [float32, float16]\n      sum", "U: [float32]\n      sum", "ScaledSum has no factor 'U'"),
        ("graph: ScaledSum", "graph: Add", "Add is an operator of ONNX; give the graph a name of its own"),
        ("constants: {half", "constants: {unused: 1, half", "no node takes 'unused'; remove it"),
        ("opsets: [13]", "opsets: [99]", "opset 99 is not in the installed onnx"),
        (
            "shape: [2, 3]}",
            "shape: [2, 3], values: unti}",
            "no kind of values is named 'unti'; did you mean 'unit'?",
        ),
        (
            "outputs: total}",
            "outputs: total, attributes: {axis: 1}}",
            "Add has no attribute 'axis' at opset 13",
        ),
        ("source: https://example.org/\n", "", "source"),
        (
            "opsets: [13]",
            "fuses_to: QGem\nopsets: [13]",
            "graph.yaml:3: fuses_to: neither ONNX nor ONNX Runtime has an operator 'QGem'; did you mean 'QGemm'?",
        ),
        (
            "opsets: [13]",
            "fuses_to: [Gemm, com.microsoft.QGem]\nopsets: [13]",
            "fuses_to[1]: neither ONNX nor ONNX Runtime has an operator 'com.microsoft.QGem'; did you mean 'com.microsoft.QGemm'?",
        ),
        (
            "factors:\n",
            "factors:\n      binding: [null, owned]\n",
            "graph.yaml:17: sweeps[0].factors.binding: 'owned' is no level of binding; allowed: own, device, outlived, null",
        ),
        ("factors:\n", "factors:\n      arena: [on]\n", "'on' is no level of arena; allowed: off, null"),
        (
            "factors:\n",
            "factors:\n      bindings: [own]\n",
            "has no factor 'bindings'; did you mean 'binding'?",
        ),
        ("factors:\n", "deployed: often\n    factors:\n", "graph.yaml:16: sweeps[0].deployed: "),
        (
            "by: half}",
            "by: half, saved: 1}",
            "'saved' is a factor of every graph; give the parameter another name",
        ),
        (
            "factors:\n",
            "factors:\n      shapes: [symbolic, fixed]\n",
            "graph.yaml:17: sweeps[0].factors.shapes: 'fixed' is no level of shapes; allowed: symbolic, static, undeclared",
        ),
        (
            "factors:\n",
            "factors:\n      constants: [initializer, nodes]\n",
            "graph.yaml:17: sweeps[0].factors.constants: 'nodes' is no level of constants; did you mean 'node'?; allowed: ",
        ),
        ("factors:\n", "factors:\n      shapes: [null]\n", "null is no level of shapes; allowed: symbolic, "),
        (
            "sweeps:\n",
            "sweeps:\n  - {name: scale, factors: {T: [float32]}}\n",
            "graph.yaml:16: sweeps[1].name: the name 'scale' is already used, ",
        ),
        (
            "sweeps:\n",
            "cases:\n"
            + 2
            * "  - {name: one, inputs: {A: {dtype: float32, values: [1]}, B: {dtype: float32, values: [1]}}}\n"
            + "sweeps:\n",
            "graph.yaml:16: cases[1].name: the name 'one' is already used, ",
        ),
        (
            "[0, 3]]",
            "[0, 3], [2, 4]]",
            "graph.yaml:19: sweeps[0].factors.'A.shape'[2]: no case has [2,4]: Add of A, B breaks the rule: the shapes can be "
            "broadcast; remove it, or list it in a sweep where it fits",
        ),
        (
            "T: [float32, float16]\n",
            "T: [float32, float16, float16]\n",
            "graph.yaml:17: sweeps[0].factors.T[2]: no case has float16: another level makes the same graph; remove it",
        ),
        (
            "operator: Add",
            "operator: com.microsoft.BiasGelu",
            "graph.yaml:11: nodes[0].operator: graphs contain operators of ONNX's domains; 'com.microsoft.BiasGelu' can",
        ),
        (
            "by: half}\nnodes:\n  - {operator: Add",
            "by: half, one: com.microsoft.BiasGelu}\nnodes:\n  - {operator: $one",
            "graph.yaml:9: parameters.one: graphs contain operators of ONNX's domains; ",
        ),
        (
            "by: half}\n",
            "by: {type: T, values: 1}}\n",
            "graph.yaml:9: parameters.by: 'by' stands for tensors of a node, and should be a name or a list of names",
        ),
        (
            "factors:\n",
            "factors:\n      by: [half, 3]\n",
            "graph.yaml:17: sweeps[0].factors.by: 'by' stands for tensors of a node, and should be a name or a list of names",
        ),
        (
            "by: half}\n",
            "by: half, lone: 1}\n",
            "graph.yaml:9: parameters.lone: nothing takes '$lone': its levels would differ in name alone; remove it",
        ),
        (
            "float16]}\n",
            "float16], U: [float32, float16]}\n",
            "graph.yaml:4: types.U: nothing is of the type 'U': its levels would differ in name alone; remove it",
        ),
        (
            "factors:\n",
            'factors:\n      optimization: ["off", all]\n',
            "graph.yaml:17: sweeps[0].factors.optimization: every graph runs at all four levels of optimisation; remove",
        ),
        (
            "outputs: Y}\n",
            "outputs: Y}\n" + "  - {operator: Neg, inputs: A, outputs: n}\n" * 63,
            "graph.yaml:10: nodes: has 65 entries, above the greatest number allowed, 64",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in SCALED
    with pytest.raises(SpecError) as caught:
        planned(tmp_path, SCALED.replace(old, new, 1))
    assert any(said in problem for problem in caught.value.problems), caught.value.problems
    assert all("graph.yaml:" in problem for problem in caught.value.problems)


@pytest.mark.parametrize(
    "name", ["Gemm", "QGemm", "com.microsoft.QGemm", "com.microsoft.nchwc.Conv", "com.ms.internal.nhwc.Conv"]
)
def test_a_graph_may_become_any_operator_of_the_runtime(tmp_path: Path, name: str) -> None:
    loaded(tmp_path, SCALED.replace("opsets: [13]", f"fuses_to: {name}\nopsets: [13]"))


def test_a_level_may_name_no_operator_of_another_domain(tmp_path: Path) -> None:
    text = SCALED.replace("by: half}", "by: half, one: Add}").replace("operator: Add", "operator: $one")
    loaded(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        planned(tmp_path, text.replace("factors:\n", "factors:\n      one: [Add, com.microsoft.BiasGelu]\n"))
    assert [problem.partition("graph.yaml:")[2] for problem in caught.value.problems] == [
        "17: sweeps[0].factors.one: graphs contain operators of ONNX's domains; "
        "'com.microsoft.BiasGelu' can have a spec of its own"
    ]


def test_a_name_is_of_one_graph(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(SCALED, encoding="utf-8")
    other.write_text(SCALED.replace("  B: {", "  C: {").replace("[A, B]", "[A, C]"), encoding="utf-8")
    ended = harness("check", one, other)
    assert ended.code == 2
    assert complaint(ended).partition("other.yaml:")[2] == (
        f"1: graph: the name 'ScaledSum' is already used, {one}:1; give the graph a name of its own"
    )


def test_a_graph_grows_no_further_than_a_tensor_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "MAX_ELEMENTS", 5)
    with pytest.raises(SpecError, match="total has 6 elements, above the limit of 5 per tensor"):
        planned(tmp_path, SCALED.replace("graph: ScaledSum", "graph: GrownSum"))


def test_a_mistake_ends_check_and_run_with_2(tmp_path: Path) -> None:
    path = tmp_path / "graph.yaml"
    path.write_text(SCALED.replace("[total, $by]", "[tota, $by]"), encoding="utf-8")
    assert harness("check", path).code == 2
    assert harness("run", path, "-t", "fake", "-o", tmp_path / "r").code == 2


def test_each_level_of_each_factor_stands_alone_and_with_one_of_another(tmp_path: Path) -> None:
    found, left_out = cases(tmp_path, f"{SCALED}      B.shape: [[3], [2, 1]]\n")
    off = [case.id for case in found if case.options.optimization == "off"]
    assert len(found) == 4 * len(off)
    head = "ScaledSum@13:sweep=scale;"
    assert off == [
        f"{head}A=float32[2,3];B=float32[3]",
        f"{head}A=float16[2,3];B=float16[3]",
        f"{head}A=float32[2,3];B=float32[3];sum=[B,A]",
        f"{head}A=float32[0,3];B=float32[3]",
        f"{head}A=float32[2,3];B=float32[2,1]",
        f"{head}A=float16[2,3];B=float16[3];sum=[B,A]",
        f"{head}A=float16[0,3];B=float16[3]",
        f"{head}A=float16[2,3];B=float16[2,1]",
        f"{head}A=float32[0,3];B=float32[3];sum=[B,A]",
        f"{head}A=float32[2,3];B=float32[2,1];sum=[B,A]",
    ]
    assert left_out == {"Add of A, B breaks the rule: the shapes can be broadcast": 1}
