"""Shapes by rank and size, for sweeps that cover the two as factors of their own, and what the words of such a sweep
stand for once other factors are chosen: the shape of a rank and a size, the last axis of it, the longest tuple."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from harness.operators.base import Call, Shape, TensorType
from harness.specs.sweeps.alternatives import PLACEHOLDER, Choices, Listed, Relation, named_shape

_FEW, _BATCHES, _LARGE, _VECTOR = 4096, 64, 65535, 4
SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "none": ((0,), (0, 3), (2, 0, 3), (2, 0, 1, 3), (2, 1, 0, 2, 3), (1, 2, 0, 1, 2, 3), (2, 1, 1, 0, 2, 1, 3),
             (1, 2, 1, 0, 2, 1, 1, 3), (2, 1, 2, 1, 0, 1, 2, 1, 3)),
    "one": tuple((1,) * rank for rank in range(10)),
    "odd": ((7,), (3, 5), (3, 2, 5), (2, 3, 2, 5), (2, 1, 3, 2, 3), (2, 1, 2, 3, 1, 3), (1, 2, 3, 1, 2, 1, 3),
            (2, 1, 2, 1, 3, 2, 1, 3), (2, 1, 2, 1, 1, 3, 1, 2, 3)),
    "whole": ((64,), (4, 16), (2, 4, 8), (2, 3, 2, 8), (2, 1, 2, 3, 8), (2, 1, 2, 3, 1, 8), (1, 2, 3, 1, 2, 1, 8),
              (2, 1, 2, 1, 3, 2, 1, 8), (2, 1, 2, 1, 1, 3, 1, 2, 8)),
    "many": ((130,), (67, 3), (66, 2, 3), (65, 2, 2, 3), (65, 2, 1, 2, 3), (65, 1, 2, 2, 1, 3), (65, 2, 1, 2, 1, 1, 3),
             (65, 2, 1, 1, 2, 1, 1, 3), (65, 2, 1, 1, 2, 1, 1, 1, 3)),
    "large": ((70001,), (257, 301), (3, 257, 101), (2, 3, 129, 101), (2, 129, 1, 3, 101), (2, 129, 1, 3, 1, 101),
              (2, 1, 129, 3, 1, 1, 101), (2, 1, 129, 1, 3, 1, 1, 101), (2, 1, 129, 1, 1, 3, 1, 1, 101)),
}  # fmt: skip
"""By size, the shape of each rank: without an element, of one, of a few whose rows are no multiple of 4 (where a
rest remains after vectors) or are one, of more than 64 in the first dimension, of more than 16 bits count."""
RANK, SIZE = "rank", "size"
KEYS = {RANK: tuple(map(str, range(10))), SIZE: tuple(SHAPES)}
"""The keys of the first input's shape in a covering sweep, with their levels."""


def shape_of(rank: int, size: str) -> Shape | None:
    """Return the shape of a rank and a size; None where there is none."""
    return next((shape for shape in SHAPES[size] if len(shape) == rank), None)


def sizes_of(shape: Shape) -> list[str]:
    """Return the sizes that a shape has; several may hold."""
    count = prod(shape)
    few = 1 < count <= _FEW
    holds = {
        "none": count == 0,
        "one": count == 1,
        "odd": few and shape[-1] % _VECTOR != 0,
        "whole": few and shape[-1] % _VECTOR == 0,
        "many": bool(count and shape) and shape[0] > _BATCHES,
        "large": count > _LARGE,
    }
    return [size for size, true in holds.items() if true]


Chosen = dict[tuple[str, ...], Any]
"""What is chosen of each factor, by the part of a case that it decides."""
Resolved = tuple[dict[str, Relation], dict[str, Any]]
"""The relations of shapes by input, and the attributes."""


def with_words(listed: Listed, opset: int, chosen: Chosen) -> Resolved | str:
    """Return the relations of shapes and the attributes that are chosen, or which word has no meaning there."""
    relations: dict[str, Relation] = {}
    keys: dict[str, dict[str, Any]] = {}
    for part, value in chosen.items():
        if part[0] == "shape" and len(part) == 2:
            relations[part[1]] = value
        elif part[0] == "shape":
            keys.setdefault(part[1], {})[part[2]] = value
    names = [parameter.name for parameter in listed.parameters(opset)]
    first: Shape = ()
    if names:
        if RANK in keys.get(names[0], {}):
            own = keys.pop(names[0])
            shape = shape_of(own[RANK], own[SIZE])
            if shape is None:
                return f"no shape of rank {own[RANK]} is {own[SIZE]}"
            relations[names[0]] = shape
        first = named_shape(relations.get(names[0], ()))
    defaults = listed.schema(opset).defaults()
    call = Call({names[0]: TensorType(PLACEHOLDER, first)} if names else {}, defaults, {}, opset)
    picked = _attributes(listed, opset, chosen, call)
    if isinstance(picked, str):
        return picked
    call = call._replace(attributes={**defaults, **{k: v for k, v in picked.items() if v is not None}})
    for name, by_key in keys.items():
        found = {key: _value(listed, key, value, call) for key, value in by_key.items()}
        for key, value in by_key.items():
            if found[key] is None:
                return f"{key}={value} has no meaning there"
        relations[name] = Choices(tuple(found.items()))
    return {name: relations[name] for name in names if name in relations}, picked


def _attributes(listed: Listed, opset: int, chosen: Chosen, call: Call) -> dict[str, Any] | str:
    known = listed.attribute_kinds(opset)
    picked: dict[str, Any] = {}
    for part, value in chosen.items():
        if part[0] == "attribute" and part[1] in known:
            picked[part[1]] = _value(listed, part[1], value, call)
            if picked[part[1]] is None and value is not None:
                return f"{part[1]}={value} has no meaning at rank {len(call.first.shape)}"
    return picked


def _value(listed: Listed, name: str, value: Any, call: Call) -> Any:
    """Return the value that a word stands for, and any other value as it is."""
    family, operator = listed.operator.family, listed.operator
    worded = isinstance(value, str) and value in family.positions(operator, name)
    return family.position(operator, name, value, call) if worded else value
