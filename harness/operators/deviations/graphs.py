"""What transformers of ONNX Runtime's optimizer make of graphs of several operators, where that is not what the graph
says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected
from harness.model.float_formats import FORMATS
from harness.operators import OPERATORS
from harness.operators.deviations.base import Deviating, changed, deviation, moved, overflowing
from harness.operators.deviations.pooling import up_to_the_padding_on_the_left
from harness.operators.elements import displaced
from harness.operators.pooling.windows import Window


@deviation
def numerator_over_divisor(asked: Deviating) -> tuple[Expected, ...]:
    """Return Z / X in place of 1 / X * Z, or X / X in place of 1 / X * X."""
    other = next(name for name in asked.call.parameter("product") if name != "quotient")
    return asked.formula(divided=(other, "X"), product=("quotient", "one"), one=1)


# Slice with steps of 1 in place of its steps.
changed("slice_of_every_element", steps=(1, 1))

# Expand to [1], which changes nothing.
changed("not_expanded", shape=(1,))

# The data of Conv padded in place of its weights.
changed(
    "padding_around_the_data",
    pads=(0,) * 8,
    inner=lambda asked: tuple(
        np.add(
            asked.call.parameter("inner") or 0, np.delete(asked.call.parameter("pads"), [0, 1, 4, 5])
        ).tolist()
    ),
)


def _low_or_zero(asked: Deviating) -> float:
    return max(0, asked.call.parameter("low") if "low" in asked.call.parameter("operands") else 0)


# Clip(Relu(X), min, M) in place of Clip(X, min, Relu(M)).
changed(
    "number_rectified_for_its_limit",
    activation="Identity",
    operands=("X", "low", "rectified"),
    low=_low_or_zero,
)

# So too, of an M below min and a Clip that gives min there.
changed("min_above_max_of_zero_or_more", operands=("X", "low", "low"), low=_low_or_zero)

# Resize to the sizes, whatever ratio they give.
changed("ratio_of_the_sizes", policy="")


@deviation
def later_statistics_for_parameters(asked: Deviating) -> tuple[Expected, ...]:
    """BatchNormalization: what has the elements of mean, or of var, is the running one that it computes, where that is no
    output."""
    x = -asked.inputs["X"].array.astype(np.float64)
    given = {name: asked.call.parameter(name) for name in ("scale", "bias", "mean", "variance")}
    *_, mean, variance = asked.call.parameter("normal")
    later, momentum = {}, float(np.float32(0.9))
    for name, new in ((mean, x.mean((0, 2, 3))), (variance, x.var((0, 2, 3)))):
        if asked.call.parameter("exposed") != ("later_mean" if name == mean else "later_variance"):
            running = tuple((np.multiply(given[name], momentum) + new * (1 - momentum)).tolist())
            later.update({each: running for each in ("scale", "bias") if given[each] == given[name]})
    normal, *others = asked.formula(normal=("x", "scale", "bias", "mean", "variance"), **later)
    assert isinstance(normal, Approx)
    digits = 2.0 ** (-48 if normal.dtype == "float64" else -19)
    return Approx(normal.dtype, normal.value, normal.bound + digits * (np.abs(normal.value) + 1)), *others


@deviation
def inner_values_of_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Numbers of float16 between nodes are float32, and only the output is rounded."""
    half, *others = asked.formula()
    wide, *_ = asked.formula(inputs=asked.converted("float32"), U="float32")
    assert isinstance(half, Approx)
    assert isinstance(wide, Approx)
    form = FORMATS[half.dtype]
    found = Approx(half.dtype, wide.value, wide.bound + form.spacing(wide.value) / 2)
    return overflowing(found, form, half.dtype), *others


# Pad with the number of another Pad.
changed("value_of_the_second", value=lambda asked: asked.call.parameter("value_too"))


@deviation
def normalised_value_for_an_inner_one(asked: Deviating) -> tuple[Expected, ...]:
    """Return the graph's output also for the inner value from which it is computed."""
    normalised, _ = asked.formula()
    return normalised, normalised


@deviation
def initializer_without_its_transposition(asked: Deviating) -> tuple[Expected, ...]:
    """Take C as it is where the graph was rewritten for its inverse transposition."""
    c = asked.inputs["C"].array
    array = c.reshape((1,) * (3 - c.ndim) + c.shape)
    turned = np.ascontiguousarray(array.transpose(asked.call.parameter("before")))
    return asked.formula(inputs=asked.having(C=turned))


