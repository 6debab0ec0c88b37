"""Kernels that take a call for another one, and are right for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from harness.model.case import Tensor
from harness.model.diff import compare
from harness.model.dtypes import Array
from harness.model.expected import nearest
from harness.model.onnx_schemas import operator_schema
from harness.operators import OPERATORS
from harness.operators.base import Call
from tests.mutants.any_operator import AnyMistake, Sample

_VALUES = 4
"""Of the values that an attribute has in the cases, so many are taken for all others."""
_INPUTS = 3
"""Of the inputs of a variadic one, so many are read with a mistake."""


def shows(sample: Sample, call: Call, arrays: Mapping[str, Array]) -> bool:
    """Say whether a kernel that is right for another call and other inputs turns a case red; it does where it
    refuses them."""
    operator = OPERATORS[sample.case.operator]
    tensors = {name: Tensor(sample.inputs[name].dtype, array) for name, array in arrays.items()}
    try:
        if operator.broken(call, tensors) is not None:
            return True
        with np.errstate(all="ignore"):
            made = operator.oracle(call, tensors, "ieee")
    except (AssertionError, AttributeError, IndexError, KeyError, MemoryError, TypeError, ValueError):
        return True  # neither rules nor formula can do without what the kernel does not see
    return any(
        compare(wanted, nearest(found)).diff is not None
        for wanted, found in zip(sample.expected, made, strict=True)
    )


@dataclass(frozen=True)
class AttributeIgnored:
    """An attribute has its default, whatever is given."""

    key: str

    @property
    def name(self) -> str:
        return f"{self.key} ignored"

    def concerns(self, sample: Sample) -> bool:
        return self.key in sample.case.attributes

    def shows(self, sample: Sample) -> bool:
        held = {key: value for key, value in sample.call.attributes.items() if key != self.key}
        default = operator_schema(sample.case.operator, sample.case.opset).defaults().get(self.key)
        if default is not None:
            held[self.key] = default
        return shows(sample, sample.call._replace(attributes=held), sample.arrays)


@dataclass(frozen=True)
class AttributeAlways:
    """An attribute has one value, whatever is given."""

    key: str
    value: Any

    @property
    def name(self) -> str:
        return f"{self.key} always {self.value!r}"

    def concerns(self, sample: Sample) -> bool:
        return sample.call.attributes.get(self.key, self.value) != self.value

    def shows(self, sample: Sample) -> bool:
        held = {**sample.call.attributes, self.key: self.value}
        return shows(sample, sample.call._replace(attributes=held), sample.arrays)


@dataclass(frozen=True)
class AttributeTurned:
    """The numbers of an attribute are taken from the last to the first."""

    key: str

    @property
    def name(self) -> str:
        return f"{self.key} from its end"

    def concerns(self, sample: Sample) -> bool:
        return isinstance(sample.call.attributes.get(self.key), tuple)

    def shows(self, sample: Sample) -> bool:
        given: Any = sample.call.attributes[self.key]
        held = {**sample.call.attributes, self.key: given[::-1]}
        return shows(sample, sample.call._replace(attributes=held), sample.arrays)


@dataclass(frozen=True)
class InputNotSeen:
    """An optional input counts as left out."""

    key: str

    @property
    def name(self) -> str:
        return f"{self.key} not seen"

    def concerns(self, sample: Sample) -> bool:
        return self.key in sample.call.inputs

    def shows(self, sample: Sample) -> bool:
        call = sample.call._replace(
            inputs={key: each for key, each in sample.call.inputs.items() if key != self.key},
            constants={key: each for key, each in sample.call.constants.items() if key != self.key},
        )
        return shows(sample, call, {key: array for key, array in sample.arrays.items() if key != self.key})


class Reading(NamedTuple):
    """A wrong way to read the elements of a tensor of at least `rank` dimensions."""

    name: str
    rank: int
    read: Callable[[Array], Array]


READINGS = (
    Reading("read from its end", 1, lambda x: x.reshape(-1)[::-1]),
    Reading("read by columns", 2, lambda x: x.reshape(-1, order="F")),
    Reading("with its first element everywhere", 1, lambda x: np.broadcast_to(x.reshape(-1)[:1], (x.size,))),
    Reading("with its last element lost", 1, lambda x: np.append(x.reshape(-1)[:-1], x.reshape(-1)[:1])),
)


@dataclass(frozen=True)
class InputRead:
    """The elements of an input are read wrongly."""

    key: str
    reading: Reading

    @property
    def name(self) -> str:
        return f"{self.key} {self.reading.name}"

    def concerns(self, sample: Sample) -> bool:
        given = sample.call.inputs.get(self.key)
        if given is None or len(given.shape) < self.reading.rank:
            return False
        return len(set(sample.inputs[self.key].array.reshape(-1).tolist())) > 1

    def shows(self, sample: Sample) -> bool:
        right = sample.inputs[self.key].array
        array = np.ascontiguousarray(self.reading.read(right).reshape(right.shape)).astype(right.dtype)
        constants = sample.call.constants
        if self.key in constants:
            constants = {**constants, self.key: array}
        return shows(sample, sample.call._replace(constants=constants), {**sample.arrays, self.key: array})


def readings(name: str, cases: Sequence[Sample]) -> Iterator[AnyMistake]:
    """Yield the kernels of an operator that take a call for another, as far as its cases have such calls."""
    values: dict[str, dict[Any, None]] = {}
    ranks: dict[str, int] = {}
    for sample in cases:
        for key, value in sample.case.attributes.items():
            values.setdefault(key, {})[value] = None
        for key, given in sample.call.inputs.items():
            ranks[key] = max(ranks.get(key, 0), len(given.shape))
    for key, seen in values.items():
        yield AttributeIgnored(key)
        scalars = [value for value in seen if not isinstance(value, tuple)]
        yield from (AttributeAlways(key, value) for value in scalars[:_VALUES] if len(scalars) > 1)
        if any(isinstance(value, tuple) and value != value[::-1] for value in seen):
            yield AttributeTurned(key)
    opsets = {sample.case.opset for sample in cases}
    optional = {
        each.name for opset in opsets for each in operator_schema(name, opset).inputs if each.optional
    }
    for key, rank in ranks.items():
        formal, _, number = key.partition(".")
        if int(number or 0) >= _INPUTS:
            continue
        if formal in optional:
            yield InputNotSeen(key)
        yield from (InputRead(key, reading) for reading in READINGS if rank >= reading.rank)
