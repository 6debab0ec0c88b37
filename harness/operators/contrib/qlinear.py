"""Operators of quantised numbers: the numbers that 8 bits stand for are computed with, and the result is quantised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.expected import Expected, OneOf
from harness.operators.base import Call, Operator, Oracle, Shape
from harness.operators.bounded import Arithmetic, Bounded, arithmetic, moveaxis, number, sigmoid, where
from harness.operators.contrib.channels_last import QuantisedNhwcConvolving, channels_first
from harness.operators.dimensioned import SCALES, Chosen, Dimensioned, Dimensions
from harness.operators.elementwise.activations import leaky_relu
from harness.operators.formulas import parameters
from harness.operators.normalization.norms import FLATTENING, along, softmax
from harness.operators.pooling.pooling import POOLING, average_pool
from harness.operators.pooling.windows import window
from harness.operators.quantization.quantised import qlinear_conv
from harness.operators.quantization.quantising import rounded, settled

# y = saturate(round(f(x) / y_scale) + y_zero_point), where x is (q - x_zero_point) x_scale for each quantised input
# ContribOperators does not say whether the zero point is added before or after rounding, by which ties beside an odd one differ


def quantised_again(scaled: Bounded, zero: Any, dtype: str) -> OneOf:
    """Round to integers and add a zero point, in either order."""
    moved = Bounded(scaled.value + zero, scaled.error, scaled.arithmetic)
    after, before = rounded(scaled, zero, dtype), rounded(moved, np.int64(0), dtype)
    return OneOf(after.candidates + before.candidates)


def zero_of(inputs: Mapping[str, Tensor], name: str) -> Any:
    """Return a zero point as it is broadcast to the last dimension; 0 where it is left out."""
    found = inputs.get(name)
    if found is None:
        return np.int64(0)
    zero = found.array.astype(np.int64)
    return zero.reshape(()) if zero.size == 1 else zero


def scale_of(inputs: Mapping[str, Tensor], name: str, worked: Arithmetic) -> Bounded:
    """Return a scale, a vector along the last dimension or a number."""
    found = number(inputs[name], worked)
    return found.reshape(()) if found.size == 1 else found


def real(inputs: Mapping[str, Tensor], name: str, scale: str, zero: str, worked: Arithmetic) -> Bounded:
    """Return the numbers that quantised ones stand for."""
    exact = (inputs[name].array.astype(np.int64) - zero_of(inputs, zero)).astype(float)
    return number(exact, worked) * scale_of(inputs, scale, worked)


def quantised(
    formula: Callable[..., Any],
    names: str,
    output: str,
    divisors: Callable[[Call], Any] = lambda _: 1,
    exact: Callable[..., Any] = lambda *_: True,
) -> Callable[..., tuple[Expected, ...]]:
    """Make the oracle of a function of real numbers: `names` are the quantised inputs and `output` the output, as their
    scales and zero points name them, `X:x` where it is another name than the input's. `divisors` are what a mean divides by,
    `exact` says where a function that is no sum, product or quotient has a result of one."""
    pairs = [(part.split(":")[0], part.split(":")[-1]) for part in names.split()]
    taken = parameters(formula)

    def oracle(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
        worked = arithmetic(declared, "float32")
        lower = {key.lower(): key for key in inputs}
        numbers = [
            real(
                inputs, name, lower[f"{of.lower()}_scale"], lower.get(f"{of.lower()}_zero_point", ""), worked
            )
            for name, of in pairs
        ]
        given: dict[str, Any] = {key: value for key, value in call.attributes.items() if key in taken}
        given |= {key: inputs[key].array for key in inputs if key in taken}
        with np.errstate(all="ignore"):
            found = formula(*numbers, **given, **({"call": call} if "call" in taken else {}))
        scales = [tensor.array for key, tensor in inputs.items() if key.endswith("_scale")]
        factors = [*scales, divisors(call)]
        return requantised(found, inputs, output, call.outputs[0], factors, exact(call, *numbers))

    return oracle


def requantised(
    found: Bounded,
    inputs: Mapping[str, Tensor],
    output: str,
    dtype: str,
    factors: Sequence[Any],
    exact: Any = True,
) -> tuple[Expected, ...]:
    """Divide by the scale of the output and quantise; `factors` are what numbers were multiplied and divided by, `exact`
    says where they have no other error than by these."""
    scaled = found / scale_of(inputs, f"{output}_scale", found.arithmetic)
    error = np.where(exact, settled(scaled, *factors).error, scaled.error)
    scaled = Bounded(scaled.value, error, scaled.arithmetic)
    return (quantised_again(scaled, zero_of(inputs, f"{output}_zero_point"), dtype),)


def _softmax(x: Bounded, axis: int, opset: int, call: Call) -> Bounded:
    """Apply Softmax of the version that the attribute `opset` names."""
    found: Bounded = along(softmax)(x, axis, call._replace(opset=opset))
    return found


def _row(call: Call) -> tuple[int, ...]:
    """Return the axes along which Softmax of the version that the attribute `opset` names divides by a sum."""
    axis, rank = call.parameter("axis") % len(call.first.shape), len(call.first.shape)
    return (axis,) if call.parameter("opset") >= FLATTENING else tuple(range(axis, rank))


def _equal(call: Call, x: Bounded) -> Any:
    """Say where all exponentials that Softmax adds are of one number, by which 1 / n is left."""
    axes = _row(call)
    return x.value.min(axes, keepdims=True) == x.value.max(axes, keepdims=True) if x.size else True


def _pooled(x: Bounded, call: Call, channels_last: int, count_include_pad: int) -> Bounded:
    moved = moveaxis(x, -1, 1) if channels_last else x
    found: Bounded = average_pool(moved, channels_first(call), count_include_pad)
    return moveaxis(found, 1, -1) if channels_last else found


def _windows(call: Call) -> tuple[Shape, ...]:
    plain = channels_first(call)
    if POOLING.broken_rule(_POOL, plain):
        return (call.first.shape,)
    (shape, *_) = POOLING.output_shapes(_POOL, plain)
    return ((shape[0], *shape[2:], shape[1]) if call.parameter("channels_last") else shape,)


def _whole(x: Bounded, channels_last: int) -> Bounded:
    return x.mean(tuple(range(1, x.ndim - 1) if channels_last else range(2, x.ndim)), keepdims=True)


def _pixels(call: Call) -> int:
    shape = call.first.shape
    return prod(shape[1:-1] if call.parameter("channels_last") else shape[2:])


def _middle(call: Call) -> tuple[Shape, ...]:
    shape = call.first.shape
    ones = (1,) * (len(shape) - 2)
    return ((shape[0], *ones, shape[-1]) if call.parameter("channels_last") else (*shape[:2], *ones),)


def _broken_window(plain: Call) -> str | None:
    """Return the rule of pooling that is broken, or what the document leaves open: its formula counts a last window that
    begins in the padding, ONNX's does not."""
    if wrong := POOLING.broken_rule(_POOL, plain):
        return wrong
    written = window(plain, POOLING.kernel(plain)).as_written(plain.first.shape[2:])
    counted = POOLING.output_shapes(_POOL, plain)[0][2:]
    open_ = plain.parameter("ceil_mode") and written != counted
    return "whether a window that begins in the padding counts" if open_ else None


