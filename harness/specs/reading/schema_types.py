"""The types of values that keys of a spec file share: names, element types, shapes, opsets, one or several.

Sequences are tuples, single values where a list is allowed are tuples of one, and everything is frozen.
"""

from __future__ import annotations

import json
from datetime import date
from importlib import import_module
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from harness.model.case import Validity
from harness.model.dtypes import DTYPES
from harness.model.verdict import Outcome
from harness.specs.reading.literals import shape_problem
from harness.specs.reading.source import shown

ALL = "all"
"""Stands for every value that the operator allows."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

LISTED = "<list>"
"""Tag of the list form of a value that may also be `all`."""

_T = TypeVar("_T")


def json_schema(described: dict[str, Any], title: str) -> str:
    """Return the JSON Schema of a file, for editors, as the text of a file in `docs`."""
    return json.dumps({"$schema": _DIALECT} | described | {"title": title}, indent=2) + "\n"


def refuse(what: str, *, given: str | None = None, allowed: tuple[str, ...] = ()) -> PydanticCustomError:
    """Make the error that `problems.validation_problems` turns into a line with a suggestion."""
    return PydanticCustomError("refused", "{what}", {"what": what, "given": given, "allowed": allowed})


def _listed(value: object) -> object:
    return value if isinstance(value, tuple) or value == ALL else (value,)


class OneOrMore:
    """Lets a single value stand for a list of one, in the file and in the JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda v: v if isinstance(v, tuple) else (v,), handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


def _distinct(values: tuple[_T, ...]) -> tuple[_T, ...]:
    if len(set(values)) < len(values):
        twice = next(v for i, v in enumerate(values) if v in values[:i])
        raise refuse(f"{list(twice) if isinstance(twice, tuple) else twice!r} is listed twice")
    return values


def _dtype(name: str, *words: str) -> str:
    if name not in DTYPES:
        raise refuse(f"unknown dtype {name!r}", given=name, allowed=(*words, *DTYPES))
    return name


def _shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if wrong := shape_problem(shape):
        raise refuse(wrong)
    return shape


def _sorted_opsets(opsets: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(_distinct(opsets)))


def _kind(value: object) -> str:
    return "<all>" if isinstance(value, str) and value == ALL else LISTED


_Listed = BeforeValidator(_listed)
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
OutputNames = Annotated[str, Field(pattern=r"^[A-Za-z][\w.]*(,[A-Za-z][\w.]*)*$", max_length=120)]
Dtype = Annotated[str, AfterValidator(_dtype), WithJsonSchema({"type": "string", "enum": list(DTYPES)})]
Shape = Annotated[tuple[Annotated[int, Field(ge=0)], ...], AfterValidator(_shape)]
Opsets = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1), AfterValidator(_sorted_opsets)
]
FileName = Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=120)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
_All = Annotated[Literal["all"], Tag("<all>")]
_Dtypes = Annotated[
    tuple[Annotated[str, AfterValidator(lambda name: _dtype(name, ALL))], ...],
    Field(min_length=1),
    AfterValidator(_distinct),
    Tag(LISTED),
]
_OPSETS = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1}
_ONE_DTYPE = {"enum": list(DTYPES)}
_ALL_DTYPES = {
    "anyOf": [
        {"enum": [ALL, *DTYPES]},
        {"type": "array", "items": _ONE_DTYPE, "minItems": 1, "uniqueItems": True},
    ]
}
AllOrOpsets = Annotated[
    _All | Annotated[Opsets, Tag(LISTED)],
    Discriminator(_kind),
    WithJsonSchema({"anyOf": [{"const": ALL}, _OPSETS]}),
]
AllOrDtypes = Annotated[_All | _Dtypes, Discriminator(_kind), _Listed, WithJsonSchema(_ALL_DTYPES)]
Alternatives = Annotated[tuple[_T, ...], Field(min_length=1), AfterValidator(_distinct), OneOrMore()]
Kinds = Alternatives[Name]
Elements = Annotated[Any, WithJsonSchema({"type": ["number", "string", "boolean", "array"]})]
"""Literal tensor elements: a scalar or nested tuples; `literals.to_array` gives them their meaning."""
Documented = Annotated[Any, WithJsonSchema({"type": ["number", "string", "boolean", "array", "object"]})]
"""A documented result: elements, or for one without elements `{shape: [0, 3], values: []}`."""
_VALUE = {"type": ["number", "string", "boolean", "array", "object", "null"]}
AttributeValue = Annotated[Any, WithJsonSchema(_VALUE)]
"""The value of an attribute, or alternatives for it; `attribute_values` gives it its meaning, by the type
that ONNX says."""
OMITTED = "omitted"
"""Stands in place of a shape for an optional input that is left out."""


def _relation(shape: object) -> object:
    """Check what stands under `shape:` of a sweep: shapes and words, or a mapping of an operator's own keys
    to alternatives."""
    if isinstance(shape, dict):
        for key, given in shape.items():
            if given is None or given == ():
                raise refuse(f"{key!r} must not be empty")
        return shape
    listed = shape if isinstance(shape, tuple) else (shape,)
    if not listed:
        raise refuse("must not be empty")
    for each in listed:
        if isinstance(each, tuple):
            for extent in each:
                if type(extent) is not int:
                    raise refuse(f"should be an integer, not {shown(extent)}")
                if extent < 0:
                    raise refuse(f"{extent} is below the least allowed, 0")
            _shape(each)
        elif not isinstance(each, str):
            raise refuse(f"should be a shape such as [2, 3], or a word, not {shown(each)}")
    return _distinct(listed)


_RELATION = {
    "anyOf": [{"type": "array", "minItems": 1}, {"type": "string"}, {"type": "object", "minProperties": 1}]
}
Relation = Annotated[Any, AfterValidator(_relation), WithJsonSchema(_RELATION)]


class Strict(BaseModel):
    """Unknown keys and converted types are errors, and values are frozen. A default of such a type is made by
    `model_construct`: a call builds the validator, 20 ms for a case's options at import."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, defer_build=True
    )


class StrictTypes(dict[tuple[str, str], type]):
    """What models are made of besides numbers, texts and tuples, by module and name: the modules of `Strict` types load
    as these are asked for."""

    def __missing__(self, key: tuple[str, str]) -> type:
        module, name = key
        found = getattr(import_module(module), name) if module.startswith("harness.specs.") else None
        if not (isinstance(found, type) and issubclass(found, Strict)):
            raise KeyError(key)
        self[key] = found
        return found


STRICT_TYPES = StrictTypes({(each.__module__, each.__qualname__): each for each in (Outcome, Validity, date)})
