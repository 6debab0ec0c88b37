"""Formulas that compute: right implementations lie within their bounds, near misses do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from harness.model.case import Tensor
from harness.model.diff import OutputComparison, compare
from harness.model.expected import Approx
from harness.operators.bounded import Bounded, arithmetic, erf, number, sigmoid
from harness.operators.normalization.layer_norms import layer_norm
from harness.operators.normalization.norms import log_softmax, softmax
from harness.operators.pooling.windows import Window
from harness.operators.products import deform_conv
from harness.operators.products.convolutions import convolution
from harness.operators.products.products import gemm
from harness.operators.reduction.cumulative import cumulative_sum
from harness.operators.reduction.reductions import l2, log_sum, log_sum_exp, mean

Float32 = NDArray[np.float32]
KIND = arithmetic("opencl", "float32", flush=False)
RNG = np.random.default_rng(21)
X = (RNG.standard_normal((16, 300)) * 4).astype(np.float32)
BIG = X * np.float32(30)
A, B = (RNG.standard_normal(s).astype(np.float32) for s in ((24, 256), (256, 24)))
ROWS = (RNG.standard_normal((32, 96)) * 3 + 5).astype(np.float32)
FAR = (RNG.standard_normal((32, 96)) + 1000).astype(np.float32)
SCALE, BIAS = (RNG.standard_normal(96).astype(np.float32) for _ in range(2))
EPSILON = float(np.float32(1e-5))


def of(*arrays: Any) -> tuple[Bounded, ...]:
    return tuple(number(array, KIND) for array in arrays)


def judged(expected: Bounded, actual: Any, dtype: str = "float32") -> OutputComparison:
    return compare(expected.stored(dtype), Tensor(dtype, np.asarray(actual)))


def wrong(expected: Bounded, actual: Any, dtype: str = "float32") -> int:
    diff = judged(expected, actual, dtype).diff
    return 0 if diff is None else diff.differing


def float32_softmax(x: Float32) -> Float32:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def float32_layer_norm(x: Float32) -> Float32:
    d = x - x.mean(1, keepdims=True)
    return np.asarray(d / np.sqrt((d * d).mean(1, keepdims=True) + np.float32(1e-5)) * SCALE + BIAS)


SOFTMAX = softmax(*of(X), 1)
LAYER_NORM = layer_norm(*of(ROWS, SCALE, BIAS), axis=1, epsilon=EPSILON, stash_type=1)[0]
MATMUL = gemm(*of(A, B), alpha=1.0, beta=1.0, transA=0, transB=0)
LOG_SUM_EXP = log_sum_exp(*of(BIG), (1,), True)


class TestRightInFloat32:
    """NumPy in float32, whose order of summation is one of many."""

    @pytest.mark.parametrize(
        ("expected", "actual"),
        [
            (SOFTMAX, float32_softmax(X)),
            (
                log_softmax(*of(X), 1),
                X
                - X.max(1, keepdims=True)
                - np.log(np.exp(X - X.max(1, keepdims=True)).sum(1, keepdims=True)),
            ),
            (sigmoid(*of(X)), 1 / (1 + np.exp(-X))),
            (LAYER_NORM, float32_layer_norm(ROWS)),
            (MATMUL, A @ B),
            (
                gemm(*of(A.T.copy(), B.T.copy(), BIAS[:24]), alpha=0.5, beta=2.0, transA=1, transB=1),
                np.float32(0.5) * (A @ B) + 2 * BIAS[:24],
            ),
            (
                LOG_SUM_EXP,
                np.log(np.exp(BIG - BIG.max(1, keepdims=True)).sum(1, keepdims=True))
                + BIG.max(1, keepdims=True),
            ),
            (
                log_sum_exp(*of(X), (1,), False),
                np.log(np.exp(X - X.max(1, keepdims=True)).sum(1)) + X.max(1),
            ),
            (mean(*of(X), (0,), False), X.mean(0)),
            (l2(*of(X), (1,), False), np.sqrt((X * X).sum(1))),
            (log_sum(*of(np.abs(X)), (1,), False), np.log(np.abs(X).sum(1))),
            (cumulative_sum(*of(X), 1, False, False), np.cumsum(X, axis=1)),
            (cumulative_sum(*of(X), 1, False, True), np.cumsum(X[:, ::-1], axis=1)[:, ::-1]),
            (
                cumulative_sum(*of(X), -1, True, False),
                np.cumsum(np.pad(X, [(0, 0), (1, 0)]), axis=1)[:, :-1],
            ),
            (
                cumulative_sum(*of(X), 0, True, True),
                np.cumsum(np.pad(X[::-1], [(1, 0), (0, 0)]), axis=0)[:-1][::-1],
            ),
        ],
    )
    def test_lies_within(self, expected: Bounded, actual: Any) -> None:
        found = judged(expected, actual)
        assert found.diff is None
        assert found.accuracy is not None
        assert 0 < found.accuracy.ratio < 1
        assert (found.accuracy.unclaimed, found.accuracy.compared) == (0, actual.size)


class TestNearMisses:
    """What looks right and is not: each is red for most of its elements."""

    def test_float16_softmax(self) -> None:
        assert wrong(SOFTMAX, float32_softmax(X.astype(np.float16)).astype(np.float32)) > 4000

    def test_softmax_of_inputs_rounded_to_float16_or_tf32(self) -> None:
        assert wrong(SOFTMAX, float32_softmax(X.astype(np.float16).astype(np.float32))) > 2400
        tf32 = ((X.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
        assert wrong(SOFTMAX, float32_softmax(tf32)) > 2400

    def test_softmax_over_another_axis_or_all(self) -> None:
        assert wrong(SOFTMAX, float32_softmax(X.T).T) > 4700
        assert wrong(SOFTMAX, np.exp(X - X.max()) / np.exp(X - X.max()).sum()) > 4700

    def test_naive_log_sum_exp(self) -> None:
        with np.errstate(all="ignore"):
            assert wrong(LOG_SUM_EXP, np.log(np.exp(BIG).sum(1, keepdims=True))) == 16

    def test_one_pass_variance(self) -> None:
        mean = FAR.mean(1, keepdims=True)
        variance = (FAR * FAR).mean(1, keepdims=True) - mean * mean
        with np.errstate(all="ignore"):
            found = (FAR - mean) / np.sqrt(variance + np.float32(1e-5)) * SCALE + BIAS
        expected = layer_norm(*of(FAR, SCALE, BIAS), axis=1, epsilon=EPSILON, stash_type=1)[0]
        assert wrong(expected, found) > 2000
        assert wrong(expected, float32_layer_norm(FAR)) == 0

    def test_layer_norm_of_inputs_rounded_to_float16_or_tf32(self) -> None:
        assert wrong(LAYER_NORM, float32_layer_norm(ROWS.astype(np.float16).astype(np.float32))) > 1500
        tf32 = ((ROWS.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
        assert wrong(LAYER_NORM, float32_layer_norm(tf32)) > 1500

    def test_layer_norm_with_the_sample_variance_or_without_epsilon(self) -> None:
        d = ROWS - ROWS.mean(1, keepdims=True)
        assert (
            wrong(
                LAYER_NORM, d / np.sqrt((d * d).sum(1, keepdims=True) / 95 + np.float32(1e-5)) * SCALE + BIAS
            )
            > 3000
        )
        small = ROWS * np.float32(1e-2)
        d = small - small.mean(1, keepdims=True)
        expected = layer_norm(*of(small, SCALE, BIAS), axis=1, epsilon=EPSILON, stash_type=1)[0]
        assert wrong(expected, d / np.sqrt((d * d).mean(1, keepdims=True)) * SCALE + BIAS) > 2500

    def test_matrix_product_of_inputs_rounded_to_float16_or_tf32(self) -> None:
        assert (
            wrong(MATMUL, A.astype(np.float16).astype(np.float32) @ B.astype(np.float16).astype(np.float32))
            > 300
        )
        a, b = (
            ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32) for x in (A, B)
        )
        assert wrong(MATMUL, a @ b) > 300

    def test_clamped_sigmoid(self) -> None:
        """What ONNX's own tolerance, 1e-7 absolute, cannot see: 0 for arguments from -18 down."""
        low = np.linspace(-80, -18, 100, dtype=np.float32)
        assert wrong(sigmoid(*of(low)), np.zeros(100, np.float32)) == 100

    def test_gemm_without_its_factors(self) -> None:
        expected = gemm(*of(A, B, BIAS[:24]), alpha=0.5, beta=2.0, transA=0, transB=0)
        for found in (
            A @ B + 2 * BIAS[:24],
            np.float32(0.5) * (A @ B) + BIAS[:24],
            np.float32(0.5) * (A @ B),
        ):
            assert wrong(expected, found.astype(np.float32)) > 500


