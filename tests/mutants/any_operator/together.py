"""Mistakes that one operator's kernel makes where two conditions hold, and numbers that are read through a
narrower type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from harness.model.expected import nearest
from tests.mutants.any_operator import AnyMistake, Sample
from tests.mutants.any_operator.by_operator import (
    BY_OPERATOR,
    VARIANCES,
    Condition,
    SquaresFirst,
    axes,
    both,
    has,
    shape,
    where,
)
from tests.mutants.any_operator.conditions import PARTS, WrongWhere
from tests.mutants.any_operator.readings import shows


@dataclass(frozen=True)
class ReadThrough:
    """Inputs of a type lose what another type lacks."""

    dtype: str
    through: str

    @property
    def name(self) -> str:
        return f"{self.dtype} read through {self.through}"

    def concerns(self, sample: Sample) -> bool:
        return any(spec.dtype == self.dtype for spec in sample.case.inputs)

    def shows(self, sample: Sample) -> bool:
        with np.errstate(all="ignore"):
            arrays = {
                name: tensor.array.astype(self.through).astype(tensor.array.dtype)
                if tensor.dtype == self.dtype and name not in sample.call.constants
                else tensor.array
                for name, tensor in sample.inputs.items()
            }
        return shows(sample, sample.call, arrays)


def _grouped(sample: Sample) -> bool:
    return int(sample.call.parameter("group", 1)) > 1


def _same(sample: Sample) -> bool:
    return str(sample.call.parameter("auto_pad", "")).startswith("SAME")


def _limit(sample: Sample, name: str) -> float:
    """Return a limit of Clip, an attribute or an input; nan if there is none."""
    if name in sample.arrays:
        return float(sample.arrays[name]) if sample.call.first.dtype != "bfloat16" else np.nan
    given = sample.call.attributes.get(name)
    return float(given) if isinstance(given, float) else np.nan


def _min_above_max(dtype: str) -> Condition:
    return lambda s: s.call.first.dtype == dtype and _limit(s, "min") > _limit(s, "max")


def _far(sample: Sample) -> bool:
    x, scale = sample.inputs["x"], sample.inputs["y_scale"]
    if x.dtype != "float32" or scale.array.size != 1:
        return False
    with np.errstate(all="ignore"):
        quotients = np.abs(x.array / scale.array.reshape(()))
    return bool((np.isfinite(quotients) & (quotients > 2.0**32)).any())


def _axis_before_13(sample: Sample) -> bool:
    return _default_axis(sample) and sample.call.opset < 13


def _long_between(sample: Sample) -> bool:
    """Say whether an axis of more than 64 elements has others before and behind it."""
    shape = sample.call.first.shape
    place = int(sample.call.parameter("axis")) % max(1, len(shape))
    return 0 < place < len(shape) - 1 and shape[place] > 64


def _default_axis(sample: Sample) -> bool:
    return "axis" not in sample.case.attributes and len(sample.call.first.shape) > 2


def _of_last_axis(sample: Sample) -> bool:
    """Say whether each of more than 16 elements of a row has its own scale."""
    x, scale = sample.call.shapes[:2]
    return (
        len(x) > 1
        and len(scale) == 1
        and scale[0] > 16
        and sample.call.parameter("axis") % len(x) == len(x) - 1
    )


_PADDED = {"groups with auto_pad SAME": lambda s: _grouped(s) and _same(s)}
_NORMALISED = {
    "more than 64 elements between other axes": _long_between,
    "the default axis of three dimensions before version 13": _axis_before_13,
    "the default axis of three dimensions from 13 on": lambda s: _default_axis(s) and s.call.opset >= 13,
}
_REDUCED = {
    "axes beside noop_with_empty_axes": lambda s: (
        bool(axes(s)) and bool(s.call.parameter("noop_with_empty_axes"))
    ),
    "several axes, one from the end": lambda s: len(axes(s)) > 1 and min(axes(s)) < 0,
}
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
TOGETHER: Mapping[str, Mapping[str, Condition]] = {
    "Conv": _PADDED,
    "ConvInteger": _PADDED,
    "QLinearConv": _PADDED,
    "ConvTranspose": {
        **_PADDED,
        "groups with output_shape": lambda s: _grouped(s) and bool(s.call.parameter("output_shape")),
    },
    "Softmax": _NORMALISED,
    "LogSoftmax": _NORMALISED,
    "Hardmax": _NORMALISED,
    **{f"Reduce{name}": _REDUCED for name in _REDUCTIONS},
    "MaxPool": {
        "Indices by columns of several batches": lambda s: (
            bool(s.call.parameter("storage_order")) and s.call.first.shape[0] > 1 and len(s.expected) > 1
        )
    },
    "PRelu": {
        "a slope for each channel": lambda s: (
            len(s.call.first.shape) == 4 and shape(s, "slope") == (s.call.first.shape[1], 1, 1)
        )
    },
    "Where": {
        "a column of conditions in three dimensions": lambda s: (
            len(shape(s, "X")) > 2 and len(shape(s, "condition")) > 1 and shape(s, "condition")[-1] == 1
        )
    },
    "MatMul": {
        "a vector times a stack": lambda s: len(shape(s, "A")) == 1 and len(shape(s, "B")) > 2,
        "a vector times a vector": lambda s: len(shape(s, "A")) == len(shape(s, "B")) == 1,
        "stacks of which each repeats the other": lambda s: (
            {1, 2, 3} <= {*shape(s, "A")[:-2], *shape(s, "B")[:-2]}
            and all(1 in each[:-2] and max(each[:-2]) > 1 for each in s.call.shapes)
        ),
    },
    "MatMulInteger": {
        "b_zero_point alone": lambda s: has(s, "b_zero_point") and not has(s, "a_zero_point"),
        "sums beyond float32": lambda s: bool(
            (np.abs(nearest(s.expected[0]).array.astype(float)) > 2.0**24).any()
        ),
    },
    "Expand": {
        "dimensions on both sides of one that stays": lambda s: (
            len(s.call.first.shape) > 2
            and s.call.first.shape[0] == s.call.first.shape[-1] == 1 < max(s.call.first.shape)
            and min(s.expected[0].shape[0], s.expected[0].shape[-1]) > 1
        )
    },
    "Tile": {
        "every one of three dimensions or more": lambda s: (
            len(s.call.first.shape) > 2 and min(s.call.parameter("repeats", (1,))) > 1
        )
    },
    "NonMaxSuppression": {
        "score_threshold alone": lambda s: has(s, "score_threshold") and not has(s, "iou_threshold")
    },
    "LeakyRelu": {"alpha above 1": lambda s: float(s.call.parameter("alpha")) > 1},
    "Clip": {f"min above max of {dtype}": _min_above_max(dtype) for dtype in ("float32", "int64", "uint8")},
    "QuantizeLinear": {"quotients beyond 32 bits": _far, "scales of a long last axis": _of_last_axis},
    "DequantizeLinear": {"scales of a long last axis": _of_last_axis},
}
_WIDE = (("int64", "float64"), ("int32", "float32"))
_COMPARING = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Max", "Min")
_CHOOSING = ("ArgMax", "ArgMin", "TopK", "ReduceMax", "ReduceMin")
_ADDING = ("ReduceSum", "ReduceL1", "ReduceProd", "CumSum", "CumProd")
THROUGH: Mapping[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys((*_COMPARING, *_CHOOSING, *_ADDING), _WIDE),
    "Cast": (*_WIDE, ("int64", "int32"), ("float64", "float32")),
}
_CASTED = (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "bool",
)
_TAILED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Compress", "DepthToSpace", "SpaceToDepth", "Slice", "Scatter"), _CASTED),
    **dict.fromkeys(("ScatterElements", "ScatterND"), ("string", "bool", "complex64", "complex128")),
    "TensorScatter": _CASTED,
}
NAMES = tuple(dict.fromkeys((*TOGETHER, *BY_OPERATOR, *THROUGH, *_TAILED, *VARIANCES)))


def together(name: str) -> Iterator[AnyMistake]:
    """Yield the mistakes of an operator's kernel."""
    for what, condition in {**TOGETHER.get(name, {}), **BY_OPERATOR.get(name, {})}.items():
        yield WrongWhere(what, condition)
    for dtype, through in THROUGH.get(name, ()):
        yield ReadThrough(dtype, through)
    if name == "Cast":
        for dtype in _CASTED:
            yield from (_tail(dtype, to) for to in (1, 6, 7, 9, 10) if to != _NUMBERS[dtype])
        for to in _SPELLED:
            yield WrongWhere(
                f"text cast to {to}", both(where(to=to), lambda s: s.call.first.dtype == "string")
            )
    for dtype in _TAILED.get(name, ()):
        yield WrongWhere(f"the tail of {dtype}", _moved_tail(dtype), PARTS["the last element"])
    if name in VARIANCES:
        yield SquaresFirst(*VARIANCES[name])


_NUMBERS = dict(zip(_CASTED, (10, 1, 11, 3, 5, 6, 7, 2, 4, 12, 9), strict=True))


_SPELLED = (1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13)
"""The types that text is cast to."""


def _moved_tail(dtype: str) -> Condition:
    """Return the condition that elements remain beyond whole vectors."""

    def holds(sample: Sample) -> bool:
        count = prod(sample.expected[0].shape) if sample.call.outputs[0] == dtype else 0
        return count > 8 and count % 4 > 0

    return holds


def _tail(dtype: str, to: int) -> WrongWhere:
    """Return a kernel that converts wrongly what remains beyond whole vectors."""

    def concerns(sample: Sample) -> bool:
        return (
            sample.call.first.dtype == dtype
            and sample.call.parameter("to") == to
            and prod(sample.call.first.shape) > 8
            and prod(sample.call.first.shape) % 4 > 0
        )

    return WrongWhere(f"the tail of {dtype} cast to {to}", concerns, PARTS["the last element"])
