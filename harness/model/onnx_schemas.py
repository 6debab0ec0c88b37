"""ONNX's own definition of an operator: inputs, outputs, attributes and element types, from `onnx.defs`.

A spec restates none of this. Only registry look-ups happen here: no checker and no shape inference, which are
native code and can crash on bad attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any

import onnx.defs
import onnx.helper

from harness.model import signatures
from harness.model.case import Value
from harness.model.dtypes import DTYPES
from harness.model.operator_schema import Attribute, OperatorSchema, Parameter

_HAS_BODY = attrgetter("has_function", "has_context_dependent_function")
"""Both ways to have one; onnx's stubs lack them."""
_PLAIN = tuple(
    getattr(onnx.AttributeProto, name) for name in ("INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS")
)
_RENAMED = {"float": "float32", "double": "float64"}

IR_VERSIONS = {
    **dict.fromkeys(range(1, 10), 4), 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11,
    24: 12, 25: 13, 26: 13, 27: 13, 28: 14,
}  # fmt: skip
"""The IR version that ONNX released together with each opset (onnx/docs/Versioning.md): the oldest that all
tools of that opset read.

Before opset 9 that was 3, in which every initializer is also an input that a caller may replace; from 4 on it
is a constant."""


BESIDE = 17
"""The version of ONNX's default domain in a model whose tested operator is of another: ONNX Runtime 1.12 and later
read it."""


def opset_imports(name: str, opset: int) -> dict[str, int]:
    """Return the versions that a model imports, by domain, to have an operator at an opset of its own domain."""
    domain = name.rpartition(".")[0]
    return {"": BESIDE, domain: opset} if domain else {"": opset}


def ir_version(name: str, opset: int) -> int:
    """Return the IR version of a model with an operator at an opset of its own domain."""
    return IR_VERSIONS[opset_imports(name, opset)[""]]


class UnknownOperator(LookupError):
    """ONNX has no operator of this name."""


class OpsetUnavailable(LookupError):
    """The operator does not exist at this opset, or this onnx does not know the opset."""


def latest_opset() -> int:
    """Return the newest opset of the default domain that the installed onnx knows."""
    return int(onnx.defs.onnx_opset_version())


@lru_cache(maxsize=1)
def operator_versions() -> dict[str, tuple[int, ...]]:
    """Return, for each operator of the default domain and each with a signature of its own, the opsets that changed it,
    ascending."""
    versions: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema.since_version)
    for name in signatures.names():
        if (known := signatures.signature(name)) is not None:
            versions[name] = [known.since]
    return {name: tuple(sorted(found)) for name, found in sorted(versions.items())}


OLDEST_OPSET = 7
"""ONNX Runtime guarantees to run models of this opset and newer ones (docs/Versioning.md)."""


def opsets_of_versions(name: str) -> tuple[int, ...]:
    """Return one opset for each version of an operator that opset 7 or a later one uses, those of deprecated
    versions left out."""
    if (known := signatures.signature(name)) is not None:
        return (known.since,)
    found: list[int] = []
    opset = latest_opset()
    while opset >= OLDEST_OPSET:
        try:
            schema = onnx.defs.get_schema(name, opset, "")
        except onnx.defs.SchemaError:
            break
        found += [] if schema.deprecated else [max(schema.since_version, OLDEST_OPSET)]
        opset = schema.since_version - 1
    return tuple(reversed(found))


_GRAPHS: dict[str, Callable[[int], OperatorSchema]] = {}


def register_graph(name: str, schema: Callable[[int], OperatorSchema]) -> None:
    """Give a graph of several operators a signature, by opset, as if it were one operator."""
    _GRAPHS[name] = lru_cache(maxsize=32)(schema)


def forget_graph(name: str) -> None:
    """Take the signature of a graph back."""
    _GRAPHS.pop(name, None)


def is_graph(name: str) -> bool:
    """Say whether a name is that of a graph of several operators."""
    return name in _GRAPHS


def operator_schema(name: str, opset: int) -> OperatorSchema:
    """Return the schema of an operator at an opset; raise UnknownOperator or OpsetUnavailable with a message
    for users."""
    graph = _GRAPHS.get(name)
    return _operator_schema(name, opset) if graph is None else graph(opset)


