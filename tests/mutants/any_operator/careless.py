"""Kernels of float32 beside the one that a formula is written like. Careless ones are right for ordinary numbers: sums without a
subtraction before them, variances by two sums, functions that are approximated too coarsely. Careful ones take sums in
another order, or evaluate the same in another way, and are as right as the formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from tests.mutants.any_operator import Sample

Kernel = Callable[[Mapping[str, Array], Mapping[str, object]], Array]


def _axis(attributes: Mapping[str, object]) -> int:
    axis = attributes.get("axis", -1)
    assert isinstance(axis, int)
    return axis


def _softmax(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    e = np.exp(inputs["input"])
    return np.asarray(e / e.sum(_axis(attributes), keepdims=True))


def _log_softmax(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    return np.log(_softmax(inputs, attributes))


def _log_sum_exp(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    axes = inputs["axes"].tolist() if "axes" in inputs else range(inputs["data"].ndim)
    keep = bool(attributes.get("keepdims", 1))
    return np.asarray(np.log(np.exp(inputs["data"]).sum(tuple(axes), keepdims=keep)))


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean = x.mean(axes, keepdims=True)
    variance = (x * x).mean(axes, keepdims=True) - mean * mean
    return np.asarray((x - mean) / np.sqrt(np.maximum(variance, 0) + np.float32(epsilon)))


def _layer_norm(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    x = inputs["X"]
    epsilon = attributes.get("epsilon", 1e-5)
    assert isinstance(epsilon, float)
    y = _normalized(x, tuple(range(_axis(attributes) % x.ndim, x.ndim)), epsilon) * inputs["Scale"]
    return y + inputs["B"] if "B" in inputs else y


def _instance_norm(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    x = inputs["input"]
    epsilon = attributes.get("epsilon", 1e-5)
    assert isinstance(epsilon, float)
    shape = (-1, *[1] * (x.ndim - 2))
    scale, bias = (inputs[name].reshape(shape) for name in ("scale", "B"))
    return _normalized(x, tuple(range(2, x.ndim)), epsilon) * scale + bias


def _of_one(name: str, function: Callable[[Array], Array]) -> Kernel:
    return lambda inputs, _: function(inputs[name])


def _fast_exp(x: Array) -> Array:
    """Write the exponent, and a parabola for the fraction: within a part in 300."""
    whole = np.floor(x * np.float32(1.442695))
    rest = x * np.float32(1.442695) - whole
    return np.ldexp(1 + rest * (np.float32(0.6602) + np.float32(0.3398) * rest), whole.astype(int))


def _fast_tanh(x: Array) -> Array:
    """Divide polynomials of degree 3 and 2."""
    square = x * x
    return np.asarray(np.clip(x * (27 + square) / (27 + 9 * square), -1, 1))


def _fast_erf(x: Array) -> Array:
    """By the approximation 7.1.25 of Abramowitz and Stegun, within 2.5e-5."""
    t = 1 / (1 + np.float32(0.47047) * np.abs(x))
    y = 1 - t * (np.float32(0.3480242) + t * (np.float32(-0.0958798) + t * np.float32(0.7478556))) * np.exp(
        -x * x
    )
    return np.asarray(np.copysign(y, x))


CARELESS: dict[str, dict[str, Kernel]] = {
    "Softplus": {"the sum written out": _of_one("X", lambda x: np.log(np.exp(x) + np.float32(1)))},
    "Softmax": {"no subtraction": _softmax},
    "LogSoftmax": {"no subtraction": _log_softmax},
    "ReduceLogSumExp": {"no subtraction": _log_sum_exp},
    "LayerNormalization": {"variance by two sums": _layer_norm},
    "InstanceNormalization": {"variance by two sums": _instance_norm},
    "Exp": {"a parabola": _of_one("input", _fast_exp)},
    "Sigmoid": {"a fast exp": _of_one("X", lambda x: 1 / (1 + _fast_exp(-x)))},
    "Tanh": {
        "a quotient of polynomials": _of_one("input", _fast_tanh),
        "beyond 1": _of_one("input", lambda x: np.tanh(x) * np.float32(1.0000001)),
    },
    "Cos": {"beyond 1": _of_one("input", lambda x: np.cos(x) * np.float32(1.0000001))},
    "Erf": {"Abramowitz and Stegun 7.1.25": _of_one("input", _fast_erf)},
    "Gelu": {"a fast erf": _of_one("X", lambda x: x * np.float32(0.5) * (1 + _fast_erf(x * np.float32(0.70710678))))},
}  # fmt: skip


def _axes(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> tuple[int, ...]:
    axes: object = inputs["axes"].tolist() if "axes" in inputs else attributes.get("axes")
    every = range(inputs["data"].ndim)
    none = () if attributes.get("noop_with_empty_axes") else every
    return (
        tuple(int(axis) % inputs["data"].ndim for axis in axes or none)
        if isinstance(axes, list | tuple)
        else tuple(none)
    )


def _reduced(
    add: Callable[[Array], Array], scale: Callable[[int], np.float32 | None] = lambda _: None
) -> Kernel:
    """Sum with `add`, which takes the numbers along the last axis; the sum times `scale` of their number."""

    def kernel(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
        data, axes = inputs["data"], _axes(inputs, attributes)
        if not axes:
            return data
        kept = [axis for axis in range(data.ndim) if axis not in axes]
        flat = data.transpose(*kept, *axes).reshape(*(data.shape[axis] for axis in kept), -1)
        found, factor = add(flat), scale(flat.shape[-1])
        shape = [1 if axis in axes else extent for axis, extent in enumerate(data.shape)]
        found = found if factor is None else found * factor
        return found.reshape(shape) if attributes.get("keepdims", 1) else found

    return kernel


def _forward(x: Array) -> Array:
    return np.add.accumulate(x, axis=-1, dtype=np.float32)[..., -1] if x.shape[-1] else x.sum(-1)


def _in_blocks(x: Array) -> Array:
    """Sum eight lanes, then these."""
    padded = np.concatenate([x, np.zeros((*x.shape[:-1], -x.shape[-1] % 8), x.dtype)], -1)
    lanes = padded.reshape(*x.shape[:-1], -1, 8)
    return _forward(_forward(np.moveaxis(lanes, -2, -1)))


def _layer_norm_in_two_passes(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    x, epsilon = inputs["X"], attributes.get("epsilon", 1e-5)
    assert isinstance(epsilon, float)
    axes = tuple(range(_axis(attributes) % x.ndim, x.ndim))
    d = x - x.mean(axes, keepdims=True)
    y = d * (1 / np.sqrt((d * d).mean(axes, keepdims=True) + np.float32(epsilon))) * inputs["Scale"]
    return y + inputs["B"] if "B" in inputs else y


def _instance_norm_by_factors(inputs: Mapping[str, Array], attributes: Mapping[str, object]) -> Array:
    x, epsilon = inputs["input"], attributes.get("epsilon", 1e-5)
    assert isinstance(epsilon, float)
    axes, shape = tuple(range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    scale, bias = (inputs[name].reshape(shape) for name in ("scale", "B"))
    mean = x.mean(axes, keepdims=True)
    factor = scale / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + np.float32(epsilon))
    return np.asarray(x * factor + (bias - mean * factor))


CAREFUL: dict[str, dict[str, Kernel]] = {
    "ReduceSum": {
        "from the front": _reduced(_forward),
        "from the back": _reduced(lambda x: _forward(x[..., ::-1])),
        "in blocks": _reduced(_in_blocks),
    },
    "ReduceMean": {
        "pairwise times 1/n": _reduced(lambda x: x.sum(-1), lambda n: np.float32(1) / np.float32(n)),
        "in blocks times 1/n": _reduced(_in_blocks, lambda n: np.float32(1) / np.float32(n)),
    },
    "Softplus": {
        "log1p": _of_one("X", lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, np.float32(0))),
    },
    "HardSwish": {
        "x (relu6(x + 3) / 6)": _of_one("X", lambda x: x * (np.clip(x + np.float32(3), 0, 6) / np.float32(6))),
    },
    "LayerNormalization": {"two passes, times 1/root": _layer_norm_in_two_passes},
    "InstanceNormalization": {"a factor for each channel": _instance_norm_by_factors},
}  # fmt: skip


@dataclass(frozen=True)
class OtherKernel:
    """A kernel of float32 whose first output another computation gives."""

    name: str
    kernel: Kernel

    def concerns(self, sample: Sample) -> bool:
        filled = all(0 not in spec.shape for spec in sample.case.inputs)
        return filled and sample.call.outputs[0] == "float32" and len(sample.expected) == 1

    def shows(self, sample: Sample) -> bool:
        with np.errstate(all="ignore"):
            given = np.asarray(self.kernel(sample.arrays, sample.case.attributes), np.float32)
        return compare(sample.expected[0], Tensor("float32", given))[0] is not None


def careless(operator: str) -> list[OtherKernel]:
    """Return the careless kernels of an operator."""
    return [OtherKernel(name, kernel) for name, kernel in CARELESS.get(operator, {}).items()]


def careful(operator: str) -> list[OtherKernel]:
    """Return the careful kernels of an operator."""
    return [OtherKernel(name, kernel) for name, kernel in CAREFUL[operator].items()]
