"""A sample of a large call is what the formula gives of the whole at those places."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.expected import Approx
from harness.operators import OPERATORS
from harness.operators.products import sampling
from tests.calling import call_with

_RANDOM = np.random.default_rng(1)


def drawn(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {
        name: Tensor("float32", _RANDOM.standard_normal(shape).astype("f")) for name, shape in shapes.items()
    }


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("Gemm", drawn(A=(3, 5), B=(5, 40), C=(40,)), {}),
        ("Gemm", drawn(A=(5, 3), B=(40, 5), C=(3, 1)), {"transA": 1, "transB": 1}),
        ("MatMul", drawn(A=(2, 3, 5), B=(2, 5, 40)), {}),
        ("Conv", drawn(X=(1, 4, 6, 6), W=(40, 4, 3, 3), B=(40,)), {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
    ],
)
def test_a_sample_is_part_of_the_whole(
    operator: str, inputs: dict[str, Tensor], attributes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = call_with(operator, 13, inputs, attributes)
    assert sampling.sampled(operator, call, inputs) is None
    monkeypatch.setattr(sampling, "MOST", 300)
    sample = sampling.sampled(operator, call, inputs)
    assert sample is not None
    assert 0 < len(sample.places) < 40
    (whole,) = OPERATORS[operator].oracle(call, inputs, "opencl")
    (part,) = OPERATORS[operator].oracle(sample.call, sample.inputs, "opencl")
    assert isinstance(whole, Approx)
    assert isinstance(part, Approx)
    # a matrix library adds in another order where there are fewer columns
    np.testing.assert_allclose(part.value, whole.value.take(sample.places, sample.axis), rtol=1e-12)
    np.testing.assert_allclose(part.bound, whole.bound.take(sample.places, sample.axis))


def test_what_no_column_divides_is_judged_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST", 1)
    inputs = drawn(A=(3, 5), B=(5,))
    call = call_with("MatMul", 13, inputs)
    assert sampling.sampled("MatMul", call, inputs) is None
    assert sampling.sampled("Relu", call, inputs) is None
