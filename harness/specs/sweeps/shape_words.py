"""What the words of a covering sweep stand for, once other factors are chosen: the shape of a rank and a size, the
last axis of it, the longest tuple."""

from __future__ import annotations

from typing import Any

from harness.operators.base import Call, Shape, TensorType
from harness.specs.sweeps.alternatives import PLACEHOLDER, Choices, Listed, Relation, named_shape
from harness.specs.sweeps.rank_shapes import RANK, SIZE, shape_of

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
