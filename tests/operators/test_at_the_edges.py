"""Calls at the edges of what operators are defined for: results, or the reason why nothing defines one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from harness.model.case import Tensor, Value
from harness.model.expected import Approx
from harness.operators import OPERATORS
from harness.operators.base import Undefined
from tests.calling import call_with, expected

TEXTS = Tensor("string", np.full((1, 4, 4), "a", object))
SHAPES = {
    "image_shape": Tensor("int64", np.array([3, 3])),
    "block_shape": Tensor("int64", np.array([2, 2])),
}


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("Erf", {"input": Tensor("int32", np.ones(3, np.int32))}),
        ("Col2Im", {"input": TEXTS, **SHAPES}),
        ("Col2Im", {"input": Tensor("bool", np.ones((1, 4, 4), bool)), **SHAPES}),
        ("RegexFullMatch", {"X": TEXTS}),
    ],
)
def test_nothing_defines_a_result(name: str, inputs: Mapping[str, Tensor]) -> None:
    with pytest.raises(Undefined):
        OPERATORS[name].oracle(call_with(name, 22, inputs), inputs, "ieee")


@pytest.mark.parametrize("activation", ["none", "silu"])
def test_a_causal_convolution_of_length_0_keeps_its_state(activation: str) -> None:
    state = np.arange(8, dtype="f4").reshape(2, 2, 2)
    inputs = {
        "input": Tensor("float32", np.zeros((2, 2, 0), "f4")),
        "weight": Tensor("float32", np.ones((2, 1, 3), "f4")),
        "past_state": Tensor("float32", state),
    }
    output, present = expected("CausalConvWithState", 27, inputs, {"activation": activation})
    assert output.shape == (2, 2, 0)
    assert isinstance(present, Approx)
    assert np.array_equal(present.value, state)


@pytest.mark.parametrize(("name", "gates"), [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_defaults_of_activations_are_float32(name: str, gates: int) -> None:
    inputs = {
        "X": Tensor("float64", np.full((1, 1, 2), 0.3)),
        "W": Tensor("float64", np.full((1, gates, 2), -0.4)),
        "R": Tensor("float64", np.full((1, gates, 1), 0.2)),
    }
    names = ("LeakyRelu",) * {"GRU": 2, "LSTM": 3, "RNN": 1}[name]
    attributes: dict[str, Value] = {"hidden_size": 1, "activations": names}
    given = {**attributes, "activation_alpha": (float(np.float32(0.01)),) * len(names)}
    for one, other in zip(
        expected(name, 14, inputs, attributes), expected(name, 14, inputs, given), strict=True
    ):
        assert isinstance(one, Approx)
        assert isinstance(other, Approx)
        assert np.array_equal(one.value, other.value)


def floats(*values: float) -> Tensor:
    return Tensor("float32", np.array(values, "f4"))


def shaped(tensor: Tensor, *shape: int) -> Tensor:
    return Tensor(tensor.dtype, tensor.array.reshape(shape))


def required(name: str, opset: int, inputs: Mapping[str, Tensor], **attributes: Value) -> str:
    """Return a letter for each element of the output: n where NaN is required, ? where nothing is, = otherwise."""
    (found,) = expected(name, opset, inputs, attributes)
    assert isinstance(found, Approx)
    return "".join(
        "?" if np.isinf(bound) else "n" if np.isnan(value) else "="
        for value, bound in zip(found.value.flat, found.bound.flat, strict=True)
    )


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("w", "elements"),
    [
        ((NAN, 1, 1), "?nnn"),  # it meets the padding alone in the first output: a kernel may leave it out
        ((1, NAN, 1), "nnnn"),
        ((INF, 1, 1), "?==="),
        ((NAN, NAN, NAN), "nnnn"),
    ],
)
def test_what_is_not_finite_in_a_filter_shows_beyond_the_padding(w: tuple[float, ...], elements: str) -> None:
    inputs = {"X": shaped(floats(1, 2, 3, 4), 1, 1, 4), "W": shaped(floats(*w), 1, 1, 3)}
    assert required("Conv", 22, inputs, pads=(1, 1)) == elements


@pytest.mark.parametrize(
    ("x", "elements"),
    [
        ((NAN, 1, 1, 1), "n?" "n?" "n?" "n?"),  # its factors are 1
        ((1, NAN, 1, 1), "n?" "?n" "n?" "?n"),  # 1, -j, -1, j
    ],
)  # fmt: skip
def test_a_transform_has_nan_where_its_factor_is_not_0(x: tuple[float, ...], elements: str) -> None:
    assert required("DFT", 17, {"input": shaped(floats(*x), 1, 4, 1)}, axis=1) == elements


def test_what_is_computed_of_nan_alone_is_nan() -> None:
    nan = floats(NAN, NAN, NAN, NAN)
    assert required("Det", 22, {"X": shaped(nan, 2, 2)}) == "n"
    assert required("com.microsoft.Inverse", 1, {"X": shaped(nan, 2, 2)}) == "nnnn"
    assert required("GlobalLpPool", 22, {"X": shaped(nan, 1, 1, 4)}, p=3) == "n"
    assert required("Pow", 15, {"X": nan, "Y": floats(0.3, 1, 0, NAN)}) == "nn=n"
    regions = {
        "X": shaped(nan, 1, 1, 2, 2),
        "rois": shaped(floats(0, 0, 1, 1), 1, 4),
        "batch_indices": Tensor("int64", np.array([0])),
    }
    assert required("RoiAlign", 22, regions, output_height=1, output_width=1, sampling_ratio=1) == "n"
