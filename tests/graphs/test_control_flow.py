"""If, Loop and Scan in graphs: by ONNX's reference, against wrong ones, written and read again, with mistakes in specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from harness.compile.composed import compile_graph
from harness.model.case import Case, Tensor
from harness.model.diff import compare
from harness.model.errors import SpecError
from harness.model.expected import Expected, nearest
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN
from harness.specs.graphs.composition import composed
from harness.specs.graphs.control_flow import CONTROL_FLOW, Found, Run, choose, loop, scan, sequence_map
from harness.specs.graphs.deployments import graph_cases
from harness.specs.graphs.known import Known, TensorList
from harness.specs.graphs.operator import filled_graph
from harness.specs.graphs.pattern import GraphNode, Unfit
from harness.specs.graphs.plain import forget, plain_graph
from harness.specs.reading.load import load_specs
from harness.specs.reading.write import spec_text
from harness.specs.sweeps.calls import call_of, case_inputs
from tests.graphs.specs import cases, planned
from tests.sampled import one_of

SPECS = ("IfBranches", "IfOuter", "LoopBody", "LoopNever", "LoopSequences", "LoopState", "ScanBody")
EVERY = 5
"""Of the cases of a spec every fifth is tried."""
NO_REFERENCE = ("in_axes=", "in_turned=", "out_axes=", "out_turned=")
"""ONNX's reference has Scan along the first axis, forwards, alone."""
UNKNOWN_TO_THE_REFERENCE = ("LoopNever", "LoopSequences")
"""It runs no body never, and has no sequences as states: these are held to loops of Python's."""


@cache
def some(name: str) -> list[Case]:
    """Return cases of a spec that are not optimised."""
    spec = load_specs([Path(f"specs/graphs/{name}.yaml")])[0]
    assert spec.graph is not None
    found = graph_cases(spec.graph, Counter())
    return [case for case in found if case.options.optimization == "off"][::EVERY]


def held(case: Case) -> tuple[dict[str, Tensor], tuple[Expected, ...]]:
    """Return the inputs of a case, and what its outputs are held against."""
    call = call_of(case)
    inputs = {each.name: tensor for each, tensor in zip(case.inputs, case_inputs(call, case, 0), strict=True)}
    graph = filled_graph(OPERATORS[case.operator], call)
    return inputs, composed(graph, case.opset, inputs, "opencl")


@cache
def all_held(name: str) -> list[tuple[Case, tuple[dict[str, Tensor], tuple[Expected, ...]]]]:
    return [(case, held(case)) for case in some(name)]


@pytest.mark.parametrize("name", [name for name in SPECS if name not in UNKNOWN_TO_THE_REFERENCE])
def test_the_oracle_holds_what_onnx_s_reference_gives(name: str) -> None:
    tried = 0
    for case in some(name):
        if any(each.dtype == "float16" for each in case.inputs) or any(t in case.id for t in NO_REFERENCE):
            continue
        inputs, expected = held(case)
        call = call_of(case)
        shapes = OPERATORS[name].family.output_shapes(OPERATORS[name], call)
        made = compile_graph(case, call, tuple(inputs.values()), shapes)
        model = onnx.load_from_string(made.model)
        if case.options.shapes != "undeclared":
            onnx.checker.check_model(model)
        for node in model.graph.node:
            if node.op_type == "Loop" and not node.input[1]:  # of such a loop the reference runs nothing
                node.input[1] = "on_and_on"
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "on_and_on"))
        fed = {feed: inputs[feed].array for feed, _ in made.inputs}
        for wanted, found in zip(expected, ReferenceEvaluator(model).run(None, fed), strict=True):
            array = np.asarray(found).reshape(wanted.shape)  # it puts slices of a loop on end
            assert compare(wanted, Tensor(wanted.dtype, array)).diff is None, case.id
        tried += 1
    assert tried >= 8