@lru_cache(maxsize=1024)
def _operator_schema(name: str, opset: int) -> OperatorSchema:
    if opset > latest_opset():
        raise OpsetUnavailable(
            f"opset {opset} is not in the installed onnx {onnx.__version__}, whose newest is {latest_opset()}"
        )
    if (known := signatures.signature(name)) is not None:
        if opset < known.since:
            raise OpsetUnavailable(f"{name} exists since version {known.since} of its domain, not at {opset}")
        return known.schema(name)
    try:
        schema = onnx.defs.get_schema(name, opset, "")
    except onnx.defs.SchemaError as error:
        versions = operator_versions().get(name)
        if versions is None:
            raise UnknownOperator(f"ONNX has no operator {name!r}") from error
        if name in signatures.earlier():
            return _operator_schema(name, versions[0])
        raise OpsetUnavailable(f"{name} exists since opset {versions[0]}, not at {opset}") from error
    constraints = {c.type_param_str: tuple(c.allowed_type_strs) for c in schema.type_constraints}
    return OperatorSchema(
        name,
        schema.since_version,
        tuple(
            _parameter(p, constraints, all(p.type_str != each.type_str for each in schema.outputs))
            for p in schema.inputs
        ),
        (
            *(each for p in schema.outputs for each in _written_out(_parameter(p, constraints))),
            *_of_twins(schema, constraints),
        ),
        {key: _attribute(a) for key, a in schema.attributes.items()},
        any(_HAS_BODY(schema)),
    )


def _parameter(
    formal: onnx.defs.OpSchema.FormalParameter,
    constraints: Mapping[str, tuple[str, ...]],
    of_optional: bool = False,
) -> Parameter:
    """Return a parameter. It is an optional if `of_optional` says so or ONNX allows nothing but optionals: an input
    that no output resembles, not one that is passed on unchanged."""
    option = onnx.defs.OpSchema.FormalParameterOption
    texts = constraints.get(formal.type_str, (formal.type_str,))
    of_optional |= all(text.startswith("optional(") for text in texts)
    if elements := _elements(texts):
        like = (name for name, allowed in constraints.items() if set(allowed) == set(elements))
        type_param = next(like, formal.type_str)
        return Parameter(formal.name, type_param, dtypes_of(elements), variadic=True, least=0, sequence=True)
    if held := {
        text[len("optional(") : -1] for text in texts if text.startswith("optional(") and of_optional
    }:
        like = (name for name, allowed in constraints.items() if held == set(allowed))
        type_param = next(like, formal.type_str)
        return Parameter(formal.name, type_param, dtypes_of(held), optional=True, optional_type=True)
    return Parameter(
        formal.name,
        formal.type_str,
        dtypes_of(texts),
        formal.option == option.Optional,
        formal.option == option.Variadic,
        int(formal.min_arity),
        bool(formal.is_homogeneous),
    )


def _elements(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types of the tensors in a sequence, `tensor(float)` of `seq(tensor(float))`; () where a type
    is none of a sequence."""
    inner = tuple(text[len("seq(") : -1] for text in texts if text.startswith("seq(tensor("))
    return inner if len(inner) == len(texts) else ()


def _written_out(output: Parameter) -> tuple[Parameter, ...]:
    """Return the outputs that a graph gives for one output: for a sequence its length and its tensors, for an
    optional whether it has an element, and the element."""
    if output.optional_type:
        return (Parameter(f"{output.name}_has_element", "tensor(bool)", ("bool",)), output)
    length = Parameter(f"{output.name}_length", "tensor(int64)", ("int64",))
    return (length, output) if output.sequence else (output,)


def _of_twins(schema: onnx.defs.OpSchema, constraints: Mapping[str, tuple[str, ...]]) -> Iterator[Parameter]:
    """Yield the outputs of further nodes with another seed and with the same seed, for an operator whose outputs are
    all random."""
    if "seed" in schema.attributes:
        (output, *others) = schema.outputs
        if not others:
            known = _parameter(output, constraints)
            yield from (
                known._replace(name=f"{known.name}_{what}", optional=True) for what in ("other", "again")
            )


def dtypes_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the element types of the tensors among types as ONNX writes them, `tensor(float)`."""
    allowed = set(map(_dtype, texts))
    return tuple(name for name in DTYPES if name in allowed)


def _dtype(type_text: str) -> str | None:
    """Turn `tensor(float)` into `float32`; return None for other types than tensors."""
    if not type_text.startswith("tensor("):
        return None
    inner = type_text[len("tensor(") : -1]
    return _RENAMED.get(inner, inner)


def _attribute(attribute: onnx.defs.OpSchema.Attribute) -> Attribute:
    kind = str(attribute.type).rpartition(".")[2]
    return Attribute(kind, default_of(attribute.default_value), bool(attribute.required))


def default_of(value: onnx.AttributeProto) -> Value | None:
    """Return the value of an attribute's default; None where it has none."""
    return plain(onnx.helper.get_attribute_value(value)) if value.type in _PLAIN else None


def plain(value: Any) -> Any:
    """Return the value of an attribute, as onnx's helper gives it, with texts for bytes and a tuple for a list."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    return value.decode(errors="replace") if isinstance(value, bytes) else value
