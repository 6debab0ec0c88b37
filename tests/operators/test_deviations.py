"""Formulas of known deviations, by results that were written down; what this machine does itself, a run shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from harness.model.case import Tensor, Value
from harness.model.dtypes import Array
from harness.model.expected import Approx, Exact, Expected, OneOf, nearest
from harness.operators import OPERATORS
from harness.operators.base import Call
from harness.operators.deviations import DEVIATIONS, Deviating
from harness.specs.expectations.expectations import load_expectations
from harness.specs.reading.load import load_specs
from tests.calling import call_of, call_with
from tests.running import SPECS


@pytest.fixture(autouse=True)
def as_a_run_asks() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def tensor(dtype: str, values: object) -> Tensor:
    return Tensor(dtype, np.array(values, dtype))


def given(
    name: str,
    operator: str,
    tensors: Sequence[Tensor],
    attributes: Mapping[str, Value] | None = None,
    variant: str | None = None,
    outputs: tuple[str, ...] | None = None,
) -> tuple[Expected, ...]:
    call = call_of(operator, tensors, attributes, variant)
    call = call if outputs is None else call._replace(outputs=outputs)
    inputs = dict(zip(call.inputs, tensors, strict=True))
    return DEVIATIONS[name](Deviating(OPERATORS[operator], call, inputs, "ieee"))


def only(found: tuple[Expected, ...]) -> list[object]:
    (one,) = found
    assert isinstance(one, Exact)
    return list(one.tensor.array.tolist())


A, B = tensor("uint8", [[255, 255, 255]]), tensor("int8", [[127], [127], [127]])


def test_two_products_are_added_in_16_bits() -> None:
    """255 * 127 = 32385, of which two are beyond 32767; the third stands alone."""
    assert only(given("products_in_pairs", "MatMulInteger", [A, B])) == [[32767 + 32385]]
    low = tensor("int8", [[-128], [-128], [0]])
    assert only(given("products_in_pairs", "MatMulInteger", [A, low])) == [[-32768]]


def test_zero_points_are_taken_away_afterwards() -> None:
    zeros = [tensor("uint8", 1), tensor("int8", 2)]
    exact = (255 - 1) * (127 - 2) * 3
    lost = 2 * 255 * 127 - 32767
    assert only(given("products_in_pairs", "MatMulInteger", [A, B, *zeros])) == [[exact - lost]]
    rows = [tensor("uint8", [[255, 255], [0, 0]]), tensor("int8", [[127], [127]]), tensor("uint8", [0, 1])]
    assert only(given("products_in_pairs", "MatMulInteger", rows)) == [[32767], [-254]]


def test_a_vector_has_no_row_of_its_own() -> None:
    vectors = [tensor("uint8", [255, 255]), tensor("int8", [127, 127])]
    call = given("products_in_pairs", "MatMulInteger", vectors)
    assert isinstance(call[0], Exact)
    assert (call[0].shape, int(call[0].tensor.array)) == ((), 32767)


def test_neighbours_of_a_window_are_those_of_the_kernel_or_of_the_channels() -> None:
    """x has two channels of two elements: ConvInteger adds those of a channel first, QLinearConv those of a place."""
    w = tensor("uint8", [[[255, 255], [0, 0]]])
    x = tensor("int8", [[[127, 127], [0, 0]]])
    assert only(given("windows_in_pairs", "ConvInteger", [x, w])) == [[[32767]]]
    one, zero = tensor("float32", 1), tensor("uint8", 0)
    scale = [tensor("float32", 1), tensor("int8", 0), tensor("float32", 512), zero]
    of_a_channel = [tensor("uint8", x.array), one, zero, tensor("int8", [[[127, 127], [0, 0]]]), *scale]
    of_a_place = [
        tensor("uint8", [[[255, 0], [255, 0]]]),
        one,
        zero,
        tensor("int8", [[[127, 0], [127, 0]]]),
        *scale,
    ]
    assert [np.unique(each.tensor.array).tolist() for each in _exacts("QLinearConv", of_a_channel)] == [[63]]
    assert [np.unique(each.tensor.array).tolist() for each in _exacts("QLinearConv", of_a_place)] == [[64]]


def _exacts(operator: str, tensors: Sequence[Tensor]) -> list[Exact]:
    return [Exact(_tensor(each)) for each in given("windows_in_pairs", operator, tensors)]


def _tensor(found: Expected) -> Tensor:
    assert not isinstance(found, Approx)
    return found.candidates[0] if isinstance(found, OneOf) else found.tensor


def test_floor_beyond_32_bits() -> None:
    x = tensor("float32", [1.5, -2.5, 3e9, -np.inf, -0.0, np.nan])
    (found,) = given("floor_in_32_bits", "Round", [x], variant="toward_zero")
    assert isinstance(found, OneOf)
    low = -(2.0**31)
    np.testing.assert_array_equal(found.candidates[0].array, np.trunc(x.array))
    np.testing.assert_array_equal(found.candidates[1].array, [1.0, -2.0, low, -low, 0.0, low])
    (found,) = given("floor_in_32_bits", "Round", [x], variant="halves_away_from_zero")
    assert isinstance(found, OneOf)
    assert found.candidates[1].array.tolist()[:3] == [2.0, -3.0, low]


def test_remainders_of_integers_that_float64_rounds() -> None:
    terms = [tensor("int64", [2**53 + 1, 7]), tensor("int64", [2, -4])]
    assert only(given("remainder_in_float64", "Mod", terms, {"fmod": 1})) == [0, 3]


def test_weights_of_four_bits_are_quantised_again() -> None:
    """Of the weights 7 and 1 the largest becomes -8 steps of -7/8, and 1 becomes -1 step of them, or 0.875."""

    def packed(q: Array) -> Tensor:
        return tensor("uint8", (q[..., 0::2] | q[..., 1::2] << 4)[None])

    first, second = np.eye(32, dtype=np.uint8), np.full((32, 32), 8, np.uint8)
    second[0, :2] = 15, 9
    ones, x = tensor("float32", np.ones((1, 32))), np.arange(1, 33)[None]
    given_by_name = {
        "input": tensor("float32", x),
        "router_probs": tensor("float32", [[1]]),
        "fc1_experts_weights": packed(first),
        "fc1_scales": ones,
        "fc2_experts_weights": packed(second),
        "fc2_scales": ones,
        "fc1_zero_points": tensor("uint8", np.zeros((1, 16))),
    }
    attributes: dict[str, Value] = {"k": 1, "activation_type": "identity", "expert_weight_bits": 4}
    operator = OPERATORS["com.microsoft.QMoE"]
    call = call_with(operator.name, 1, given_by_name, attributes)
    asked = Deviating(operator, call, given_by_name, "ieee")
    found = {}
    for name, made in (("right", asked.formula()), ("wrong", DEVIATIONS["quantised_again"](asked))):
        (one,) = made
        assert isinstance(one, Approx)
        found[name] = one.value[0, 0]
    assert found == {"right": 7 * 1 + 1 * 2, "wrong": 7 * 1 + 0.875 * 2}


def test_weights_by_coordinate() -> None:
    attributes: dict[str, Value] = {
        "mode": "TFIDF",
        "min_gram_length": 1,
        "max_gram_length": 1,
        "max_skip_count": 0,
        "ngram_counts": (0,),
        "ngram_indexes": (1, 0, 5),
        "pool_int64s": (10, 20, 30),
        "weights": (2.0, 3.0, 4.0),
    }
    (found,) = given(
        "weights_by_coordinate", "TfIdfVectorizer", [tensor("int64", [10, 20, 20, 30])], attributes
    )
    assert isinstance(found, Approx)
    assert found.value.tolist()[:5] == [4.0, 3.0, 0.0, 0.0, 0.0]
    assert np.isinf(found.bound).tolist() == [False] * 5 + [True]


def test_tuples_go_by_the_product_of_batch_sizes() -> None:
    """Two batches of data and four tuples: two for each, though indices have four batches."""
    found = given(
        "gathered_by_products",
        "GatherND",
        [tensor("int32", [[1, 2], [3, 4]]), tensor("int64", [[0], [1], [0], [-1]])],
        {"batch_dims": 1},
    )
    assert only(found) == [1, 2, 3, 4]


def test_quotients_are_cut_off_before_the_zero_point() -> None:
    """15 / 8, -15 / 8 and 9 / 8: 1, -1 and 1, plus 3."""
    x = [tensor("float16", [15, -15, 9]), tensor("float16", 8), tensor("uint8", 3)]
    (found,) = given("quotients_cut_off", "QuantizeLinear", x)
    assert _tensor(found).array.tolist() == [4, 2, 4]


def test_statistics_have_the_digits_of_float16() -> None:
    """The mean of 1000, 1000, 1000 and 1000.5 is 1000.125, of which float16 has 1000."""
    x = [tensor("float16", [[1000, 1000, 1000, 1000.5]]), tensor("float16", [1, 1, 1, 1])]
    _, mean, _ = given(
        "statistics_by_float16",
        "LayerNormalization",
        x,
        {"axis": -1},
        outputs=("float16", "float32", "float32"),
    )
    assert isinstance(mean, Approx)
    assert (mean.value.tolist(), mean.bound.tolist()) == ([[1000.0]], [[0.0]])


def test_what_is_not_above_the_lowest_is_not_found() -> None:
    """Of [1, 1, 2, 2] the first column is -inf: -1 along both axes is the place -2 - 1 of two columns."""
    x = tensor("float32", [[[[-np.inf, 1], [-np.inf, 2]]]])
    y, places = given(
        "greatest_above_the_lowest", "MaxPool", [x], {"kernel_shape": (2, 1)}, outputs=("float32", "int64")
    )
    lowest = float(np.finfo(np.float32).min)
    assert _tensor(y).array.tolist() == [[[[lowest, 2.0]]]]
    assert _tensor(places).array.tolist() == [[[[-3, 3]]]]


def test_a_window_that_does_not_fit_is_divided_by_the_whole_kernel() -> None:
    x = tensor("float32", np.arange(1, 4).reshape(1, 1, 3))
    attributes: dict[str, Value] = {
        "kernel_shape": (2,),
        "strides": (2,),
        "auto_pad": "VALID",
        "ceil_mode": 1,
        "count_include_pad": 1,
    }
    (found,) = given("valid_by_the_whole_kernel", "AveragePool", [x], attributes)
    assert isinstance(found, Approx)
    assert found.value.tolist() == [[[1.5, 1.5]]]


def test_scales_that_are_not_given_are_0() -> None:
    """HardSigmoid of anything is then 0; with the alpha 0.25 it is a quarter of the argument, 4."""
    x = [tensor("float32", [[[4]]]), tensor("float32", [[[1]]]), tensor("float32", [[[0]]])]
    attributes: dict[str, Value] = {"hidden_size": 1, "activations": ("HardSigmoid",)}
    for more, result in (({}, 0.0), ({"activation_alpha": (0.25,)}, 1.0)):
        y, _ = given("scales_of_0", "RNN", x, {**attributes, **more})
        assert isinstance(y, Approx)
        assert y.value.reshape(-1).tolist() == [result]


def test_a_threshold_is_to_be_exceeded() -> None:
    """ONNX's ThresholdedRelu of recurrent operators keeps alpha, here what clip makes of 1."""
    x = [tensor("float32", [[[1]]]), tensor("float32", [[[1]]]), tensor("float32", [[[0]]])]
    attributes: dict[str, Value] = {"hidden_size": 1, "activations": ("ThresholdedRelu",), "clip": 0.5}
    for alpha, result in ((0.25, 0.5), (0.5, 0.0)):
        y, _ = given("thresholds_not_reached", "RNN", x, {**attributes, "activation_alpha": (alpha,)})
        assert isinstance(y, Approx)
        assert y.value.reshape(-1).tolist() == [result]


