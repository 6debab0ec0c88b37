"""What ONNX itself says of an operator: inputs, outputs, attributes and element types, from `onnx.defs`.

Nothing of this is restated in a spec. Only registry look-ups happen here: no checker and no shape inference, which are native code
and can crash on bad attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import onnx.defs

from harness.dtypes import DTYPES

_RENAMED = {"float": "float32", "double": "float64"}

IR_VERSIONS = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}
"""The IR version that ONNX released together with each opset (onnx/docs/Versioning.md): the oldest that all tools of that opset read."""


class UnknownOperator(LookupError):
    """ONNX has no operator of this name."""


class OpsetUnavailable(LookupError):
    """The operator does not exist at this opset, or this onnx does not know the opset."""


class Parameter(NamedTuple):
    """An input or output: its name, type parameter (or its only type) and the dtypes allowed, as `dtypes.DTYPES` names them."""

    name: str
    type_param: str
    dtypes: tuple[str, ...]
    optional: bool = False


class Attribute(NamedTuple):
    """An attribute: its type as ONNX names it (`INT`, `INTS`, `STRING` …), its default (None without one), and whether it must be given."""

    type: str
    default: int | float | str | None
    required: bool


class OperatorSchema(NamedTuple):
    """An operator at one opset; `since_version` is the opset whose definition holds there."""

    name: str
    since_version: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: dict[str, Attribute]

    def input(self, name: str) -> Parameter | None:
        """Return the input of this name, if there is one."""
        return next((p for p in self.inputs if p.name == name), None)

    def output_dtype(self, inputs: Mapping[str, str]) -> str | None:
        """Return the element type of the first output for inputs of the given element types; None where they do not decide it."""
        output = self.outputs[0]
        for parameter in self.inputs:
            if parameter.type_param == output.type_param and parameter.name in inputs:
                return inputs[parameter.name]
        return output.dtypes[0] if len(output.dtypes) == 1 else None


def latest_opset() -> int:
    """Return the newest opset of the default domain that the installed onnx knows."""
    return int(onnx.defs.onnx_opset_version())


@lru_cache(maxsize=1)
def operator_versions() -> dict[str, tuple[int, ...]]:
    """Return, for each operator of the default domain, the opsets that changed it, ascending."""
    versions: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema.since_version)
    return {name: tuple(sorted(found)) for name, found in sorted(versions.items())}


@lru_cache(maxsize=256)
def operator_schema(name: str, opset: int) -> OperatorSchema:
    """Return the schema of an operator at an opset; raise UnknownOperator or OpsetUnavailable with a message for users."""
    if opset > latest_opset():
        raise OpsetUnavailable(f"opset {opset} is not in the installed onnx {onnx.__version__}, whose newest is {latest_opset()}")
    try:
        schema = onnx.defs.get_schema(name, opset, "")
    except onnx.defs.SchemaError as error:
        versions = operator_versions().get(name)
        if versions is None:
            raise UnknownOperator(f"ONNX has no operator {name!r}") from error
        raise OpsetUnavailable(f"{name} exists since opset {versions[0]}, not at {opset}") from error
    constraints = {c.type_param_str: tuple(c.allowed_type_strs) for c in schema.type_constraints}
    return OperatorSchema(
        name,
        schema.since_version,
        tuple(_parameter(p, constraints) for p in schema.inputs),
        tuple(_parameter(p, constraints) for p in schema.outputs),
        {key: _attribute(a) for key, a in schema.attributes.items()},
    )


def _parameter(formal: onnx.defs.OpSchema.FormalParameter, constraints: Mapping[str, tuple[str, ...]]) -> Parameter:
    allowed = {_dtype(text) for text in constraints.get(formal.type_str, (formal.type_str,))}
    optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
    return Parameter(formal.name, formal.type_str, tuple(name for name in DTYPES if name in allowed), optional)


def _dtype(type_text: str) -> str | None:
    """Turn `tensor(float)` into `float32`; None for what is not a tensor."""
    if not type_text.startswith("tensor("):
        return None
    inner = type_text[len("tensor(") : -1]
    return _RENAMED.get(inner, inner)


def _attribute(attribute: onnx.defs.OpSchema.Attribute) -> Attribute:
    value = attribute.default_value
    kind = str(attribute.type).rpartition(".")[2]
    default: int | float | str | None = None
    if value.type == onnx.AttributeProto.INT:
        default = int(value.i)
    elif value.type == onnx.AttributeProto.FLOAT:
        default = float(value.f)
    elif value.type == onnx.AttributeProto.STRING:
        default = value.s.decode()
    return Attribute(kind, default, bool(attribute.required))
