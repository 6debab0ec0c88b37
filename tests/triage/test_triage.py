"""Reducing and handing over calls with several outputs, inputs that are left out or several, attributes of
every type, and bounds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.model.case import (
    Case,
    Options,
    Tensor,
    TensorValue,
    Value,
)
from harness.model.expected import OneOf
from harness.model.float_formats import encode
from harness.model.target_info import CPU
from harness.operators import OPERATORS
from harness.run.oracle import oracle
from harness.specs.expand import expand
from harness.specs.reading.load import LoadedSpec, load_specs
from harness.specs.reading.write import attribute, spec_text
from harness.triage.reduction.candidate import Candidate, Subject
from harness.triage.reduction.reducer import STEPS
from harness.triage.reduction.settings import fewer_inputs, smaller_attributes, smaller_values
from harness.triage.repro.folder import write_repro
from harness.triage.repro.issue import issue
from harness.triage.repro.script import script
from tests import contract_operators as operators
from tests.bare import run_script
from tests.contract_operators import case_of, floats
from tests.targets.test_contract import LARGEST, PLACES, K, X, prepared_of
from tests.triage.test_repro import failure_of


@pytest.fixture(autouse=True)
def _operators(monkeypatch: pytest.MonkeyPatch) -> None:
    for operator in (operators.TOP_K, operators.CONCAT, operators.CLIP, operators.EXP, operators.TF_IDF):
        monkeypatch.setitem(OPERATORS, operator.name, operator)


def spec_of(folder: Path, operator: str, inputs: str, more: str = "") -> LoadedSpec:
    path = folder / f"{operator}.yaml"
    path.write_text(
        f"operator: {operator}\nopsets: all\ncases:\n  - {{name: one, {more}inputs: {{{inputs}}}}}\n",
        encoding="utf-8",
    )
    (spec,) = load_specs([path])
    return spec


def read_again(folder: Path, spec: LoadedSpec, case: Case) -> Case:
    path = folder / "again.yaml"
    path.write_text(spec_text(spec, case, "written"), encoding="utf-8")
    (read,) = expand(load_specs([path]))
    return read


class TestCandidates:
    def test_one_of_several_inputs_is_taken_away_and_the_others_move_up(self, tmp_path: Path) -> None:
        spec = spec_of(
            tmp_path,
            "Concat",
            "inputs: [{dtype: float32, values: [1]}]",
            "attributes: {axis: 0}, opsets: [13], ",
        )
        inputs = {f"inputs.{n}": floats(n) for n in range(3)}
        subject = Subject(prepared_of(case_of(operators.CONCAT, 13, inputs, {"axis": 0})), spec)
        found = list(filter(subject.keeps, fewer_inputs(subject, subject.start)))
        assert [candidate.names for candidate in found] == [("inputs.0", "inputs.1")] * 3
        assert [[float(t.array[0]) for t in candidate.inputs] for candidate in found] == [
            [0, 1],
            [0, 2],
            [1, 2],
        ]
        assert all(subject.cost(candidate) < subject.cost(subject.start) for candidate in found)
        last = found[0]._replace(names=("inputs.0",), inputs=(floats(1),))
        assert subject.keeps(last)
        assert list(filter(subject.keeps, fewer_inputs(subject, last))) == []  # one has to stay

    def test_an_optional_input_is_left_out(self, tmp_path: Path) -> None:
        spec = spec_of(tmp_path, "Clip", "input: {dtype: float32, values: [1]}", "opsets: [13], ")
        low, high = (Tensor("float32", np.array(n, np.float32)) for n in (0, 3))
        subject = Subject(
            prepared_of(case_of(operators.CLIP, 13, {"input": floats(1, 9), "min": low, "max": high})), spec
        )
        assert [
            candidate.names for candidate in filter(subject.keeps, fewer_inputs(subject, subject.start))
        ] == [
            ("input", "min"),
            ("input", "max"),
        ]
        read = read_again(
            tmp_path, spec, subject.case(next(filter(subject.keeps, fewer_inputs(subject, subject.start))))
        )
        assert read.id == "Clip@13:case=written;input=float32[2];min=float32[]"

    def test_every_step_of_every_kind_keeps_the_call_valid(self, tmp_path: Path) -> None:
        spec = spec_of(
            tmp_path,
            "TopK",
            "X: {dtype: float32, values: [1]}, K: {dtype: int64, values: [1]}",
            "attributes: {axis: 0}, opsets: [11], ",
        )
        subject = Subject(
            prepared_of(case_of(operators.TOP_K, 11, {"X": X, "K": K}, {"axis": -1, "largest": 1})), spec
        )
        found: list[Candidate] = [
            step for steps in STEPS for step in filter(subject.keeps, steps(subject, subject.start))
        ]
        assert len(found) > 20
        assert all(subject.broken(step) is None for step in found)
        assert any(step.inputs[1].array.tolist() == [1] for step in found)
        assert any(dict(step.attributes) == {"axis": -1} for step in found)

    def test_inputs_that_share_a_type_keep_one(self, tmp_path: Path) -> None:
        spec = spec_of(tmp_path, "Clip", "input: {dtype: float32, values: [1]}", "opsets: [13], ")
        subject = Subject(
            prepared_of(case_of(operators.CLIP, 13, {"input": floats(1), "min": floats(0)})), spec
        )
        other = subject.start.with_input(1, Tensor("float64", np.zeros(1)))
        assert subject.broken(other) == "input and min have one element type, T"
        assert not subject.keeps(other)

    @pytest.mark.parametrize(
        ("value", "smaller"),
        [
            ((3, 1), [(1,), (3,), (0, 1), (1, 1), (2, 1), (3, 0), (3, -0)]),
            ("linear", []),
            (TensorValue("float32", (1,), (1.5,)), []),
            (("a", "b"), [("b",), ("a",)]),
            (-2, [0, 1, -1, 2]),
        ],
    )
    def test_smaller_values_of_attributes(self, value: Value, smaller: list[Value]) -> None:
        assert list(smaller_values(value)) == list(dict.fromkeys(smaller))

    def test_smaller_floats_come_nearer_to_zero_and_keep_their_type(self) -> None:
        found = list(smaller_values(0.3))
        assert {0.0, 1.0, 0.5} <= set(found)
        assert all(type(each) is float for each in found)
        assert (0.5, 2.0) in set(smaller_values((0.5, 2.1)))

    def test_attributes_of_every_type_become_smaller(self, tmp_path: Path) -> None:
        attributes: dict[str, Value] = {
            "mode": "TFIDF",
            "min_gram_length": 1,
            "max_gram_length": 2,
            "max_skip_count": 0,
            "ngram_counts": (0, 3),
            "ngram_indexes": (1,),
            "weights": (0.5,),
            "pool_strings": ("a, b", "1"),
        }
        written = ", ".join(f"{name}: {attribute(value)}" for name, value in attributes.items())
        spec = spec_of(
            tmp_path,
            "TfIdfVectorizer",
            "X: {dtype: int32, values: [1]}",
            f"attributes: {{{written}}}, opsets: [9], ",
        )
        (read,) = expand([spec])
        assert read.attributes == attributes
        assert {type(each) for each in read.attributes["weights"]} == {float}  # type: ignore[union-attr]
        x = Tensor("int32", np.array([1, 2], np.int32))
        subject = Subject(prepared_of(case_of(operators.TF_IDF, 9, {"X": x}, attributes)), spec)
        changed = {
            name
            for candidate in filter(subject.keeps, smaller_attributes(subject, subject.start))
            if subject.cost(candidate) < subject.cost(subject.start)
            for name, value in attributes.items()
            if dict(candidate.attributes).get(name) != value
        }
        assert changed == {
            "min_gram_length",
            "max_gram_length",
            "ngram_counts",
            "ngram_indexes",
            "weights",
            "pool_strings",
        }
        again = read_again(tmp_path, spec, subject.case(subject.start))
        assert again.attributes == attributes


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), -0.0, 1e-05, 0.1, 16777216.0, 3.0])
def test_floats_of_attributes_are_read_as_they_are_written(tmp_path: Path, value: float) -> None:
    spec = spec_of(
        tmp_path,
        "TfIdfVectorizer",
        "X: {dtype: int32, values: [1]}",
        _required(f"weights: [{attribute(value)}]"),
    )
    (read,) = expand([spec])
    assert repr(read.attributes["weights"]) == repr((value,))


def _required(more: str) -> str:
    given = "mode: TF, min_gram_length: 1, max_gram_length: 1, max_skip_count: 0, ngram_counts: [0], ngram_indexes: [0]"
    return f"attributes: {{{given}, {more}}}, opsets: [9], "


class TestRepros:
    def run(self, folder: Path, text: str) -> tuple[int, dict[str, str]]:
        folder.mkdir(exist_ok=True)
        (folder / "repro.py").write_text(text, encoding="utf-8")
        done = run_script(Path(sys.executable), folder / "repro.py")
        return done.returncode, dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)

    def test_each_output_is_judged_and_the_wrong_one_named(self, tmp_path: Path) -> None:
        failure = failure_of(prepared_of(case_of(operators.TOP_K, 11, {"X": X, "K": K})))
        text = script(failure)
        code, told = self.run(tmp_path, text)
        assert code == 0, told
        assert (
            told["expected"].strip()
            == f"Values float32[2, 2] {_shown(LARGEST)} (bits {_bits()}); Indices int64[2, 2] {PLACES}"
        )
        assert "wrong" not in told
        assert str(PLACES) in text
        code, told = self.run(tmp_path, text.replace(str(PLACES), "[[0, 2], [1, 1]]"))
        assert code == 1
        assert told["wrong"].strip() == "Indices"

    def test_the_folder_has_all_outputs(self, tmp_path: Path) -> None:
        failure = failure_of(
            prepared_of(case_of(operators.TOP_K, 11, {"X": X, "K": K}, initializer="constants"))
        )
        write_repro(failure, tmp_path / "repro", None)
        data = tmp_path / "repro" / "test_data_set_0"
        assert sorted(path.name for path in data.iterdir()) == ["input_0.pb", "output_0.pb", "output_1.pb"]
        proto = onnx.TensorProto.FromString((data / "output_1.pb").read_bytes())
        assert (proto.name, numpy_helper.to_array(proto).tolist()) == ("Indices", PLACES)
        text = (tmp_path / "repro" / "issue.md").read_text(encoding="utf-8")
        assert "`Indices` should be `int64[2,2]` `[[0, 2], [1, 2]]`." in text

    @pytest.mark.parametrize(("narrower", "code"), [(1.0, 0), (0.0, 1)])
    def test_a_bound_is_judged_as_the_harness_judges_it(
        self, tmp_path: Path, narrower: float, code: int
    ) -> None:
        prepared = prepared_of(case_of(operators.EXP, 13, {"input": floats(-1, 0.3, 5, 200)}))
        with pytest.MonkeyPatch.context() as patch:
            found = oracle(prepared, CPU)
            assert found is not None
            (expected,) = found
            given = type(expected)(
                expected.dtype,
                expected.value,
                np.where(np.isinf(expected.bound), np.inf, expected.bound if narrower else 0.0),
            )  # type: ignore[call-arg,union-attr]
            patch.setitem(OPERATORS, "Exp", operators.EXP._replace(oracle=lambda *_: (given,)))
            failure = failure_of(prepared)
            text = script(failure)
            said = issue(failure, "pass", None)
        assert "each element within its bound, which is at most " in said
        ended, told = self.run(tmp_path, text)
        assert ended == code, told
        assert "each element of float32 within its bound, at most " in told["expected"]
        right = encode("float32", expected.value)  # type: ignore[union-attr]
        assert right.shape == (4,)

    def test_one_of_a_few_is_enough_for_each_element(self, tmp_path: Path) -> None:
        prepared = prepared_of(case_of(operators.EXP, 13, {"input": floats(0, 0)}))
        for second, code in ((floats(7, 1), 0), (floats(7, 8), 1)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(
                    OPERATORS,
                    "Exp",
                    operators.EXP._replace(oracle=lambda *_, other=second: (OneOf((floats(1, 2), other)),)),
                )
                assert self.run(tmp_path, script(failure_of(prepared)))[0] == code

    def test_attributes_and_inputs_that_are_left_out_in_an_issue(self) -> None:
        inputs = {"input": floats(1), "max": Tensor("float32", np.array(3, np.float32))}
        text = issue(failure_of(prepared_of(case_of(operators.CLIP, 13, inputs))), "pass", None)
        assert "| max | `float32[]` `3.0 (0x40400000)` |" in text
        assert "| min |" not in text


def _shown(values: object) -> str:
    return " ".join(np.array2string(np.array(values, np.float32), separator=", ", floatmode="unique").split())


def _bits() -> str:
    return " ".join(f"{n:08x}" for n in np.array(LARGEST, np.float32).reshape(-1).view("u4").tolist())


def test_options_with_outputs_are_written_into_an_entry(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path, "TopK", "X: {dtype: float32, values: [1]}, K: {dtype: int64, values: [1]}", "opsets: [11], "
    )
    case = case_of(operators.TOP_K, 11, {"X": X, "K": K}, outputs=1, initializer="constants")
    assert read_again(tmp_path, spec, case).options == Options(initializer="constants", outputs=1)
