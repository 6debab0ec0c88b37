"""A deviation that the nodes of operators in a graph have."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from harness.compile.prepare import by_graph
from harness.model.case import Tensor
from harness.model.expected import nearest
from harness.model.target_info import CPU, DML
from harness.run.deviation import deviating_outputs, matches
from harness.specs.expand import expand
from harness.specs.expectations.expectation_entry import Entry
from harness.specs.reading.load import load_specs

QUANTIZED, DEQUANTIZED = (
    "in_equal_blocks_from_the_last of QuantizeLinear",
    "scales_of_the_last_axis of DequantizeLinear",
)


def test_the_nodes_of_two_operators_give_what_two_formulas_do() -> None:
    spec = load_specs([Path("specs/graphs/TransposeQuantise.yaml")])
    _, (prepared,) = next(by_graph(islice(expand(spec), 1), seed=0))

    def given(name: str) -> list[float]:
        (found,) = deviating_outputs(name, prepared, DML) or ()
        return list(np.ravel(nearest(found).array))

    both = given(f"{QUANTIZED} and {DEQUANTIZED}")
    assert both == given(f"{DEQUANTIZED} and {QUANTIZED}")
    assert both not in (given(QUANTIZED), given(DEQUANTIZED))


def test_a_formula_says_another_shape() -> None:
    """The elements are those that should be there; neither the shape that should nor other elements are what is known."""
    spec = load_specs([Path("specs/graphs/MatMulScale.yaml")])
    prepared = next(
        each
        for _, cases in by_graph(expand(spec), seed=0)
        for each in cases
        if "scaled=[A,half_3]" in each.case.id
    )
    (right,) = deviating_outputs("as_if_allowed", prepared, CPU) or ()
    known = deviating_outputs("factor_without_dimensions", prepared, CPU) or ()
    should = nearest(right)
    given = Tensor(should.dtype, should.array[0])
    assert (should.array.shape, given.array.shape) == ((1, 2, 4), (2, 4))
    assert matches(known, (given,))
    assert not matches(known, (should,))
    assert not matches(known, (Tensor(should.dtype, given.array + 1),))


@pytest.mark.parametrize(
    ("case", "shape", "kept"), [("sum=[scaled,sheet]", (1, 3, 5), (3, 5)), ("B=uint8[4,1]", (3, 5), (3, 1))]
)
def test_a_product_keeps_its_shape_beside_a_bias_of_more(
    case: str, shape: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    spec = load_specs([Path("specs/graphs/MatMulIntegerFloat.yaml")])
    prepared = next(
        each
        for _, cases in by_graph(expand(spec), seed=0)
        for each in cases
        if case in each.case.id and "sweep=biases;A=uint8[3,4]" in each.case.id
    )
    (right,) = deviating_outputs("as_if_allowed", prepared, CPU) or ()
    should = nearest(right)
    given = Tensor(should.dtype, should.array.reshape(shape[-2:])[:, : kept[1]])
    assert (should.array.shape, given.array.shape) == (shape, kept)
    for name in ("shape_of_the_product", "shape_of_the_product_of_reals"):
        known = deviating_outputs(name, prepared, CPU) or ()
        assert matches(known, (given,))
        assert not matches(known, (should,))


def test_the_transposition_of_a_bias_is_not_reversed() -> None:
    """Of [A, A, A], where each is kept by a Transpose of [0, 1], A.T @ A.T + A is what GemmTransposeFusion makes."""
    spec = load_specs([Path("specs/graphs/GemmTranspose.yaml")])
    prepared = next(
        each
        for _, cases in by_graph(expand(spec), seed=0)
        for each in cases
        if "sweep=square" in each.case.id and "multiplied=[At,At,At];left=[0,1]" in each.case.id
    )
    known = deviating_outputs("each_transposition_reversed", prepared, CPU) or ()
    a = prepared.inputs[0].array
    for output, expected in ((a.T @ a.T + a, True), (a.T @ a.T + a.T, False), (a @ a + a, False)):
        assert bool(matches(known, (Tensor("float32", -output.T),))) == expected


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (f"{QUANTIZED} and drops_nan", "'drops_nan' names no operator"),
        (f"{QUANTIZED} and no_such of Cast", "'no_such' is no formula"),
        ("drops_nan of Nothing", "'Nothing' is no operator"),
    ],
)
def test_what_is_no_formula_of_nodes_is_refused(gives: str, said: str) -> None:
    text = {"match": "Round", "expect": "mismatch", "reason": "r", "link": "https://example.org/1"}
    with pytest.raises(ValidationError, match=said):
        Entry.model_validate({**text, "gives": gives})