@pytest.mark.slow
def test_bodies_that_never_run_leave_the_state() -> None:
    tried = Counter[tuple[bool, bool]]()
    for case, (inputs, found) in all_held("LoopNever"):
        last, count, row, state, through = found[:5]
        x, z, terms = inputs["X"].array, inputs["Z"].array, case.attributes
        runs = {"none": 0, "one": 1, "": 99, "most": int(inputs["most"].array)}[
            str(terms.get("runs", "none"))
        ]
        goes = terms.get("goes", "start") != "stop"
        tried[runs > 0 and goes, len(z) > 0] += 1
        if runs <= 0 or not goes:
            assert compare(last, Tensor(case.inputs[1].dtype, -x)).diff is None, case.id
            assert compare(count, Tensor("int64", np.array(0))).diff is None, case.id
            assert row.shape == (0,), case.id
        total = x
        for one in z:
            total = total + one
        assert compare(state, Tensor(case.inputs[1].dtype, total)).diff is None, case.id
        assert compare(through, Tensor("int64", np.array(z.size))).diff is None, case.id
    assert min(tried[False, True], tried[False, False]) >= 4, tried


def test_sequences_and_optionals_are_states() -> None:
    tried = 0
    for case, (inputs, found) in all_held("LoopSequences"):
        x, z, terms = inputs["X"].array, inputs["Z"].array, case.attributes
        tensors, longer = [x, z] if terms.get("starts", "listed") == "listed" else [], x
        for _ in range({"none": 0, "two": 2, "three": 3}[str(terms.get("runs", "three"))]):
            tensors, longer = [*tensors, longer], np.concatenate([longer, z])
        at = 0 if terms.get("place", "last") == "first" else len(tensors) - 1
        if not tensors or x.dtype == np.float16:
            continue
        tensors.insert(at, z)
        if inputs["condition"].array:
            del tensors[0 if at == 0 else -1]
        else:
            tensors.append(x)
        more = x if terms.get("more") == "X" else z
        step = np.multiply if terms.get("step") == "Mul" else np.add
        sums = [step(step(each, each), more.max()) for each in tensors] if more.size else []
        if sums and x.size:
            size = tensors[0 if terms.get("taken") == "first" else -1].size
            wanted = (longer, np.array(len(sums)), np.concatenate(sums), np.array(size), x + z + z)
            for one, array in zip(found[:5], wanted, strict=True):
                assert compare(one, Tensor(one.dtype, array)).diff is None, case.id
            tried += 1
    assert tried >= 12, tried


def _run(change: Callable[[int, Sequence[Known], Found], Found]) -> Callable[[Run], Run]:
    """Return a body whose outputs are changed, by the number of the run, what it was fed and what it gave."""

    def changed(run: Run) -> Run:
        number = -1

        def ran(name: str, fed: Sequence[Known]) -> Found:
            nonlocal number
            number += 1
            return change(number, fed, run(name, fed))

        return ran

    return changed


def _fed(
    change: Callable[[int, Sequence[Known], list[Sequence[Known]]], Sequence[Known]],
) -> Callable[[Run], Run]:
    """Return a body that is fed something else, by the number of the run, what it is fed and what it was."""

    def changed(run: Run) -> Run:
        earlier: list[Sequence[Known]] = []

        def ran(name: str, fed: Sequence[Known]) -> Found:
            earlier.append(fed)
            return run(name, change(len(earlier) - 1, fed, earlier))

        return ran

    return changed


def _number(by: int, known: Known) -> Tensor:
    assert isinstance(known, Tensor)
    return Tensor(known.dtype, known.array + np.array(by, known.array.dtype))


