"""ScatterElements, Scatter (its name before version 11) and ScatterND: a copy of `data` in which elements or
slices at given places are replaced or combined with updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.model.expected import Expected
from harness.operators import elements
from harness.operators.base import (
    Call,
    DirectmlCall,
    Entropy,
    Family,
    Operator,
    Relation,
    Shape,
    ValueKind,
)
from harness.operators.bounded import Bounded
from harness.operators.data_movement.gather_elements import GatherElementsFamily
from harness.operators.data_movement.gather_nd import GatherNDFamily
from harness.operators.data_movement.indexing import DISTINCT_KINDS, INDEX_KINDS, distinct, indexed, repeated
from harness.operators.data_movement.moving import axis_of
from harness.operators.formulas import bounded, decided, moved

# ScatterElements: output = data, then output[indices[i, j, k], j, k] = f(output[...], updates[i, j, k])     axis = 0, and so on
# ScatterND:       output = data, then output[*indices[i..., :], ...] = f(output[...], updates[i...])
#
# f is the update itself (reduction none), or their sum, product, greater or smaller one. No order of updates
# is defined.

UPDATES = "indices and updates have the same shape"
REPEATED = "no place is named twice, unless they are reduced"
_COMBINED: Mapping[str, tuple[np.ufunc, int | None]] = {
    "add": (np.add, 0),
    "mul": (np.multiply, 1),
    "max": (np.maximum, None),
    "min": (np.minimum, None),
}
"""What combines all that a row gets, and what stands for nothing; for the other two the row itself."""
_DISTINCT = frozenset(kind.name for kind in DISTINCT_KINDS)
_BOUNDED: Mapping[np.ufunc, Any] = {np.add: np.sum, np.multiply: np.prod}
_REDUCTIONS = {"none": 11, "add": 16, "mul": 16, "max": 18, "min": 18}
"""The opset since which there is a reduction."""


def scatter_elements(data: Any, indices: Array, updates: Any, call: Call) -> Any:
    """Scatter single elements along the axis."""
    if not indices.size:
        return data
    at = list(np.indices(indices.shape))
    at[axis_of(call)] = indices.astype(np.int64) % data.shape[axis_of(call)]
    rows = np.ravel_multi_index(tuple(at), data.shape)
    return _written(data.reshape(-1), rows.reshape(-1), updates.reshape(-1), call).reshape(data.shape)


def scatter_nd(data: Any, indices: Array, updates: Any, call: Call) -> Any:
    """Scatter slices at tuples of coordinates."""
    width = indices.shape[-1]
    tuples = [indices[..., n].reshape(-1) % max(extent, 1) for n, extent in enumerate(data.shape[:width])]
    rows = np.ravel_multi_index(tuples, tuple(max(extent, 1) for extent in data.shape[:width]))
    rest = (prod(data.shape[width:]),)
    return _written(
        data.reshape((prod(data.shape[:width]), *rest)), rows, updates.reshape((len(rows), *rest)), call
    ).reshape(data.shape)


def _written(data: Any, rows: NDArray[np.int64], updates: Any, call: Call) -> Any:
    """Write each update to its row; with a reduction all that a row gets are combined at once, since they
    have no order."""
    reduction = call.attributes.get("reduction", "none")
    if reduction == "none":
        found = data.copy()
        found[rows] = updates
        return found
    combine, nothing = _COMBINED[str(reduction)]
    layers = [data]
    # of another type 64-bit integers become floats
    neutral = np.int8 if isinstance(data, Bounded) else data.dtype
    for update in _turns(rows, data.shape[0]):
        has = (update >= 0).reshape((-1,) + (1,) * (len(data.shape) - 1))
        layers.append(np.where(has, updates[update], data if nothing is None else np.array(nothing, neutral)))
    if isinstance(data, Bounded):
        return _BOUNDED[combine](np.stack(layers), axis=0)
    return combine.reduce(np.stack(layers).astype(data.dtype), axis=0, dtype=data.dtype)


def _turns(rows: NDArray[np.int64], count: int) -> Iterator[NDArray[np.int64]]:
    """Yield for each row the number of an update, -1 where there is none: first updates of rows, then second
    ones, and so on."""
    order = np.argsort(rows, kind="stable")
    turn = np.zeros(len(rows), np.int64)
    turn[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
    for number in range(int(turn.max(initial=-1)) + 1):
        update = np.full(count, -1)
        update[rows[turn == number]] = np.flatnonzero(turn == number)
        yield update


def _by_reduction(formula: Any) -> Any:
    """Make the oracle of a formula that moves, chooses or computes, as the reduction says."""
    oracles = {
        "none": moved(formula),
        **dict.fromkeys(("add", "mul"), bounded(formula)),
        **dict.fromkeys(("max", "min"), decided(formula)),
    }

    def oracle(call: Call, inputs: Mapping[str, Tensor], arithmetic: str) -> tuple[Expected, ...]:
        return oracles[str(call.attributes.get("reduction", "none"))](call, inputs, arithmetic)

    return oracle


def _unknown_reduction(call: Call) -> str | None:
    since = _REDUCTIONS.get(str(call.attributes.get("reduction", "none")))
    known = since is not None and call.opset >= since
    return None if known else "reduction is none, add, mul, max or min, as far as the version has it"


def _combines(call: Call) -> bool:
    return call.attributes.get("reduction", "none") != "none"


class _Values(Family):
    """The elements of both families: numbers to compute with in data and updates, places in indices, once or several
    times each."""

    def kinds(self, operator: Operator, name: str) -> tuple[ValueKind, ...]:
        """Indices by where they point, everything else by what it means."""
        return (*DISTINCT_KINDS, *INDEX_KINDS) if name == "indices" else elements.ELEMENT_KINDS

    def applies(self, operator: Operator, kind: str, name: str, call: Call) -> bool:
        """Say whether there are as many places as a kind wants, and whether it has a meaning for the type."""
        if name != "indices":
            return elements.applies(kind, call.inputs[name].dtype)
        return self.holds(call) if kind in _DISTINCT else super().applies(operator, kind, name, call)

    def generate(self, operator: Operator, kind: str, name: str, call: Call, entropy: Entropy) -> Array:
        """Choose indices, or elements."""
        if name != "indices":
            return elements.choose(kind, *call.inputs[name], entropy)
        if kind in _DISTINCT:
            return self.distinct(kind, call, entropy)
        return super().generate(operator, kind, name, call, entropy)

    def holds(self, call: Call) -> bool:
        """Say whether there is a place for each index."""
        raise NotImplementedError

    def distinct(self, kind: str, call: Call, entropy: Entropy) -> Array:
        """Choose indices that name no place twice."""
        raise NotImplementedError

    def output_shapes(self, operator: Operator, call: Call) -> tuple[Shape, ...]:
        """The shape of data."""
        return (call.first.shape,)


class ScatterElementsFamily(_Values, GatherElementsFamily):
    """Indices and updates of one shape, of the rank of data, along the axis of any extent and elsewhere at
    most that of data."""

    def extent(self, call: Call) -> int:
        """Return the extent of data along the axis."""
        size = self.sizes(call)
        assert isinstance(size, int)
        return size

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Indices as GatherElements has them; updates have their shape."""
        return call.shapes[1] if name == "updates" else super().shape(operator, name, relation, call)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules of GatherElements, and that updates have the shape of indices."""
        found = super().broken_rule(operator, call)
        return found or (None if call.shapes[1] == call.shapes[2] else UPDATES)

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """The rule on index values; and where nothing is reduced, that no place is named twice."""
        found = super().broken_by_values(operator, call, inputs)
        at = np.sort(inputs["indices"].array % max(self.extent(call), 1), axis=axis_of(call))
        twice = np.any(np.diff(at, axis=axis_of(call)) == 0)
        return found or (REPEATED if twice and not _combines(call) else None)

    def holds(self, call: Call) -> bool:
        """Say whether the axis has a place for each index along it."""
        index, axis = call.shapes[1], axis_of(call)
        return 0 in index or not -len(index) <= axis < len(index) or index[axis] <= self.extent(call)

    def distinct(self, kind: str, call: Call, entropy: Entropy) -> Array:
        """Choose indices that differ along the axis."""
        dtype, shape = call.inputs["indices"]
        axis = axis_of(call) if -len(shape) <= axis_of(call) < len(shape) else 0
        return distinct(kind, dtype, shape, axis, max(self.extent(call), shape[axis]), entropy)

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Lower to DML_OPERATOR_SCATTER, which replaces; without reduction."""
        if _combines(call) or self.broken_rule(operator, call) not in (None, UPDATES):
            return None
        tensors, axis = indexed(call, call.first.shape), axis_of(call) % len(call.first.shape)
        return DirectmlCall("DML_OPERATOR_SCATTER", tensors, 1, {"Axis": axis}, ("Axis",))


