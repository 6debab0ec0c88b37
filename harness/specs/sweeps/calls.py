"""Makes the `Call` of a case as its operator receives it: ONNX's defaults filled in, elements that decide
shapes as arrays, output types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from harness.model.case import Case, TensorSpec, TensorValue, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode as to_storage
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, TensorType


def call_of(case: Case) -> Call:
    """Return the call of a case; raise LookupError for an operator or opset that ONNX or the harness does not
    know."""
    operator = OPERATORS[case.operator]
    constants: dict[str, Array] = {}
    for number, spec in enumerate(case.inputs):
        if spec.elements is not None:
            constants[spec.name] = constant(spec)
        elif case.literals is not None and spec.name in operator.constants:
            written = case.literals[number]
            if written is not None:
                constants[spec.name] = written
    inputs = {spec.name: _tensor_type(spec.dtype, spec.shape) for spec in case.inputs}
    call = make_call(
        operator, case.opset, inputs, case.attributes, constants, case.options.variant, case.options.outputs
    )
    if case.options.omit is None:
        return call
    schema = operator_schema(case.operator, case.opset)
    return call._replace(given=schema.given_outputs(len(call.outputs), case.options.omit))


@lru_cache(maxsize=65536)
def _tensor_type(dtype: str, shape: tuple[int, ...]) -> TensorType:
    return TensorType(dtype, shape)


def constant(spec: TensorSpec) -> Array:
    """Return the elements of an input that decides shapes as an array of its type and shape; ValueError where
    the type lacks one."""
    assert spec.elements is not None
    try:
        if DTYPES[spec.dtype].is_float:
            return to_storage(spec.dtype, np.array(spec.elements, np.float64)).reshape(spec.shape)
        array = np.array(spec.elements, DTYPES[spec.dtype].storage)
    except (OverflowError, TypeError) as error:
        raise ValueError(str(error)) from error
    if array.tolist() != list(spec.elements):
        raise ValueError(f"{spec.elements} is not exact in {spec.dtype}")
    return array.reshape(spec.shape)


def make_call(
    operator: Operator,
    opset: int,
    inputs: Mapping[str, TensorType],
    attributes: Mapping[str, Value],
    constants: Mapping[str, Array],
    variant: str | None = None,
    outputs: int | None = None,
) -> Call:
    """Make a call of what a case says: `outputs` is the number of outputs where that is not the operator's
    usual one."""
    filled = dict(_defaults(operator.name, opset))
    for name, value in attributes.items():
        filled[name] = _held(value)
    call = Call(inputs, filled, constants, opset, variant)
    told = operator.family.output_dtypes(operator, call)
    count = outputs or operator.family.output_count(operator, call)
    dtypes = tuple([each.dtype for each in inputs.values()])
    found = _output_dtypes(operator.name, opset, tuple(inputs), dtypes, count, told)
    return Call(inputs, filled, constants, opset, variant, found)


def _held(value: Value) -> Value:
    """Return an attribute as a model holds it: numbers with a fraction are float32 there."""
    if isinstance(value, tuple) and not isinstance(value, TensorValue):
        return tuple(map(_held, value))  # type: ignore[return-value] # of one type
    return float(np.float32(value)) if isinstance(value, float) else value


@lru_cache(maxsize=1024)
def _defaults(operator: str, opset: int) -> dict[str, Value]:
    return operator_schema(operator, opset).defaults()


@lru_cache(maxsize=4096)
def _output_dtypes(
    operator: str,
    opset: int,
    names: tuple[str, ...],
    dtypes: tuple[str, ...],
    count: int,
    told: tuple[str | None, ...],
) -> tuple[str, ...]:
    """Return the element types of outputs: as the operator has told, else by the schema, else the first input's."""
    schema = operator_schema(operator, opset)
    inputs = dict(zip(names, dtypes, strict=True))
    return tuple(
        (told[n] if n < len(told) else None) or schema.output_dtype(inputs, n) or dtypes[0]
        for n in range(count)
    )
