"""The generated cases of DirectML's own API, of all operators."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from harness.model.case import BEYOND, Case, Validity
from harness.model.reference.directml import directml_operator
from harness.model.signatures import signature
from harness.operators.directml.changes import broken
from harness.operators.directml.lowering import directml_call, lower
from harness.specs.expand import expand
from harness.specs.reading.load import default_folder, load_specs
from harness.specs.reading.origins import origins
from harness.specs.sweeps.api_cases import document_name
from harness.specs.sweeps.calls import call_of
from tests.plans import PARTS, plan_in_parts, plan_of

NOT_LOWERED = {
    "Col2Im",
    "ConcatFromSequence",
    "ConstantOfShape",
    "Dropout",
    "Einsum",
    "EyeLike",
    "GRU",
    "LSTM",
    "MaxRoiPool",
    "MaxUnpool",
    "NonZero",
    "RNN",
    "Range",
    "ReverseSequence",
    "RoiAlign",
    "Trilu",
}
"""Operators that ONNX Runtime's provider lowers, while none of their cases is a call that the harness can
make and a table allows."""


@cache
def generated(part: str) -> tuple[Case, ...]:
    return tuple(
        case
        for case in plan_in_parts(part).literals
        if "; generated from case=" in (case.source or "") or _of_sweep(case)
    )


def _of_sweep(case: Case) -> bool:
    return "; generated from sweep=" in (case.source or "")


def name(case: Case) -> str:
    return case.id.partition(":case=")[2].partition(";")[0]


@pytest.mark.parametrize("part", PARTS)
def test_every_operator_with_a_lowering_has_a_base_and_both_sides(part: str) -> None:
    lowered = {spec.model.operator for spec in plan_in_parts(part).specs if spec.directml}
    by_operator: dict[str, set[Validity]] = defaultdict(set)
    for case in generated(part):
        by_operator[case.operator].add(case.validity)
    own = {operator for operator in lowered if signature(operator) is None}
    assert own - set(by_operator) == NOT_LOWERED & own
    assert all({Validity.VALID, Validity.INVALID} <= kinds for kinds in by_operator.values())
    assert {case.operator for case in generated(part) if name(case) == "api_base"} == set(by_operator)
    counts = Counter(case.operator for case in generated(part))
    assert 8 <= min(counts.values()) <= max(counts.values()) <= 40


@pytest.mark.parametrize("part", PARTS)
def test_every_case_says_what_it_breaks_and_where_that_stands(part: str) -> None:
    told = origins(plan_in_parts(part))
    for case in generated(part):
        assert case.directml is not None
        assert (case.rule is None) is (case.validity is Validity.VALID), case.id
        page = document_name(directml_call(case, call_of(case)).operator)
        assert (case.source or "").startswith((f"{page}, ", "DML_BUFFER_TENSOR_DESC, ")), case.id
        assert (
            told[case.id.partition("@")[0] + ":" + case.id.partition(":")[2].partition(";")[0]].source
            == case.source
        )
    assert len({case.id for case in plan_in_parts(part).literals}) == len(plan_in_parts(part).literals)


@pytest.mark.parametrize("part", PARTS)
def test_what_is_valid_breaks_no_constraint_and_what_is_unlike_breaks_the_one_that_it_names(
    part: str,
) -> None:
    """A constraint of the tables that the base of an operator breaks would be wrong."""
    seen: Counter[str] = Counter()
    for case in generated(part):
        low = lower(case, call_of(case))
        kinds = {what for what, _ in broken(directml_operator(low.operator), low)}
        if case.validity is Validity.VALID:
            assert not kinds, case.id
            assert BEYOND not in case.levels.values(), case.id
        for what in ("dtype", "dimension_count", "sizes"):
            if name(case).startswith(f"api_unlike_{what}_"):
                seen[what] += 1
                assert what in kinds, case.id
                assert what == "dimension_count" or kinds == {what}, case.id
    assert min(seen.values()) >= {PARTS[0]: 10, "the rest": 90}[part]


@pytest.mark.parametrize("part", PARTS)
def test_a_call_that_no_table_has_is_of_no_level(part: str) -> None:
    marks = ("api_undocumented_", "api_too_many_dimensions")
    beyond = [case for case in generated(part) if name(case).startswith(marks)]
    assert len(beyond) > 10
    assert [case.id for case in beyond if not case.beyond] == []


def test_one_of_an_array_of_tensors_is_changed() -> None:
    cases = {name(case): case for case in plan_of("Concat", "Split").literals if case.directml is not None}
    low = lower(cases["api_unlike_dtype_input_tensors_1"], call_of(cases["api_unlike_dtype_input_tensors_1"]))
    assert [tensor.dtype for _, tensor in low.views()] == ["float32", "float16", "float32"]
    one = cases["api_unlike_dimension_count_output_tensors_1"]
    low = lower(one, call_of(one))
    assert [len(tensor.sizes) for _, tensor in low.views()] == [2, 2, 3]
    assert low.output_shapes[1] == low.view("OutputTensors.1").sizes


def test_more_dimensions_are_counted_where_an_array_has_one_element_for_each() -> None:
    (case,) = [case for case in plan_of("Tile").literals if name(case) == "api_dimension_count_8"]
    low = lower(case, call_of(case))
    assert (low.attributes["RepeatsCount"], len(low.attributes["Repeats"])) == (8, 8)


def test_a_case_that_a_spec_writes_out_stands_in_place_of_the_generated_one() -> None:
    found = [case for case in plan_of("Round").literals if name(case) == "api_size_of_zero"]
    assert [case.source for case in found] == ["DML_BUFFER_TENSOR_DESC, Sizes"]


def test_a_spec_of_ones_own_has_the_cases_that_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "Round.yaml"
    path.write_text((default_folder() / "Round.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    assert not any("generated from" in (case.source or "") for case in expand(load_specs([path])).literals)
