"""The generated invalid cases of numbers that attributes cannot have."""

from __future__ import annotations

import pytest

from harness.model.case import Case, Validity
from harness.operators import OPERATORS
from harness.specs.coverage.kinds import NUMBERS
from harness.specs.sweeps.calls import call_of, case_inputs
from tests.plans import plan_of


def generated(operator: str) -> dict[str, Case]:
    """Return the invalid ones by the attribute and the word of its value."""
    made = [
        case
        for case in plan_of(operator).literals
        if case.validity is Validity.INVALID
        and (case.source or "").partition(",")[0].partition(" ")[2] in NUMBERS
    ]
    return {case.id.partition("case=kind_")[2].partition(";")[0]: case for case in made}


@pytest.mark.parametrize(
    "operator",
    [
        "Conv",
        "STFT",
        "Split",
        "com.microsoft.RotaryEmbedding",
        pytest.param("com.microsoft.GroupQueryAttention", marks=pytest.mark.slow),
    ],
)
def test_each_breaks_the_rule_that_it_names(operator: str) -> None:
    assert generated(operator)
    for case in generated(operator).values():
        call = call_of(case)
        tensors = dict(zip(call.inputs, case_inputs(call, case, 0), strict=True))
        assert case.rule is not None
        assert OPERATORS[operator].broken(call, tensors) == case.rule


def test_integers_get_three_values_and_lists_two() -> None:
    made = generated("Conv")
    values = {word: made[f"group_{word}"].attributes["group"] for word in ("zero", "negative", "33_bits")}
    assert (values["zero"], values["negative"]) == (0, -1)
    assert isinstance(values["33_bits"], int)
    assert 0 < values["33_bits"] - 2**32 < 10  # what stood there
    strides = made["strides_zero"].attributes["strides"]
    assert isinstance(strides, tuple)
    assert strides[-1] == 0
    assert "strides_33_bits" not in made


def test_a_value_that_another_case_has_is_not_generated() -> None:
    """A valid call has pads of 0, a valid axis is below 0, and invalid sweeps have the axis 2**32."""
    assert "pads_zero" not in generated("Conv")
    assert not {"axis_negative", "axis_33_bits"} & generated("Softmax").keys()


def test_a_float_gets_valid_cases_where_no_rule_forbids_them() -> None:
    made = {
        case.id.partition("case=kind_")[2].partition(";")[0]: case for case in plan_of("HardSigmoid").literals
    }
    values = {
        kind: made[f"alpha_{kind}"].attributes["alpha"] for kind in ("nan_first", "inf", "minus_inf", "zero")
    }
    assert str(values) == "{'nan_first': nan, 'inf': inf, 'minus_inf': -inf, 'zero': 0.0}"
    assert {made[f"alpha_{kind}"].validity for kind in values} == {Validity.VALID}
    ratio = generated("Dropout")["ratio_negative"]
    assert (ratio.attributes["ratio"], ratio.validity, ratio.rule) == (
        -1.0,
        Validity.INVALID,
        "ratio in [0, 1)",
    )


def test_a_flag_is_no_wrong_number_where_another_rule_breaks() -> None:
    """What transA = -1 means no text says; that the inner dimensions then disagree is no case."""
    assert not [kind for kind in generated("Gemm") if kind.startswith("trans")]
    assert {"onesided_negative", "onesided_33_bits"} <= generated("STFT").keys()  # their rule names the flag
