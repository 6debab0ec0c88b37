"""Small calls of DirectML's operators with the results of the usual definition of each, computed with NumPy.

A call is written with its inputs and outputs in the order of the structure's members: None for an optional
tensor that is left out, a list for an array of tensors. Members that count arrays follow from them; optional
members that are not named are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.model.reference.directml import directml_operator
from harness.operators.directml.description import structure
from tests.windows.directml_units import described, tensor

Given = Sequence[Any]


class Call(NamedTuple):
    """A description, the arrays that it is fed, and what its first output is."""

    description: dict[str, Any]
    arrays: list[np.ndarray]
    wanted: np.ndarray


def calls(operator: str, inputs: Given, outputs: Given, **attributes: Any) -> Iterator[Call]:
    """Yield a call for each output: the same call with another output in front."""
    name = f"DML_OPERATOR_{operator}"
    members = directml_operator(name).members
    given = {"input": iter(inputs), "output": iter(outputs)}
    tensors: dict[str, Any] = {}
    found: dict[str, dict[str, np.ndarray]] = {"input": {}, "output": {}}
    for member in members:
        if not member.is_tensor:
            attributes.setdefault(member.name, None)
            continue
        role = member.type.rstrip("s")
        value = next(given[role], None)
        if member.type == role:
            tensors[member.name] = None if value is None else tensor(str(value.dtype), value.shape)
            found[role].update({} if value is None else {member.name: value})
        else:
            tensors[member.name] = [tensor(str(each.dtype), each.shape) for each in value]
            found[role].update({f"{member.name}.{place}": each for place, each in enumerate(value)})
    for member in members:
        if member.count is not None and attributes[member.count] is None:
            counted = tensors[member.name] if member.is_tensor else attributes[member.name]
            attributes[member.count] = None if counted is None else len(counted)
    names = list(found["output"])
    for first in names:
        order = [first, *(each for each in names if each != first)]
        shapes = [list(found["output"][each].shape) for each in order]
        changed = {"inputs": list(found["input"]), "outputs": order, "output_shapes": shapes}
        given_attributes = {
            member.name: attributes[member.name] for member in members if not member.is_tensor
        }
        yield Call(
            described(name, tensors, given_attributes, (), **changed),
            list(found["input"].values()),
            found["output"][first],
        )


def f32(values: Any, shape: Sequence[int] | None = None) -> np.ndarray:
    return np.array(values, np.float32).reshape(shape or (1, 1, 2, 3))


X = f32([-1.75, -0.5, 0.25, 0.5, 1.5, 2.0])
UNIT = f32([-0.9, -0.5, -0.1, 0.25, 0.5, 0.75])
ABOVE = f32([1.0, 1.25, 1.5, 2.0, 3.0, 8.0])
Y = f32([2.0, -1.0, 0.5, 4.0, -3.0, 1.0])
BITS = np.array([0, 1, 2, 0xFF00FF, 0x80000000, 0xFFFFFFFF], np.uint32).reshape(1, 1, 2, 3)
OTHER = np.array([1, 3, 5, 0x0F0F0F, 4, 31], np.uint32).reshape(1, 1, 2, 3)
BOOLS = np.array([0, 1, 1, 0, 1, 0], np.uint8).reshape(1, 1, 2, 3)
MORE = np.array([1, 1, 0, 0, 1, 1], np.uint8).reshape(1, 1, 2, 3)
UNWRITTEN = 0xCBCBCBCB
"""The pattern that the worker fills outputs with: what is behind the last coordinate is left as it is."""
COUNT = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    raised = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(raised / raised.sum(axis, keepdims=True))


UNARY = {
    "ELEMENT_WISE_IDENTITY": (lambda x: x, X), "ELEMENT_WISE_ABS": (np.abs, X), "ELEMENT_WISE_ACOS": (np.arccos, UNIT),
    "ELEMENT_WISE_ACOSH": (np.arccosh, ABOVE), "ELEMENT_WISE_ASIN": (np.arcsin, UNIT), "ELEMENT_WISE_ASINH": (np.arcsinh, X),
    "ELEMENT_WISE_ATAN": (np.arctan, X), "ELEMENT_WISE_ATANH": (np.arctanh, UNIT), "ELEMENT_WISE_CEIL": (np.ceil, X),
    "ELEMENT_WISE_COS": (np.cos, X), "ELEMENT_WISE_COSH": (np.cosh, X), "ELEMENT_WISE_ERF": (np.vectorize(math.erf), X),
    "ELEMENT_WISE_EXP": (np.exp, X), "ELEMENT_WISE_FLOOR": (np.floor, X), "ELEMENT_WISE_LOG": (np.log, ABOVE),
    "ELEMENT_WISE_RECIP": (lambda x: 1 / x, X), "ELEMENT_WISE_SIN": (np.sin, X), "ELEMENT_WISE_SINH": (np.sinh, X),
    "ELEMENT_WISE_SQRT": (np.sqrt, ABOVE), "ELEMENT_WISE_TAN": (np.tan, UNIT), "ELEMENT_WISE_TANH": (np.tanh, X),
    "ELEMENT_WISE_SIGN": (np.sign, X), "ELEMENT_WISE_NEGATE": (np.negative, X), "ELEMENT_WISE_BIT_NOT": (np.invert, BITS),
    "ELEMENT_WISE_LOGICAL_NOT": (lambda x: 1 - x, BOOLS), "ACTIVATION_IDENTITY": (lambda x: x, X),
    "ACTIVATION_RELU": (lambda x: np.maximum(x, 0), X), "ACTIVATION_SIGMOID": (sigmoid, X), "ACTIVATION_TANH": (np.tanh, X),
    "ACTIVATION_SOFTSIGN": (lambda x: x / (1 + np.abs(x)), X), "ACTIVATION_SOFTMAX": (softmax, X),
    "ACTIVATION_LOG_SOFTMAX": (lambda x: np.log(softmax(x)), X), "ACTIVATION_HARDMAX": (lambda x: x == x.max(-1, keepdims=True), X),
    "ACTIVATION_GELU": (lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2, X),
}  # fmt: skip

BINARY = {
    "ELEMENT_WISE_ADD": np.add, "ELEMENT_WISE_ADD1": np.add, "ELEMENT_WISE_SUBTRACT": np.subtract, "ELEMENT_WISE_MULTIPLY": np.multiply,
    "ELEMENT_WISE_DIVIDE": np.divide, "ELEMENT_WISE_MAX": np.maximum, "ELEMENT_WISE_MIN": np.minimum,
    "ELEMENT_WISE_MEAN": lambda a, b: (a + b) / 2, "ELEMENT_WISE_ATAN_YX": np.arctan2,
    "ELEMENT_WISE_DIFFERENCE_SQUARE": lambda a, b: (a - b) ** 2, "ELEMENT_WISE_MODULUS_FLOOR": np.mod,
    "ELEMENT_WISE_MODULUS_TRUNCATE": np.fmod, "ACTIVATION_RELU_GRAD": lambda x, gradient: np.where(x > 0, gradient, 0),
    "ACTIVATION_PARAMETERIZED_RELU": lambda x, slope: np.where(x < 0, slope * x, x),
}  # fmt: skip
COMPARED = {
    "EQUALS": np.equal, "GREATER_THAN": np.greater, "GREATER_THAN_OR_EQUAL": np.greater_equal, "LESS_THAN": np.less,
    "LESS_THAN_OR_EQUAL": np.less_equal,
}  # fmt: skip
LOGICAL = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}
BITWISE = {
    "BIT_AND": np.bitwise_and, "BIT_OR": np.bitwise_or, "BIT_XOR": np.bitwise_xor, "BIT_SHIFT_LEFT": np.left_shift,
    "BIT_SHIFT_RIGHT": np.right_shift,
}  # fmt: skip
PARAMETERS: dict[str, tuple[dict[str, Any], Any]] = {
    "ELEMENT_WISE_CLIP": ({"Min": -1.0, "Max": 1.0}, lambda x: np.clip(x, -1, 1)),
    "ELEMENT_WISE_CLIP1": (
        {"MinMaxDataType": 1, "Min": {"float32": "-inf"}, "Max": {"float32": 0.375}},
        lambda x: np.minimum(x, 0.375),
    ),
    "ELEMENT_WISE_CONSTANT_POW": ({"Exponent": 2.0}, np.square),
    "ELEMENT_WISE_THRESHOLD": ({"Min": 0.125}, lambda x: np.maximum(x, 0.125)),
    "ELEMENT_WISE_ROUND": ({"RoundingMode": 0}, np.rint),
    "ACTIVATION_CELU": (
        {"Alpha": 0.5},
        lambda x: np.maximum(x, 0) + np.minimum(0, 0.5 * (np.exp(x / 0.5) - 1)),
    ),
    "ACTIVATION_ELU": ({"Alpha": 0.5}, lambda x: np.where(x < 0, 0.5 * (np.exp(x) - 1), x)),
    "ACTIVATION_HARD_SIGMOID": ({"Alpha": 0.5, "Beta": 0.25}, lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
    "ACTIVATION_HARD_SWISH": ({"Alpha": 0.5, "Beta": 0.25}, lambda x: x * np.clip(0.5 * x + 0.25, 0, 1)),
    "ACTIVATION_LEAKY_RELU": ({"Alpha": 0.125}, lambda x: np.where(x < 0, 0.125 * x, x)),
    "ACTIVATION_LINEAR": ({"Alpha": 0.5, "Beta": 3.0}, lambda x: 0.5 * x + 3),
    "ACTIVATION_PARAMETRIC_SOFTPLUS": ({"Alpha": 0.5, "Beta": 2.0}, lambda x: 0.5 * np.log1p(np.exp(2 * x))),
    "ACTIVATION_SCALED_ELU": (
        {"Alpha": 0.5, "Gamma": 2.0},
        lambda x: 2 * np.where(x <= 0, 0.5 * (np.exp(x) - 1), x),
    ),
    "ACTIVATION_SCALED_TANH": ({"Alpha": 0.5, "Beta": 2.0}, lambda x: 0.5 * np.tanh(2 * x)),
    "ACTIVATION_SHRINK": (
        {"Bias": 0.25, "Threshold": 0.4},
        lambda x: np.where(x < -0.4, x + 0.25, np.where(x > 0.4, x - 0.25, 0)),
    ),
    "ACTIVATION_SOFTPLUS": ({"Steepness": 2.0}, lambda x: np.log1p(np.exp(2 * x)) / 2),
    "ACTIVATION_SWISH": ({"SigmoidInputScale": 2.0}, lambda x: x * sigmoid(2 * x)),
    "ACTIVATION_THRESHOLDED_RELU": ({"Alpha": 0.375}, lambda x: np.where(x > 0.375, x, 0)),
    "ACTIVATION_SOFTMAX1": ({"Axes": [2]}, lambda x: softmax(x, 2)),
    "ACTIVATION_LOG_SOFTMAX1": ({"Axes": [2, 3]}, lambda x: np.log(softmax(x, (2, 3)))),
    "ACTIVATION_HARDMAX1": ({"Axes": [2]}, lambda x: x == x.max(2, keepdims=True)),
    "CUMULATIVE_SUMMATION": ({"Axis": 3, "AxisDirection": 0, "HasExclusiveSum": 0}, lambda x: x.cumsum(3)),
    "CUMULATIVE_PRODUCT": (
        {"Axis": 3, "AxisDirection": 1, "HasExclusiveProduct": 0},
        lambda x: x[..., ::-1].cumprod(3)[..., ::-1],
    ),
    "MEAN_VARIANCE_NORMALIZATION1": (
        {"Axes": [3], "NormalizeVariance": 1, "Epsilon": 0.5},
        lambda x: (x - x.mean(3, keepdims=True)) / np.sqrt(x.var(3, keepdims=True) + 0.5),
    ),
    "LP_NORMALIZATION": (
        {"Axis": 3, "Epsilon": 0.0, "P": 2},
        lambda x: x / np.sqrt((x * x).sum(3, keepdims=True)),
    ),
}
REDUCED = {
    2: lambda x: x.mean(3, keepdims=True), 3: lambda x: np.abs(x).sum(3, keepdims=True), 7: lambda x: x.max(3, keepdims=True),
    8: lambda x: x.min(3, keepdims=True), 9: lambda x: x.prod(3, keepdims=True), 10: lambda x: x.sum(3, keepdims=True),
    11: lambda x: (x * x).sum(3, keepdims=True),
}  # fmt: skip


def windows(x: np.ndarray, size: int) -> np.ndarray:
    """Return every window of size x size as the last two dimensions."""
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))


def every_call() -> Iterator[tuple[str, Call]]:
    """Yield each call with a name of its own."""
    seen: dict[str, int] = {}
    for operator, inputs, outputs, attributes in _written():
        for call in calls(operator, inputs, outputs, **attributes):
            seen[operator] = seen.get(operator, 0) + 1
            yield f"{operator} {seen[operator]}", call


def _written() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    for name, (function, x) in UNARY.items():
        yield name, [x], [np.asarray(function(x)).astype(x.dtype)], {}
    for name, binary in BINARY.items():
        yield name, [X, Y], [binary(X, Y).astype(np.float32)], {}
    for name, compared in COMPARED.items():
        yield f"ELEMENT_WISE_LOGICAL_{name}", [X, np.abs(X)], [compared(X, np.abs(X)).astype(np.uint8)], {}
    for name, logical in LOGICAL.items():
        yield f"ELEMENT_WISE_LOGICAL_{name}", [BOOLS, MORE], [logical(BOOLS, MORE).astype(np.uint8)], {}
    for name, bitwise in BITWISE.items():
        other = OTHER & 31 if "SHIFT" in name else OTHER
        yield f"ELEMENT_WISE_{name}", [BITS, other], [bitwise(BITS, other)], {}
    for name, (attributes, function) in PARAMETERS.items():
        yield name, [X], [np.asarray(function(X)).astype(np.float32)], attributes
    for number, function in REDUCED.items():
        yield "REDUCE", [X], [np.asarray(function(X))], {"Function": number, "Axes": [3]}
    yield from _elements()
    yield from _moving()
    yield from _indexing()
    yield from _products()
    yield from _windows()
    yield from _quantised()
    yield from _recurrent()


def _elements() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    odd = f32([np.nan, np.inf, -np.inf, 0, 1, -1])
    yield "ELEMENT_WISE_IS_NAN", [odd], [np.isnan(odd).astype(np.uint8)], {}
    yield "ELEMENT_WISE_IS_INFINITY", [odd], [np.isposinf(odd).astype(np.uint8)], {"InfinityMode": 1}
    yield (
        "ELEMENT_WISE_BIT_COUNT",
        [BITS],
        [np.array([0, 1, 1, 16, 1, 32], np.uint32).reshape(BITS.shape)],
        {},
    )
    yield "ELEMENT_WISE_POW", [ABOVE, X], [np.power(ABOVE, X)], {}
    yield "ELEMENT_WISE_IF", [BOOLS, X, Y], [np.where(BOOLS, X, Y)], {}
    yield "ELEMENT_WISE_ABS", [X], [np.abs(2 * X + 1)], {"ScaleBias": [2.0, 1.0]}
    yield (
        "ELEMENT_WISE_CLIP_GRAD",
        [X, Y],
        [np.where((X > -1) & (X < 1), Y, 0).astype(np.float32)],
        {"Min": -1.0, "Max": 1.0},
    )
    scalars = {"MinMaxDataType": 1, "Min": {"float32": -1.0}, "Max": {"float32": 1.0}}
    yield "ELEMENT_WISE_CLIP_GRAD1", [X, Y], [np.where((X > -1) & (X < 1), Y, 0).astype(np.float32)], scalars
    yield "CAST", [X], [X.astype(np.int32)], {}
    yield "CUMULATIVE_SUMMATION", [X], [np.concatenate([0 * X[..., :1], X.cumsum(3)[..., :-1]], 3)], {
        "Axis": 3, "AxisDirection": 0, "HasExclusiveSum": 1,
    }  # fmt: skip
    for direction, (low, high) in enumerate([(np.argmin, np.argmax)] * 2):
        ties = f32([1, 3, 3, 0, 0, 5])
        for name, find in (("ARGMIN", low), ("ARGMAX", high)):
            found = 2 - find(ties[..., ::-1], 3) if direction else find(ties, 3)
            yield (
                name,
                [ties],
                [found.astype(np.uint32).reshape(1, 1, 2, 1)],
                {"Axes": [3], "AxisDirection": direction},
            )
    constant = {"ValueDataType": 6, "Value": {"int32": -7}}
    yield "FILL_VALUE_CONSTANT", [], [np.full((1, 1, 2, 3), -7, np.int32)], constant
    yield (
        "FILL_VALUE_CONSTANT",
        [],
        [np.full((1, 1, 2, 3), 1.5, np.float16)],
        {"ValueDataType": 2, "Value": {"float16": 1.5}},
    )
    sequence = {"ValueDataType": 1, "ValueStart": {"float32": 2.0}, "ValueDelta": {"float32": -0.5}}
    yield "FILL_VALUE_SEQUENCE", [], [f32([2, 1.5, 1, 0.5, 0, -0.5])], sequence
    yield (
        "DIAGONAL_MATRIX",
        [],
        [np.eye(2, 3, 1, dtype=np.float32).reshape(1, 1, 2, 3) * 4],
        {"Offset": 1, "Value": 4.0},
    )
    kept = np.where(np.tri(2, 3, 1) - np.tri(2, 3, -1) > 0, 9, X).astype(np.float32)
    diagonal = {"ValueDataType": 1, "Value": {"float32": 9.0}, "DiagonalFillBegin": 0, "DiagonalFillEnd": 2}
    yield "DIAGONAL_MATRIX1", [X], [kept], diagonal
    flat = X.reshape(1, 2, 1, 3)
    centred = flat - flat.mean(3, keepdims=True)
    normal = {"UseMean": 1, "UseVariance": 0, "Epsilon": 0.5, "Axes": [3]}
    yield "MEAN_VARIANCE_NORMALIZATION2", [flat, None, None], [centred], normal
    parts = [f32(each, (1, 2, 1, 1)) for each in ([0.5, 1.0], [2.0, 0.25], [1.5, -2.0], [0.0, 4.0])]
    mean, variance, scale, bias = parts
    yield (
        "BATCH_NORMALIZATION",
        [flat, *parts],
        [scale * (flat - mean) / np.sqrt(variance + 0.5) + bias],
        {"Spatial": 1, "Epsilon": 0.5},
    )
    mean, variance = flat.mean((0, 2, 3), keepdims=True), flat.var((0, 2, 3), keepdims=True)
    trained = [scale * (flat - mean) / np.sqrt(variance + 0.5) + bias, mean, variance]
    yield "BATCH_NORMALIZATION_TRAINING", [flat, scale, bias, None], trained, {"Epsilon": 0.5}
    colours = X.reshape(1, 3, 1, 2)
    yield (
        "VALUE_SCALE_2D",
        [colours],
        [colours * 2 + f32([0.5, -1, 3], (1, 3, 1, 1))],
        {"Scale": 2.0, "Bias": [0.5, -1.0, 3.0]},
    )
    yield (
        "MEAN_VARIANCE_NORMALIZATION",
        [flat, None, None],
        [centred],
        {"CrossChannel": 0, "NormalizeVariance": 0, "Epsilon": 0.5},
    )
    first, second = f32(np.full(6, 0.5)), f32(np.full(6, 0.25))
    step = np.array([3], np.uint32).reshape(1, 1, 1, 1)
    moments = [0.9 * first + 0.1 * Y, 0.8 * second + 0.2 * Y * Y]
    rate = 0.01 * math.sqrt(1 - 0.8**3) / (1 - 0.9**3)
    adam = [X - rate * moments[0] / (np.sqrt(moments[1]) + 0.125), *moments]
    yield (
        "ADAM_OPTIMIZER",
        [X, first, second, Y, step],
        adam,
        {"LearningRate": 0.01, "Beta1": 0.9, "Beta2": 0.8, "Epsilon": 0.125},
    )


def _moving() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    yield "JOIN", [[X, Y, X[..., :1]]], [np.concatenate([X, Y, X[..., :1]], 3)], {"Axis": 3}
    yield "SPLIT", [COUNT], [[COUNT[..., :1], COUNT[..., 1:2], COUNT[..., 2:]]], {"Axis": 3}
    window = {"Offsets": [0, 0, 1, 0], "Sizes": [1, 2, 2, 2], "Strides": [1, 1, 1, 2]}
    yield "SLICE", [COUNT], [COUNT[:, :, 1:3, 0:4:2]], window
    window = {
        "InputWindowOffsets": [0, 0, 0, 0],
        "InputWindowSizes": [1, 2, 3, 4],
        "InputWindowStrides": [1, -1, 2, -2],
    }
    yield "SLICE1", [COUNT], [COUNT[:, ::-1, ::2, ::-2]], window
    gradient = np.zeros_like(COUNT)
    gradient[:, ::-1, ::2, ::-2] = COUNT[:, :, :2, :2]
    yield "SLICE_GRAD", [COUNT[:, :, :2, :2]], [gradient], window
    ends = {"StartPadding": [0, 0, 1, 0], "EndPadding": [0, 0, 0, 2]}
    pads = [(0, 0), (0, 0), (1, 0), (0, 2)]
    yield (
        "PADDING",
        [X],
        [np.pad(X, pads, constant_values=-1)],
        {"PaddingMode": 0, "PaddingValue": -1.0, **ends},
    )
    yield "PADDING", [X], [np.pad(X, pads, "edge")], {"PaddingMode": 1, "PaddingValue": 0.0, **ends}
    yield "PADDING", [X], [np.pad(X, pads, "reflect")], {"PaddingMode": 2, "PaddingValue": 0.0, **ends}
    yield "PADDING1", [BITS], [np.pad(BITS, pads, constant_values=7)], {
        "PaddingMode": 0, "PaddingValueDataType": 3, "PaddingValue": {"uint32": 7}, **ends,
    }  # fmt: skip
    yield "TILE", [X], [np.tile(X, (1, 2, 1, 2))], {"Repeats": [1, 2, 1, 2]}
    depth = np.arange(16, dtype=np.float32).reshape(1, 8, 1, 2)
    rows = depth.reshape(1, 2, 2, 2, 1, 2).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 2, 4)
    columns = depth.reshape(1, 2, 2, 2, 1, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 2, 4)
    yield "DEPTH_TO_SPACE", [depth], [rows], {"BlockSize": 2}
    yield "DEPTH_TO_SPACE1", [depth], [rows], {"BlockSize": 2, "Order": 0}
    yield "DEPTH_TO_SPACE1", [depth], [columns], {"BlockSize": 2, "Order": 1}
    yield "SPACE_TO_DEPTH", [rows], [depth], {"BlockSize": 2}
    yield "SPACE_TO_DEPTH1", [columns], [depth], {"BlockSize": 2, "Order": 1}
    yield "UPSAMPLE_2D", [X], [X.repeat(2, 2).repeat(3, 3)], {"ScaleSize": [3, 2], "InterpolationMode": 0}
    larger = X.repeat(2, 2).repeat(3, 3)
    scales = [1.0, 1.0, 2.0, 3.0]
    offsets = {"InputPixelOffsets": [0.5] * 4, "OutputPixelOffsets": [-0.5] * 4}
    yield "RESAMPLE", [X], [larger], {"InterpolationMode": 0, "Scales": scales}
    yield "RESAMPLE1", [X], [larger], {"InterpolationMode": 0, "Scales": scales, **offsets}
    corners = {"InputPixelOffsets": [0.0] * 4, "OutputPixelOffsets": [0.0] * 4, "RoundingDirection": 1}
    yield "RESAMPLE2", [X], [larger], {"InterpolationMode": 0, "Scales": scales, **corners}
    yield "RESAMPLE3", [X], [larger], {"InterpolationMode": 0, "Scales": scales, "Antialiased": 0, **corners}
    lengths = np.array([1, 2, 3, 2], np.uint32).reshape(1, 1, 1, 4)
    turned = COUNT.copy()
    for column, length in enumerate(lengths.flat):
        turned[:, :, :length, column] = turned[:, :, :length, column][:, :, ::-1]
    yield (
        "REVERSE_SUBSEQUENCES",
        [COUNT, np.broadcast_to(lengths, (1, 2, 1, 4)).copy()],
        [turned],
        {"Axis": 2},
    )


def _indexing() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    indices = np.array([2, 0, 1, 0], np.uint32).reshape(1, 1, 1, 4)
    yield "GATHER", [COUNT, indices], [COUNT[:, :, [2, 0, 1, 0], :]], {"Axis": 2, "IndexDimensions": 1}
    each = np.array([[2, 1, 0, 1]], np.uint32).reshape(1, 1, 1, 4).repeat(2, 1)
    yield "GATHER_ELEMENTS", [COUNT, each], [np.take_along_axis(COUNT, each.astype(np.int64), 2)], {"Axis": 2}
    data, pairs = X.reshape(1, 1, 2, 3), np.array([[0, 1], [1, 2]], np.uint32).reshape(1, 1, 2, 2)
    counts = {"InputDimensionCount": 2, "IndicesDimensionCount": 2}
    picked = X[0, 0][[0, 1], [1, 2]].reshape(1, 1, 1, 2)
    yield "GATHER_ND", [data, pairs], [picked], counts
    yield "GATHER_ND1", [data, pairs], [picked], {**counts, "BatchDimensionCount": 0}
    updates = f32([10, 20], (1, 1, 1, 2))
    scattered = X.copy()
    scattered[0, 0, [0, 1], [1, 2]] = [10, 20]
    yield "SCATTER_ND", [data, pairs, updates], [scattered], counts
    places, values = np.array([[1, 0, 1]], np.uint32).reshape(1, 1, 1, 3), f32([7, 8, 9], (1, 1, 1, 3))
    changed = X.copy()
    np.put_along_axis(changed, places.astype(np.int64), values, 2)
    yield "SCATTER", [X, places, values], [changed], {"Axis": 2}
    hot = np.array([2, 0], np.uint32).reshape(1, 1, 2, 1)
    values = f32([5, 6], (1, 1, 1, 2))
    yield "ONE_HOT", [hot, values], [np.where(np.arange(3) == hot, 6, 5).astype(np.float32)], {"Axis": 3}
    holes = f32([0, 1, 0, 2, 3, 0])
    found = np.argwhere(holes).astype(np.uint32)
    coordinates = np.full((1, 1, 6, 4), UNWRITTEN, np.uint32)
    coordinates[0, 0, : len(found)] = found
    yield "NONZERO_COORDINATES", [holes], [np.array([3], np.uint32).reshape(1, 1, 1, 1), coordinates], {}
    order = np.argsort(-Y, 3, kind="stable")[..., :2]
    best = [np.take_along_axis(Y, order, 3), order.astype(np.uint32)]
    yield "TOP_K", [Y], best, {"Axis": 3, "K": 2}
    yield "TOP_K1", [Y], best, {"Axis": 3, "K": 2, "AxisDirection": 1}


def _products() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    a, b, c = X, Y.reshape(1, 1, 3, 2), f32([1, 2, 3, 4], (1, 1, 2, 2))
    plain = {"TransA": 0, "TransB": 0, "Alpha": 0.5, "Beta": 2.0}
    yield "GEMM", [a, b, None], [0.5 * (a @ b)], plain
    yield "GEMM", [a, b, c], [0.5 * (a @ b) + 2 * c], plain
    yield (
        "GEMM",
        [b.swapaxes(2, 3).copy(), a.swapaxes(2, 3).copy(), c],
        [0.5 * (a @ b).swapaxes(2, 3) + 2 * c],
        plain,
    )
    yield "GEMM", [a, Y, None], [0.5 * (a @ Y.swapaxes(2, 3))], {**plain, "TransB": 1}
    small, other = (X * 4).astype(np.int8), (Y * 3).astype(np.int8).reshape(1, 1, 3, 2)
    yield (
        "MATRIX_MULTIPLY_INTEGER",
        [small, None, other, None],
        [small.astype(np.int32) @ other.astype(np.int32)],
        {},
    )


def _windows() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4) - 5
    kernel = f32([1, -2, 3, 0.5], (1, 1, 2, 2))
    bias = f32([10], (1, 1, 1, 1))
    product = (windows(x, 2) * kernel).sum((4, 5))
    plain = {
        "Strides": [1, 1],
        "Dilations": [1, 1],
        "StartPadding": [0, 0],
        "EndPadding": [0, 0],
        "GroupCount": 1,
    }
    convolution = {**plain, "Mode": 1, "Direction": 0, "OutputPadding": [0, 0]}
    yield "CONVOLUTION", [x, kernel, None], [product], convolution
    yield "CONVOLUTION", [x, kernel, bias], [product + 10], convolution
    yield (
        "CONVOLUTION",
        [x, kernel, None],
        [(windows(x, 2) * kernel[..., ::-1, ::-1]).sum((4, 5))],
        {**convolution, "Mode": 0},
    )
    integers, kernel8 = x.astype(np.int8), np.array([1, -2, 3, 4], np.int8).reshape(1, 1, 2, 2)
    summed = (windows(integers.astype(np.int32), 2) * kernel8.astype(np.int32)).sum((4, 5)).astype(np.int32)
    yield "CONVOLUTION_INTEGER", [integers, None, kernel8, None], [summed], plain
    pool = {"Strides": [1, 2], "WindowSize": [2, 2], "StartPadding": [0, 0], "EndPadding": [0, 0]}
    seen = windows(x, 2)[:, :, :, ::2]
    dilated = {**pool, "Dilations": [1, 1]}
    yield "AVERAGE_POOLING", [x], [seen.mean((4, 5))], {**pool, "IncludePadding": 0}
    yield "AVERAGE_POOLING1", [x], [seen.mean((4, 5))], {**dilated, "IncludePadding": 0}
    yield "MAX_POOLING", [x], [seen.max((4, 5))], pool
    yield "MAX_POOLING1", [x], [seen.max((4, 5)), None], pool
    places = np.array([5, 7, 9, 11, 13, 15], np.uint32).reshape(1, 1, 3, 2)
    yield "MAX_POOLING2", [x], [seen.max((4, 5)), places], dilated
    yield "LP_POOLING", [x], [np.sqrt((seen * seen).sum((4, 5)))], {**pool, "P": 2}
    gradient = np.zeros_like(x)
    np.add.at(gradient.reshape(-1), places.reshape(-1), 1)
    yield "MAX_POOLING_GRAD", [x, np.ones((1, 1, 3, 2), np.float32)], [gradient], dilated
    yield "MAX_UNPOOLING", [np.ones((1, 1, 3, 2), np.float32), places], [gradient], {}
    spread = np.zeros_like(x)
    for row in range(3):
        for column in range(2):
            spread[0, 0, row : row + 2, 2 * column : 2 * column + 2] += 0.25
    yield "AVERAGE_POOLING_GRAD", [np.ones((1, 1, 3, 2), np.float32)], [spread], {**pool, "IncludePadding": 0}
    small = {"CrossChannel": 1, "LocalSize": 1, "Alpha": 0.5, "Beta": 1.0, "Bias": 2.0}
    yield "LOCAL_RESPONSE_NORMALIZATION", [x], [x / (2 + 0.5 * x * x)], small
    yield "LP_POOLING1", [x], [np.sqrt((seen * seen).sum((4, 5)))], {**dilated, "P": 2}


def _recurrent() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    """One step of recurrent networks: a sequence of one, a batch of two, three inputs, one hidden value."""
    x = X.reshape(1, 1, 2, 3)
    number, members = structure("DML_OPERATOR_ACTIVATION_TANH")
    tanh = {"number": number, "members": list(members), "attributes": {}}
    weight, recurrence = f32([0.5, -1, 0.25], (1, 1, 1, 3)), f32([0.75], (1, 1, 1, 1))
    hidden = np.tanh(x @ weight.swapaxes(2, 3))
    forward = {"Direction": 0, "ActivationDescs": [tanh]}
    yield "RNN", [x, weight, recurrence, None, None, None], [hidden, hidden], forward
    yield "GEMM", [x, Y.reshape(1, 1, 3, 2), None], [np.tanh(x @ Y.reshape(1, 1, 3, 2))], {
        "TransA": 0, "TransB": 0, "Alpha": 1.0, "Beta": 0.0, "FusedActivation": tanh,
    }  # fmt: skip


def _quantised() -> Iterator[tuple[str, Given, Given, dict[str, Any]]]:
    scale, zero = np.full_like(X, 0.25), np.full(X.shape, 3, np.uint8)
    quantised = np.clip(np.rint(X / scale) + 3, 0, 255).astype(np.uint8)
    yield "ELEMENT_WISE_QUANTIZE_LINEAR", [X, scale, zero], [quantised], {}
    yield (
        "ELEMENT_WISE_DEQUANTIZE_LINEAR",
        [quantised, scale, zero],
        [(quantised.astype(np.float32) - 3) * scale],
        {},
    )
    # DML_QUANTIZATION_TYPE: 1 SCALE, 2 SCALE_ZERO_POINT
    yield "QUANTIZE", [X, [scale, zero]], [quantised], {"QuantizationType": 2}
    yield (
        "DEQUANTIZE",
        [quantised, [scale, zero]],
        [(quantised.astype(np.float32) - 3) * scale],
        {"QuantizationType": 2},
    )
    signed = quantised.astype(np.int8)
    yield "DEQUANTIZE", [signed, [scale]], [signed.astype(np.float32) * scale], {"QuantizationType": 1}
    # a zero point that is left out is 128 for UINT8, the middle of the type: measured, and not held against a
    # document
    yield (
        "DEQUANTIZE",
        [quantised, [scale]],
        [(quantised.astype(np.float32) - 128) * scale],
        {"QuantizationType": 1},
    )
    step = np.float32((X.max() - X.min()) / 255)
    low = np.uint8(np.clip(np.rint(-X.min() / step), 0, 255))
    found = [
        np.clip(np.rint(X / step) + low, 0, 255).astype(np.uint8),
        f32([step], (1, 1, 1, 1)),
        np.full((1, 1, 1, 1), low),
    ]
    yield "DYNAMIC_QUANTIZE_LINEAR", [X], found, {}
    one, half = f32([1], (1, 1, 1, 1)), f32([0.5], (1, 1, 1, 1))
    a, b = (np.abs(X) * 4).astype(np.uint8), (np.abs(Y) * 3).astype(np.uint8).reshape(1, 1, 3, 2)
    zeros = np.zeros((1, 1, 1, 1), np.uint8)
    product = a.astype(np.int32) @ b.astype(np.int32)
    halves = np.clip(np.rint(product / 2), 0, 255).astype(np.uint8)
    yield "QUANTIZED_LINEAR_MATRIX_MULTIPLY", [a, half, zeros, b, one, zeros, one, zeros], [halves], {}
    yield (
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        [a, half, zeros, b, one, zeros, None],
        [(product / 2).astype(np.float32)],
        {},
    )
    few, three = f32([0.25], (1, 1, 1, 1)), np.full((1, 1, 1, 1), 3, np.uint8)
    parts = [quantised, few, three] * 2 + [few, three]
    added = np.clip(2 * (quantised.astype(np.int32) - 3) + 3, 0, 255).astype(np.uint8)
    yield "ELEMENT_WISE_QUANTIZED_LINEAR_ADD", parts, [added], {}
    image, kernel = (
        np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4),
        np.array([1, 2, 0, 3], np.uint8).reshape(1, 1, 2, 2),
    )
    convolved = np.clip(
        np.rint((windows(image.astype(np.int32), 2) * kernel).sum((4, 5)) / 2), 0, 255
    ).astype(np.uint8)
    plain = {"Strides": [1, 1], "Dilations": [1, 1], "StartPadding": [0, 0], "EndPadding": [0, 0]}
    parts = [image, half, zeros, kernel, one, zeros, None, one, zeros]
    yield "QUANTIZED_LINEAR_CONVOLUTION", parts, [convolved], {**plain, "GroupCount": 1}
    mean = np.rint(windows(image.astype(np.float32), 2).mean((4, 5)) * 2).astype(np.uint8)
    pooled = {**plain, "WindowSize": [2, 2], "IncludePadding": 0}
    yield "QUANTIZED_LINEAR_AVERAGE_POOLING", [image, one, zeros, half, zeros], [mean], pooled