def test_just_beyond_the_largest_number_by_the_scale_of_each_row() -> None:
    """Quotients of 480, which E4M3FN has as NaN, and 496."""
    x, scale = tensor("float32", [[480, 496], [960, 992]]), tensor("float32", [1, 2])
    attributes: dict[str, Value] = {"axis": 0, "saturate": 0, "output_dtype": 17}
    found = given("largest_beside_nan", "QuantizeLinear", [x, scale], attributes, outputs=("float8e4m3fn",))
    assert only(found) == [[0x7E, 0x7F], [0x7E, 0x7F]]


def test_frames_begin_at_twice_their_places() -> None:
    """Frames of one element: the second of the first signal is its third number, and the second signal lies outside."""
    signal = tensor("float32", [[[1, 0], [2, 0], [3, 0]], [[4, 0], [5, 0], [6, 0]]])
    one = tensor("int64", 1)
    call = call_of("STFT", [signal, one], {"onesided": 0})
    call = call._replace(
        inputs={**call.inputs, "frame_length": call.inputs["frame_step"]},
        constants={**call.constants, "frame_length": one.array},
    )
    inputs = {"signal": signal, "frame_step": one, "frame_length": one}
    (found,) = DEVIATIONS["frames_twice_as_far"](Deviating(OPERATORS["STFT"], call, inputs, "ieee"))
    assert isinstance(found, Approx)
    assert found.value[0, :, 0, 0].tolist() == [1.0, 3.0, 5.0]
    assert np.isinf(found.bound[:, :, 0, 0]).tolist() == [[False] * 3, [True] * 3]


