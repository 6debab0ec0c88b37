"""The generated cases of kinds of input."""

from __future__ import annotations

from fnmatch import fnmatchcase
from math import prod
from pathlib import Path

import msgspec
import pytest

from harness.model.case import Case, Validity
from harness.model.caseid import CaseKey
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.specs.coverage import kind_cases, kind_matrix
from harness.specs.coverage.coverage import kind_counts
from harness.specs.coverage.kind_cases import GENERATED, is_of_kind
from harness.specs.coverage.kind_matrix import SeenKinds
from harness.specs.coverage.kinds import FLOATS, IN_MODES, NARROW, NUMBERS, SESSIONS, modes_of
from harness.specs.coverage.left_out import left_out
from harness.specs.expand import expand
from harness.specs.reading.load import load_specs, own_spec
from harness.specs.reading.origins import origins
from harness.specs.selection import Selection
from harness.specs.sweeps.calls import call_of, case_inputs
from harness.specs.sweeps.sessions import earlier_case
from tests.plans import plan_of

SOME = ("Gemm", "Gather", "Softmax", "Conv")


def generated(operator: str) -> list[Case]:
    literals = plan_of(operator).literals
    return [case for case in literals if is_of_kind(case) and "a kind of" in (case.source or "")]


@pytest.mark.parametrize("operator", SOME)
def test_each_has_a_cell_that_no_other_case_has_and_breaks_no_rule(operator: str) -> None:
    plan = plan_of(operator)
    others = SeenKinds(plan.specs[0])
    for case in plan:
        if not is_of_kind(case) and case.directml is None and case.options.variant is None:
            others.add(case)
    made = generated(operator)
    assert made
    for case in made:
        name, _, kind = (case.source or "").partition(",")[0].partition(" ")
        cell = name, kind
        assert cell in set(others.cells(case))
        assert cell not in others.judged or (
            kind in IN_MODES and any(cell not in others.by_mode.get(mode, ()) for mode in modes_of(case))
        )
        assert kind in GENERATED
        call = call_of(case)
        tensors = dict(zip(call.inputs, case_inputs(call, case, 0), strict=True))
        assert OPERATORS[operator].broken(call, tensors) == case.rule
        assert (case.validity is Validity.INVALID) == (kind in NUMBERS) == (case.rule is not None)
    assert len({case.id for case in plan}) == plan.counted()[0]


def test_the_matrix_counts_them() -> None:
    plan = plan_of("Gemm")
    (found,) = kind_counts(Selection(plan))
    assert ("A", "subnormal") in found.covered
    assert not set(found.missing) & {(name, kind) for name in ("A", "B", "C") for kind in FLOATS}


def test_elements_of_a_base_that_are_not_changed_stay() -> None:
    case = next(case for case in generated("Gemm") if "kind_A_subnormal;" in case.id)
    assert case.literals is not None
    first, second, third = case.literals
    assert first is not None
    assert 0 < first.flat[0] < 1e-40
    assert CaseKey.of(case.id).terms[:4] == (
        "case=kind_A_subnormal",
        "A=float32[2,2]",
        "B=float32[2,2]",
        "C=float32[2]",
    )
    assert second is not None
    assert third is not None


@pytest.mark.parametrize(
    ("operator", "name", "dtype", "shape"),
    [
        ("Gather", "kind_indices_rank_5", "int64", (1, 1, 1, 1, 2)),
        ("Gather", "kind_data_none_in_2", None, None),
        ("MeanVarianceNormalization", "kind_X_over_1024", "float32", (1025, 1, 1, 2)),
    ],
)
def test_shapes_that_no_case_has_get_one(
    operator: str, name: str, dtype: str | None, shape: tuple[int, ...] | None
) -> None:
    case = next(case for case in generated(operator) if f"case={name};" in case.id)
    changed = next(each for each in case.inputs if each.name == name.split("_")[1])
    assert case.validity is Validity.VALID
    if shape is None:
        assert changed.shape[2] == 0
    else:
        assert (changed.dtype, changed.shape) == (dtype, shape)


def test_an_extent_that_others_have_as_well_gets_one_case() -> None:
    names = [case.id for case in generated("MeanVarianceNormalization") if "kind_X_over" in case.id]
    assert len(names) == 1
    assert "over_1024" in names[0]


