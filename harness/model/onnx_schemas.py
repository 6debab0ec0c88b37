"""ONNX's own definition of an operator: inputs, outputs, attributes and element types, from `onnx.defs`.

A spec restates none of this. Only registry look-ups happen here: no checker and no shape inference, which are
native code and can crash on bad attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

import onnx.defs

from harness.model.case import Value
from harness.model.dtypes import DTYPES

_HAS_BODY = attrgetter("has_function", "has_context_dependent_function")
"""Both ways to have one; onnx's stubs lack them."""
_RENAMED = {"float": "float32", "double": "float64"}

IR_VERSIONS = {
    **dict.fromkeys(range(1, 10), 4), 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11,
    24: 12, 25: 13, 26: 13, 27: 13, 28: 14,
}  # fmt: skip
"""The IR version that ONNX released together with each opset (onnx/docs/Versioning.md): the oldest that all
tools of that opset read.

Before opset 9 that was 3, in which every initializer is also an input that a caller may replace; from 4 on it
is a constant."""


class UnknownOperator(LookupError):
    """ONNX has no operator of this name."""


class OpsetUnavailable(LookupError):
    """The operator does not exist at this opset, or this onnx does not know the opset."""


class Parameter(NamedTuple):
    """An input or output: its name, type parameter (or its only type) and the dtypes allowed, as
    `dtypes.DTYPES` names them.

    A variadic one stands for several tensors, `least` of them at the least; `alike` says that all have one
    element type. A sequence of tensors is written out as such a one, and may hold none.
    """

    name: str
    type_param: str
    dtypes: tuple[str, ...]
    optional: bool = False
    variadic: bool = False
    least: int = 1
    alike: bool = True
    sequence: bool = False

    @property
    def needed(self) -> bool:
        """Say whether a call must give something for it."""
        return self.least > 0 if self.variadic else not self.optional


class Attribute(NamedTuple):
    """An attribute: its type as ONNX names it (`INT`, `INTS`, `STRING` …), its default (None without one),
    and whether it must be given."""

    type: str
    default: Value | None
    required: bool


class OperatorSchema(NamedTuple):
    """An operator at one opset; `since_version` is the opset whose definition holds there. `function` says that
    ONNX defines it by a body of other operators as well.

    A sequence of tensors that it gives is two outputs: how many tensors it holds, under its name and `_length`,
    and the tensors, as a variadic one.
    """

    name: str
    since_version: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: dict[str, Attribute]
    function: bool

    def input(self, name: str) -> Parameter | None:
        """Return the input of this name, if there is one; `data_0.2` is one of the variadic `data_0`."""
        formal = name.partition(".")[0]
        return next((p for p in self.inputs if p.name == formal), None)

    def output(self, position: int) -> Parameter:
        """Return the output at a position; those of a variadic output are all the last."""
        return self.outputs[min(position, len(self.outputs) - 1)]

    def output_name(self, position: int) -> str:
        """Return what a graph calls an output: its formal name, `outputs.1` for one of several."""
        parameter = self.output(position)
        return (
            f"{parameter.name}.{position - len(self.outputs) + 1}" if parameter.variadic else parameter.name
        )

    def given_outputs(self, count: int, omitted: str | None) -> tuple[int, ...]:
        """Return the positions of the outputs that a graph gives of so many: those that are not omitted, all where
        that would leave none."""
        names = frozenset((omitted or "").split(","))
        return tuple(n for n in range(count) if self.output_name(n) not in names) or tuple(range(count))

    def output_dtype(self, inputs: Mapping[str, str], position: int = 0) -> str | None:
        """Return the element type of an output for inputs of the given element types; None where they do not
        decide it."""
        output = self.output(position)
        for name, dtype in inputs.items():
            parameter = self.input(name)
            if parameter is not None and parameter.type_param == output.type_param:
                return dtype
        return output.dtypes[0] if len(output.dtypes) == 1 else None

    def defaults(self) -> dict[str, Value]:
        """Return the attributes that have a default."""
        return {
            name: attribute.default
            for name, attribute in self.attributes.items()
            if attribute.default is not None
        }


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


OLDEST_OPSET = 7
"""ONNX Runtime guarantees to run models of this opset and newer ones (docs/Versioning.md)."""


def opsets_of_versions(name: str) -> tuple[int, ...]:
    """Return one opset for each version of an operator that opset 7 or a later one uses, those of deprecated
    versions left out."""
    versions = operator_versions().get(name, ())
    usable = [
        version for version in versions if not any(version < other <= OLDEST_OPSET for other in versions)
    ]
    found = sorted({max(version, OLDEST_OPSET) for version in usable})
    return tuple(opset for opset in found if not onnx.defs.get_schema(name, opset, "").deprecated)


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
        tuple(each for p in schema.outputs for each in _written_out(_parameter(p, constraints))),
        {key: _attribute(a) for key, a in schema.attributes.items()},
        any(_HAS_BODY(schema)),
    )


def _parameter(
    formal: onnx.defs.OpSchema.FormalParameter, constraints: Mapping[str, tuple[str, ...]]
) -> Parameter:
    option = onnx.defs.OpSchema.FormalParameterOption
    texts = constraints.get(formal.type_str, (formal.type_str,))
    if elements := _elements(texts):
        like = (name for name, allowed in constraints.items() if set(allowed) == set(elements))
        type_param = next(like, formal.type_str)
        return Parameter(formal.name, type_param, _dtypes(elements), variadic=True, least=0, sequence=True)
    return Parameter(
        formal.name,
        formal.type_str,
        _dtypes(texts),
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
    """Return an output as what a graph gives of it: of a sequence its length, and its tensors."""
    length = Parameter(f"{output.name}_length", "tensor(int64)", ("int64",))
    return (length, output) if output.sequence else (output,)


def _dtypes(texts: tuple[str, ...]) -> tuple[str, ...]:
    allowed = set(map(_dtype, texts))
    return tuple(name for name in DTYPES if name in allowed)


def _dtype(type_text: str) -> str | None:
    """Turn `tensor(float)` into `float32`; None for what is not a tensor."""
    if not type_text.startswith("tensor("):
        return None
    inner = type_text[len("tensor(") : -1]
    return _RENAMED.get(inner, inner)


def _attribute(attribute: onnx.defs.OpSchema.Attribute) -> Attribute:
    kind = str(attribute.type).rpartition(".")[2]
    return Attribute(kind, _default(attribute.default_value), bool(attribute.required))


def _default(value: onnx.AttributeProto) -> Value | None:
    if value.type == onnx.AttributeProto.INT:
        return int(value.i)
    if value.type == onnx.AttributeProto.FLOAT:
        return float(value.f)
    if value.type == onnx.AttributeProto.STRING:
        return str(value.s.decode())
    if value.type == onnx.AttributeProto.INTS:
        return tuple(map(int, value.ints))
    if value.type == onnx.AttributeProto.FLOATS:
        return tuple(map(float, value.floats))
    if value.type == onnx.AttributeProto.STRINGS:
        return tuple(text.decode() for text in value.strings)
    return None
