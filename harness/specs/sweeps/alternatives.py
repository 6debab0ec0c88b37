"""The alternatives that a sweep lists for options, attributes, element types, shapes and kinds of values, as
its operator reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple, TypeGuard

import numpy as np

from harness.model.case import Options, Value
from harness.model.dtypes import Array
from harness.model.operator_schema import OperatorSchema, Parameter
from harness.operators.base import Call, Choice, Operator, Shape, TensorType
from harness.specs.reading.attribute_values import NUMBERS, alternatives
from harness.specs.reading.entry_schema import Sweep, SweepInput
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.schema_types import ALL
from harness.specs.sweeps import api

PLACEHOLDER = "float32"
"""The element type of inputs as long as none is chosen: no rule on shapes and attributes asks for it."""
IMPLIED = "implied"
"""The relation of an input of which the sweep says none: the family's usual one."""


class Nth(NamedTuple):
    """The value at a place of what `all` stands for, which depends on the shapes."""

    place: int


class Choices(NamedTuple):
    """One choice for each key that an operator's family has for the shape of an input."""

    by_key: tuple[tuple[str, Choice | Nth], ...]


Relation = Shape | str | Choices
"""What decides the shape of an input: the shape itself, a word, or choices by key."""
Picked = Mapping[str, "Value | Nth | None"]
"""Values of attributes and of inputs that decide shapes; None for one that is left out."""


def as_shape(relation: Relation) -> Shape | None:
    """Return a relation that is a shape."""
    return None if isinstance(relation, (str, Choices)) else relation


def named_shape(relation: Relation) -> Shape:
    """Return the shape that a relation of the first input names; that of a scalar where it names none."""
    if isinstance(relation, Choices):
        return next((choice for key, choice in relation.by_key if key == "of" and _is_shape(choice)), ())
    return as_shape(relation) or ()


def _is_shape(choice: Choice | Nth) -> TypeGuard[Shape]:
    return isinstance(choice, tuple) and not isinstance(choice, Nth)


