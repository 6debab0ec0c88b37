"""What the contract can say and the first three operators do not: several outputs, inputs that are left out,
several or constant, attributes of every type, formulas that fail; from the graph through a worker to the
judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from msgspec import UNSET
from onnx import numpy_helper

from harness.compile.graphs import compile_case
from harness.model.case import (
    Case,
    Tensor,
    TensorSpec,
    TensorValue,
)
from harness.model.caseid import input_term, parse, value_text
from harness.model.expected import Approx, Exact, OneOf
from harness.model.float_formats import encode
from harness.model.result_key import artifact_name
from harness.model.target_info import CPU
from harness.model.verdict import Outcome
from harness.operators import OPERATORS
from harness.operators.base import Family, Operator
from harness.operators.formulas import decided
from harness.run.artifacts import Artifacts
from harness.run.judge import Judgement, judge
from harness.run.oracle import oracle
from harness.specs.sweeps.calls import call_of
from harness.targets.execution import Execution, Graph, GraphCases, Prepared
from harness.targets.fake import evaluate
from harness.targets.launches import launch
from harness.targets.pool import WorkerPool
from harness.targets.registry import parse_target
from tests import contract_operators as operators
from tests.contract_operators import case_of, floats
from tests.running import SPECS, harness, results_of

X = Tensor("float32", np.array([[3, 1, 2], [4, 6, 5]], np.float32))
K = Tensor("int64", np.array([2]))
LARGEST = [[3, 2], [6, 5]]
PLACES = [[0, 2], [1, 2]]


@pytest.fixture(autouse=True)
def _operators(monkeypatch: pytest.MonkeyPatch) -> None:
    for operator in (operators.TOP_K, operators.CONCAT, operators.CLIP, operators.EXP, operators.TF_IDF):
        monkeypatch.setitem(OPERATORS, operator.name, operator)


def prepared_of(case: Case) -> Prepared:
    assert case.literals is not None
    tensors = tuple(
        Tensor(spec.dtype, array)
        for spec, array in zip(case.inputs, case.literals, strict=True)
        if array is not None
    )
    return Prepared(case, call_of(case), tensors)


def graph_of(prepared: Prepared) -> Graph:
    return compile_case(prepared.case, prepared.call, prepared.inputs)


def model_of(prepared: Prepared) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(graph_of(prepared).model)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    opened = WorkerPool(launch(parse_target("cpu")), size=1, timeout=60)
    yield opened
    opened.close()


def run(pool: WorkerPool, prepared: Prepared) -> tuple[Execution, Judgement]:
    """Run a case on the real CPU provider and judge it."""
    graph = graph_of(prepared)
    ((_, _, execution),) = pool.run(iter([GraphCases(graph, [prepared])]))
    return execution, judge(prepared, graph, execution, CPU)


def answered(prepared: Prepared, *outputs: Tensor) -> Judgement:
    return judge(
        prepared,
        graph_of(prepared),
        Execution(outputs, None, "compare", ((CPU, prepared.case.operator),), 0.0),
        CPU,
    )


class TestSeveralOutputs:
    PREPARED_CASE = case_of(operators.TOP_K, 11, {"X": X, "K": K})

    def test_a_worker_brings_both_and_the_judge_compares_both(self, pool: WorkerPool) -> None:
        prepared = prepared_of(self.PREPARED_CASE)
        execution, judgement = run(pool, prepared)
        assert execution.outputs is not None
        assert [(output.dtype, output.array.tolist()) for output in execution.outputs] == [
            ("float32", LARGEST),
            ("int64", PLACES),
        ]
        assert judgement.outcome is Outcome.PASS
        assert graph_of(prepared).outputs == (("Values", 1), ("Indices", 7))

    def test_the_first_output_that_differs_is_named(self) -> None:
        prepared = prepared_of(self.PREPARED_CASE)
        values, places = Tensor("float32", np.array(LARGEST, np.float32)), Tensor("int64", np.array(PLACES))
        assert answered(prepared, values, places).outcome is Outcome.PASS
        wrong = Tensor("int64", np.array([[0, 2], [1, 1]]))
        found = answered(prepared, values, wrong)
        assert found.outcome is Outcome.MISMATCH
        assert found.diff is not None
        assert (found.diff.output, found.diff.first_index, found.diff.expected, found.diff.actual) == (
            1,
            (1, 1),
            "2",
            "1",
        )
        both = answered(prepared, Tensor("float32", values.array[::-1].copy()), wrong)
        assert both.diff is not None
        assert (both.diff.output, both.diff.differing) == (UNSET, 4)
        assert (
            answered(prepared, values, Tensor("int32", np.array(PLACES, np.int32))).outcome
            is Outcome.MISMATCH
        )

    def wrong(self) -> tuple[Prepared, Execution, Judgement]:
        """Return the case with wrong places."""
        prepared = prepared_of(self.PREPARED_CASE)
        outputs = (
            Tensor("float32", np.array(LARGEST, np.float32)),
            Tensor("int64", np.zeros((2, 2), np.int64)),
        )
        execution = Execution(outputs, None, "compare", ((CPU, "TopK"),), 0.0)
        judgement = judge(prepared, graph_of(prepared), execution, CPU)
        return prepared, execution, judgement

    def test_all_of_them_are_kept(self, tmp_path: Path) -> None:
        wrong = self.wrong()
        Artifacts(tmp_path).keep("cpu", *wrong, expected=False)
        with np.load(tmp_path / artifact_name(self.PREPARED_CASE.id, "cpu")) as held:
            assert set(held) == {"input_X", "input_K", "expected", "actual", "expected.1", "actual.1"}
            assert held["expected.1"].tolist() == PLACES
            assert held["actual.1"].tolist() == [[0, 0], [0, 0]]

    def test_an_unexpected_result_does_not_count_as_an_expected_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("harness.run.artifacts._LIMIT_EXPECTED", 0)
        wrong = self.wrong()
        Artifacts(tmp_path).keep("cpu", *wrong, expected=True)
        assert not list(tmp_path.iterdir())
        Artifacts(tmp_path).keep("cpu", *wrong, expected=False)
        assert len(list(tmp_path.iterdir())) == 1

    def test_each_documented_result_is_held_against_the_formula(self) -> None:
        case = self.PREPARED_CASE
        right = msgspec.structs.replace(case, documented=(None, np.array(PLACES)))
        wrong = msgspec.structs.replace(case, documented=(None, np.array(PLACES) + 1))
        outputs = (Tensor("float32", np.array(LARGEST, np.float32)), Tensor("int64", np.array(PLACES)))
        assert answered(prepared_of(right), *outputs).outcome is Outcome.PASS
        assert answered(prepared_of(wrong), *outputs).outcome is Outcome.ORACLE_ERROR


class TestInputs:
    def test_an_optional_input_that_is_left_out_is_an_empty_name(self, pool: WorkerPool) -> None:
        prepared = prepared_of(
            case_of(
                operators.CLIP,
                13,
                {"input": floats(-1, 2, 9), "max": Tensor("float32", np.array(3, np.float32))},
            )
        )
        model = model_of(prepared)
        assert [list(node.input) for node in model.graph.node] == [["input", "", "max"]]
        assert [value.name for value in model.graph.input] == ["input", "max"]
        execution, judgement = run(pool, prepared)
        assert execution.outputs is not None
        assert execution.outputs[0].array.tolist() == [-1, 2, 3]
        assert judgement.outcome is Outcome.PASS

    def test_optional_inputs_at_the_end_are_not_written(self) -> None:
        prepared = prepared_of(
            case_of(
                operators.CLIP, 13, {"input": floats(-1), "min": Tensor("float32", np.array(0, np.float32))}
            )
        )
        assert [list(node.input) for node in model_of(prepared).graph.node] == [["input", "min"]]

    def test_a_variadic_input_is_as_many_as_the_case_gives(self, pool: WorkerPool) -> None:
        inputs = {f"inputs.{n}": floats(*range(n + 1)) for n in range(3)}
        prepared = prepared_of(case_of(operators.CONCAT, 13, inputs, {"axis": 0}))
        assert [list(node.input) for node in model_of(prepared).graph.node] == [
            ["inputs.0", "inputs.1", "inputs.2"]
        ]
        execution, judgement = run(pool, prepared)
        assert execution.outputs is not None
        assert execution.outputs[0].array.tolist() == [0, 0, 1, 0, 1, 2]
        assert judgement.outcome is Outcome.PASS

    def test_what_decides_shapes_can_be_initializers_alone(self, pool: WorkerPool) -> None:
        prepared = prepared_of(case_of(operators.TOP_K, 11, {"X": X, "K": K}, initializer="constants"))
        graph, model = graph_of(prepared), model_of(prepared)
        assert (graph.fed, [name for name, _ in graph.inputs]) == ((0,), ["X"])
        assert [(each.name, numpy_helper.to_array(each).tolist()) for each in model.graph.initializer] == [
            ("K", [2])
        ]
        assert run(pool, prepared)[1].outcome is Outcome.PASS
        assert prepared.call.parameter("K") == (2,)

    def test_elements_that_decide_shapes_stand_in_the_id(self) -> None:
        assert input_term(TensorSpec("axes", "int64", (2,), elements=(0, -1))) == "axes=int64{0,-1}"
        assert input_term(TensorSpec("k", "int64", (), elements=(3,))) == "k=int64(3)"
        assert input_term(TensorSpec("axes", "int64", (0,), elements=())) == "axes=int64{}"
        case = Case(
            "TopK@11:sweep=x",
            "TopK",
            11,
            {},
            (TensorSpec("X", "float32", (2, 3)), TensorSpec("K", "int64", (1,), elements=(2,))),
        )
        call = call_of(case)
        assert call.constants["K"].tolist() == [2]
        assert call.outputs == ("float32", "int64")


VALUES = {
    "mode": ("TFIDF", "TFIDF"),
    "min_gram_length": (-2, "-2"),
    "ngram_counts": ((0, 3), "[0,3]"),
    "weights": ((0.5, -2.0, 1e-05), "[0.5,-2.0,1e-05]"),
    "pool_strings": (("a;b", "c%", "é", "ij -> k"), "[a%3Bb,c%25,é,ij%20-%3E%20k]"),
    "ngram_indexes": ((), "[]"),
    "pool_int64s": ((7,), "[7]"),
}


class TestAttributes:
    @pytest.mark.parametrize(("value", "text"), [*VALUES.values(), (0.1, "0.1"), (True, "true")])
    def test_in_ids(self, value: object, text: str) -> None:
        assert value_text(value) == text  # type: ignore[arg-type]
        assert parse(f"A@1:case=x;a={text}").terms == {"case": "x", "a": text}

    def test_tensors_in_ids(self) -> None:
        assert value_text(TensorValue("float32", (2,), (1.5, 2.0))) == "float32{1.5,2.0}"
        assert value_text(TensorValue("int64", (), (3,))) == "int64(3)"

    def test_in_graphs_and_back(self) -> None:
        given = {name: value for name, (value, _) in VALUES.items()} | {
            "max_gram_length": 2,
            "max_skip_count": 0,
            "weights": (),
        }
        prepared = prepared_of(case_of(operators.TF_IDF, 9, {"X": floats(1, 2)}, given))
        model = model_of(prepared)
        (node,) = model.graph.node
        kinds = {entry.name: onnx.AttributeProto.AttributeType.Name(entry.type) for entry in node.attribute}
        assert kinds == {
            "mode": "STRING",
            "min_gram_length": "INT",
            "max_gram_length": "INT",
            "max_skip_count": "INT",
            "ngram_counts": "INTS",
            "ngram_indexes": "INTS",
            "pool_int64s": "INTS",
            "pool_strings": "STRINGS",
            "weights": "FLOATS",
        }
        operators.SEEN.clear()
        evaluate(model, prepared.case.id, {"X": floats(1, 2)})
        assert [given] == operators.SEEN

    def test_a_tensor_in_a_graph_and_back(self) -> None:
        value = TensorValue("float16", (1,), (1.5,))
        operator = Operator("ConstantOfShape", Family(), operators.TF_IDF.oracle)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(OPERATORS, "ConstantOfShape", operator)
            prepared = prepared_of(
                case_of(operator, 9, {"input": Tensor("int64", np.array([2]))}, {"value": value})
            )
            (node,) = model_of(prepared).graph.node
        (entry,) = node.attribute
        assert (entry.t.data_type, numpy_helper.to_array(entry.t).tolist()) == (10, [1.5])
        assert value.tensor.array.dtype == np.float16


class TestBounds:
    def test_a_value_within_its_bound_passes_and_the_next_one_outside_does_not(
        self, pool: WorkerPool
    ) -> None:
        prepared = prepared_of(case_of(operators.EXP, 13, {"input": floats(-1, 0.3, 5)}))
        assert run(pool, prepared)[1].outcome is Outcome.PASS
        found = oracle(prepared, CPU)
        assert found is not None
        (expected,) = found
        assert isinstance(expected, Approx)
        right = encode("float32", expected.value)
        wrong = right.copy()
        while abs(float(wrong[2]) - expected.value[2]) <= expected.bound[2]:
            wrong[2] = np.nextafter(wrong[2], np.float32(np.inf))
        assert answered(prepared, Tensor("float32", right)).outcome is Outcome.PASS
        judgement = answered(prepared, Tensor("float32", wrong))
        assert judgement.outcome is Outcome.MISMATCH
        assert judgement.diff is not None
        assert judgement.diff.first_index == (2,)
        assert judgement.accuracy is not None
        assert 1 < judgement.accuracy.ratio < 2

    def test_alternatives_are_by_element(self, monkeypatch: pytest.MonkeyPatch) -> None:
        low, high = floats(1, 2), floats(1, 3)
        monkeypatch.setitem(OPERATORS, "Exp", operators.EXP._replace(oracle=lambda *_: (OneOf((low, high)),)))
        prepared = prepared_of(case_of(operators.EXP, 13, {"input": floats(0, 0)}))
        assert [answered(prepared, floats(1, last)).outcome.value for last in (2, 3, 2.5)] == [
            "pass",
            "pass",
            "mismatch",
        ]


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (lambda input: 1 // 0, "Exp: ZeroDivisionError: integer division or modulo by zero"),
        (
            lambda input: np.float64(input),
            "Exp: FormulaError: the formula gives float64 where the output is float32",
        ),
        (lambda input: input[:1], "Exp: output 0 of the formula has shape [1], inferred is [2]"),
        (lambda input: (), "Exp: FormulaError: the formula gives 0 outputs where 1 are asked for"),
        (lambda input, absent: input, "Exp: TypeError: "),
    ],
    ids=["raises", "dtype", "shape", "none", "parameters"],
)
def test_a_formula_that_fails_is_an_error_of_the_oracle_and_no_end(
    formula: object, said: str, pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPERATORS, "Exp", Operator("Exp", Family(), decided(formula)))  # type: ignore[arg-type]
    prepared = prepared_of(case_of(operators.EXP, 13, {"input": floats(0, 1)}))
    execution, judgement = run(pool, prepared)
    assert execution.outputs is not None
    assert judgement.outcome is Outcome.ORACLE_ERROR
    assert judgement.error is not None
    assert judgement.error.class_ == "OracleError"
    assert judgement.error.message.startswith(said)


def test_what_no_source_defines_is_no_failure_of_the_formula(tmp_path: Path) -> None:
    harness("run", SPECS / "DynamicQuantizeLinear.yaml", "-t", "cpu", "-k", "case=all_zero", "-o", tmp_path)
    (result,) = results_of(tmp_path).values()
    assert (result["outcome"], result["validity"]) == ("accepted_invalid", "unspecified")


def test_exact_is_what_a_formula_that_decides_gives() -> None:
    found = oracle(prepared_of(case_of(operators.CLIP, 13, {"input": floats(1)})), CPU)
    assert found is not None
    assert isinstance(found[0], Exact)