def test_the_element_n_is_mirrored_to_the_first_place() -> None:
    """Of 3, 0, 0, 6 and N = 3, 6 replaces 3, and a third of it is each element."""
    x = [tensor("float32", [[[3, 0], [0, 0], [0, 0], [6, 0]]]), tensor("int64", 3)]
    for name, value in (("all_mirrored", 1.0), ("all_mirrored_from_behind", 2.0)):
        (found,) = given(name, "DFT", x, {"inverse": 1, "onesided": 1})
        assert isinstance(found, Approx)
        assert found.value.reshape(-1).tolist() == [value] * 3


def test_a_window_behind_the_padding_is_kept() -> None:
    """Windows of 2 of a padded 1, 2, 3, two apart: the last begins in the padding behind, and ONNX has none there."""
    x = [tensor("float32", [[[1, 2, 3]]])]
    attributes = {"kernel_shape": (2,), "strides": (2,), "pads": (1, 0), "ceil_mode": 1}
    for name, last in (
        ("zeros_of_windows_behind_the_padding", 0.0),
        ("nans_of_windows_behind_the_padding", np.nan),
    ):
        (found,) = given(name, "AveragePool", x, attributes)
        assert isinstance(found, Approx)
        np.testing.assert_array_equal(found.value, [[[1, 2.5]]])
        (found,) = given(name, "AveragePool", x, {**attributes, "pads": (1, 1)})
        assert isinstance(found, Approx)
        np.testing.assert_array_equal(found.value, [[[1, 2.5, last]]])


