"""Facts about operators for the recording of a model: the first inputs of a body, indices among inputs, operators
that draw, and those that only make a constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.model.case import Tensor
from harness.model.dtypes import Array
from harness.operators.base import Shape

_RANDOM = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Multinomial", "Bernoulli", "Dropout"),
    }
)
_TRAINING = 2
"""The place of Dropout's input training_mode, without which it drops nothing."""
_SAYS_MASK = 12
"""The first version of Dropout that says what its mask holds."""
CONSTANT, PASSED_ON = "Constant", "Identity"
_PASSING = frozenset(
    {"Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Flatten", "Transpose", "Expand"}
)
_MOST_AXES = 64
"""Extents of a tuple of indices, beyond the axes that any tensor has."""
_PERMUTED = 1 << 24
"""Numbers that are permuted to draw indices."""
_TEXTS = ("cats_strings", "keys_strings", "pool_strings", "string_vocabulary")
"""Attributes of texts that an operator looks for."""


def known_texts(attributes: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the texts that some node looks for, of the names and values of attributes."""
    found = [
        each.decode("utf-8", "replace") for name, texts in attributes if name in _TEXTS for each in texts
    ]
    return list(dict.fromkeys(found))


def replaced(attributes: Iterable[tuple[str, float]]) -> list[float]:
    """Return the number that a node replaces, of the names and numbers of its attributes."""
    return [number for name, number in attributes if name == "replaced_value_float"]


def is_mask(name: str) -> bool:
    """Say whether an input of a model is by its name one of 0 and 1."""
    return "mask" in name.lower()


def draws(operator: str, inputs: int) -> bool:
    """Say whether the outputs of a node with this number of inputs follow from more than its inputs, or may."""
    return operator in _RANDOM and (operator != "Dropout" or inputs > _TRAINING)


def left_open(operator: str, opset: int, outputs: int) -> str | None:
    """Return what no source says of a node with this number of outputs: what the mask of a Dropout holds before version 12."""
    early = operator == "Dropout" and opset < _SAYS_MASK and outputs > 1
    return "what the mask holds where nothing is dropped" if early else None


def counts_outputs(operator: str) -> bool:
    """Say whether a node computes something else with fewer outputs: a BatchNormalization in training has them all."""
    return operator == "BatchNormalization"


def needs_lengths(operator: str) -> bool:
    """Say whether ONNX's shape inference refuses a node whose input of extents has an unknown length: it takes that of sizes of a
    Resize for 0. In a model it is known."""
    return operator == "Resize"


def first_body(
    operator: str, attributes: Mapping[str, Any], given: Sequence[Tensor | None]
) -> tuple[str, list[Tensor | None]] | None:
    """Return the attribute that holds the body of a node, and what the body's inputs are in its first iteration, None
    for one that is no tensor; None for a node without a body that runs."""
    if operator == "If" and given[0] is not None:
        return ("then_branch" if given[0].array.reshape(-1)[0] else "else_branch"), []
    if operator == "Loop":
        trips, condition, *carried = [*given, None, None][: max(2, len(given))]
        no_trip = trips is not None and int(trips.array.reshape(-1)[0]) < 1
        if no_trip or (condition is not None and not condition.array.reshape(-1)[0]):
            return None
        return "body", [Tensor("int64", np.array(0)), Tensor("bool", np.array(True)), *carried]
    if operator == "Scan" and len(given) >= attributes["num_scan_inputs"]:
        states = len(given) - attributes["num_scan_inputs"]
        axes = attributes.get("scan_input_axes") or [0] * attributes["num_scan_inputs"]
        firsts = [_first(scanned, axis) for scanned, axis in zip(given[states:], axes, strict=False)]
        return None if None in firsts else ("body", [*given[:states], *firsts])
    return None


def _first(scanned: Tensor | None, axis: int) -> Tensor | None:
    if scanned is None or not scanned.array.shape[axis]:
        return None
    return Tensor(scanned.dtype, np.ascontiguousarray(scanned.array.take(0, axis)))


def passes_indices(operator: str) -> bool:
    """Say whether an operator's outputs hold the elements of its first input."""
    return operator in _PASSING


def index_limit(
    operator: str, attributes: Mapping[str, Any], position: int, first: Shape | None
) -> int | None:
    """Return below what the elements of an input at a position must lie, if they are indices into the first input,
    whose shape is known."""
    if operator == "RoiAlign" and position == 2 and first:
        return int(first[0])
    if position != 1 or first is None:
        return None
    if operator in ("Gather", "GatherElements", "ScatterElements"):
        axis = attributes.get("axis", 0)
        return int(first[axis]) if -len(first) <= axis < len(first) else None
    return min(first, default=None) if operator in ("GatherND", "ScatterND") else None


def distinct_indices(
    operator: str, attributes: Mapping[str, Any], limit: int, shape: Shape, generator: np.random.Generator
) -> Array | None:
    """Draw indices below a limit that name no place twice, for an operator that needs such ones; None for another one, and where
    there are too few."""
    if attributes.get("reduction", b"none") != b"none" or not shape or not shape[-1]:
        return None
    axis = attributes.get("axis", 0)
    if operator == "ScatterElements" and -len(shape) <= axis < len(shape) and shape[axis] <= limit:
        others = np.delete(shape, axis)
        if limit * math.prod(others) <= _PERMUTED:
            every = np.broadcast_to(np.arange(limit), (*others, limit))
            return np.moveaxis(generator.permuted(every, axis=-1)[..., : shape[axis]], -1, axis)
    if operator == "ScatterND" and shape[-1] <= _MOST_AXES and math.prod(shape[:-1]) <= limit ** shape[-1]:
        steps = [min(limit**n, 1 << 62) for n in range(shape[-1] + 1)]
        places = generator.choice(steps[-1], math.prod(shape[:-1]), replace=False)
        return np.stack([places // step % limit for step in steps[:-1]], -1).reshape(shape)
    return None