class ScatterNDFamily(_Values, GatherNDFamily):
    """Indices that hold tuples of coordinates in their last dimension; updates hold a slice of data for
    each."""

    def shape(self, operator: Operator, name: str, relation: Relation, call: Call) -> Shape | None:
        """Indices as GatherND has them; updates have the shape that gathering would give."""
        if name == "updates":
            return GatherNDFamily.output_shapes(self, operator, call)[0]
        return super().shape(operator, name, relation, call)

    def broken_rule(self, operator: Operator, call: Call) -> str | None:
        """Rules of GatherND, and that updates have the shape that gathering would give."""
        found = super().broken_rule(operator, call)
        if found:
            return found
        (gathered,) = GatherNDFamily.output_shapes(self, operator, call)
        return None if call.shapes[2] == gathered else "updates.shape == indices.shape[:-1] + data.shape[k:]"

    def broken_by_values(self, operator: Operator, call: Call, inputs: Mapping[str, Tensor]) -> str | None:
        """The rule on index values; and where nothing is reduced, that no place is named twice."""
        found = super().broken_by_values(operator, call, inputs)
        return found or (
            REPEATED if not _combines(call) and repeated(inputs["indices"].array, call.first.shape) else None
        )

    def holds(self, call: Call) -> bool:
        """Say whether data has a place for each tuple."""
        index = call.shapes[1]
        return prod(index[:-1]) <= prod(call.first.shape[: index[-1]])

    def distinct(self, kind: str, call: Call, entropy: Entropy) -> Array:
        """Choose tuples of coordinates, each once."""
        dtype, shape = call.inputs["indices"]
        sizes = tuple(max(extent, 1) for extent in call.first.shape[: shape[-1]])
        flat = distinct("distinct", dtype, (prod(shape[:-1]),), 0, prod(sizes), entropy)
        tuples = np.stack(np.unravel_index(flat, sizes), axis=-1)
        signs = np.frombuffer(entropy, "<u4", prod(shape)).reshape(tuples.shape) >> 31
        below = {"distinct": 0, "distinct_negative": 1, "distinct_mixed": signs.astype(np.int64)}[kind]
        return np.asarray((tuples - below * np.array(sizes)).reshape(shape).astype(np.int64))

    def directml(self, operator: Operator, candidate: str | None, call: Call) -> DirectmlCall | None:
        """Lower to DML_OPERATOR_SCATTER_ND, which replaces; without reduction."""
        if _combines(call) or not all(call.shapes[:2]):
            return None
        counts = {"InputDimensionCount": len(call.shapes[0]), "IndicesDimensionCount": len(call.shapes[1])}
        tensors = indexed(call, call.first.shape)
        return DirectmlCall("DML_OPERATOR_SCATTER_ND", tensors, max(map(len, call.shapes)), counts)


OPERATORS = (
    Operator("ScatterElements", ScatterElementsFamily(), _by_reduction(scatter_elements), _unknown_reduction),
    Operator("Scatter", ScatterElementsFamily(), moved(scatter_elements)),
    Operator("ScatterND", ScatterNDFamily(), _by_reduction(scatter_nd), _unknown_reduction),
)