def test_a_number_that_is_nan_is_passed_over() -> None:
    x, nan = tensor("float32", [1, np.nan, -2]), tensor("float32", np.nan)
    for operands in ([x, nan], [nan, x]):
        inputs = {f"data_0.{number}": each for number, each in enumerate(operands)}
        asked = Deviating(OPERATORS["Max"], call_with("Max", 13, inputs), inputs, "ieee")
        (found,) = DEVIATIONS["greatest_without_a_number_that_is_nan"](asked)
        np.testing.assert_array_equal(nearest(found).array, np.float32([1, np.nan, -2]))


def test_axes_from_the_end_reduce_nothing_of_a_tensor_without_elements() -> None:
    data = tensor("float32", np.zeros((2, 0, 3)))
    for axes, shape in [([-1], (2, 0, 3)), ([0, -1], (1, 0, 3)), ([1, -1], (2, 1, 3)), ([0, 1], (1, 1, 3))]:
        (found,) = given("nothing_reduced", "ReduceSum", [data, tensor("int64", axes)])
        np.testing.assert_array_equal(nearest(found).array, np.zeros(shape, np.float32))


def test_a_range_whose_steps_are_not_counted_is_empty() -> None:
    numbers = [tensor("int64", number) for number in (0, 5, 1)]
    (found,) = given("no_step_counted", "Range", numbers)
    assert (found.dtype, found.shape) == ("int64", (0,))