_POOL = Operator("AveragePool", POOLING, lambda *_: ())


def _written(*names: str) -> str:
    """Return the shapes of inputs that can be broadcast, each with its scale and zero point."""
    found = []
    for name, of in (each.split(":") if ":" in each else (each, each) for each in names):
        found += [f"{name}: ~"] if name[0] != "!" else []
        found += [f"{of.lstrip('!')}_{part}:  | 1" for part in ("scale", "zero_point")]
    return "; ".join(found)


class Quantised(Dimensioned):
    """Quantised tensors with their scales and zero points, all broadcast; the output is first called so."""

    def __init__(self, *names: str, before: str = "") -> None:
        scales = {f"{n.lstrip('!').split(':')[-1]}_scale": (SCALES,) for n in names}
        super().__init__(before + _written(*names), "~", chosen=scales)


def _no_axis(n: Dimensions, call: Call) -> str | None:
    rank = len(call.first.shape)
    return None if -rank <= n["axis"] < rank else "axis in [-r, r-1]"


class QuantisedPooling(Quantised):
    """X with the window of a pooling operator, channels behind the batch or last."""

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of pooling."""
        if len(call.first.shape) < 3:
            return "the input has at least one spatial axis"
        wrong = _broken_window(channels_first(call)) if operator.options else None
        return wrong or super().broken_rule(operator, call)

    def domain(self, operator: Operator, attribute: str, call: Call) -> Any:
        """Those of pooling."""
        return POOLING.domain(_POOL, attribute, channels_first(call))


def nhwc_conv(
    call: Call, inputs: Mapping[str, Tensor], declared: str, convolve: Oracle = qlinear_conv
) -> tuple[Expected, ...]:
    """Convolve as ONNX's QLinearConv does, with channels_last the channels of x and y last."""
    if not call.parameter("channels_last"):
        return convolve(call, inputs, declared)
    x = inputs["x"]
    first = {**inputs, "x": Tensor(x.dtype, np.moveaxis(x.array, -1, 1))}
    (found,) = convolve(channels_first(call), first, declared)
    assert isinstance(found, OneOf)
    return (OneOf(tuple(Tensor(y.dtype, np.moveaxis(y.array, 1, -1)) for y in found.candidates)),)


