"""Signatures of operators that ONNX does not define: those of ONNX Runtime's own operators, as one release states
them, and those that a user writes beside a formula.

    {"inputs": ["X: T", "bias: T?", "others: T+"], "outputs": ["Y: T"], "types": {"T": ["float32"]},
     "attributes": {"alpha": ["FLOAT", 1.0], "axis": ["INT", null, true]}}

`?` marks an optional parameter, `+` a variadic one, `*` a variadic one whose tensors may differ in type. A type that
is no key of `types` is an element type; where `types` has `T.keys` and `T.values`, T is a map, or a sequence of maps. An attribute
has its type, its default and whether it must be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from harness.model.dtypes import DTYPES
from harness.model.operator_schema import Attribute, OperatorSchema, Parameter
from harness.model.reference.files import data_file, file_bytes

FILE = "contributed_operators.json"
"""Made by `python -m tools.contributed_operators`."""


class WrittenSignature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signature as it is written."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: dict[str, tuple[str, ...]] = {}
    attributes: dict[str, tuple[Any, ...]] = {}
    since: int = 1
    function: bool = False

    def schema(self, name: str) -> OperatorSchema:
        """Return the same as a schema."""
        inputs, outputs = (
            tuple(each for text in texts for each in self._parameters(text))
            for texts in (self.inputs, self.outputs)
        )
        attributes = {key: Attribute(*_filled(*given)) for key, given in self.attributes.items()}
        return OperatorSchema(name, self.since, inputs, outputs, attributes, self.function)

    def _parameters(self, text: str) -> Iterator[Parameter]:
        """Yield the parameters of the harness for one of the document: two for a map, its keys and its
        values."""
        name, _, written = text.partition(": ")
        type_ = written.rstrip("?+*")
        mark = written[len(type_) :]
        if f"{type_}.keys" in self.types:
            for part in ("keys", "values"):
                parted = f"{type_}.{part}"
                yield Parameter(f"{name}_{part}", parted, self.types[parted], map=name)
            return
        dtypes = self.types.get(type_, (type_,))
        yield Parameter(name, type_, dtypes, mark == "?", mark in ("+", "*"), alike=mark != "*")


def _filled(type_: str, default: Any = None, required: bool = False) -> tuple[str, Any, bool]:
    return type_, tuple(default) if isinstance(default, list) else default, required


_OWN: dict[str, WrittenSignature] = {}


def register(name: str, given: Mapping[str, Any]) -> None:
    """Give an operator of one's own a signature; raise ValueError for one that is malformed."""
    try:
        found = msgspec.convert(given, WrittenSignature)
        schema = found.schema(name)
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"signature of {name}: {error}") from error
    for each in (*schema.inputs, *schema.outputs):
        if unknown := [dtype for dtype in each.dtypes if dtype not in DTYPES]:
            raise ValueError(
                f"signature of {name}: {each.name} has the type {unknown[0]!r}, which is neither an element type nor a key of `types`"
            )
    _OWN[name] = found


@cache
def release() -> str:
    """Return the release of ONNX Runtime that the file is of."""
    return str(msgspec.json.decode(file_bytes(FILE))["onnxruntime"])


@cache
def layouts() -> tuple[str, ...]:
    """Return the operators of other layouts that ONNX Runtime's optimizer makes, `com.microsoft.nchwc.Conv`."""
    return tuple(msgspec.json.decode(file_bytes(FILE))["layouts"])


@cache
def earlier() -> tuple[str, ...]:
    """Return the operators of ONNX's default domain that ONNX Runtime has from version 1 on, and ONNX, with the same
    attributes, from a later one."""
    return tuple(msgspec.json.decode(file_bytes(FILE))["earlier"])


def names() -> tuple[str, ...]:
    """Return every operator that has a signature here, `com.microsoft.Gelu`."""
    return (*data_file(FILE).operators, *_OWN)


def signature(name: str) -> WrittenSignature | None:
    """Return the signature of an operator, one's own before ONNX Runtime's; None where there is none."""
    if name in _OWN:
        return _OWN[name]
    found = data_file(FILE).operators.get(name)
    return None if found is None else msgspec.json.decode(found, type=WrittenSignature)
