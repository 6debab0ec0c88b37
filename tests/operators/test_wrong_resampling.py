"""Wrong kernels of Resize, as a provider would get it wrong, turn cases of its spec red; a right one, in
float32, turns none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
import pytest

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import DTYPES
from harness.operators.base import Call
from harness.operators.image.resize_axes import ResizedAxis, axes
from tests.mutants.any_operator import Sample, samples
from tests.sampled import one_of

_TYPES = ("float32", "float16", "uint8", "int8")


@cache
def cases() -> list[Sample]:
    """Return the cases of the spec that are numbers."""
    return [each for each in samples("Resize", 420) if each.case.inputs[0].dtype in _TYPES]


def red(kernel: Callable[..., Any]) -> Iterator[str]:
    """Yield the cases that a kernel gets wrong."""
    for sample in cases():
        x = next(iter(sample.inputs.values()))
        with np.errstate(all="ignore"):
            made = np.asarray(kernel(sample.call, x.array))
            actual = Tensor(x.dtype, made.astype(DTYPES[x.dtype].storage))
        if compare(sample.expected[0], actual).diff is not None:
            yield sample.case.id


F = np.float32


def original(how: str, axis: ResizedAxis, x: Any) -> Any:
    """x_original in float32."""
    scale, last = F(axis.scale), F(axis.original - 1)
    if how == "align_corners":
        return x * last / F(max(axis.resized - 1, 1))
    if how == "asymmetric":
        return x / scale
    if how == "tf_half_pixel_for_nn":
        return (x + F(0.5)) / scale
    if how == "pytorch_half_pixel" and axis.resized == 1:
        return x * F(0)
    if how == "tf_crop_and_resize":
        start, end = F(axis.start), F(axis.end)
        if axis.resized == 1:
            return x * F(0) + F(0.5) * (start + end) * last
        return start * last + x * (end - start) * last / F(axis.resized - 1)
    found = (x + F(0.5)) / scale - F(0.5)
    if how == "half_pixel_symmetric":
        found += F(axis.original / 2) * (F(1) - F(axis.resized) / (scale * F(axis.original)))
    return found


NEAREST: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda c: np.ceil(c - F(0.5)),
    "round_prefer_ceil": lambda c: np.floor(c + F(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


def filtered(mode: str, t: Any, a: float) -> Any:
    t, a = np.abs(t), F(a)
    if mode == "linear":
        return np.maximum(F(0), F(1) - t)
    near = ((a + F(2)) * t - (a + F(3))) * t * t + F(1)
    far = ((a * t - F(5) * a) * t + F(8) * a) * t - F(4) * a
    return np.where(t <= 1, near, np.where(t < 2, far, F(0)))


def averaged(call: Call, axis: ResizedAxis, c: Any, data: Any, n: int, wrong: str) -> Any:
    """Weigh along one axis."""
    attributes = call.attributes
    mode = str(attributes["mode"])
    a: Any = -0.75 if wrong == "coefficient ignored" else attributes["cubic_coeff_a"]
    narrow = attributes.get("antialias") and wrong != "antialias ignored" and axis.scale < 1
    if wrong == "antialias of larger images" and attributes.get("antialias"):
        narrow = True
    ratio = F(axis.scale) if narrow else F(1)
    reach = int(2 / min(ratio, F(1))) + 2
    i = np.arange(int(np.floor(c.min())) - reach, int(np.ceil(c.max())) + reach + 1)
    w = filtered(mode, (c[:, None] - i[None, :].astype(F)) * ratio, a)
    inside = (i >= 0) & (i < axis.original)
    exclude = bool(attributes.get("exclude_outside"))
    exclude = not exclude if wrong == "exclude_outside turned round" else exclude
    exclude = exclude and wrong != "exclude_outside ignored"
    dropped = narrow and wrong == "antialias leaves out what is outside"
    if exclude or dropped or (wrong == "zeros beyond the edge" and not attributes.get("antialias")):
        w = np.where(inside, w, F(0))
    if (exclude or narrow) and wrong not in ("weights not normalised",):
        w = w / w.sum(axis=1, keepdims=True, dtype=F)
    held = i % axis.original if wrong == "indices wrap" else np.clip(i, 0, axis.original - 1)
    taken = np.moveaxis(np.take(data, held, axis=n), n, -1)
    if wrong == "float16 sums":
        summed = (taken[..., None, :].astype(np.float16) * w.astype(np.float16)).sum(-1, dtype=np.float16)
    elif np.isfinite(taken).all():
        summed = np.matmul(taken, w.T)
    else:
        summed = np.where(w != 0, taken[..., None, :] * w, F(0)).sum(-1)
    return np.moveaxis(summed.astype(F), -1, n)


def mistaken(call: Call, wrong: str) -> list[ResizedAxis]:
    """The axes, as a mistake takes them."""
    found = list(axes(call))
    named = call.parameter("axes")
    scales, rank = call.parameter("scales"), len(found)
    if wrong == "axes in ascending order" and named is not None and scales is not None:
        ordered = call._replace(
            attributes={**call.attributes, "axes": tuple(sorted(n % rank for n in named))}
        )
        return list(axes(ordered))
    if wrong == "scales of two axes exchanged" and rank > 1:
        last, before = found[-1], found[-2]
        found[-1], found[-2] = last._replace(scale=before.scale), before._replace(scale=last.scale)
    if wrong == "scales of the extents":
        return [axis._replace(scale=Fraction(axis.resized, axis.original)) for axis in found]
    if wrong == "roi ignored":
        return [axis._replace(start=0.0, end=1.0) for axis in found]
    roi = call.parameter("roi") or ()
    if wrong == "roi in pairs" and len(roi) == 2 * len(found) and named is None:
        return [
            axis._replace(start=start, end=end)
            for axis, start, end in zip(found, roi[::2], roi[1::2], strict=True)
        ]
    policies = {
        "policy turned round": {"not_larger": "not_smaller", "not_smaller": "not_larger"},
        "policy ignored": dict.fromkeys(("not_larger", "not_smaller"), "stretch"),
    }
    policy = str(call.attributes.get("keep_aspect_ratio_policy"))
    if other := policies.get(wrong, {}).get(policy):
        made = list(axes(call._replace(attributes={**call.attributes, "keep_aspect_ratio_policy": other})))
        return made if all(axis.resized < 10_000 for axis in made) else found  # of the greatest size
    return found


SWAPPED = {
    "half_pixel for asymmetric": ("asymmetric", "half_pixel"),
    "asymmetric for half_pixel": ("half_pixel", "asymmetric"),
    "half_pixel for pytorch_half_pixel": ("pytorch_half_pixel", "half_pixel"),
    "half_pixel for half_pixel_symmetric": ("half_pixel_symmetric", "half_pixel"),
    "half_pixel for tf_half_pixel_for_nn": ("tf_half_pixel_for_nn", "half_pixel"),
    "asymmetric for align_corners": ("align_corners", "asymmetric"),
    "align_corners for tf_crop_and_resize": ("tf_crop_and_resize", "align_corners"),
}
ROUNDED = {
    "halves up": ("round_prefer_floor", NEAREST["round_prefer_ceil"]),
    "halves down": ("round_prefer_ceil", NEAREST["round_prefer_floor"]),
    "halves to even": ("round_prefer_floor", np.rint),
    "floor for ceil": ("ceil", np.floor),
    "nearest for floor": ("floor", NEAREST["round_prefer_floor"]),
    "nearest for ceil": ("ceil", NEAREST["round_prefer_ceil"]),
}


def resize(call: Call, data: Any, wrong: str = "") -> Any:
    attributes = call.attributes
    how = str(attributes.get("coordinate_transformation_mode", "asymmetric"))
    crop = how == "tf_crop_and_resize"
    swapped = SWAPPED.get(wrong)
    how = swapped[1] if swapped is not None and how == swapped[0] else how
    nearest = attributes["mode"] == "nearest"
    found = data if nearest else data.astype(F)
    outside = np.zeros((1,) * data.ndim, bool)
    for n, axis in enumerate(mistaken(call, wrong)):
        if axis.kept:
            continue
        c = np.asarray(original(how, axis, np.arange(axis.resized, dtype=F)), F)
        c = c.astype(np.float16).astype(F) if wrong == "float16 coordinates" else c
        last = axis.original - 1
        beyond = (c < 0) | ((c >= last) if wrong == "the last element extrapolated" else (c > last))
        outside = outside | beyond.reshape([-1 if n == each else 1 for each in range(data.ndim)])
        if nearest:
            mode = str(attributes.get("nearest_mode", "floor"))
            rounded = ROUNDED.get(wrong)
            index = (rounded[1] if rounded is not None and mode == rounded[0] else NEAREST[mode])(c).astype(
                int
            )
            held = index % axis.original if wrong == "indices wrap" else np.clip(index, 0, last)
            held = np.minimum(held, last - 1) if wrong == "the last element lost" and last else held
            found = np.take(found, held, axis=n)
        else:
            found = averaged(call, axis, c, found, n, wrong)
    if crop and wrong != "extrapolation forgotten":
        value: Any = attributes["extrapolation_value"]
        found = np.where(outside, 0 if wrong == "extrapolation_value ignored" else value, found)
    if wrong == "one batch for all" and found.ndim > 1:
        found = np.repeat(found[:1], len(found), axis=0)
    if wrong == "negative integers lost" and data.dtype == np.int8 and attributes.get("antialias"):
        found = np.maximum(found, 0)
    if wrong == "the image as it is" and found.shape == data.shape:
        return data
    return found


WRONG = (
    *SWAPPED,
    *ROUNDED,
    "indices wrap",
    "zeros beyond the edge",
    "scales of the extents",
    "scales of two axes exchanged",
    "axes in ascending order",
    "coefficient ignored",
    "exclude_outside ignored",
    "exclude_outside turned round",
    "weights not normalised",
    "antialias ignored",
    "antialias of larger images",
    "antialias leaves out what is outside",
    "negative integers lost",
    "roi ignored",
    "roi in pairs",
    "extrapolation forgotten",
    "extrapolation_value ignored",
    "the last element extrapolated",
    "policy ignored",
    "policy turned round",
    "float16 sums",
    "float16 coordinates",
    "the last element lost",
    "one batch for all",
    "the image as it is",
)


@pytest.mark.slow
def test_a_right_kernel_turns_nothing_red() -> None:
    assert list(red(resize)) == []


@pytest.mark.parametrize("wrong", one_of(9, WRONG))
def test_a_wrong_kernel_turns_cases_red(wrong: str) -> None:
    assert len(list(islice(red(partial(resize, wrong=wrong)), 2))) == 2
