"""Changes valid cases to have a kind of input, and asks the rules whether they are still valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import prod

import msgspec
import numpy as np

from harness.model.case import Case, Tensor, Value
from harness.model.dtypes import DTYPES, Array
from harness.model.float_formats import decode
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call, Operator, Shape, TensorType
from harness.specs.coverage import kinds
from harness.specs.sweeps.calls import call_of

LARGE = 100_000
_NO_CALL = ArithmeticError, IndexError, KeyError, MemoryError, TypeError, ValueError
"""What rules and shapes raise of what is no call."""


@dataclass(frozen=True, eq=False)
class Witness:
    """A valid case with its call and tensors, by name. Many kinds ask the same of one case."""

    case: Case
    call: Call
    tensors: dict[str, Tensor]

    @cached_property
    def by_input(self) -> dict[str, list[Tensor]]:
        """The tensors by the formal name of their input, of which one that is variadic has several."""
        found: dict[str, list[Tensor]] = {}
        for name, tensor in self.tensors.items():
            found.setdefault(name.split(".")[0], []).append(tensor)
        return found

    @cached_property
    def finite(self) -> bool:
        """Whether all elements are finite: beside a NaN another one shows nothing."""
        floats = [tensor for tensor in self.tensors.values() if DTYPES[tensor.dtype].is_float]
        return all(np.isfinite(decode(*tensor)).all() for tensor in floats)


def can_change(witness: Witness, name: str, kind: str) -> bool:
    """Say whether a case has an input whose type or dimensions allow a kind, or an input that can be
    omitted."""
    own = witness.by_input.get(name, ())
    if kind in kinds.EMPTY[1:]:
        return any(each.array.ndim > kinds.EMPTY.index(kind) for each in own)
    if kind in kinds.FLOATS + kinds.INTEGERS and own:
        return any(DTYPES[each.dtype].is_float == (kind in kinds.FLOATS) and each.array.size for each in own)
    if kind in kinds.FLOAT_ATTRIBUTES and not own:
        return name in operator_schema(witness.case.operator, witness.case.opset).attributes
    return bool(own) or kind in kinds.NUMBERS or (kind == kinds.LEFT_OUT and name in witness.case.attributes)


def changed_calls(
    operator: Operator, witness: Witness, name: str, kind: str
) -> Iterator[tuple[Witness, str | None]]:
    """Yield a case changed to have a kind with the rule that it then breaks: in this input alone, and in all
    that have the changed extents. A change by which the rules cannot be asked is none."""
    case, call, tensors = witness.case, witness.call, witness.tensors
    if kind in (kinds.LEFT_OUT, *kinds.NUMBERS) or name not in witness.by_input:
        changed = _without(witness, name) if kind == kinds.LEFT_OUT else _with_number(witness, name, kind)
        if changed is not None:
            yield from _asked(operator, changed)
        return
    own = next(each for each in tensors if each.split(".")[0] == name)
    for arrays in _changes(
        {each: tensor.array for each, tensor in tensors.items()}, own, tensors[own].dtype, kind
    ):
        given = {
            each: Tensor(tensor.dtype, arrays.get(each, tensor.array)) for each, tensor in tensors.items()
        }
        inputs = {each: TensorType(tensor.dtype, tensor.array.shape) for each, tensor in given.items()}
        constants = {each: given[each].array for each in call.constants}
        yield from _asked(operator, Witness(case, call._replace(inputs=inputs, constants=constants), given))


def _asked(operator: Operator, changed: Witness) -> Iterator[tuple[Witness, str | None]]:
    with np.errstate(all="ignore"), suppress(*_NO_CALL):
        yield (
            changed,
            operator.unlike_constants(changed.call) or operator.broken(changed.call, changed.tensors),
        )


def _with_number(witness: Witness, name: str, kind: str) -> Witness | None:
    """Return a case with a kind of number in place of a valid one, of a list of the last. None where there is no number or it
    has this kind. A list gets none of 33 bits, since a window or padding so large is a valid one of a tensor that no
    machine holds."""
    case, call, tensors = witness.case, witness.call, witness.tensors
    schema, held = operator_schema(case.operator, case.opset).attributes.get(name), call.attributes.get(name)
    changed: Value
    if schema is not None and schema.type == "FLOAT" and kind in kinds.FLOAT_ATTRIBUTES:
        changed = kinds.FLOAT_ATTRIBUTES[kind]
    elif isinstance(held, int):
        changed = kinds.NUMBERS[kind](held)
    elif isinstance(held, tuple) and held and isinstance(held[-1], int) and kind != "33 bits":
        changed = (*held[:-1], kinds.NUMBERS[kind](held[-1]))
    else:
        return None
    if schema is None or changed == held:
        return None
    case = msgspec.structs.replace(case, attributes={**case.attributes, name: changed})
    try:
        call = call_of(case)
        OPERATORS[case.operator].family.output_shapes(OPERATORS[case.operator], call)
    except _NO_CALL:
        return None
    return Witness(case, call, tensors)


def _without(witness: Witness, name: str) -> Witness | None:
    """Return a case without an attribute or an input; None where it has none or the rest is no call."""
    case, tensors = witness.case, witness.tensors
    kept = [number for number, spec in enumerate(case.inputs) if spec.name.split(".")[0] != name]
    if name not in case.attributes and len(kept) == len(case.inputs):
        return None
    changed = msgspec.structs.replace(
        case,
        attributes={each: value for each, value in case.attributes.items() if each != name},
        inputs=tuple(case.inputs[number] for number in kept),
        literals=case.literals and tuple(case.literals[number] for number in kept),
    )
    try:
        call = call_of(changed)
    except _NO_CALL:
        return None
    return Witness(changed, call, {each: tensors[each] for each in call.inputs})


def _changes(arrays: Mapping[str, Array], own: str, dtype: str, kind: str) -> Iterator[dict[str, Array]]:
    shape = arrays[own].shape
    if kind in kinds.FLOATS + kinds.INTEGERS:
        few = kind in _ENDS and arrays[own].size == 1
        for wide in _with_two(arrays, own) if few else [{own: arrays[own]}]:
            made = kinds.holding(kind, dtype, wide[own])
            yield from [wide | {own: made}] if made is not None else []
        return
    if kind == kinds.INITIALIZER:
        yield {}
        return
    if kind in kinds.RANKS:
        whole = () if kind == "scalar" else ((1,) * 5 + shape)[-5:]
        yield {own: _resized(arrays[own], whole)}
        yield {each: _resized(array, whole) for each, array in arrays.items() if array.shape == shape}
        return
    if not shape and kind not in kinds.EMPTY[1:]:
        yield {own: _resized(arrays[own], (kinds.EXTENTS.get(kind, -1) + 1,))}
    for place in range(len(shape)):
        if kind not in kinds.EMPTY or kinds.EMPTY.index(kind) == place:
            yield from _stretched(arrays, own, place, kinds.EXTENTS.get(kind, -1) + 1)


_ENDS = ("NaN first", "NaN last")


def _with_two(arrays: Mapping[str, Array], own: str) -> Iterator[dict[str, Array]]:
    """Yield changes by which an input of one element has two, a first and a last one."""
    shape = arrays[own].shape
    for place in range(len(shape)):
        yield from _stretched(arrays, own, place, 2)
    if not shape:
        yield {own: _resized(arrays[own], (2,))}


def _stretched(arrays: Mapping[str, Array], own: str, place: int, extent: int) -> Iterator[dict[str, Array]]:
    """Yield an input with another extent: alone, with the others that have it at the same place, and with all that have it."""
    shape = arrays[own].shape
    old = shape[place]
    shapes = {own: (*shape[:place], extent, *shape[place + 1 :])}
    others = {each: array.shape for each, array in arrays.items() if each != own}
    at_place = {
        each: (*other[:place], extent, *other[place + 1 :])
        for each, other in others.items()
        if other[place : place + 1] == (old,)
    }
    anywhere = {each: tuple(extent if n == old else n for n in other) for each, other in others.items()}
    tried: list[dict[str, Shape]] = []
    for more in ({}, at_place, anywhere):
        made = shapes | {each: to for each, to in more.items() if to != others[each]}
        if made not in tried and all(prod(each) < 8 * LARGE for each in more.values()):
            tried.append(made)
            yield {each: _resized(arrays[each], to) for each, to in made.items()}


def _resized(array: Array, shape: Shape) -> Array:
    """Return what `np.resize` does, which joins as many arrays as it repeats."""
    flat, count = array.reshape(1, -1), prod(shape)
    if not flat.size:
        return np.zeros(shape, array.dtype)
    return flat.repeat(-(-count // flat.size), 0).reshape(-1)[:count].reshape(shape)
