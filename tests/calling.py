"""Asks an operator's hooks by hand: shapes, tensors and attributes in the order of the specification in, its
answers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model.case import Tensor, Value
from harness.model.dtypes import Array
from harness.model.expected import Exact, Expected
from harness.model.onnx_schemas import operator_schema, operator_versions
from harness.operators import OPERATORS
from harness.operators.base import UNKNOWN, Call, Choice, Operator, Shape, TensorType
from harness.specs.sweeps.calls import make_call

Given = Tensor | TensorType


def newest(operator: str) -> int:
    """Return the opset of the newest version of an operator."""
    return operator_versions()[operator][-1]


def call_of(
    operator: str,
    given: Sequence[Given],
    attributes: Mapping[str, Value] | None = None,
    variant: str | None = None,
) -> Call:
    """Make the call of an operator on its first inputs; those that decide shapes give their elements."""
    entry, opset = OPERATORS[operator], newest(operator)
    names = [parameter.name for parameter in operator_schema(operator, opset).inputs]
    types = {
        name: TensorType(one.dtype, one.array.shape if isinstance(one, Tensor) else one.shape)
        for name, one in zip(names, given, strict=False)
    }
    constants = {
        name: one.array
        for name, one in zip(names, given, strict=False)
        if isinstance(one, Tensor) and name in entry.constants
    }
    return make_call(entry, opset, types, attributes or {}, constants, variant)


def shaped(*shapes: Shape, dtypes: Sequence[str] = ()) -> list[TensorType]:
    """Return inputs of these shapes, float32 first and int64 then unless other types are given."""
    return [
        TensorType(dtype, shape)
        for dtype, shape in zip(dtypes or ("float32", *["int64"] * len(shapes)), shapes, strict=False)
    ]


def call_with(
    operator: str,
    opset: int,
    inputs: Mapping[str, Tensor],
    attributes: Mapping[str, Value] | None = None,
    outputs: int | None = None,
) -> Call:
    """Make the call of an operator on inputs by name; those that decide shapes give their elements."""
    entry = OPERATORS[operator]
    types = {name: TensorType(each.dtype, each.array.shape) for name, each in inputs.items()}
    constants = {name: each.array for name, each in inputs.items() if name in entry.constants}
    return make_call(entry, opset, types, attributes or {}, constants, None, outputs)


def expected(
    operator: str,
    opset: int,
    inputs: Mapping[str, Tensor | Array],
    attributes: Mapping[str, Value] | None = None,
    outputs: int | None = None,
    arithmetic: str = "ieee",
) -> tuple[Expected, ...]:
    """Return what a valid call gives; arrays are of their NumPy type, and the shapes that it infers are checked."""
    entry = OPERATORS[operator]
    tensors = {
        name: each if isinstance(each, Tensor) else Tensor(str(each.dtype), each)
        for name, each in inputs.items()
    }
    call = call_with(operator, opset, tensors, attributes, outputs)
    assert entry.broken(call, tensors) is None, entry.broken(call, tensors)
    found = entry.oracle(call, tensors, arithmetic)
    shapes = entry.family.output_shapes(entry, call)[: len(found)]
    for each, shape in zip(found, shapes, strict=True):
        assert [UNKNOWN if n == UNKNOWN else e for n, e in zip(shape, each.shape, strict=True)] == [*shape]
    return found


def exact(
    operator: str,
    tensors: Sequence[Tensor],
    attributes: Mapping[str, Value] | None = None,
    variant: str | None = None,
) -> Tensor:
    """Return the only output of an operator whose result is defined to the bit."""
    call = call_of(operator, tensors, attributes, variant)
    (found,) = OPERATORS[operator].oracle(call, dict(zip(call.inputs, tensors, strict=True)), "ieee")
    assert isinstance(found, Exact)
    return found.tensor


def broken_rule(
    operator: str, shapes: Sequence[Shape], attributes: Mapping[str, Value] | None = None
) -> str | None:
    """Return the rule that shapes and attributes break."""
    return OPERATORS[operator].broken_rule(call_of(operator, shaped(*shapes), attributes))


def broken_by_values(
    operator: str, tensors: Sequence[Tensor], attributes: Mapping[str, Value] | None = None
) -> str | None:
    """Return the rule that elements break."""
    entry, call = OPERATORS[operator], call_of(operator, tensors, attributes)
    return entry.family.broken_by_values(entry, call, dict(zip(call.inputs, tensors, strict=True)))


def shapes(
    operator: str, first: Shape, relation: Mapping[str, Choice], attributes: Mapping[str, Value]
) -> tuple[Shape, ...] | None:
    """Return the shapes of both inputs, that of indices by its relation to the first; None if there is none."""
    entry, call = OPERATORS[operator], call_of(operator, shaped(first), attributes)
    found = entry.family.shape(entry, "indices", relation, call)
    return None if found is None else (first, found)


def domain(operator: str, attribute: str, given: Sequence[Shape]) -> list[Value]:
    """Return the values that an attribute may have with inputs of these shapes."""
    entry = OPERATORS[operator]
    return list(entry.family.domain(entry, attribute, call_of(operator, shaped(*given))))


def generated(entry: Operator, kind: str, name: str, call: Call, entropy: bytes) -> Array:
    """Return elements of an input by kind."""
    return entry.family.generate(entry, kind, name, call, entropy)