TRUE, FALSE = Tensor("bool", np.array(True)), Tensor("bool", np.array(False))
MISTAKES: Mapping[str, tuple[str, Callable[[GraphNode, Mapping[str, Known], Run], Found]]] = {
    "If: always the first branch": ("If", lambda n, g, run: run("then_branch", ())),
    "If: always the second branch": ("If", lambda n, g, run: run("else_branch", ())),
    "Loop: one run less": (
        "Loop",
        lambda n, g, run: loop(n, {**g, "M": _number(-1, g["M"])} if "M" in g else g, run),
    ),
    "Loop: one run more": (
        "Loop",
        lambda n, g, run: loop(n, {**g, "M": _number(1, g["M"])} if "M" in g else g, run),
    ),
    "Loop: cond not seen": (
        "Loop",
        lambda n, g, run: loop(n, {name: each for name, each in g.items() if name != "cond"}, run),
    ),
    "Loop: the condition of the body not seen": (
        "Loop",
        lambda n, g, run: loop(n, g, _run(lambda _n, _f, found: [TRUE, *found[1:]])(run)),
    ),
    "Loop: one run at most": (
        "Loop",
        lambda n, g, run: loop(n, g, _run(lambda _n, _f, found: [FALSE, *found[1:]])(run)),
    ),
    "Loop: numbers from 1": (
        "Loop",
        lambda n, g, run: loop(n, g, _fed(lambda _n, fed, _e: (_number(1, fed[0]), *fed[1:]))(run)),
    ),
    "Loop: the first state in every run": (
        "Loop",
        lambda n, g, run: loop(n, g, _fed(lambda _n, fed, e: (*fed[:2], *e[0][2:]))(run)),
    ),
    "Loop: the state before the last run": (
        "Loop",
        lambda n, g, run: loop(n, g, _run(lambda _n, fed, f: [f[0], *fed[2:], *f[len(fed) - 1 :]])(run)),
    ),
    "SequenceMap: the first tensors for all": (
        "SequenceMap",
        lambda n, g, run: sequence_map(n, g, _fed(lambda _n, _f, e: e[0])(run)),
    ),
    "SequenceMap: one tensor less": (
        "SequenceMap",
        lambda n, g, run: [TensorList(each.tensors[:-1]) for each in sequence_map(n, g, run)],
    ),
    "SequenceMap: the outputs changed": ("SequenceMap", lambda n, g, run: sequence_map(n, g, run)[::-1]),
    "Scan: the first state in every run": (
        "Scan",
        lambda n, g, run: scan(n, g, _fed(lambda _n, fed, e: (*e[0][: len(fed) - 2], *fed[-2:]))(run)),
    ),
    "Scan: the first slices in every run": (
        "Scan",
        lambda n, g, run: scan(n, g, _fed(lambda _n, fed, e: (*fed[: len(fed) - 2], *e[0][-2:]))(run)),
    ),
    "Scan: the slices changed": (
        "Scan",
        lambda n, g, run: scan(n, g, _fed(lambda _n, fed, _e: (*fed[:-2], fed[-1], fed[-2]))(run)),
    ),
    **{
        f"Scan: {ignored} ignored": (
            "Scan",
            lambda n, g, run, ignored=ignored: scan(
                n._replace(attributes={k: each for k, each in n.attributes.items() if k != ignored}), g, run
            ),
        )
        for ignored in (
            "scan_input_axes",
            "scan_input_directions",
            "scan_output_axes",
            "scan_output_directions",
        )
    },
}


