"""Makes the `Call` of a case as its operator receives it, and the elements of its inputs.

A call has ONNX's defaults filled in, elements that decide shapes as arrays, and output types. Inputs are the same bits
for the same id and seed, on every platform and whatever other cases exist: they come from SHAKE-128 (FIPS 202) of
`seed` and id, and depend on no library's generator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import shake_128
from math import prod
from typing import NamedTuple

import numpy as np

from harness.model.case import Case, Tensor, TensorSpec, TensorValue, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import encode as to_storage
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, TensorType
from harness.operators.elements import ALPHABET


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
    chosen = case.options
    return make_call(
        operator, case.opset, inputs, case.attributes, constants, chosen.variant, chosen.outputs, chosen.omit
    )


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
    omit: str | None = None,
) -> Call:
    """Make the call of a case; `outputs` is the number of outputs where it differs from the operator's usual one,
    `omit` names those that its graph leaves out."""
    filled = dict(_defaults(operator.name, opset))
    for name, value in attributes.items():
        filled[name] = _held(value)
    call = Call(inputs, filled, constants, opset, variant)
    declared = operator.family.output_dtypes(operator, call)
    count = outputs or operator.family.output_count(operator, call)
    dtypes = tuple([each.dtype for each in inputs.values()])
    found = _output_dtypes(operator.name, opset, tuple(inputs), dtypes, count, declared)
    given = None if omit is None else operator_schema(operator.name, opset).given_outputs(len(found), omit)
    return Call(inputs, filled, constants, opset, variant, found, given)


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
    declared: tuple[str | None, ...],
) -> tuple[str, ...]:
    """Return the element types of outputs: the operator's own, those of the schema, or the first input's."""
    schema = operator_schema(operator, opset)
    inputs = dict(zip(names, dtypes, strict=True))
    return tuple(
        (declared[n] if n < len(declared) else None) or schema.output_dtype(inputs, n) or dtypes[0]
        for n in range(count)
    )


class StreamLayout(NamedTuple):
    """How the elements of inputs are chosen: whether by the operator, how many they are, and where the bytes of
    each input end in the case's stream."""

    chosen: tuple[bool, ...]
    counts: tuple[int, ...]
    ends: tuple[int, ...]


def case_inputs(call: Call, case: Case, seed: int, layout: StreamLayout | None = None) -> tuple[Tensor, ...]:
    """Return the tensors of all inputs of a case and its call, in the order of the specification; written-out
    elements come first. `layout` is that of the case where it is known."""
    operator = OPERATORS[case.operator]
    chosen, counts, ends = layout or layout_of(case)
    named = operator.family.elements_of(case.id)
    stream = memoryview(shake_128(f"{seed}:{named}".encode()).digest(ends[-1])) if ends else memoryview(b"")
    literals = case.literals
    made = []
    start = 0
    for number, spec in enumerate(case.inputs):
        entropy = stream[start : ends[number]]
        start = ends[number]
        written = literals[number] if literals is not None else None
        if written is not None:
            array = written
        elif spec.elements is not None:
            array = call.constants[spec.name]
        elif chosen[number]:
            array = operator.family.generate(operator, spec.values, spec.name, call, entropy)
        else:
            array = random_tensor(spec.dtype, spec.shape, counts[number], entropy)
        made.append(Tensor(spec.dtype, array))
    return tuple(made)


def layout_of(case: Case) -> StreamLayout:
    """Return the layout of a case."""
    return sized_layout(case, chosen_inputs(case))


def chosen_inputs(case: Case) -> tuple[bool, ...]:
    """Return which inputs of a case its operator chooses: of cases with one call this alone decides the layout."""
    return tuple([_chooses(case.operator, spec.name, spec.values) for spec in case.inputs])


def sized_layout(case: Case, chosen: tuple[bool, ...]) -> StreamLayout:
    """Return the layout of a case; `chosen` says which inputs the operator chooses."""
    counts = tuple([prod(spec.shape) for spec in case.inputs])
    ends: list[int] = []
    for spec, count, by_kind in zip(case.inputs, counts, chosen, strict=True):
        itemsize = DTYPES[spec.dtype].itemsize
        each = max(4, itemsize) if by_kind else itemsize or 2
        ends.append(count * each + (ends[-1] if ends else 0))
    return StreamLayout(chosen, counts, tuple(ends))


@lru_cache(maxsize=4096)
def _chooses(operator: str, name: str, values: str) -> bool:
    return OPERATORS[operator].chooses(name, values)


def random_tensor(dtype: str, shape: tuple[int, ...], count: int, entropy: memoryview) -> Array:
    """Return any bit patterns of a dtype: NaNs with payloads, subnormals and infinities are as likely as
    their share of the patterns."""
    if dtype == "string":
        return _strings(count, shape, entropy)
    if dtype == "bool":
        return (np.frombuffer(entropy, np.uint8, count) & 1).view(np.bool_).reshape(shape)
    found = np.frombuffer(entropy, DTYPES[dtype].storage, count).reshape(shape)
    return DTYPES[dtype].wrapped(found) if 0 < DTYPES[dtype].narrow < 8 else found


def _strings(count: int, shape: tuple[int, ...], picks: memoryview) -> Array:
    picked = np.frombuffer(picks, np.uint8, 2 * count).reshape(count, 2)
    return _TEXTS[picked[:, 0] % len(ALPHABET), picked[:, 1]].reshape(shape)


_TEXTS = np.array(
    [[f"{text}{number}" if number % 8 else "" for number in range(256)] for text in ALPHABET], object
)
"""Texts by a letter, or what stands for one, and a number."""
