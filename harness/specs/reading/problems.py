"""Converts pydantic's errors to the project's lines: `file:line: path: what; did you mean 'x'?; allowed: a,
b`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, ValidationError

from harness.specs.reading.entry_schema import Sweep, Use
from harness.specs.reading.schema_types import LISTED
from harness.specs.reading.source import KeyPath, Source, shown

_WANTED = {
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def validation_problems(source: Source, error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return one line for each error, at the line of the part that is wrong; `model` is what the whole file
    was read as."""
    found = cast(list[dict[str, Any]], error.errors(include_url=False))
    lines = [
        _line(source, details, model)
        for details in found
        if not (details["type"] == "too_short" and details["input"])
    ]
    return list(dict.fromkeys(lines))  # `too_short` of a list with elements: these have their own errors


def _line(source: Source, details: dict[str, Any], model: type[BaseModel]) -> str:
    path = source.known(details["loc"])
    kind, value, context = details["type"], details.get("input"), details.get("ctx", {})
    if kind == "refused":
        return source.problem(path, context["what"], given=context["given"], allowed=context["allowed"])
    if kind == "extra_forbidden":
        key = str(path[-1])
        what = f"unknown key {shown(key)}" + (
            "; quote text that contains a comma" if value is None and " " in key else ""
        )
        return source.problem(path, what, given=key, allowed=_keys(model, path[:-1]))
    if kind == "missing":
        return source.problem(path, f"the key {details['loc'][-1]!r} is missing")
    if kind in ("literal_error", "enum"):
        allowed = [
            word for word in context["expected"].replace(" or ", ", ").replace("'", "").split(", ") if word
        ]
        given = value if isinstance(value, str) else None
        return source.problem(path, f"{shown(value)} is not allowed here", given=given, allowed=allowed)
    if kind in _WANTED:
        everything = " or 'all'" if LISTED in details["loc"] else ""
        return source.problem(path, f"should be {_WANTED[kind]}{everything}, not {shown(value)}")
    if kind == "string_pattern_mismatch":
        what = (
            "must not be blank"
            if context["pattern"] == r"\S"
            else f"{shown(value)} is not a name; use lower-case letters, digits and _"
        )
        return source.problem(path, what)
    return source.problem(path, _sentence(kind, value, context, details["msg"]))


def _sentence(kind: str, value: Any, context: dict[str, Any], message: str) -> str:
    match kind:
        case "greater_than_equal":
            return f"{shown(value)} is below the least allowed, {context['ge']}"
        case "less_than_equal":
            return f"{shown(value)} is above the greatest allowed, {context['le']}"
        case "too_short" | "string_too_short":
            return "must not be empty"
        case "too_long":
            return f"has {len(value)} entries, above the greatest number allowed, {context['max_length']}"
        case "string_too_long":
            return f"longer than {context['max_length']} characters"
        case "invalid_key":
            return "a key must be text"
        case _:
            return message[:1].lower() + message[1:]


def _keys(model: type[BaseModel], path: KeyPath) -> Sequence[str]:
    """Return the keys that a mapping at a path may have: those of the model that the path leads to."""
    current: Iterable[type[BaseModel]] = [model]
    for key in path:
        if isinstance(key, str):
            current = [m for parent in current for m in _models(parent, key)]
    fields = (each for m in current for each in m.model_fields.items())
    return list(dict.fromkeys(field.alias or name for name, field in fields))


def _models(parent: type[BaseModel], key: str) -> list[type[BaseModel]]:
    if parent is Use and key in Sweep.model_fields:
        return []  # what an entry without `use` says
    field = parent.model_fields.get(key)
    if field is not None:
        return list(_inside(field.annotation))
    extra = parent.model_config.get("extra") == "allow"
    return list(_inside(get_type_hints(parent)["__pydantic_extra__"])) if extra else [parent]


def _inside(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _inside(argument)