@pytest.mark.parametrize("mistake", one_of(20, MISTAKES))
def test_every_mistake_turns_two_cases_red(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operator, wrong = MISTAKES[mistake]
    pattern = "LoopSequences" if operator == "SequenceMap" else operator
    tried = [each for name in SPECS if name.startswith(pattern) for each in all_held(name)]
    monkeypatch.setitem(CONTROL_FLOW, operator, wrong)  # type: ignore[arg-type] # a mapping that is not to be changed
    red = 0
    for case, (inputs, expected) in tried:
        graph = filled_graph(OPERATORS[case.operator], call_of(case))
        try:
            found = composed(graph, case.opset, inputs, "ieee")
        except (ArithmeticError, IndexError, KeyError, ValueError):
            red += 1
            continue
        pairs = zip(expected, found, strict=True)
        red += any(compare(wanted, nearest(one)).diff is not None for wanted, one in pairs)
    assert red >= 2, (mistake, red, len(tried))


IN_A_BRANCH = """\
graph: Branch
source: https://example.org/
opsets: [21]
types: {T: [float32]}
inputs:
  c: {type: bool, shape: []}
  X: {type: T, shape: [2, 3], values: unit}
constants: {two: 2}
nodes:
  - {operator: Neg, inputs: X, outputs: around}
  - operator: If
    inputs: c
    outputs: Y
    attributes:
      then_branch:
        constants: {half: 0.5}
        nodes: [{operator: Mul, inputs: [around, half], outputs: a}]
        outputs: a
      else_branch:
        nodes: [{operator: ReduceSum, inputs: around, outputs: b, attributes: {keepdims: 1}}]
        outputs: b
  - {operator: Add, inputs: [Y, two], outputs: Z}
outputs: Z
sweeps:
  - name: one
    factors: {c.values: [ordinary]}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("inputs: [around, half]", "inputs: [arond, half]", "graph.yaml:17: nodes[1].attributes.then_branch.nodes[0]"),
        ("inputs: [around, half]", "inputs: [Z, half]", "nothing makes 'Z'"),
        ("inputs: [around, half]", "inputs: [b, half]", "nothing makes 'b'"),
        ("outputs: a}", "outputs: around}", "'around' is made already, "),
        ("{half: 0.5}", "{X: 0.5}", "'X' is made already, "),
        ("outputs: a\n", "outputs: A\n", "no node makes 'A'; did you mean 'a'?"),
        ("operator: Mul", "operator: Mull", "the harness has no oracle for 'Mull'; did you mean 'Mul'?"),
        ("{keepdims: 1}", "{keepdim: 1}", "ReduceSum has no attribute 'keepdim' at opset 21"),
        ("else_branch", "body", "If has graphs as else_branch, then_branch"),
        ("{keepdims: 1}", "{keepdims: 0}", "what runs decides the type or the rank of an output"),
        ("        outputs: b\n", "", "nodes[1].attributes.else_branch: the key 'outputs' is missing"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_branch_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in IN_A_BRANCH
    with pytest.raises(SpecError) as caught:
        planned(tmp_path, IN_A_BRANCH.replace(old, new, 1))
    assert any(said in problem for problem in caught.value.problems), caught.value.problems


def test_an_extent_that_a_branch_decides_is_unknown(tmp_path: Path) -> None:
    case = cases(tmp_path, IN_A_BRANCH)[0][0]
    operator = OPERATORS["Branch"]
    assert operator.family.output_shapes(operator, call_of(case)) == ((UNKNOWN, UNKNOWN),)


@pytest.mark.parametrize("name", SPECS)
def test_a_graph_that_is_written_is_read_as_the_same(name: str, tmp_path: Path) -> None:
    case = some(name)[0]
    inputs, expected = held(case)
    graph = plain_graph(case, tuple(inputs.values()))
    plain, spec = graph.pruned().known_as("Written")
    try:
        text = spec_text(spec, plain, "written")
    finally:
        forget("Written")
    path = tmp_path / "Written.yaml"
    path.write_text(text, encoding="utf-8")
    again = load_specs([path])[0]
    assert again.graph is not None
    key = (case.opset, tuple((each.name, each.dtype) for each in plain.inputs), ())
    found = composed(again.graph.filled(*key), case.opset, graph.pruned().inputs, "opencl")
    for wanted, one in zip(expected, found, strict=True):
        assert compare(wanted, nearest(one)).diff is None
    assert all(each.nodes for node in again.graph.filled(*key).nodes for each in node.subgraphs.values())


def test_other_names_reach_what_a_branch_takes(tmp_path: Path) -> None:
    case = cases(tmp_path, IN_A_BRANCH)[0][0]
    branch = filled_graph(OPERATORS["Branch"], call_of(case)).nodes[1]
    assert branch.taken == ("c", "around", "around")
    assert branch.called({"around": "v", "half": "w"}).taken == ("c", "v", "v")


def test_a_loop_ends() -> None:
    def forever(_name: str, fed: Sequence[Known]) -> Found:
        return [fed[1], *fed[2:]]

    with pytest.raises(Unfit, match="more than 256 times"):
        loop(GraphNode("Loop", (), ("Y",), {}), {}, forever)


def test_a_choice_by_what_is_not_known_to_the_bit_is_refused() -> None:
    with pytest.raises(Unfit, match="known to the bit"):
        choose(GraphNode("If", (), ("Y",), {}), {"cond": Tensor("bool", np.ones(2, bool))}, lambda *_: [])