def test_only_the_first_row_of_an_upper_triangle_is_0() -> None:
    x = tensor("int64", [[1, 2], [3, 4]])
    largest = tensor("int64", np.iinfo(np.int64).max)
    assert only(given("triangle_beyond_64_bits", "Trilu", [x, largest], {"upper": 1})) == [[0, 0], [3, 4]]
    assert only(given("triangle_beyond_64_bits", "Trilu", [x, largest], {"upper": 0})) == [[1, 2], [3, 4]]


def test_weights_offset_by_half_their_range_are_rounded_by_its_size_and_no_further() -> None:
    """A is 127 on one place of K in each block and 0 elsewhere; the weights there are 0, so that 128 - 128 is what is left.
    Of 2 blocks there are 11 roundings of at most 127 * (128 + 128) * (0.5 + 1): 0.032, where a weight of 1 makes it 190.5."""
    load_specs([SPECS / "graphs" / "BlockedMatMul.yaml"])
    a = np.zeros((1, 32), np.float32)
    a[0, [0, 16]] = 127
    inputs = {"A": Tensor("float32", a), "B": tensor("int8", [[0, 0]] * 32)}
    attributes: dict[str, Value] = {"weights": ("B", "s")}
    call = call_with("BlockedMatMul", 21, inputs, attributes)
    asked = Deviating(OPERATORS["BlockedMatMul"], call, inputs, "ieee")
    (found,) = DEVIATIONS["activations_of_eight_bits"](asked)
    assert isinstance(found, Approx)
    largest = np.array([[127 * 256 * 1.5, 127 * 256 * 0.375]])
    np.testing.assert_array_equal(found.value, [[0, 0]])
    np.testing.assert_allclose(found.bound, 11 * 2.0**-24 * largest, rtol=1e-5)


def test_a_mask_puts_attention_bias_within_the_scale_or_lengths_put_it_aside() -> None:
    """Scores are 0; a bias of 2 log 3 times 1/2 weighs 1 to 3, and mask_filter_value, log 3, does so in its place."""
    three = float(np.log(3))
    for name, mask, bias in (
        ("attention_bias_scaled", [[1, 1]], 2 * three),
        ("attention_bias_masked", [1], 5),
    ):
        given_ = {
            "query": tensor("float32", [[[0]]]),
            "key": tensor("float32", [[[0], [0]]]),
            "value": tensor("float32", [[[4], [8]]]),
            "key_padding_mask": tensor("int32", mask),
            "attention_bias": tensor("float32", [[[[0, bias]]]]),
        }
        operator = OPERATORS["com.microsoft.MultiHeadAttention"]
        attributes: dict[str, Value] = {"num_heads": 1, "scale": 0.5, "mask_filter_value": three}
        call = call_with(operator.name, 1, given_, attributes)
        (found, *_) = DEVIATIONS[name](Deviating(operator, call, given_, "ieee"))
        assert isinstance(found, Approx)
        np.testing.assert_allclose(found.value, [[[7]]], rtol=1e-6)