def test_an_input_that_is_no_initializer_anywhere_becomes_one_with_elements() -> None:
    (case,) = (case for case in generated("Swish") if "kind_X_initializer" in case.id)
    assert case.options.initializer == "X"
    assert all(case.inputs[0].shape)


def test_an_attribute_that_every_case_gives_is_left_out_once() -> None:
    (case,) = (case for case in generated("ArgMax") if "kind_keepdims_left_out" in case.id)
    assert "keepdims" not in case.attributes


def test_inputs_that_few_providers_take_are_in_the_cases_about_them_alone() -> None:
    made = [case for case in generated("com.microsoft.MoE") if not (case.source or "").startswith("fc3_")]
    given = [case for case in made if any(each.name.startswith("fc3_") for each in case.inputs)]
    assert {(case.source or "").split(" ")[0] for case in given} <= {"fc3_experts_bias", "swiglu_fusion"}


def test_a_case_of_everything_together_is_no_base() -> None:
    together = [case for case in plan_of("Conv").cases(valid=True) if ":sweep=together" in case.id]
    assert together
    everything = {tuple(sorted(case.attributes)) for case in together}
    assert not [case.id for case in generated("Conv") if tuple(sorted(case.attributes)) in everything]


def test_a_mode_that_cases_of_everything_together_alone_have_gets_no_case() -> None:
    def apart(case: Case) -> Case:
        own = case.attributes.get("axis") == 0
        return msgspec.structs.replace(case, id=f"{case.id}:sweep=together") if own else case

    plan = plan_of("LpNormalization")
    cases = [apart(case) for case in plan if not is_of_kind(case) and case.directml is None]
    made = list(kind_cases.kind_cases(plan.specs[0], cases))
    assert made
    assert not [case.id for case in made if case.attributes.get("axis") == 0]


def test_where_elements_decide_how_large_an_output_is_another_input_is_larger() -> None:
    (case,) = (case for case in generated("NonZero") if "kind_after_larger" in case.id)
    found = earlier_case(case)
    assert found is not None
    assert prod(found[0].inputs[0].shape) > prod(case.inputs[0].shape)


def test_a_thorough_plan_has_the_same_ones_and_a_report_says_what_they_are_made_of() -> None:
    specs = load_specs([own_spec("Gemm")])
    thorough = [case.id for case in expand(specs, thorough=True).literals if is_of_kind(case)]
    assert thorough == [case.id for case in plan_of("Gemm").literals if is_of_kind(case)]
    origin = origins(plan_of("Gemm"))["Gemm:case=kind_A_subnormal"]
    assert origin.source == "A subnormal, a kind of input that no other case has; made from sweep=sizes"


def test_what_is_left_out_is_of_operators_and_kinds_and_has_a_reason() -> None:
    for pattern, cells in left_out().items():
        operator = next(each for each in OPERATORS if fnmatchcase(each, pattern))
        schemas = [operator_schema(operator, opset) for opset in load_specs([own_spec(operator)])[0].opsets]
        names = {
            name
            for schema in schemas
            for name in (*schema.attributes, *(each.name for each in (*schema.inputs, *schema.outputs)))
        }
        assert all(cells.values())
        for cell in cells.keys() - {*SESSIONS}:
            name, _, kind = cell.partition(" ")
            assert name in names
            assert kind in (*GENERATED, *NARROW)


def test_a_cell_that_is_left_out_would_get_a_case_and_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("Clip")
    assert "Clip:case=kind_input_nan_everywhere" not in origins(plan)
    monkeypatch.setattr(kind_matrix, "reasons", lambda _: {})
    made = [case.id for case in kind_cases.kind_cases(plan.specs[0], plan) if "nan_everywhere" in case.id]
    assert made == ["Clip@13:case=kind_input_nan_everywhere;input=float32[3];min=float32[];max=float32[]"]


def test_a_spec_of_ones_own_gets_none(tmp_path: Path) -> None:
    spec = tmp_path / "Gemm.yaml"
    spec.write_bytes(own_spec("Gemm").read_bytes())
    assert not any(map(is_of_kind, expand(load_specs([spec]))))


def test_a_float_attribute_that_a_rule_forbids_is_generated_once() -> None:
    made = [
        each for each in origins(plan_of("com.microsoft.GroupQueryAttention")) if "q_norm_epsilon_inf" in each
    ]
    assert made == ["com.microsoft.GroupQueryAttention:case=kind_q_norm_epsilon_inf"]