class Listed:
    """The lists of one sweep, whose names and words have been checked."""

    def __init__(self, spec: LoadedSpec, operator: Operator, sweep: Sweep) -> None:
        self.spec = spec
        self.operator = operator
        self.sweep = sweep
        self.opsets = api.opsets(sweep, spec)
        schema = spec.schema(self.opsets[-1])
        named = [p.name for p in schema.inputs if p.name in sweep.inputs]
        self.chosen = tuple(name for name in named if self._chooses(name))
        """The inputs whose values are chosen by kind, by their formal names."""
        # what depends on the opset alone is asked for at each of very many combinations
        self.parameters = cache(self._parameters)
        """The inputs that the sweep speaks of at an opset."""
        self.type_params = cache(self._type_params)
        """The type parameter of each input that the operator has at an opset, by its formal name."""
        self.dtypes = cache(self._dtypes)
        """The element types that the sweep lists for each type parameter at an opset."""
        self.attribute_kinds = cache(self._attribute_kinds)
        """The types of what stands under `attributes` and exists at an opset; NUMBER or NUMBERS for an input."""

    def schema(self, opset: int) -> OperatorSchema:
        """Return what ONNX says of the operator at an opset."""
        return self.spec.schema(opset)

    def _chooses(self, name: str) -> bool:
        family = self.operator.family
        return bool(family.kinds(self.operator, name)) or (
            bool(family.fills(self.operator, name)) and self.sweep.inputs[name].values is not None
        )

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return the kinds of values of an input."""
        return self.sweep.inputs[name].values or (self.operator.family.kinds(self.operator, name)[0].name,)

    def value_terms(self, kinds: Sequence[str]) -> str:
        """Write the kinds of values that the sweep lists as terms of an id.

        Those of the first input of which the operator has kinds carry no name, unless an input is called
        `values`, as OneHot's is.
        """
        chooses = [n for n, name in enumerate(self.chosen) if self.operator.family.kinds(self.operator, name)]
        bare = None if "values" in self.sweep.inputs or not chooses else chooses[0]
        given = [(n, name) for n, name in enumerate(self.chosen) if self.sweep.inputs[name].values]
        return "".join(f";{'' if n == bare else f'{name}.'}values={kinds[n]}" for n, name in given)

    def options(self) -> Iterator[Options]:
        """Yield every combination of options."""
        fields = type(self.sweep.options).model_fields
        for values in product(*(getattr(self.sweep.options, field) for field in fields)):
            yield Options(**dict(zip(fields, values, strict=True)))

    def _parameters(self, opset: int) -> Sequence[Parameter]:
        return [
            p
            for p in self.schema(opset).inputs
            if p.name in self.sweep.inputs or p.name in self.sweep.attributes
        ]

    def _type_params(self, opset: int) -> Mapping[str, str]:
        return {p.name: p.type_param for p in self.schema(opset).inputs}

    def _dtypes(self, opset: int) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        parameters = self.parameters(opset)
        for parameter in parameters:
            if parameter.type_param in found:
                continue
            sharing = [p.name for p in parameters if p.type_param == parameter.type_param]
            listed = [self.sweep.inputs[name].dtype for name in sharing if name in self.sweep.inputs]
            given = next((each for each in listed if each is not None), None)
            if given is None and all(name in self.sweep.attributes for name in sharing):
                types = ("int64",) if "int64" in parameter.dtypes else parameter.dtypes[:1]
            elif given is None or given == ALL:
                types = parameter.wide if self.sweep.directml is None else api.DTYPES_OF_DIRECTML
            else:
                types = tuple(given)
            found[parameter.type_param] = types
        return found

    def illegal(self, opset: int, dtypes: Mapping[str, str]) -> bool:
        """Say whether ONNX does not allow one of the element types, by type parameter, at an opset."""
        if self.sweep.directml is not None:
            return False
        return any(dtypes[p.type_param] not in p.dtypes for p in self.parameters(opset))

    # shapes

    def relations(self, given: SweepInput, name: str, first: Call | None) -> list[Relation]:
        """Return the alternatives for the shape of an input; without the first input's shape `all` stands for
        its places."""
        shape = given.shape
        if shape is None:
            return [IMPLIED]
        if not isinstance(shape, dict):
            return list(shape)
        lists = []
        for key, listed in shape.items():
            if listed == ALL:
                if first is None:
                    count = max(len(self.every(name, key, one)) for one in self._first_calls())
                    choices: Sequence[Choice | Nth] = [Nth(place) for place in range(count)]
                else:
                    choices = self.every(name, key, first)
            else:
                choices = listed if isinstance(listed, tuple) else (listed,)
            lists.append([(key, choice) for choice in choices])
        return [Choices(choices) for choices in product(*lists)]

    def every(self, name: str, key: str, call: Call) -> Sequence[Choice]:
        """Return what `all` stands for under a key of an input's shape."""
        return list(self.operator.family.every(self.operator, name, key, call))

    def _first_calls(self) -> Iterator[Call]:
        name = next(iter(self.schema(self.opsets[-1]).inputs)).name
        for relation in self.sweep.inputs[name].shape or ((),):
            yield Call({name: TensorType(PLACEHOLDER, relation if isinstance(relation, tuple) else ())}, {})

    def relation_choices(self, opset: int) -> Iterator[dict[str, Relation] | None]:
        """Yield a relation for each input; None where the kind of values decides the only input's shape."""
        names = [
            p.name
            for p in self.parameters(opset)
            if p.name in self.sweep.inputs and p.name not in self.sweep.attributes
        ]
        if not names:
            yield {}
            return
        given = [self.sweep.inputs[name] for name in names]
        if given[0].shape is None:
            yield None
            return
        for first in self.relations(given[0], names[0], None):
            call = Call({names[0]: TensorType(PLACEHOLDER, named_shape(first))}, {}, {}, opset)
            others = [self.relations(one, name, call) for name, one in zip(names[1:], given[1:], strict=True)]
            for picked in product(*others):
                yield dict(zip(names, (first, *picked), strict=True))

    # attributes, and inputs that decide shapes

    def _attribute_kinds(self, opset: int) -> Mapping[str, str]:
        schema, constants = self.schema(opset), self.operator.constants
        found = {}
        for name in self.sweep.attributes:
            if name in schema.attributes:
                found[name] = schema.attributes[name].type
            elif schema.input(name) is not None:
                found[name] = NUMBERS[constants.get(name, 1)]
        return found

    def attribute_choices(
        self, opset: int, kinds: Mapping[str, str], relations: Mapping[str, Relation] | None
    ) -> Sequence[Mapping[str, Value | None]]:
        """Return a value for each attribute of these types: every combination of the listed alternatives."""
        found: list[dict[str, Value | None]] = [{}]
        for name, kind in kinds.items():
            listed = self.sweep.attributes[name]
            given = None if stands_for_all(kind, listed) else alternatives(kind, listed)
            found = [
                {**picked, name: each}
                for picked in found
                for each in (self.domain(opset, name, relations or {}, picked) if given is None else given)
            ]
        return found

    def domain(
        self, opset: int, name: str, relations: Mapping[str, Relation], picked: Mapping[str, Value | None]
    ) -> list[Value]:
        """Return the values that `all` stands for with these shapes and the values picked so far, as far as they do
        not depend on further inputs."""
        attributes = self.schema(opset).defaults()
        constants: dict[str, Array] = {}
        kinds = self.attribute_kinds(opset)
        for key, value in picked.items():
            if value is None:
                continue
            if kinds[key] in NUMBERS:
                constants[key] = np.array(value)
            else:
                attributes[key] = value
        explicit = {
            key: TensorType(PLACEHOLDER, named_shape(relation))
            for n, (key, relation) in enumerate(relations.items())
            if n == 0 or as_shape(relation) is not None
        }
        if explicit:
            return list(
                self.operator.family.domain(self.operator, name, Call(explicit, attributes, constants, opset))
            )
        return []


def stands_for_all(kind: str, listed: object) -> bool:
    """Say whether `all` under an attribute of a type is the word, not a text."""
    return listed == ALL and kind != "STRING"
