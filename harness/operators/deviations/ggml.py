"""What the provider of onnxruntime-ggml gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Approx, Exact, Expected, OneOf
from harness.model.float_formats import FORMATS
from harness.operators.base import Undefined
from harness.operators.deviations.base import (
    Deviating,
    candidates_of,
    changed,
    deviation,
    neighbours,
    overflowing,
    register,
    without_nan,
)
from harness.operators.normalization.norms import FLATTENING


@deviation
def in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """float64 in float32, of any operator."""
    types = [each.dtype for each in asked.inputs.values() if each.dtype in FORMATS]
    if "float64" not in types or types[0] not in ("float64", "float32"):
        raise Undefined("no float64, or another type before it")
    return _given(asked)


@deviation
def clipped_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Clip: the lesser of input and max, where NaN is infinity, then the greater of that and min, in float32; attributes
    are not read."""
    given = asked.inputs["input"]
    numbers = {name: each.array.astype(np.float32) for name, each in asked.inputs.items()}
    x = np.where(np.isnan(numbers["input"]), np.float32(np.inf), numbers["input"])
    found = np.maximum(np.minimum(x, numbers.get("max", np.inf)), numbers.get("min", -np.inf))
    return (Exact(Tensor(given.dtype, _stored(found, given.dtype))),)


@deviation
def of_two_inputs(asked: Deviating) -> tuple[Expected, ...]:
    """Max and Min: of the first two inputs; of NaN and a number the number."""
    if len(asked.inputs) < 2:
        raise Undefined("one input")
    (a, one), (b, other) = list(asked.inputs.items())[:2]
    x, y = np.broadcast_arrays(one.array, other.array)
    if x.dtype.kind == "f":
        x, y = np.where(np.isnan(x), y, x), np.where(np.isnan(y), x, y)
    return _given(asked, inputs={a: Tensor(one.dtype, x), b: Tensor(one.dtype, y)})


# Comparisons of int64 as float64.
changed("compared_in_float64", inputs=lambda asked: asked.converted("float64"))


@deviation
def leaky_zero_for_nan(asked: Deviating) -> tuple[Expected, ...]:
    """LeakyRelu: 0 for NaN."""
    (found,) = _given(asked)
    assert isinstance(found, Approx)
    return (without_nan(found, 0.0),)


@deviation
def cells_not_clipped(asked: Deviating) -> tuple[Expected, ...]:
    """LSTM: clip bounds the arguments of f and g, and not the cell state that h is given."""
    clip = asked.call.parameter("clip")
    if clip is None:
        raise Undefined("no clip")
    return _given(asked, clip=(clip, clip, np.inf))


@deviation
def factors_in_float16(asked: Deviating) -> tuple[Expected, ...]:
    """MatMul: both factors are rounded to float16."""
    narrow = asked._replace(inputs=asked.converted("float16"))
    return _given(asked, inputs=narrow.converted("float32"))


@deviation
def pads_of_the_first_axes(asked: Deviating) -> tuple[Expected, ...]:
    """Pad: axes is not read."""
    rank = asked.inputs["data"].array.ndim
    if len(asked.call.parameter("pads")) != 2 * rank or asked.call.parameter("mode") != "constant":
        raise Undefined("pads of fewer axes, or of elements")
    return _given(asked, inputs=asked.lacking("axes"))


