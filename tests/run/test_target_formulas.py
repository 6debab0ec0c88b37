"""Formulas of deviations of DirectML and of ggml: elements that were worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.expected import nearest
from harness.operators import OPERATORS
from harness.operators.base import Call, TensorType, Undefined
from harness.operators.deviations import DEVIATIONS, Deviating


def given(name: str, operator: str, inputs: dict[str, Any], opset: int = 18, **attributes: Any) -> list[Any]:
    """Return the elements of the first output that a formula gives."""
    tensors = {key: Tensor(str(value.dtype), value) for key, value in inputs.items()}
    types = {key: TensorType(each.dtype, each.array.shape) for key, each in tensors.items()}
    constants = {key: value for key, value in inputs.items() if key in OPERATORS[operator].constants}
    output = next(iter(tensors.values())).dtype
    call = Call(types, attributes, constants, opset, attributes.pop("variant", None), (output,))
    with np.errstate(all="ignore"):
        found = DEVIATIONS[name](Deviating(OPERATORS[operator], call, tensors, "d3d"))[0]
    return list(nearest(found).array.astype(np.float64).reshape(-1))


def floats(*numbers: float, dtype: str = "float32") -> Any:
    return np.array(numbers, dtype)


def test_half_is_added_to_the_magnitude() -> None:
    found = given(
        "half_added", "Round", {"X": floats(0.49999997, 8388609, -2.5)}, variant="halves_away_from_zero"
    )
    assert found == [1, 8388610, -3]


def test_the_last_bits_of_a_shift_count() -> None:
    inputs = {"X": np.array([1, 1], np.uint64), "Y": np.array([84, 40], np.uint64)}
    assert given("shifts_modulo_width", "BitShift", inputs, direction="LEFT") == [2.0**52, 2.0**40]


def test_a_power_is_infinite_beyond_float16() -> None:
    inputs = {"X": floats(10, 10), "Y": np.array([4, 5], np.int8)}
    assert given("power_in_the_range_of_float16", "Pow", inputs) == [pytest.approx(1e4), np.inf]


def test_a_norm_from_256_on_gives_0() -> None:
    assert given(
        "nothing_from_a_norm_of_256",
        "LpNormalization",
        {"input": floats(100, 156, dtype="float16")},
        axis=0,
        p=1,
    ) == [0, 0]


def test_a_quarter_is_halved_twice() -> None:
    inputs = {"X": floats(1, 3, 5, 7, 10, 10, 10, 14).reshape(1, 8), "sizes": np.array([1, 2])}
    assert given("halved_before", "Resize", inputs, mode="linear", antialias=1) == [4, 11]
    inputs = {"X": floats(1, 3, 5, 7, 10, 10, 10, 14).reshape(1, 8), "sizes": np.array([1, 4])}
    assert given("halved_before", "Resize", inputs, mode="linear", antialias=1) == [2, 6, 10, 12]


def test_float64_is_float32() -> None:
    inputs = {"X": floats(1 / 3, 1e300, dtype="float64")}
    assert given("in_float32", "Abs", inputs) == [np.float32(1 / 3), np.inf]
    with pytest.raises(Undefined):
        given("in_float32", "Abs", {"X": floats(1)})


def test_the_third_input_changes_nothing() -> None:
    inputs = {"data_0.0": floats(1, np.nan), "data_0.1": floats(2, 5), "data_0.2": floats(9, 9)}
    assert given("of_two_inputs", "Max", inputs) == [2, 5]


def test_the_branch_that_is_not_chosen_counts() -> None:
    inputs = {"X": floats(1, 2), "Y": floats(np.nan, 3)}
    condition = {"condition": np.array([True, True])}
    tensors = {key: Tensor(str(value.dtype), value) for key, value in (condition | inputs).items()}
    call = Call(
        {k: TensorType(t.dtype, t.array.shape) for k, t in tensors.items()}, {}, {}, 16, None, ("float32",)
    )
    found = nearest(
        DEVIATIONS["sum_of_both_branches"](Deviating(OPERATORS["Where"], call, tensors, "opencl"))[0]
    )
    assert np.isnan(found.array[0])
    assert found.array[1] == 2


def test_a_pad_below_0_cuts_elements_off() -> None:
    x = floats(9, 1, 2, 3).reshape(1, 1, 4)
    found = given("negative_pads_cut_off", "LpPool", {"X": x}, kernel_shape=(2,), pads=(-1, 0), p=1)
    assert found == [3, 5]


def test_a_region_of_a_batch_that_is_not_there_is_of_the_last() -> None:
    x = floats(1, 2).reshape(2, 1, 1, 1)
    rois = floats(-1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0).reshape(3, 5)
    assert given(
        "last_batch_for_others", "MaxRoiPool", {"X": x, "rois": rois}, pooled_shape=(1, 1), spatial_scale=1.0
    ) == [
        2,
        2,
        1,
    ]


def test_an_element_without_a_place_is_left_out() -> None:
    inputs = {"X": floats(5, 6, 7, 8).reshape(1, 1, 4), "I": np.array([[[4, -1, 2, 2**32 + 3]]])}
    found = given("places_beyond_left_out", "MaxUnpool", inputs, kernel_shape=(1,))
    assert found == [0, 0, 7, 8]


def test_a_size_below_0_leaves_nothing_of_the_sum() -> None:
    x = floats(4, 400).reshape(1, 2, 1, 1)
    found = given("over_2_to_the_32_channels", "LRN", {"X": x}, size=-1, alpha=1.0, beta=1.0, bias=2.0)
    assert found == [2, 200]


def test_upsample_to_less_averages_as_half_pixel_does() -> None:
    inputs = {"X": floats(1, 3, 5, 7).reshape(1, 1, 4), "scales": floats(1, 1, 0.5)}
    assert given("modes_by_other_names", "Upsample", inputs, opset=9, mode="bilinear") == [2, 6]


def test_simple_takes_the_element_half_before() -> None:
    inputs = {"X": floats(1, 2, 3), "scales": floats(2)}
    found = given("half_an_element_before", "Resize", inputs, mode="nearest", nearest_mode="simple")
    assert found == [1, 1, 1, 1, 2, 2]