OPERATORS = (
    Operator("com.microsoft.QLinearConv", QuantisedNhwcConvolving(), nhwc_conv),
    Operator(
        "com.microsoft.QLinearAdd", Quantised("A", "B", "!C"), quantised(lambda a, b: a + b, "A B", "C")
    ),
    Operator(
        "com.microsoft.QLinearMul", Quantised("A", "B", "!C"), quantised(lambda a, b: a * b, "A B", "C")
    ),
    Operator(
        "com.microsoft.QLinearSigmoid",
        Quantised("X", "!Y"),
        quantised(sigmoid, "X", "Y", exact=lambda _, x: x.value == 0),
    ),
    Operator("com.microsoft.QLinearLeakyRelu", Quantised("X", "!Y"), quantised(leaky_relu, "X", "Y")),
    Operator(
        "com.microsoft.QLinearSoftmax",
        Dimensioned(
            "X: ~; X_scale:  | 1; x_zero_point:  | 1; y_scale:  | 1; y_zero_point:  | 1",
            "~",
            rule=_no_axis,
            chosen={
                "X_scale": (SCALES,),
                "y_scale": (SCALES, Chosen("usual", lambda raw, _: raw * 0 + 1 / 256)),
            },
        ),
        quantised(
            _softmax, "X", "y", lambda call: prod(call.first.shape[axis] for axis in _row(call)), _equal
        ),
    ),
    Operator(
        "com.microsoft.QLinearWhere",
        Quantised("X:x", "Y:y", "!z", before="condition: ~; "),
        quantised(lambda x, y, condition: where(condition, x, y), "X Y", "z"),
    ),
    Operator(
        "com.microsoft.QLinearAveragePool",
        QuantisedPooling("X:x", "!y"),
        quantised(_pooled, "X", "y", lambda call: range(1, max(call.parameter("kernel_shape")) + 1)),
        outputs=_windows,
        options=True,
    ),
    Operator(
        "com.microsoft.QLinearGlobalAveragePool",
        QuantisedPooling("X:x", "!y"),
        quantised(_whole, "X", "y", _pixels),
        outputs=_middle,
    ),
)
