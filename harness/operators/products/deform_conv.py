"""DeformConv: a convolution whose filters read X at places that an input moves, between elements too."""
# ruff: noqa: N803 - inputs have the names that ONNX gives them

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from harness.model.dtypes import Array
from harness.model.float_formats import encode
from harness.operators.base import Call, Operator, Relation, Shape, ValueKind, value_kinds
from harness.operators.bounded import Bounded, concatenate, contracted, moveaxis, pad, split, stack
from harness.operators.formulas import bounded
from harness.operators.pooling.windows import window
from harness.operators.products.convolving import Convolving

# Y[n, m, o] = sum over c, k of X(n, c, o * stride + k * dilation - pad + offset[n, k, :, o]) mask[n, k, o] W[m, c, k] + B[m]
# X between elements is averaged linearly, axis by axis; beyond the padding it is 0

OFFSETS = value_kinds("between", "whole", "far", "at_the_edge")
"""Multiples of 1/8 in -2..2, rounded where they lie less than 1 outside of an X without padding; whole numbers in
-2..2; far: in -40..40; at_the_edge: as between, not rounded."""


def deform_conv(
    X: Bounded, W: Bounded, offset: Bounded, group: int, call: Call, B: Any = None, mask: Any = None
) -> Bounded:
    """Convolve by the formula above."""
    taps = prod(W.shape[2:])
    found = _sampled(X, _places(call, offset.value))
    if mask is not None:
        found = found * mask.reshape(found.shape[0], found.shape[1], 1, *found.shape[3:])
    found = found.reshape(len(X), X.shape[1], *found.shape[3:])
    parts = zip(split(found, group, axis=1), split(W.reshape(*W.shape[:2], taps), group), strict=True)
    y = concatenate([contracted(_summed, p, q, q.shape[1] * taps) for p, q in parts], axis=1)
    return y if B is None else y + B.reshape(-1, *[1] * (X.ndim - 2))


def _summed(samples: Array, filters: Array) -> Array:
    """Sum over channels and taps: [N, C, taps, outputs] and [M, C, taps] give [N, M, outputs]."""
    return np.asarray(np.einsum("nct...,mct->nm...", samples, filters))


def _places(call: Call, offset: Array) -> Array:
    """Return where taps read X, by axis: [axes, N, offset groups, taps, outputs]."""
    found = window(call, call.inputs["W"].shape[2:])
    count, outputs, groups = len(found.kernel), offset.shape[2:], call.parameter("offset_group")
    taps = np.stack(np.unravel_index(np.arange(prod(found.kernel)), found.kernel))
    moved = np.moveaxis(offset.reshape(len(offset), groups, taps.shape[1], count, *outputs), 3, 0)
    at = np.stack(np.meshgrid(*map(np.arange, outputs), indexing="ij"))
    wide = (count, *[1] * count)
    corners = at * np.reshape(found.strides, wide) - np.reshape(found.begins, wide)
    steps = (taps.T * np.array(found.dilations)).T
    base = steps.reshape(count, -1, *[1] * count) + corners[:, None]
    return np.asarray(base[:, None, None] + moved)


def _sampled(x: Bounded, places: Array) -> Bounded:
    """Average X at places: [N, offset groups, channels of one, taps, outputs]."""
    spatial, groups = x.shape[2:], places.shape[2]
    if 0 in spatial:  # one element of weight 0 to index
        x = pad(x, [(0, 0), (0, 0), *((0, int(not extent)) for extent in spatial)])
    parts = moveaxis(x.reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:]), 2, -1)
    lower = np.floor(places)
    batch = np.arange(len(x)).reshape(-1, *[1] * (places.ndim - 2))
    of_group = np.arange(groups).reshape(-1, *[1] * (places.ndim - 3))
    corners = []
    for corner in product((0, 1), repeat=len(spatial)):
        index: list[Array] = [batch, of_group]
        weight = np.ones(places.shape[1:])
        for axis, side in enumerate(corner):
            at = lower[axis] + side
            weight = weight * np.where((at >= 0) & (at < spatial[axis]), 1 - np.abs(places[axis] - at), 0.0)
            index.append(np.clip(at, 0, max(spatial[axis] - 1, 0)).astype(np.int64))
        corners.append(parts[tuple(index)] * weight[..., None])
    return moveaxis(stack(corners, axis=0).sum(0), -1, 2)


class Deforming(Convolving):
    """W as for convolutions; offset and mask `each`, `unlike_channels`, `unlike_outputs`."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"offset": OFFSETS}
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **Convolving.relations,
        "offset": ("each", "unlike_channels", "unlike_outputs"),
        "mask": ("each", "unlike_channels", "unlike_outputs"),
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of offset and mask too."""
        if name not in ("offset", "mask"):
            return super().shape(operator, name, relation, call)
        if super().broken_rule(operator, call) is not None:
            return None
        channels, *outputs = self._wanted(call, name)
        found = (channels + (relation == "unlike_channels"), *outputs)
        return (call.first.shape[0], *found[:-1], found[-1] + (relation == "unlike_outputs"))

    def _wanted(self, call: Call, name: str) -> Shape:
        """Return the shape of offset or mask, without the batch."""
        groups, kernel = call.parameter("offset_group"), self.kernel(call)
        return (groups * prod(kernel) * (len(kernel) if name == "offset" else 1), *self.extents(call))

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose offsets by kind."""
        dtype = call.inputs[name].dtype
        if kind in ("whole", "far"):
            most = 2 if kind == "whole" else 40
            return encode(dtype, raw % (2 * most + 1) - float(most))
        chosen = (raw % 33 - 16) / 8
        if kind == "between" and self.broken_rule(OPERATOR, call) is None and raw.size:
            places, found = _places(call, chosen), window(call, self.kernel(call))
            open_ = np.zeros(places.shape, bool)
            for axis, extent in enumerate(call.first.shape[2:]):
                open_[axis] |= (places[axis] < 0) & (found.begins[axis] == 0)
                open_[axis] |= (places[axis] > extent - 1) & (found.ends[axis] == 0)
            outside = np.moveaxis(open_, 0, 3).reshape(raw.shape)
            chosen = np.where(outside, np.rint(chosen), chosen)
        return encode(dtype, chosen)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Offset groups, and the shapes of offset and mask, beside the rules of convolutions."""
        if wrong := super().broken_rule(operator, call):
            return wrong
        groups = call.parameter("offset_group")
        if groups < 1 or call.first.shape[1] % groups:
            return "C is a multiple of offset_group"
        for name in ("offset", "mask"):
            given = call.inputs.get(name)
            if given is not None and given.shape != (call.first.shape[0], *self._wanted(call, name)):
                return f"{name} has its shape"
        return None


OPERATOR = Operator("DeformConv", Deforming(), bounded(deform_conv))