# Multiply the elements of A by rows of the transposed shape, but in A's own order.
changed("vector_by_untransposed_matrix", {"A": lambda a: a.reshape(a.shape[::-1])}, left=(0, 1))


@deviation
def slice_for_a_range_of_places(asked: Deviating) -> tuple[Expected, ...]:
    """data[start:limit:delta] as Slice takes it, with bounds below 0 from the end, in place of data[range(start, limit,
    delta)]."""
    data, given = asked.inputs["X"], asked.call.parameter
    last = data.array.shape[given("place")] - given("less")
    known = {"start": given("start"), "delta": given("delta"), "last": last, "back": -last}
    axis = given("axis") or 0
    places = np.arange(data.array.shape[axis])[slice(*(known[name] for name in given("range")))]
    return (Exact(Tensor(data.dtype, np.take(data.array, places, axis))),)


@deviation
def padded_with_the_lowest(asked: Deviating) -> tuple[Expected, ...]:
    """MaxPool whose own padding takes the place of Pad's."""
    dtype = DTYPES[asked.inputs["X"].dtype]
    lowest = float("-inf") if dtype.is_float else int(np.iinfo(dtype.storage).min)
    return asked.formula(padding=("X", "pads", "value"), value=lowest)


@deviation
def without_windows_that_start_in_the_padding(asked: Deviating) -> tuple[Expected, ...]:
    """AveragePool with ceil_mode whose own padding takes the place of Pad's: no window starts behind X and the padding
    before it."""
    found = asked.approx()
    shape, pads = asked.inputs["X"].array.shape, asked.call.parameter("pads")
    strides = asked.call.parameter("strides")
    counts = [
        -(-(extent + before) // stride)
        for extent, before, stride in zip(shape[2:], pads[2 : len(shape)], strides, strict=True)
    ]
    kept: Any = (..., *(slice(count) for count in counts))
    return (moved(found, lambda held: held[kept]),)


@deviation
def padded_up_to_the_padding_on_the_left(asked: Deviating) -> tuple[Expected, ...]:
    """AveragePool whose own padding takes the place of Pad's, and whose windows end at the padding on the left."""
    found = asked.approx()
    given, inner = asked.call.parameter, asked.call.parameter("inner") or (0, 0, 0, 0)
    pads = [more + own for more, own in zip((*given("pads")[2:4], *given("pads")[6:8]), inner, strict=True)]
    shape = Window(given("kernel"), given("strides") or (1, 1), (1, 1), tuple(pads))
    return (up_to_the_padding_on_the_left(found, asked.inputs["X"].array.shape[2], shape),)


@deviation
def columns_normalised(asked: Deviating) -> tuple[Expected, ...]:
    """BatchNormalization of the columns of a product, whichever axis they are once it is reshaped and transposed; the
    reshaped product, where it is an output, is normalised too."""
    name, *others = asked.call.parameter("normalised")
    found, *_ = asked.formula(normalised=("product", *others))
    assert isinstance(found, Approx)
    kept = [_reshaped(each, asked.call.parameter("shape")) for each in (found.value, found.bound)]
    moved = kept
    if name != "formed":
        moved = [each.transpose(asked.call.parameter("perm") or None) for each in moved]
    if name == "reformed":
        moved = [_reshaped(each, asked.call.parameter("again")) for each in moved]
    return tuple(
        Approx(found.dtype, value, bound) for value, bound in (moved, kept)[: len(asked.call.outputs)]
    )


def _reshaped(array: Array, shape: Sequence[int]) -> Array:
    """Reshape as ONNX does: 0 keeps the extent of an axis."""
    return array.reshape([extent or array.shape[axis] for axis, extent in enumerate(shape)])


@deviation
def extents_of_the_first_input(asked: Deviating) -> tuple[Expected, ...]:
    """Reshape X to the last shape, of which 0 keeps an extent of X, whatever is allowed."""
    data = asked.inputs["X"]
    one = _reshaped(data.array, asked.call.parameter("third"))
    return (Exact(Tensor(data.dtype, np.concatenate([one, one]))),)


@deviation
def factor_without_dimensions(asked: Deviating) -> tuple[Expected, ...]:
    """FusedMatMul: a factor of one element is a number, whose dimensions the product does not have."""
    names = {"half_3": "half_0", "one": "second"}
    key = "left" if "left" in asked.call.attributes else "scaled"
    taken: dict[str, Any] = {key: tuple(names.get(name, name) for name in asked.call.parameter(key))}
    return asked.formula(**taken)


# FusedMatMul: an operand times float32(1 / first) in place of the operand divided by it.
changed("factor_of_float32", before="Mul", first=lambda asked: _scale("Div", asked.call.parameter("first")))


@deviation
def scales_multiplied_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """FusedMatMul: the product of the operands times one alpha, the product in float32 of the scales before and behind;
    a divisor is 1 / divisor in float32."""
    given = asked.call.parameter
    alpha = _scale("Mul", _scale(given("scale"), given("factor")[0]) * _scale(given("after"), given("other")))
    if np.isfinite(alpha):
        return asked.formula(scale="Mul", factor=(1.0,), after="Mul", other=alpha)
    found = asked.approx(scale="Mul", factor=(1.0,), after="Mul", other=1.0)
    return (Approx(found.dtype, found.value * alpha, np.zeros(found.value.shape)),)


def _scale(operator: str, number: float) -> float:
    """Return what Mul or Div by a number multiplies by: a number of float32."""
    held = float(np.float32(number))
    return held if operator == "Mul" else float(np.float32(1 / held))


@deviation
def factors_in_the_weights(asked: Deviating) -> tuple[Expected, ...]:
    """Conv in place of Conv and Mul: weights and bias times the factors of their channels, rounded to their type."""
    w, factors = asked.inputs["W"].array, asked.inputs["A"].array.reshape(-1)
    return _convolved(asked, _by_channel(w, factors), asked.inputs["B"].array * factors)


@deviation
def normalisation_in_the_weights(asked: Deviating) -> tuple[Expected, ...]:
    """Conv in place of Conv and BatchNormalization: weights and bias with scale / sqrt(variance + epsilon), each step
    rounded to their type."""
    w, b, scale, bias, mean, variance = (
        asked.inputs[name].array for name in ("W", "B", "scale", "bias", "mean", "variance")
    )
    widened = variance.astype(np.float32) + np.float32(asked.call.parameter("epsilon"))
    factors = scale / np.sqrt(widened.astype(variance.dtype))
    return _convolved(asked, _by_channel(w, factors), (b - mean) * factors + bias)


def fused(asked: Deviating, name: str, inputs: dict[str, Tensor], attributes: dict[str, Any]) -> Deviating:
    """Return a call of the node that a graph became."""
    call = asked.call._replace(attributes=attributes, constants={})
    return Deviating(OPERATORS[name], call, {}, asked.arithmetic).again(inputs=inputs)


def _by_channel(w: Array, factors: Array) -> Array:
    """Multiply weights by one factor for each channel of the output."""
    return w * factors.reshape(-1, *(1,) * (w.ndim - 1))


def _convolved(asked: Deviating, w: Array, b: Array) -> tuple[Expected, ...]:
    """Return the convolution of X by other weights, with another bias."""
    x = asked.inputs["X"]
    inputs = {"X": x, "W": Tensor(x.dtype, w), "B": Tensor(x.dtype, b)}
    return fused(asked, "Conv", inputs, {"auto_pad": "NOTSET", "group": 1}).formula()


# Normalisation with the epsilon that is usual where none is given.
changed("usual_epsilon", epsilon=float(np.float32(1e-5)))


# RMS normalisation whatever the power is, or what X is raised to.
changed("root_of_mean_squares", two=2.0, square=("X", "two"))


@deviation
def default_of_an_overridden_input(asked: Deviating) -> tuple[Expected, ...]:
    """AttentionFusion: the elements that the graph has of an overridable input, whatever the run gives."""
    name = str(asked.call.parameter("overridable"))
    return asked.formula(inputs={**asked.inputs, name: displaced(asked.inputs[name])})


# Cast to the last type without the one between.
changed("cast_at_once", to=lambda asked: asked.call.parameter("back"))


@deviation
def each_transposition_reversed(asked: Deviating) -> tuple[Expected, ...]:
    """Gemm with the transpositions of its factors, and behind it where nothing is added, whose permutations are taken for [1, 0]."""
    parameter, operands = asked.call.parameter, asked.call.parameter("multiplied")
    kept = {
        of
        for of, perm in (("At", parameter("left")), ("Bt", parameter("right")))
        if tuple(perm or ()) == (0, 1)
    }
    turned = {
        flag: 1 - (parameter(flag) or 0)
        for flag, of in zip(("transA", "transB"), operands, strict=False)
        if of in kept
    }
    behind: dict[str, Any] = {} if len(operands) == 3 else {"perm": (1, 0)}
    return asked.formula(**turned, **behind)
