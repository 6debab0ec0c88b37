"""The oracle of a graph: values and bounds that travel from node to node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.operators import OPERATORS
from harness.operators.base import Operator
from harness.run.deviation import deviating
from harness.specs.graphs.composition import Unfit, composed
from harness.specs.graphs.known import Within, expected_of
from harness.specs.graphs.pattern import FilledGraph, GraphNode
from tests.contract_operators import floats
from tests.graphs.specs import cases

OPSET = 21


def of(
    *nodes: GraphNode,
    constants: dict[str, Tensor] | None = None,
    operators: Mapping[str, Operator] = OPERATORS,
    **inputs: Tensor,
) -> Expected:
    """Return what the last output of nodes is held against."""
    graph = FilledGraph(nodes, (nodes[-1].outputs[0],), constants or {}, False)
    (found,) = composed(graph, OPSET, inputs, "opencl", operators=operators)
    return found


def node(operator: str, inputs: str, output: str, **attributes: object) -> GraphNode:
    return GraphNode(operator, tuple(inputs.split()), (output,), attributes)  # type: ignore[arg-type]


def test_movers_of_exact_elements_stay_exact() -> None:
    found = of(node("Neg", "X", "a"), node("Transpose", "a", "Y"), X=floats(-1.0, 2.0))
    assert isinstance(found, Exact)
    assert found.tensor.array.tolist() == [1.0, -2.0]


def test_a_bound_moves_with_its_element() -> None:
    """sqrt of 0 and of 1 is exact, of 2 and 3 it is not: after the reversal the bounds stand in the other order."""
    found = of(
        node("Exp", "X", "a"),
        node("Slice", "a starts ends axes steps", "Y"),
        constants={
            name: Tensor("int64", np.array([value], np.int64))
            for name, value in {"starts": 3, "ends": -9, "axes": 0, "steps": -1}.items()
        },
        X=floats(0.0, 1.0, 5.0, 9.0),
    )
    assert isinstance(found, Approx)
    assert np.allclose(found.value, np.exp([9.0, 5.0, 1.0, 0.0]))
    assert found.bound.tolist() == sorted(found.bound.tolist(), reverse=True)
    assert found.bound[0] > 1000 * found.bound[-1]


def test_a_choice_by_what_is_inexact_is_either_number() -> None:
    """exp(0) may be more than 1 where it is rounded, exp(-9) is not; the bound of what is chosen stays."""
    found = of(
        node("Exp", "X", "a"),
        node("Greater", "a one", "condition"),
        node("Where", "condition least a", "chosen"),
        node("Expand", "chosen shape", "Y"),
        constants={
            "one": Tensor("float16", np.array(1, np.float16)),
            "least": Tensor("float16", np.array(-65504, np.float16)),
            "shape": Tensor("int64", np.array([2], np.int64)),
        },
        X=Tensor("float16", np.array([0.0, -9.0], np.float16)),
    )
    assert isinstance(found, Approx)
    assert all(abs(each - found.value[0]) <= found.bound[0] for each in (-65504, 1))
    assert 0 < found.bound[1] < 1e-5
    assert np.isclose(found.value[1], np.exp(-9.0), atol=1e-5)


def test_padding_has_no_bound() -> None:
    found = of(
        node("Exp", "X", "a"),
        node("Pad", "a pads", "Y"),
        constants={"pads": Tensor("int64", np.array([1, 1], np.int64))},
        X=floats(2.0),
    )
    assert isinstance(found, Approx)
    assert found.bound[0] == found.bound[2] == 0 < found.bound[1]


def test_bounds_add_up() -> None:
    one = of(node("Exp", "X", "Y"), X=floats(3.0))
    two = of(node("Exp", "X", "a"), node("Mul", "a a", "Y"), X=floats(3.0))
    assert isinstance(one, Approx)
    assert isinstance(two, Approx)
    relative = [float(each.bound[0] / each.value[0]) for each in (one, two)]
    assert relative[1] > 2 * relative[0]


def test_a_tie_gives_both_integers() -> None:
    """exp(log(2.5)) may lie on either side of 2.5: rounding gives 2 or 3, and 7.4 is 7."""
    quantised = of(
        node("Log", "X", "a"),
        node("Exp", "a", "b"),
        node("QuantizeLinear", "b scale zero", "Y"),
        constants={
            "scale": Tensor("float32", np.array(1.0, np.float32)),
            "zero": Tensor("uint8", np.array(0, np.uint8)),
        },
        X=floats(2.5, 7.4),
    )
    assert isinstance(quantised, OneOf)
    assert {int(each.array[0]) for each in quantised.candidates} == {2, 3}
    assert {int(each.array[1]) for each in quantised.candidates} == {7}


def test_sums_of_float16_and_products_of_quantised_weights_have_no_looser_bound() -> None:
    """Neither a sum in float16 nor activations of eight bits stay within them: docs/graphs.md says so."""
    terms = np.arange(1, 65) / 64
    half = of(
        node("MatMul", "A B", "Y"),
        A=Tensor("float16", terms.astype(np.float16)[None]),
        B=Tensor("float16", terms.astype(np.float16)[:, None]),
    )
    assert isinstance(half, Approx)
    assert half.bound.item() < 2.0**-10 * half.value.item() < len(terms) * 2.0**-11 * half.value.item() / 8
    weighted = of(
        node("DequantizeLinear", "B scale", "b"),
        node("MatMul", "A b", "Y"),
        constants={"scale": Tensor("float32", np.array(0.3, np.float32))},
        A=Tensor("float32", terms.astype(np.float32)[None]),
        B=Tensor("int8", np.arange(1, 65, dtype=np.int8)[:, None]),
    )
    assert isinstance(weighted, Approx)
    assert weighted.bound.item() < terms.max() / 254 * 0.3 * np.arange(1, 65).sum() / 1000


def test_a_step_is_one_where_the_bound_crosses_it() -> None:
    """LeakyRelu beside 0: the bound covers both of its slopes."""
    found = of(
        node("Exp", "X", "a"),
        node("Sub", "a one", "b"),
        node("LeakyRelu", "b", "Y", alpha=0.5),
        constants={"one": floats(1.0)},
        X=floats(0.0),
    )
    assert isinstance(found, Approx)
    plain = of(
        node("Exp", "X", "a"), node("Sub", "a one", "b"), constants={"one": floats(1.0)}, X=floats(0.0)
    )
    assert isinstance(plain, Approx)
    assert found.bound[0] >= plain.bound[0]


def test_a_comparison_that_the_bound_decides_may_be_either() -> None:
    found = of(
        node("Log", "X", "a"),
        node("Exp", "a", "b"),
        node("Greater", "b limit", "Y"),
        constants={"limit": floats(2.5)},
        X=floats(2.5, 4.0),
    )
    assert isinstance(found, OneOf)
    assert {bool(each.array[0]) for each in found.candidates} == {True, False}
    assert all(each.array[1] for each in found.candidates)


def test_nodes_that_do_not_fit_are_told() -> None:
    with pytest.raises(Unfit, match="Add at opset 21 does not take"):
        of(node("Add", "X Y", "Z"), X=floats(1.0), Y=Tensor("float64", np.array([1.0])))


def test_all_levels_have_the_same_elements(tmp_path: Path) -> None:
    from harness.specs.sweeps.calls import call_of, case_inputs

    found, _ = cases(tmp_path)
    first = [case_inputs(call_of(case), case, 0) for case in found[:4]]
    assert [case.options.optimization for case in found[:4]] == ["off", "basic", "extended", "all"]
    for inputs in first[1:]:
        assert all(
            one.array.tobytes() == other.array.tobytes() for one, other in zip(inputs, first[0], strict=True)
        )


def test_an_even_function_of_a_value_near_0_may_be_0() -> None:
    """exp(x) / exp(x) - 1 is 0 within a bound, so its absolute value is anything from 0 on."""
    found = of(
        node("Exp", "X", "a"),
        node("Div", "a a", "b"),
        node("Sub", "b one", "c"),
        node("Add", "c tiny", "d"),
        node("Abs", "d", "Y"),
        constants={"one": floats(1.0), "tiny": floats(1e-8)},
        X=floats(2.0),
    )
    assert isinstance(found, Approx)
    assert found.value[0] - found.bound[0] <= 0


def test_what_may_be_anything_stays_so() -> None:
    """b / b of a difference that may be 0 is any number, and so is its absolute value."""
    found = of(
        node("Exp", "X", "a"),
        node("Sub", "a a", "b"),
        node("Div", "b b", "c"),
        node("Abs", "c", "Y"),
        X=floats(2.0),
    )
    assert isinstance(found, Approx)
    assert not found.claims


@pytest.mark.parametrize(("dtype", "integers"), [("float16", [4, 2, 4]), ("float32", [5, 1, 4])])
def test_a_deviation_takes_the_place_of_the_nodes_of_an_operator(dtype: str, integers: list[int]) -> None:
    """15 / 8, -15 / 8 and 9 / 8 of float16 are cut off between two other nodes, of float32 rounded."""

    def floating(*values: float) -> Tensor:
        return Tensor(dtype, np.array(values, dtype))

    cut = {**OPERATORS, "QuantizeLinear": deviating("quotients_cut_off", "QuantizeLinear")}
    found = of(
        node("Neg", "X", "x"),
        node("QuantizeLinear", "x scale zero", "q"),
        node("Identity", "q", "Y"),
        constants={
            "scale": Tensor(dtype, np.array(8, dtype)),
            "zero": Tensor("uint8", np.array(3, np.uint8)),
        },
        operators=cut,
        X=floating(-15, 15, -9),
    )
    assert isinstance(found, Exact | OneOf)
    exact = found.tensor if isinstance(found, Exact) else found.candidates[0]
    assert exact.array.tolist() == integers


def test_eight_bits_of_which_nothing_is_known_may_be_any() -> None:
    found = expected_of(Within("uint8", np.array([10.0, 3.0]), np.array([np.inf, 0.0])))
    assert isinstance(found, OneOf)
    assert {int(each.array[0]) for each in found.candidates} == set(range(256))
    assert {int(each.array[1]) for each in found.candidates} == {3}
    with pytest.raises(Unfit, match="int16 may be any of more than 256 integers"):
        expected_of(Within("int16", np.array([10.0]), np.array([np.inf])))


def test_inexact_elements_decide_no_shape() -> None:
    """0 + 2 - 0 is exact and 0.5 + 2 - 0.5 is not: they are one value, or two where the latter lies at an end."""
    add, subtract = node("Add", "X two", "a"), node("Sub", "a X", "b")
    with pytest.raises(Unfit, match="inexact inputs of Unique decide the shape"):
        of(add, subtract, node("Unique", "b", "Y"), constants={"two": floats(2.0)}, X=floats(0.0, 0.5))