@deviation
def power_of_integers_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Pow: integers in float32."""
    found = asked.approx(inputs=asked.converted("float32"), outputs=("float32",))
    dtype = asked.inputs["X"].dtype
    return (OneOf(tuple(Tensor(dtype, _stored(each, dtype)) for each in neighbours(found))),)


@deviation
def relu_in_float32(asked: Deviating) -> tuple[Expected, ...]:
    """Relu: integers in float32."""
    x = asked.inputs["X"]
    return (Exact(Tensor(x.dtype, _stored(np.maximum(x.array.astype(np.float32), 0), x.dtype))),)


@deviation
def extreme_of_nothing(asked: Deviating) -> tuple[Expected, ...]:
    """ReduceMax and ReduceMin of no elements: 0 and -1 of integers, True of booleans."""
    (found,) = asked.formula()
    if asked.inputs["data"].array.size or DTYPES[found.dtype].storage[0] not in "i?b":
        raise Undefined("there are elements, or no signed integers")
    number = 1 if found.dtype == "bool" else 0 if asked.operator.name == "ReduceMax" else -1
    return (Exact(Tensor(found.dtype, np.full(found.shape, number, DTYPES[found.dtype].storage))),)


@deviation
def nothing_from_before_the_start(asked: Deviating) -> tuple[Expected, ...]:
    """Slice: a start before the first element is behind nothing where the step is negative, as NumPy has it."""
    call, given = asked.call, asked.inputs["data"]
    starts, ends, axes, steps = (call.parameter(name) for name in ("starts", "ends", "axes", "steps"))
    found = given.array
    for n, (start, end) in enumerate(zip(starts, ends, strict=True)):
        part = slice(start, end, steps[n] if steps else 1)
        axis = axes[n] if axes else n
        found = np.take(found, range(*part.indices(found.shape[axis])), axis)
    held = found.astype(np.float32).astype(np.float64) if given.dtype == "float64" else found
    return (Exact(Tensor(given.dtype, held)),)


@deviation
def start_beyond_the_rank(asked: Deviating) -> tuple[Expected, ...]:
    """Shape: a start beyond the rank is 0."""
    shape = asked.inputs["data"].array.shape
    start, end = asked.call.parameter("start"), asked.call.parameter("end")
    held = shape[0 if start >= len(shape) else start : end]
    return (Exact(Tensor("int64", np.array(held, np.int64))),)


@deviation
def whole_input_resized(asked: Deviating) -> tuple[Expected, ...]:
    """Resize: roi is not read."""
    return _given(
        asked, inputs=asked.having(roi=lambda roi: np.repeat([0, 1], roi.size // 2).astype(roi.dtype))
    )


@deviation
def parts_of_one_size(asked: Deviating) -> tuple[Expected, ...]:
    """Split: the attribute split is not read; float64 may be moved as it is."""
    found = zip(_given(asked, without=("split",)), asked.formula(without=("split",)), strict=True)
    return tuple(
        OneOf((one.tensor, other.tensor))
        for one, other in found
        if isinstance(one, Exact) and isinstance(other, Exact)
    )


@deviation
def sum_of_both_branches(asked: Deviating) -> tuple[Expected, ...]:
    """Where: X times the condition, plus Y times what it is not."""
    condition, x, y = (each.array for each in asked.inputs.values())
    dtype = asked.inputs["X"].dtype
    wide = [each.astype(np.float32) * chosen for each, chosen in ((x, condition), (y, ~condition))]
    return (Exact(Tensor(dtype, _stored(wide[0] + wide[1], dtype))),)


def _stored(values: Array, dtype: str) -> Array:
    """Return float32 numbers in a type; beyond the range of int32 the least number, of int64 the nearest."""
    storage = DTYPES[dtype].storage
    if DTYPES[dtype].is_float:
        return values.astype(storage)
    limits = np.iinfo(storage)
    wide = values.astype(np.float64)
    most = limits.max if dtype == "int64" else limits.min
    found = np.where(wide < limits.min, limits.min, wide.astype(storage)).astype(storage)
    return np.where(wide >= float(limits.max), np.array(most, storage), found)


def _given(asked: Deviating, **more: Any) -> tuple[Expected, ...]:
    """Return the operator's own formula in float32, where it is asked for float64."""
    inputs = more.pop("inputs", asked.inputs)
    narrow = {
        name: Tensor("float32", each.array.astype(np.float32)) if each.dtype == "float64" else each
        for name, each in inputs.items()
    }
    outputs = tuple("float32" if each == "float64" else each for each in asked.call.outputs)
    found = asked.formula(inputs=narrow, outputs=outputs, **more)
    return tuple(_widened(each, wanted) for each, wanted in zip(found, asked.call.outputs, strict=False))


# Reductions: noop_with_empty_axes is not read.
register("every_axis_reduced", partial(_given, noop_with_empty_axes=0))


# Softmax before version 13: along the axis alone, as since then.
register(
    "softmax_of_one_axis",
    lambda asked: _given(asked._replace(call=asked.call._replace(opset=FLATTENING))),
)


# Squeeze: no axes are read, of the attribute or the input.
register("every_axis_squeezed", lambda asked: _given(asked, inputs=asked.lacking("axes"), without=("axes",)))


def _widened(found: Expected, wanted: str) -> Expected:
    if found.dtype == wanted:
        return found
    if isinstance(found, Approx):
        return overflowing(found, FORMATS["float32"], wanted)
    wide = [Tensor(wanted, each.array.astype(wanted)) for each in candidates_of(found)]
    return OneOf(tuple(wide)) if isinstance(found, OneOf) else Exact(wide[0])
