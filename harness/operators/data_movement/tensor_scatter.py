"""TensorScatter: a cache in which each sample's update is written from a place on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Call, Choice, Operator, Relation, Shape, ValueKind
from harness.operators.data_movement.indexing import AXES, Copying, axis_at
from harness.operators.formulas import moved

# present[b, .., (write_indices[b] + s) mod max, ..] = update[b, .., s, ..]     circular; linear: without mod

FITS = "write_indices + sequence_length <= max_sequence_length"
PLACES = (
    ValueKind("anywhere"),
    ValueKind("first"),
    ValueKind("last"),
    ValueKind("wrapping"),
    ValueKind("beyond", breaks=FITS),
    ValueKind("far_beyond", breaks=FITS),
)
"""anywhere: where the update fits; last: so that it fits just so; wrapping, in circular mode: up to twice the
cache; beyond: one more than last, in one sample."""


def tensor_scatter(
    past_cache: Array, update: Array, axis: int, call: Call, write_indices: Array | None = None
) -> Array:
    """Write by the formula above."""
    del axis  # the call has it, counted from the front
    place, found = _axis(call), np.array(past_cache)
    extent = past_cache.shape[place]
    begins = np.zeros(len(past_cache), np.int64) if write_indices is None else write_indices
    for sample, begin in enumerate(begins.tolist()):
        rows = begin + np.arange(update.shape[place])
        rows = rows % extent if call.parameter("mode") == "circular" and extent else rows
        np.moveaxis(found[sample], place - 1, 0)[rows] = np.moveaxis(update[sample], place - 1, 0)
    return np.asarray(found)


def _axis(call: Call) -> int:
    return int(call.parameter("axis")) % max(len(call.first.shape), 1)


class Caching(Copying):
    """The update by its `length`, a number or `same`, `half`, `longer`, and `unlike`, a batch or another dimension;
    write_indices `each`, `unlike`."""

    own: ClassVar[Mapping[str, tuple[ValueKind, ...]]] = {"write_indices": PLACES}
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "length": ("same", "half", "longer"),
        "unlike": ("batch", "last", "rank"),
    }
    relations: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "update": ("length", "unlike"),
        "write_indices": ("each", "unlike"),
    }

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Derive the shapes of the update and of the places."""
        cache = call.first.shape
        if isinstance(relation, str):
            return ((cache[0] if cache else 1) + (relation == "unlike"),)
        if self.wrong_axis(call) is not None:
            return cache
        place, length, unlike = _axis(call), relation.get("length", 1), relation.get("unlike")
        extent = cache[place]
        lengths = {"same": extent, "half": extent // 2, "longer": extent + 1}
        found = list(cache)
        found[place] = lengths[length] if isinstance(length, str) else int(length)
        if found[place] > extent and length != "longer":
            return None
        if unlike == "rank":
            return (*found, 1)
        if unlike is not None:
            at = (
                0 if unlike == "batch" else next((n for n in reversed(range(1, len(found))) if n != place), 0)
            )
            found[at] += 1
        return tuple(found)

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether a kind has a meaning: only in circular mode places wrap, and there none is beyond."""
        if name != "write_indices":
            return super().applies(operator, kind, name, call)
        circular = call.parameter("mode") == "circular"
        return circular if kind == "wrapping" else not (circular and "beyond" in kind)

    def choose(self, kind: str, name: str, call: Call, raw: Array) -> Array:
        """Choose places by kind."""
        place = _axis(call)
        extent, length = (
            each[place] if place < len(each) else 1 for each in (call.first.shape, call.shapes[1])
        )
        room = max(extent - length, 0)
        found = raw % (2 * max(extent, 1)) if kind == "wrapping" else raw % (room + 1)
        if kind in ("first", "last"):
            found = found * 0 + (room if kind == "last" else 0)
        elif "beyond" in kind:
            found[:1] = room + 1 if kind == "beyond" else 2**32
        return np.asarray(found)

    def positions(self, operator: Operator, name: str) -> Mapping[str, bool]:
        """Axes by word."""
        return AXES if name == "axis" else {}

    def position(self, operator: Operator, name: str, word: str, call: Call) -> Choice | None:
        """Return the axis that a word stands for."""
        return axis_at(word, len(call.first.shape))

    def domain(self, operator: Operator, attribute: str, call: Call) -> range | tuple[int, ...]:
        """All axes but that of the batch."""
        rank = len(call.first.shape)
        return tuple(axis for axis in range(-rank, rank) if axis % rank)

    def wrong_axis(self, call: Call) -> str | None:
        """Return the rule that the axis breaks, or None."""
        rank, axis = len(call.first.shape), call.parameter("axis")
        if not -rank <= axis < rank:
            return "axis in [-r, r-1]"
        return None if axis % rank else "axis is not that of the batch"

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """The axis, the mode, and the shapes of the update and of the places."""
        if wrong := self.wrong_axis(call):
            return wrong
        if call.parameter("mode") not in ("linear", "circular"):
            return "mode is linear or circular"
        cache, update, place = *call.shapes[:2], _axis(call)
        if len(update) != len(cache) or update != (*cache[:place], update[place], *cache[place + 1 :]):
            return "update has the shape of the cache, but for the axis"
        if update[place] > cache[place]:
            return "sequence_length <= max_sequence_length"
        wrong_places = len(call.shapes) > 2 and call.shapes[2] != cache[:1]
        return "write_indices has the shape (batch_size,)" if wrong_places else None

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """Places where the update fits."""
        places, axis = inputs.get("write_indices"), _axis(call)
        if places is None or call.parameter("mode") == "circular":
            return None
        room = call.shapes[0][axis] - call.shapes[1][axis]
        return FITS if (places.array > room).any() else None


OPERATOR = Operator("TensorScatter", Caching(), moved(tensor_scatter))