def test_each_formula_is_named_by_an_entry() -> None:
    """One that no entry names is left over."""
    named = {(each.entry.gives or "").partition(" of ")[0] for each in load_expectations().entries}
    assert DEVIATIONS.keys() - named == set()


def test_scales_of_a_product_are_multiplied_in_float32() -> None:
    """1e20 * 1e20 and 1e20 / 1e-20 are beyond float32, 1e-30 / 1e20 is below; 3 / 2 is within. The product is -2."""
    matrix = tensor("float32", [[1]])
    call, inputs = call_of("MatMul", [matrix, matrix]), {"A": matrix, "B": matrix}

    def oracle(asked: Call, *_: object) -> tuple[Expected, ...]:
        given_ = asked.attributes
        assert [given_[name] for name in ("scale", "factor", "after")] == ["Mul", (1.0,), "Mul"]
        value = np.array([[-2.0]]) * np.float64(str(given_["other"]))
        return (Approx("float32", value, np.full((1, 1), 3.0)),)

    known = OPERATORS["MatMul"]._replace(oracle=oracle)
    results = []
    for factor, after, other in (
        (1e20, "Mul", 1e20),
        (1e20, "Div", 1e-20),
        (1e-30, "Div", 1e20),
        (3.0, "Div", 2.0),
    ):
        scaled: dict[str, Value] = {"scale": "Mul", "factor": (factor,), "after": after, "other": other}
        asked = Deviating(known, call._replace(attributes=scaled), inputs, "ieee")
        (found,) = DEVIATIONS["scales_multiplied_in_float32"](asked)
        assert isinstance(found, Approx)
        results.append((float(found.value[0, 0]), float(found.bound[0, 0])))
    assert results == [(-np.inf, 0), (-np.inf, 0), (0, 3), (-3, 3)]


def test_fused_weights_of_float16_are_rounded_once_more() -> None:
    """(1 + 2**-10) * (1 + 2**-10) is 1 + 2**-9 in float16; 1.5 + 1.5 * 2**-10 lies between two, of which 1.5 + 2**-9 is even.
    4 + 1e-5 is 4."""
    step = 2.0**-10
    x, w = tensor("float16", [[[1]]]), tensor("float16", [[[1 + step]]])
    call = call_of("Conv", [x, w])
    of_channels = {"B": 1, "A": 1 + step, "scale": 3, "bias": 0.25, "mean": 2, "variance": 4}
    inputs = {"X": x, "W": w, **{name: tensor("float16", [number]) for name, number in of_channels.items()}}
    asked = Deviating(
        OPERATORS["Conv"], call._replace(attributes={**call.attributes, "epsilon": 1e-5}), inputs, "ieee"
    )
    for name, value in (
        ("factors_in_the_weights", 1 + 2 * step + 1 + step),
        ("normalisation_in_the_weights", 1.5 + 2 * step + (1 - 2) * 1.5 + 0.25),
    ):
        (found,) = DEVIATIONS[name](asked)
        assert isinstance(found, Approx)
        np.testing.assert_array_equal(found.value, [[[value]]])


def test_an_extent_of_0_that_a_later_reshape_allows_is_taken_from_the_first_input() -> None:
    load_specs([SPECS / "graphs" / "ReshapeChain.yaml"])
    inputs = {"X": Tensor("float32", np.zeros((0, 8, 2), np.float32))}
    attributes: dict[str, Value] = {
        "first": (4, 2, -1),
        "second": (0, 0, 4),
        "third": (0, 0, 4),
        "zero_too": 1,
        "zero_last": 1,
    }
    call = call_with("ReshapeChain", 14, inputs, attributes)
    asked = Deviating(OPERATORS["ReshapeChain"], call, inputs, "ieee")
    (found,) = DEVIATIONS["extents_of_the_first_input"](asked)
    assert isinstance(found, Exact)
    assert found.tensor.array.shape == (0, 8, 4)
