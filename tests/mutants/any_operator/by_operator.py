"""Mistakes that one operator's kernel makes where two conditions hold, in families that resample, attend,
remember or normalise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.expected import nearest
from tests.mutants.any_operator import Sample

Condition = Callable[[Sample], bool]


@dataclass(frozen=True)
class SquaresFirst:
    """The variance in float32 as the mean of the squares less the square of the mean."""

    scale: str
    bias: str
    by_channel: bool

    @property
    def name(self) -> str:
        return "a variance of the squares"

    def concerns(self, sample: Sample) -> bool:
        first = sample.call.first
        return first.dtype == "float32" and 0 not in first.shape and len(sample.expected) == 1

    def shows(self, sample: Sample) -> bool:
        x, rank = next(iter(sample.arrays.values())), len(sample.call.first.shape)
        axes = tuple(range(2 if self.by_channel else int(sample.call.parameter("axis")) % rank, rank))
        wide = (-1, *[1] * (rank - 2)) if self.by_channel else None
        weight, bias = (sample.arrays.get(name, np.zeros(1, x.dtype)) for name in (self.scale, self.bias))
        if wide is not None:
            weight, bias = weight.reshape(wide), bias.reshape(wide)
        with np.errstate(all="ignore"):
            mean = x.mean(axes, keepdims=True)
            variance = (x * x).mean(axes, keepdims=True) - mean * mean
            found = (x - mean) / np.sqrt(variance + np.float32(sample.call.parameter("epsilon")))
            wrong = Tensor("float32", np.asarray(found * weight + bias, np.float32))
        return compare(sample.expected[0], wrong).diff is not None


def shape(sample: Sample, name: str) -> tuple[int, ...]:
    given = sample.call.inputs.get(name)
    return () if given is None else given.shape


def has(sample: Sample, *names: str) -> bool:
    return all(name in sample.call.inputs for name in names)


def axes(sample: Sample) -> tuple[int, ...]:
    return tuple(sample.call.parameter("axes") or ())


def where(**wanted: object) -> Condition:
    """Return the condition that attributes have values; `True` and `False` stand for any that is or is not
    given."""

    def holds(sample: Sample) -> bool:
        return all(
            bool(sample.call.parameter(name, None)) == value
            if isinstance(value, bool)
            else sample.call.parameter(name, None) == value
            for name, value in wanted.items()
        )

    return holds


def both(*conditions: Condition) -> Condition:
    return lambda sample: all(condition(sample) for condition in conditions)


def _given(*names: str) -> Condition:
    return lambda sample: has(sample, *names)


def _one_query(sample: Sample) -> bool:
    queries = sample.call.first.shape
    return queries[-2 if len(queries) == 4 else 1] == 1


def _window(sample: Sample) -> bool:
    return any((sample.call.parameter(f"{side}_window_size", None) or -1) >= 0 for side in ("left", "right"))


def _groups_of_heads(sample: Sample) -> bool:
    queries, keys = sample.call.first.shape, shape(sample, "K")
    if len(queries) == 4:
        return queries[1] != keys[1]
    return bool(sample.call.parameter("q_num_heads") != sample.call.parameter("kv_num_heads"))


def _beyond(bits: int) -> Condition:
    """Return the condition that a result in int64 is beyond a power of 2."""
    return lambda s: (
        s.call.outputs[0] == "int64"
        and bool((np.abs(nearest(s.expected[0]).array.astype(float)) > 2.0**bits).any())
    )


def _last_is_largest(sample: Sample) -> bool:
    *others, _ = sample.call.shapes
    out = prod(sample.expected[0].shape)
    return len(others) > 1 and all(prod(shape) < out for shape in others)


def _turned(dtype: str) -> Condition:
    return lambda s: (
        s.call.first.dtype == dtype and bool(s.call.parameter("transA") and s.call.parameter("transB"))
    )


_RECURRENT = {
    "clip with the batch first": where(clip=True, layout=1),
    **{
        f"lengths, initial_h and {direction}": both(
            _given("sequence_lens", "initial_h"), where(direction=direction)
        )
        for direction in ("reverse", "bidirectional")
    },
}


def _weighted(dtype: str) -> Condition:
    return lambda s: s.call.first.dtype == dtype and len(s.call.inputs) == 3


_LOSSES = {
    f"{reduction} of weights beside ignore_index in {dtype}": both(
        where(reduction=reduction),
        _weighted(dtype),
        lambda s: s.call.parameter("ignore_index") is not None,
    )
    for reduction in ("none", "sum", "mean")
    for dtype in ("float32", "float16")
}
_VARIADIC = {"the last input is the largest": _last_is_largest}
BY_OPERATOR: Mapping[str, Mapping[str, Condition]] = {
    "DequantizeLinear": {
        "int32 by axis 0": lambda s: (
            s.call.first.dtype == "int32" and shape(s, "x_scale") != () and s.call.parameter("axis") == 0
        ),
        "int32 in blocks": lambda s: s.call.first.dtype == "int32" and bool(s.call.parameter("block_size")),
    },
    "DynamicQuantizeLinear": {"nothing from 0 on": lambda s: bool((s.arrays["x"] < 0).all())},
    "GridSample": {
        f"{mode} with {padding} in three dimensions, align_corners {corners}": both(
            where(mode=mode, padding_mode=padding, align_corners=corners),
            lambda s: len(s.call.first.shape) == 5,
        )
        for mode in ("linear", "nearest")
        for padding in ("border", "reflection")
        for corners in (0, 1)
    }
    | {
        f"cubic with {padding} far beyond, align_corners {corners}": both(
            where(mode="cubic", padding_mode=padding, align_corners=corners),
            lambda s: bool((np.abs(s.arrays["grid"].astype(float)) > 3).any()),
        )
        for padding in ("zeros", "reflection")
        for corners in (0, 1)
    },
    "DFT": {
        f"one side of axis {axis}, inverse {inverse}": where(onesided=1, inverse=inverse, axis=axis)
        for axis in (0, -2)
        for inverse in (0, 1)
    }
    | {
        f"dft_length {length} of less, inverse {inverse}": where(
            dft_length=length, inverse=inverse, onesided=0
        )
        for length in (5, 13)
        for inverse in (0, 1)
    },
    "Resize": {
        **{
            f"{mode} of axes by {place}": both(
                where(mode=mode, coordinate_transformation_mode=place), lambda s: bool(axes(s))
            )
            for mode in ("nearest", "linear", "cubic")
            for place in ("pytorch_half_pixel", "align_corners", "asymmetric")
        },
        **{
            f"{mode} with antialias by {place}": where(
                mode=mode, antialias=1, coordinate_transformation_mode=place
            )
            for mode in ("linear", "cubic")
            for place in ("pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
        },
        "cubic not smaller": where(mode="cubic", keep_aspect_ratio_policy="not_smaller"),
        "cubic of a part without what is outside": where(
            mode="cubic", exclude_outside=1, coordinate_transformation_mode="tf_crop_and_resize"
        ),
    },
    "Attention": {
        "one query with softcap": both(_one_query, where(softcap=True)),
        "one query with a window": both(_one_query, _window),
        "one query and its scores": both(_one_query, lambda s: len(s.expected) > 3),
        "one query of three dimensions": both(_one_query, lambda s: len(s.call.first.shape) == 3),
        "scale with a window": both(_window, lambda s: "scale" in s.case.attributes),
        "scale with a cache": both(_given("past_key"), lambda s: "scale" in s.case.attributes),
        "softcap with a window": both(_window, where(softcap=True)),
        "scores with a window": both(_window, lambda s: len(s.expected) > 3),
        "lengths of groups": both(_given("nonpad_kv_seqlen"), _groups_of_heads),
        "lengths of three dimensions": both(
            _given("nonpad_kv_seqlen"), lambda s: len(s.call.first.shape) == 3
        ),
        **{
            f"groups, is_causal {causal} and a cache": both(
                _groups_of_heads, where(is_causal=causal), _given("past_key")
            )
            for causal in (0, 1)
        },
    },
    "LSTM": {
        **_RECURRENT,
        "input_forget with the batch first": where(input_forget=1, layout=1),
        "peepholes of both directions": both(_given("P"), where(direction="bidirectional")),
    },
    "GRU": {**_RECURRENT, "linear_before_reset with a bias": both(_given("B"), where(linear_before_reset=1))},
    "RNN": _RECURRENT,
    "NegativeLogLikelihoodLoss": _LOSSES,
    "SoftmaxCrossEntropyLoss": _LOSSES,
    "BatchNormalization": {
        "training of two dimensions": both(where(training_mode=1), lambda s: len(s.call.first.shape) == 2),
        "training of float16": both(where(training_mode=1), lambda s: s.call.first.dtype == "float16"),
    },
    **dict.fromkeys(("Sum", "Max", "Min", "Mean"), _VARIADIC),
    "Range": {"int64 beyond 2**31": _beyond(31)},
    "Pow": {"int64 beyond 2**53": _beyond(53)},
    "ReduceSumSquare": {"int64 beyond 2**53": _beyond(53)},
    "Gemm": {f"{dtype}, both turned": _turned(dtype) for dtype in ("int32", "int64", "uint32", "uint64")},
    "StringNormalizer": {
        f"{action} of two dimensions, case-sensitive {sensitive}, with stop words": both(
            where(case_change_action=action, is_case_sensitive=sensitive, stopwords=True),
            lambda s: len(s.call.first.shape) == 2,
        )
        for action in ("NONE", "LOWER", "UPPER")
        for sensitive in (0, 1)
    },
    "TfIdfVectorizer": {
        f"{mode} of {dtype} in rows, skips {skips}": both(
            where(mode=mode, max_skip_count=skips, weights=True),
            lambda s, dtype=dtype: s.call.first.dtype == dtype and len(s.call.first.shape) == 2,  # type: ignore[misc]
        )
        for mode in ("TF", "IDF", "TFIDF")
        for dtype in ("int32", "int64", "string")
        for skips in (False, True)
    },
    "Transpose": {
        "last extents of more than 32": lambda s: (
            len(s.call.first.shape) > 1 and all(n > 32 and n % 32 for n in s.call.first.shape[-2:])
        ),
        **{
            f"large planes by {perm}": both(where(perm=perm), lambda s: sorted(s.call.first.shape)[-2] > 16)
            for perm in ((0, 2, 1), (2, 0, 1), (1, 2, 0), (1, 0, 2))
        },
    },
    "Pad": {
        f"{mode} of the first of four dimensions": both(
            where(mode=mode),
            lambda s: len(s.call.first.shape) == 4 and s.expected[0].shape[0] > s.call.first.shape[0],
        )
        for mode in ("reflect", "wrap")
    },
}
VARIANCES = {
    "InstanceNormalization": ("scale", "B", True),
    "LayerNormalization": ("Scale", "B", False),
}
