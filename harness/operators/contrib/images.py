"""Operators on images: GridSample, CropAndResize and MaxpoolWithMask."""
# ruff: noqa: N803 - inputs have the names that ONNX Runtime gives them

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import DTYPES, Array
from harness.model.expected import Expected
from harness.operators.base import (
    UNKNOWN,
    Call,
    Operator,
    Relation,
    Shape,
    Undefined,
    ValueKind,
    value_kinds,
)
from harness.operators.bounded import Arithmetic, Bounded, arithmetic, concatenate, number, stack
from harness.operators.dimensioned import Chosen, Dimensioned
from harness.operators.formulas import Either, decided, values, zeros_of_either_sign
from harness.operators.image.grid_sampling import GridSampling, grid_sample
from harness.operators.image.regions import BATCHES
from harness.operators.image.resampling import exact_where, one_of
from harness.operators.image.roi_pooling import Samples, interpolated
from harness.operators.pooling.pooling import Pooling, kernel_axes, windows_of

# CropAndResize: corners [y1, x1, y2, x2] are 0 at the first pixel of X and 1 at the last; of `crop` samples the first and the
#   last lie at the corners, the others evenly between them, a single one in the middle:
#   y_i = (y1 + i (y2 - y1) / (crop - 1)) (H - 1)
#   Y[r, c, i, j] = X[batch_indices[r], c] interpolated at (y_i, x_j), or the pixel next to it; extrapolation_value beyond X
# MaxpoolWithMask: the greatest element of each window whose M is not 0. Nothing is documented; maxpool_with_mask.h ends a row
#   of a window where M is 0, and gives the lowest number where nothing is left. Masks beyond those of M's batches and channels
#   are its masks again


class _Sampling(GridSampling):
    """As `GridSampling` of version 16, with places named Grid."""

    own: ClassVar = {"Grid": GridSampling.own["grid"]}
    relations: ClassVar = {"Grid": GridSampling.relations["grid"]}

    def output_dtypes(self, operator: Operator, call: Call) -> tuple[str | None, ...]:
        """Return the type of X."""
        return (call.first.dtype,)


class _Places(Samples):
    """Samples of which those off the pixels are beyond the image."""

    @property
    def beyond(self) -> Array:
        """Say which lie outside of the pixels."""
        return np.asarray((self.at.value < 0) | (self.at.value > self.extent - 1))

    @property
    def open(self) -> Array:
        """Say of which an implementation may decide that otherwise."""
        away = np.minimum(np.abs(self.at.value), np.abs(self.at.value - self.extent + 1))
        return np.asarray((away <= self.at.error) & (self.at.error > 0))


def _places(first: float, last: float, count: int, extent: int, a: Arithmetic) -> _Places:
    """Return where samples lie by the formula above, without an error where float32 holds all terms."""
    ends = np.array([[first], [last]])
    found = concatenate([*_at(number(ends, a), count, extent)])
    narrow = np.concatenate([*_at(ends.astype(np.float32), count, extent)])
    return _Places(exact_where(found, narrow == found.value), 1, False, extent)


def _at(ends: Any, count: int, extent: int) -> Iterator[Any]:
    first, last, most = ends[0], ends[1], extent - 1.0
    if count == 1:
        yield (first + last) * 0.5 * most
        return
    step = (last - first) * most / (count - 1.0)
    yield first * most
    yield from (first * most + float(n) * step for n in range(1, count - 1))
    yield last * most


def crop_and_resize(call: Call, inputs: Mapping[str, Tensor], declared: str) -> tuple[Expected, ...]:
    """Sample regions by the formula above."""
    x, rois = inputs["X"], values(inputs["rois"]).astype(float)
    a = arithmetic(declared, x.dtype)
    if not np.isfinite(rois).all():
        raise Undefined("where a region lies of which a corner is not finite")
    beyond, (rows, columns) = float(call.parameter("extrapolation_value")), call.parameter("crop_size")
    nearest, image = call.parameter("mode") == "nearest", number(x, a)
    found: list[Any] = []
    for region, batch in zip(rois, inputs["batch_indices"].array.tolist(), strict=True):
        y, x_ = (
            _places(region[n], region[n + 2], count, x.array.shape[2 + n], a)
            for n, count in ((0, rows), (1, columns))
        )
        gone = y.beyond[:, None] | x_.beyond[None]
        if nearest:
            found.append(_next_to(x.array[batch], (y, x_), gone, beyond))
        else:
            one = interpolated(image[batch], y, x_)
            found.append(Bounded(np.where(gone, beyond, one.value), one.error, a))
    shape = (len(rois), x.array.shape[1], rows, columns)
    if nearest:
        return (
            one_of(
                x.dtype,
                [np.stack(each) for each in zip(*found, strict=True)] or [np.zeros(shape, x.array.dtype)],
            ),
        )
    return ((stack(found) if found else number(np.zeros(shape), a)).stored(x.dtype),)