def direct(x: Any, w: Any, strides: Any, pads: Any, dilations: Any, group: int) -> Any:
    """Convolve by the definition, one product at a time."""
    n, m = x.shape[0], w.shape[0]
    low, high = pads[:2], pads[2:]
    sizes = [
        (x.shape[2 + i] + low[i] + high[i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(2)
    ]
    y = np.zeros((n, m, *sizes))
    for index in np.ndindex(y.shape):
        part = index[1] // (m // group)
        for c, k, h in np.ndindex(w.shape[1:]):
            i = index[2] * strides[0] + k * dilations[0] - low[0]
            j = index[3] * strides[1] + h * dilations[1] - low[1]
            if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]:
                y[index] += x[index[0], part * w.shape[1] + c, i, j] * w[index[1], c, k, h]
    return y


@pytest.mark.parametrize(
    ("strides", "pads", "dilations", "group"),
    [
        ((1, 1), (0, 0, 0, 0), (1, 1), 1),
        ((2, 1), (1, 2, 0, 1), (1, 2), 1),
        ((1, 3), (2, 0, 2, 0), (2, 1), 2),
        ((1, 1), (1, 1, 1, 1), (1, 1), 4),
    ],
)
def test_convolution(strides: Any, pads: Any, dilations: Any, group: int) -> None:
    rng = np.random.default_rng(21)
    x = rng.standard_normal((2, 4, 7, 8)).astype(np.float32)
    w = rng.standard_normal((8, 4 // group, 3, 2)).astype(np.float32)
    b = rng.standard_normal(8).astype(np.float32)
    found = convolution(*of(x, w, b), Window(w.shape[2:], strides, dilations, pads), group)
    true = direct(x.astype(np.float64), w.astype(np.float64), strides, pads, dilations, group)
    assert np.abs(found.value - (true + b[:, None, None])).max() < 1e-14
    assert judged(found, (true.astype(np.float32) + b[:, None, None])).diff is None
    rounded = direct(
        x.astype(np.float16).astype(np.float64), w.astype(np.float64), strides, pads, dilations, group
    )
    assert wrong(found, (rounded + b[:, None, None]).astype(np.float32)) > 0.6 * found.size
    whole = convolution(
        *of(np.rint(x * 3), np.rint(w * 3)), None, Window(w.shape[2:], strides, dilations, pads), group
    )
    assert not whole.error.any()


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_one_weight_of_an_output_leaves_a_nan(weight: float) -> None:
    x, w = np.array([[[1.0, np.nan, 2.0]]], np.float32), np.full((1, 1, 1), weight, np.float32)
    found = convolution(*of(x, w), None, Window((1,), (1,), (1,), (0, 0)), 1)
    np.testing.assert_array_equal(found.value, [[[weight, np.nan, 2 * weight]]])
    np.testing.assert_array_equal(deform_conv._summed(x[:, :, None], w), found.value)


def test_nothing_is_claimed_where_an_infinite_weight_meets_the_padding() -> None:
    x, w = np.ones((1, 1, 3), np.float32), np.array([[[1.0, np.inf]]], np.float32)
    for pads, claimed in (((0, 0), [True] * 2), ((1, 0), [True] * 3), ((0, 1), [True, True, False])):
        found = convolution(*of(x, w), None, Window(w.shape[2:], (1,), (1,), pads), 1)
        assert np.isfinite(found.error).tolist() == [[claimed]]
        assert np.isinf(found.value[np.isfinite(found.error)]).all()


class TestSixteenBits:
    """float16 with what is declared of its accumulator."""

    A16, B16 = (RNG.standard_normal(s).astype(np.float16) for s in ((16, 128), (128, 16)))

    def product(self, accumulator: str) -> Bounded:
        kind = arithmetic("opencl", "float16", accumulator, flush=False)
        return number(self.A16, kind) @ number(self.B16, kind)

    def narrow(self) -> NDArray[np.float16]:
        total = np.zeros((16, 16), np.float16)
        for k in range(128):
            total = total + self.A16[:, k : k + 1] * self.B16[k : k + 1]
        return total

    def test_the_accumulator_is_part_of_the_claim(self) -> None:
        wide = (self.A16.astype(np.float32) @ self.B16.astype(np.float32)).astype(np.float16)
        assert wrong(self.product("float32"), wide, "float16") == 0
        assert wrong(self.product("float32"), self.narrow(), "float16") > 150
        assert wrong(self.product("float16"), self.narrow(), "float16") == 0

    def test_a_formula_in_float32_is_stored_in_float16(self) -> None:
        x = X.astype(np.float16)
        expected = softmax(*of(x.astype(np.float32)), 1)
        assert wrong(expected, float32_softmax(x.astype(np.float32)).astype(np.float16), "float16") == 0
        assert wrong(expected, float32_softmax(x), "float16") > 1000


def run(operator: str, inputs: list[Any], **attributes: Any) -> Any:
    """Run one node on ONNX Runtime's CPU provider, without optimisation and in one thread."""
    names = [f"x{i}" for i in range(len(inputs))]
    types = {np.dtype("f4"): TensorProto.FLOAT, np.dtype("i8"): TensorProto.INT64}
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info(n, types[x.dtype], x.shape)
            for n, x in zip(names, inputs, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


WIDE = np.concatenate([RNG.standard_normal(2000) * 20, RNG.standard_normal(2000)]).astype(np.float32)
ABOVE = np.abs(WIDE) + np.float32(1e-3)
CASES: dict[str, tuple[Callable[[], Bounded], list[Any], dict[str, Any]]] = {
    "Exp": (lambda: np.exp(*of(WIDE)), [WIDE], {}),
    "Log": (lambda: np.log(*of(ABOVE)), [ABOVE], {}),
    "Tanh": (lambda: np.tanh(*of(WIDE)), [WIDE], {}),
    "Erf": (lambda: erf(*of(WIDE)), [WIDE], {}),
    "Sqrt": (lambda: np.sqrt(*of(ABOVE)), [ABOVE], {}),
    "Softmax": (lambda: SOFTMAX, [X], {"axis": 1}),
    "LogSoftmax": (lambda: log_softmax(*of(X), 1), [X], {"axis": 1}),
    "MatMul": (lambda: MATMUL, [A, B], {}),
    "LayerNormalization": (lambda: LAYER_NORM, [ROWS, SCALE, BIAS], {"axis": 1, "epsilon": 1e-5}),
    "ReduceSum": (lambda: of(X)[0].sum(1, True), [X, np.array([1])], {"keepdims": 1}),
    "ReduceMean": (lambda: mean(*of(X), (1,), True), [X], {"axes": [1], "keepdims": 1}),
    "ReduceLogSumExp": (lambda: LOG_SUM_EXP, [BIG], {"axes": [1], "keepdims": 1}),
    "CumSum": (lambda: cumulative_sum(*of(X), 1, False, False), [X, np.array(1)], {}),
}


@pytest.mark.parametrize("operator", CASES)
def test_onnx_runtime_lies_within(operator: str) -> None:
    expected, inputs, attributes = CASES[operator]
    found = judged(expected(), run(operator, inputs, **attributes))
    assert found.diff is None
    assert found.accuracy is not None
    assert 0 < found.accuracy.ratio < 1
    assert found.accuracy.unclaimed == 0


def test_onnx_runtimes_sigmoid_is_0_below_18() -> None:
    """A defect that the bound shows: sigmoid(-18) is 1.5e-8."""
    low = np.array([-17, -18, -25, -60], np.float32)
    found = judged(sigmoid(*of(low)), run("Sigmoid", [low]))
    assert found.diff is not None
    assert found.diff.differing == 4
    assert isinstance(sigmoid(*of(low)).stored("float32"), Approx)
