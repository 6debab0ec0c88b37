"""The values of attributes as words, each of which can be a row of a table: those that a case has, and those
that are possible.

An attribute that ONNX gives a few values has these; one that names a dimension `first`, `middle`, `last` and
`negative`; any other `default` and `other`, or `left out` and `given`. An input that decides shapes counts as the
attribute that it is at other opsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from harness.model.dtypes import BY_ONNX_NUMBER, DTYPES
from harness.model.onnx_schemas import operator_schema
from harness.model.operator_schema import Attribute, OperatorSchema
from harness.model.reference.feature_levels import load
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator
from harness.results.rules.facts import roles

_DIMENSION = ("first", "middle", "last", "negative")
_NEEDED = {"first": 1, "last": 2, "middle": 3, "negative": 1}
"""The least rank at which a word of a dimension says something of its own."""
LEFT_OUT, GIVEN, NEGATIVE = "left out", "given", "negative"
Word = tuple[str, str]
"""An attribute and one of its words."""


@cache
def documented_values(operator: str, attribute: str) -> tuple[str, ...]:
    """Return the values that ONNX documents for an attribute, () where they cannot be listed."""
    known = load("attribute_values.yaml")
    if attribute in known["flags"]:
        return "0", "1"
    values = known["values"]
    return tuple(values.get(f"{operator}.{attribute}", values.get(attribute, ())))


@lru_cache(maxsize=1024)
def possible_words(name: str, opset: int) -> tuple[Word, ...]:
    """Return every word of the attributes of an operator at an opset; of an attribute with a single word none."""
    operator, schema = OPERATORS[name], operator_schema(name, opset)
    found: list[Word] = []
    for attribute, described in schema.attributes.items():
        words = tuple(_words(name, schema, attribute, described))
        found += [(attribute, word) for word in words if len(words) > 1]
    for parameter in schema.inputs:
        if parameter.name in operator.constants:
            words = (LEFT_OUT, GIVEN) if parameter.optional else (GIVEN,)
            words += (NEGATIVE,) if roles().get(parameter.name) in ("dimension", "dimensions") else ()
            found += [(parameter.name, word) for word in words if len(words) > 1]
    return tuple(found)


def _words(operator: str, schema: OperatorSchema, name: str, attribute: Attribute) -> Iterator[str]:
    optional = attribute.default is None and not attribute.required
    if values := documented_values(operator, name):
        yield from values
    elif name in load("attribute_values.yaml")["types"]:
        yield from (each for each in schema.outputs[0].wide if each in DTYPES)
    elif roles().get(name) == "dimension":
        yield from ((LEFT_OUT, *_DIMENSION) if optional else _DIMENSION)
    elif attribute.default is not None:
        yield from ("default", "other")
    else:
        yield from (*((LEFT_OUT,) if optional else ()), GIVEN)
        if roles().get(name) == "dimensions":
            yield NEGATIVE


def has_meaning(word: Word, rank: int) -> bool:
    """Say whether a first input of this rank can show a word."""
    return roles().get(word[0]) not in ("dimension", "dimensions") or rank >= _NEEDED.get(word[1], 0)


def value_of(attribute: str, word: str, rank: int) -> int | None:
    """Return the value that a word stands for with a first input of this rank, where it is legal or not whatever
    the other attributes are; None for any other word."""
    if attribute in load("attribute_values.yaml")["types"]:
        return DTYPES[word].onnx
    if roles().get(attribute) == "dimension" and word in _DIMENSION:
        return {"first": 0, "middle": 1, "last": max(rank - 1, 0), NEGATIVE: -1}[word]
    return None


def shown_words(operator: Operator, call: Call) -> frozenset[Word]:
    """Return the words that a call shows."""
    schema = operator_schema(operator.name, call.opset)
    found: set[Word] = set()
    for name, attribute in schema.attributes.items():
        found |= {(name, word) for word in _of(operator.name, name, attribute, call)}
    for parameter in schema.inputs:
        if parameter.name in operator.constants:
            given = parameter.name in call.inputs
            found.add((parameter.name, GIVEN if given else LEFT_OUT))
            value = call.parameter(parameter.name) if given else None
            if value is not None and _any_below_zero(value):
                found.add((parameter.name, NEGATIVE))
    return frozenset(found & set(possible_words(operator.name, call.opset)))


def _of(operator: str, name: str, attribute: Attribute, call: Call) -> Iterator[str]:
    value = call.attributes.get(name)
    if value is None:
        yield LEFT_OUT
    elif documented_values(operator, name):
        yield str(int(bool(value))) if isinstance(value, int) else str(value)
    elif isinstance(value, int) and name in load("attribute_values.yaml")["types"]:
        yield BY_ONNX_NUMBER[value].name if value in BY_ONNX_NUMBER else ""
    elif isinstance(value, int) and roles().get(name) == "dimension":
        yield from _place(value, len(call.first.shape))
    elif attribute.default is not None:
        yield "default" if value == attribute.default else "other"
    else:
        yield GIVEN
        if _any_below_zero(value):
            yield NEGATIVE


def _place(axis: int, rank: int) -> Iterator[str]:
    place = axis + rank if axis < 0 else axis
    if axis < 0:
        yield NEGATIVE
    yield "first" if place <= 0 else "last" if place >= rank - 1 else "middle"


def _any_below_zero(value: Any) -> bool:
    return any(
        isinstance(each, int) and each < 0 for each in (value if isinstance(value, tuple) else (value,))
    )