def _next_to(image: Array, places: tuple[_Places, _Places], gone: Array, beyond: float) -> list[Array]:
    """Return the pixels next to samples, of ties both; no document says which."""
    unclear = places[0].open[:, None] | places[1].open[None]
    low, high = (
        [
            np.clip(rounded(each.at.value + sign * (each.at.error + 0.5)), 0, each.extent - 1).astype(int)
            for each in places
        ]
        for rounded, sign in ((np.ceil, -1), (np.floor, 1))
    )
    picked = [image[:, y[:, None], x[None]] for y in (low[0], high[0]) for x in (low[1], high[1])]
    value = np.array(beyond, image.dtype)
    seen = [np.where(gone, value, each) for each in picked]
    return seen + [np.where(gone ^ unclear, value, each) for each in picked]


def _cannot_crop(call: Call) -> str | None:
    size = call.parameter("crop_size")
    if not isinstance(size, tuple) or len(size) != 2 or min(size) < 1:
        return "crop_size is two positive numbers"
    if call.parameter("mode") not in ("bilinear", "nearest"):
        return "mode is bilinear or nearest"
    return None


def _cropped(call: Call) -> tuple[Shape, ...]:
    if CROP.broken_rule(call):
        return (call.first.shape,)
    return ((call.shapes[1][0], call.first.shape[1], *call.parameter("crop_size")),)


def _beyond_the_batch(_n: Any, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
    found = inputs["batch_indices"].array
    return BATCHES if ((found < 0) | (found >= call.first.shape[0])).any() else None


def masked_pool(X: Array, M: Array, call: Call) -> Either:
    """Choose by the formula above: of elements that are shown, or of those of each row of a window before the first hidden one."""
    masks = M.reshape(-1, *M.shape[2:])
    masks = np.resize(masks != 0, (X.shape[0] * X.shape[1], *M.shape[2:])).reshape(X.shape)
    taken, shown, inside = (
        windows_of(each, call, filler)
        for each, filler in ((X, 0), (masks, True), (np.ones(X.shape, bool), False))
    )
    lowest, axes = np.finfo(X.dtype).min, kernel_axes(call)
    found: list[Any] = []
    for kept in (shown, np.logical_and.accumulate(shown, axis=-1)):
        left = np.where(
            (kept & inside).any(axis=axes, keepdims=True), np.where(kept & inside, taken, -np.inf), lowest
        )
        chosen = left.astype(X.dtype)
        found.append(zeros_of_either_sign(chosen.max(axis=axes), chosen, axes))
    return Either(*(each for one in found for each in getattr(one, "choices", (one,))))


class _Masked(Pooling):
    """X, and 0 or another number for each of its elements, in as many batches and channels (`same`), or in one (`one`)."""

    lowers: ClassVar[str | None] = None
    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {
        "M": value_kinds("prefix", "ones", "holes", "zeros")
    }
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {"M": ("same", "one", "channel", "unlike")}

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shape of M."""
        n, c, *rest = call.first.shape
        lead = {"one": (1, 1), "channel": (1, c)}.get(str(relation), (n, c))
        return (*lead, *rest[:-1], rest[-1] + (relation == "unlike"))

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose masks by kind; prefix: ones up to a length of each last row."""
        last = max(1, raw.shape[-1])
        prefix = np.arange(raw.shape[-1]) < 1 + raw[..., :1] % last
        found = {"prefix": prefix, "ones": raw >= 0, "holes": raw % 4 > 0, "zeros": raw < 0}[kind]
        return np.asarray(found).astype(DTYPES["int32"].storage)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Those of pooling, and masks of another shape."""
        x, mask = call.shapes
        if len(mask) != len(x) or mask[2:] != x[2:] or (0 in mask[:2] and 0 not in x[:2]):
            return "M has the spatial axes of X"
        return super().broken_rule(operator, call)


_CORNERS = (
    Chosen("inside", lambda raw, _: raw % 9 / 8),
    Chosen("whole", lambda raw, _: np.broadcast_to([0.0, 0.0, 1.0, 1.0], raw.shape)),
    Chosen("beyond", lambda raw, _: (raw % 33 - 12) / 8),
    Chosen("thirds", lambda raw, _: raw % 7 / 6),
)
"""Eighths within the image, some of them in the reverse order; the image; eighths from -1.5 to 2.5; sixths, which float32 rounds."""
CROP = Operator(
    "com.microsoft.CropAndResize",
    Dimensioned(
        "X: N C H W; rois: R 4; batch_indices: R; crop_size: 2",
        "R C 1 1",
        rule=lambda n, _: "what is sampled of a tensor without elements" if 0 in (n["H"], n["W"]) else None,
        chosen={
            "rois": _CORNERS,
            "batch_indices": (
                Chosen("in_range", lambda raw, n: raw % max(1, n["N"])),
                Chosen("above", lambda raw, n: raw * 0 + n["N"], BATCHES),
                Chosen("below", lambda raw, _: raw * 0 - 1, BATCHES),
            ),
        },
        by_values=_beyond_the_batch,
    ),
    crop_and_resize,
    _cannot_crop,
    constants={"crop_size": UNKNOWN},
    outputs=_cropped,
)
OPERATORS = (
    Operator("com.microsoft.GridSample", _Sampling(), grid_sample),
    CROP,
    Operator("com.microsoft.MaxpoolWithMask", _Masked(), decided(masked_pool)),
)
