"""Wrong kernels of operators that reduce, multiply and normalise turn cases of the specs red; right ones, in
float32, turn none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from harness.operators.base import Call
from harness.operators.reduction.reductions import axes_of
from harness.operators.reduction.reductions import reduced as reduced_shape
from tests.mutants.any_operator import Sample, samples
from tests.sampled import one_of

pytestmark = pytest.mark.filterwarnings("ignore:Mean of empty slice")
"""Of instances without an element there is no mean."""

Kernel = Callable[[Call, list[Any]], Any]
"""Takes a call and its inputs, floats as float32; returns the first output."""


@cache
def cases(name: str) -> list[Sample]:
    """Return the float32 cases of a spec."""
    return [each for each in samples(name, 40_000) if each.case.inputs[0].dtype == "float32"]


def red(name: str, kernel: Kernel) -> Iterator[str]:
    """Yield the cases that a kernel gets wrong."""
    for sample in cases(name):
        expected = sample.expected[0]
        with np.errstate(all="ignore"):
            actual = np.asarray(kernel(sample.call, list(sample.arrays.values()))).astype(
                np.int64 if expected.dtype == "int64" else np.float32
            )
        if compare(expected, Tensor(expected.dtype, actual)).diff is not None:
            yield sample.case.id


def half(x: Any) -> Any:
    """Cut to float16 and back."""
    return np.asarray(x).astype(np.float16).astype(np.float32)


def reduced(function: Callable[..., Any], *, shift: int = 0, keep: bool = True, lost: bool = False) -> Kernel:
    """Make a kernel of a NumPy reduction with an axis that is off, keepdims ignored, or the last element
    lost."""

    def kernel(call: Call, inputs: list[Any]) -> Any:
        data = inputs[0]
        axes = tuple((axis + shift) % data.ndim for axis in axes_of(call) or ())
        cut = data[
            tuple(
                slice(0, -1) if lost and n in axes and data.shape[n] > 1 else slice(None)
                for n in range(data.ndim)
            )
        ]
        return function(cut, axis=axes, keepdims=bool(call.attributes["keepdims"]) and keep)

    return kernel


def in_doubles(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, **given: function(x.astype(np.float64), **given)


def log_sum_exp(x: Array, **given: Any) -> Any:
    most = x.max(initial=-1e30, axis=given["axis"], keepdims=True)
    most = np.where(np.isfinite(most), most, 0)
    total = np.exp(x - most).sum(axis=given["axis"], keepdims=True)
    return (np.log(total) + most).sum(**given)


def softmax(
    call: Call, inputs: list[Any], *, shift: int = 0, naive: bool = False, narrow: bool = False
) -> Any:
    x = inputs[0]
    axis = (call.parameter("axis") + shift) % x.ndim
    axes = (axis,) if call.opset >= 13 else tuple(range(axis, x.ndim))
    if not x.size:
        return x
    e = np.exp(x if naive else x - x.max(axis=axes, keepdims=True))
    e = half(e) if narrow else e
    return e / e.sum(axis=axes, keepdims=True)


def matmul(a: Any, b: Any) -> Any:
    return np.matmul(a.astype(np.float64), b.astype(np.float64))


def without_last(x: Any, axis: int) -> Any:
    return np.delete(x, -1, axis) if x.shape[axis] > 1 else x


def layer_norm(
    call: Call,
    inputs: list[Any],
    *,
    one_pass: bool = False,
    outside: bool = False,
    sample: bool = False,
    shift: int = 0,
) -> Any:
    x, scale, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else 0
    first = min(call.parameter("axis") % x.ndim + shift, x.ndim - 1)
    given: dict[str, Any] = {"axis": tuple(range(first, x.ndim)), "keepdims": True}
    wide = x.astype(np.float32 if one_pass else np.float64)
    mean = wide.mean(**given)
    variance = (wide * wide).mean(**given) - mean * mean if one_pass else ((wide - mean) ** 2).mean(**given)
    count = x.size / max(1, mean.size)
    variance = variance * (count / (count - 1)) if sample and count > 1 else variance
    epsilon = call.parameter("epsilon")
    root = np.sqrt(variance) + epsilon if outside else np.sqrt(variance + epsilon)
    return (wide - mean) / root * scale + bias


def channel_norm(
    call: Call, inputs: list[Any], *, swapped: bool = False, over_batch: bool = False, one_pass: bool = False
) -> Any:
    x, scale, bias = (each.astype(np.float32 if one_pass else np.float64) for each in inputs)
    given: dict[str, Any] = {"axis": (*([0] if over_batch else []), *range(2, x.ndim)), "keepdims": True}
    mean = x.mean(**given)
    variance = (x * x).mean(**given) - mean * mean if one_pass else ((x - mean) ** 2).mean(**given)
    wide = [each.reshape(-1, *[1] * (x.ndim - 2)) for each in ((bias, scale) if swapped else (scale, bias))]
    return (x - mean) / np.sqrt(variance + call.parameter("epsilon")) * wide[0] + wide[1]


def gemm(call: Call, inputs: list[Any], *, forget: str = "", turn_c: bool = False) -> Any:
    a, b = (each.astype(np.float64) for each in inputs[:2])
    a = a.T if call.parameter("transA") else a
    b = b.T if call.parameter("transB") else b
    y = a @ b * (1 if forget == "alpha" else call.parameter("alpha"))
    if len(inputs) < 3 or forget == "c":
        return y
    c = (
        inputs[2].T
        if turn_c and inputs[2].ndim == 2 and inputs[2].T.shape in (y.shape, (1, 1))
        else inputs[2]
    )
    return y + (1 if forget == "beta" else call.parameter("beta")) * c


def top_k(call: Call, inputs: list[Any], *, late: bool = False, least: bool = False) -> Any:
    x, axis = inputs[0], call.parameter("axis")
    k = call.parameter("K", call.parameter("k", 0))
    k = k[0] if isinstance(k, tuple) else k
    descending = -np.sort(-x, axis, kind="stable")
    chosen = np.sort(x, axis, kind="stable") if least or not call.parameter("largest", 1) else descending
    return np.take(chosen, np.arange(1, k + 1) % x.shape[axis] if late else np.arange(k), axis)


def place(call: Call, inputs: list[Any], *, last: bool = False, shift: int = 0) -> Any:
    x = inputs[0]
    axis = (call.parameter("axis") + shift) % x.ndim
    keep = bool(call.parameter("keepdims"))
    if not x.size:
        return np.zeros(reduced_shape(x.shape, (axis,), keep))
    if last or call.parameter("select_last_index", 0):
        return x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis=axis, keepdims=keep)
    return np.argmax(x, axis=axis, keepdims=keep)


def running(call: Call, inputs: list[Any], *, forget: str = "", narrow: bool = False) -> Any:
    x, axis = inputs[0].astype(np.float64), int(inputs[1].reshape(())) % inputs[0].ndim
    reverse = call.parameter("reverse") and forget != "reverse"
    y = np.flip(x, axis) if reverse else x
    total = np.cumsum(y, axis, np.float16 if narrow else np.float64)
    if call.parameter("exclusive") and forget != "exclusive":
        total = np.roll(total, 1, axis)
        np.moveaxis(total, axis, 0)[:1] = 0
    return np.flip(total, axis) if reverse else total


KERNELS: dict[tuple[str, str], Kernel] = {
    ("ReduceSum", "right"): reduced(in_doubles(np.sum)),
    ("ReduceSum", "the axis after"): reduced(in_doubles(np.sum), shift=1),
    ("ReduceSum", "keepdims ignored"): reduced(in_doubles(np.sum), keep=False),
    ("ReduceSum", "last element lost"): reduced(in_doubles(np.sum), lost=True),
    ("ReduceSum", "float16"): reduced(lambda x, **given: half(x).sum(**given, dtype=np.float16)),
    ("ReduceMean", "right"): reduced(in_doubles(np.mean)),
    ("ReduceMean", "a sum"): reduced(in_doubles(np.sum)),
    ("ReduceMean", "float16"): reduced(lambda x, **given: half(x.mean(**given))),
    ("ReduceProd", "right"): reduced(in_doubles(np.prod)),
    ("ReduceProd", "last element lost"): reduced(in_doubles(np.prod), lost=True),
    ("ReduceProd", "signs lost"): reduced(lambda x, **given: np.prod(np.abs(x), **given)),
    ("ReduceL1", "signs kept"): reduced(in_doubles(np.sum)),
    ("ReduceL2", "no root"): reduced(lambda x, **given: (x * x).sum(**given)),
    ("ReduceSumSquare", "float16"): reduced(lambda x, **given: (half(x) ** 2).sum(**given, dtype=np.float16)),
    ("ReduceLogSumExp", "right"): reduced(in_doubles(log_sum_exp)),
    ("ReduceLogSumExp", "without the maximum"): reduced(lambda x, **given: np.log(np.exp(x).sum(**given))),
    ("ReduceMax", "right"): reduced(lambda x, **given: np.max(x, **given, initial=-np.inf)),
    ("ReduceMax", "0 for nothing and as a start"): reduced(lambda x, **given: np.max(x, **given, initial=0)),
    ("ReduceMin", "a maximum"): reduced(lambda x, **given: np.max(x, **given, initial=-np.inf)),
    ("Softmax", "right"): softmax,
    ("Softmax", "the axis after"): lambda call, inputs: softmax(call, inputs, shift=1),
    ("Softmax", "without the maximum"): lambda call, inputs: softmax(call, inputs, naive=True),
    ("Softmax", "float16"): lambda call, inputs: softmax(call, inputs, narrow=True),
    ("MatMul", "right"): lambda _, inputs: matmul(*inputs),
    ("MatMul", "float16"): lambda _, inputs: matmul(*map(half, inputs)),
    ("MatMul", "last product lost"): lambda _, inputs: matmul(
        without_last(inputs[0], -1), without_last(inputs[1], -min(2, inputs[1].ndim))
    ),
    ("MatMul", "first element of a vector"): lambda _, inputs: matmul(
        inputs[0],
        np.full_like(inputs[1], inputs[1][0]) if inputs[1].ndim == 1 and inputs[1].size else inputs[1],
    ),
    ("Gemm", "right"): gemm,
    ("Gemm", "alpha ignored"): lambda call, inputs: gemm(call, inputs, forget="alpha"),
    ("Gemm", "beta ignored"): lambda call, inputs: gemm(call, inputs, forget="beta"),
    ("Gemm", "C ignored"): lambda call, inputs: gemm(call, inputs, forget="c"),
    ("LayerNormalization", "right"): layer_norm,
    ("LayerNormalization", "one pass"): lambda call, inputs: layer_norm(call, inputs, one_pass=True),
    ("LayerNormalization", "epsilon outside of the root"): lambda call, inputs: layer_norm(
        call, inputs, outside=True
    ),
    ("LayerNormalization", "variance of a sample"): lambda call, inputs: layer_norm(
        call, inputs, sample=True
    ),
    ("LayerNormalization", "the axis after"): lambda call, inputs: layer_norm(call, inputs, shift=1),
    ("InstanceNormalization", "right"): channel_norm,
    ("InstanceNormalization", "scale and bias exchanged"): lambda call, inputs: channel_norm(
        call, inputs, swapped=True
    ),
    ("InstanceNormalization", "over all instances"): lambda call, inputs: channel_norm(
        call, inputs, over_batch=True
    ),
    ("TopK", "right"): top_k,
    ("TopK", "largest ignored"): lambda call, inputs: top_k(call, inputs, least=True),
    ("TopK", "one too late"): lambda call, inputs: top_k(call, inputs, late=True),
    ("ArgMax", "right"): place,
    ("ArgMax", "always the last"): lambda call, inputs: place(call, inputs, last=True),
    ("ArgMax", "the axis after"): lambda call, inputs: place(call, inputs, shift=1),
    ("CumSum", "right"): running,
    ("CumSum", "exclusive ignored"): lambda call, inputs: running(call, inputs, forget="exclusive"),
    ("CumSum", "reverse ignored"): lambda call, inputs: running(call, inputs, forget="reverse"),
    ("CumSum", "float16"): lambda call, inputs: running(call, inputs, narrow=True),
}


def _named(*, right: bool) -> list[tuple[str, str]]:
    return [key for key in KERNELS if (key[1] == "right") == right]


@pytest.mark.parametrize(("name", "kernel"), one_of(3, _named(right=True)))
def test_a_right_kernel_turns_nothing_red(name: str, kernel: str) -> None:
    assert list(red(name, KERNELS[name, kernel])) == []


@pytest.mark.parametrize(("name", "kernel"), one_of(6, _named(right=False)))
def test_a_wrong_kernel_turns_cases_red(name: str, kernel: str) -> None:
    assert len(list(islice(red(name, KERNELS[name, kernel]), 2))) == 2
