"""One combination of a sweep's alternatives: the call that it makes, and whether the sweep includes it as a
case.

It is made in an order in which each choice can depend on the previous ones: opset and options, the shape of
the first input, the attributes, the shapes of the other inputs by their relation to the first, element types,
kinds of values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from harness.model.case import DirectmlOptions, Options, TensorSpec, Validity, Value
from harness.model.caseid import directml_terms, option_terms
from harness.model.dtypes import DTYPES, Array
from harness.model.operator_schema import Parameter
from harness.operators.base import UNKNOWN, Call, Choice, Shape, TensorType
from harness.specs.reading.attribute_values import NUMBERS
from harness.specs.reading.literals import shape_problem
from harness.specs.reading.schema_types import OMITTED
from harness.specs.sweeps import api, sessions
from harness.specs.sweeps.alternatives import (
    IMPLIED,
    PLACEHOLDER,
    Choices,
    Listed,
    Nth,
    Picked,
    Relation,
    as_shape,
    named_shape,
)
from harness.specs.sweeps.calls import constant, make_call

Elements = tuple[int | float | bool, ...]
Kinds = tuple[str, ...]
"""The kind of values of each input that has one, in the order of `Listed.chosen`."""


class Input(NamedTuple):
    """An input of a step: its shape, and its elements where they decide shapes."""

    name: str
    shape: Shape
    elements: Elements | None = None


class SweepStep(NamedTuple):
    """One combination of a sweep before element types and values are chosen."""

    opset: int
    attributes: tuple[tuple[str, Value], ...]
    options: Options
    inputs: tuple[Input, ...] | None
    """None where the kind of values decides the shape (lists of special values)."""
    broken: str | None
    """The rule that it breaks with the type that stands for all; with others it may break another, or none."""
    directml: DirectmlOptions | None = None
    unfit: str | None = None
    """Why the tensors do not fit in the DimensionCount that is asked for."""


class CallGroup(NamedTuple):
    """One combination of element types and shapes with its call, and the combinations of kinds of values that
    it is called with."""

    step: SweepStep
    call: Call
    inputs: tuple[TensorSpec, ...]
    kinds: list[Kinds]
    levels: dict[bool, dict[str, str]]
    """The levels of its cases without and with negative indices, as far as they have been asked for."""


class Impossible(Exception):
    """A combination that makes no call."""


class Combinations:
    """Makes the combinations of one sweep; `wrong` is set where one shows that the sweep itself is."""

    def __init__(self, listed: Listed) -> None:
        self.listed = listed
        self.operator = listed.operator
        self.wrong: str | None = None
        self._steps: dict[Hashable, SweepStep | None] = {}
        self._by_kinds: dict[Kinds, str | None] = {}
        self._places = {name: place for place, name in enumerate(listed.chosen)}

    def step(
        self,
        opset: int,
        options: Options,
        relations: Mapping[str, Relation],
        picked: Picked,
        asked: DirectmlOptions | None,
    ) -> SweepStep:
        """Make one combination of shapes and attributes, or return the one made before; raise Impossible
        where it makes no call."""
        key = opset, options, tuple(relations.items()), repr(picked), asked
        if key not in self._steps:
            try:
                self._steps[key] = self._step(opset, options, relations, picked, asked)
            except Impossible:
                self._steps[key] = None
        found = self._steps[key]
        if found is None:
            raise Impossible
        return found

    def _step(
        self,
        opset: int,
        options: Options,
        relations: Mapping[str, Relation],
        picked: Picked,
        asked: DirectmlOptions | None,
    ) -> SweepStep:
        operator, listed = self.operator, self.listed
        defaults = listed.schema(opset).defaults()
        explicit = self._explicit(opset, relations)
        attributes: dict[str, Value] = {}
        constants: dict[str, Array] = {}
        elements: dict[str, Elements] = {}
        present: dict[str, TensorType] = {}
        kinds = listed.attribute_kinds(opset)
        for name, given in picked.items():
            value = self._value(name, given, Call(explicit, {**defaults, **attributes}, constants, opset))
            if value is None:
                continue
            if kinds[name] in NUMBERS:
                elements[name] = _numbers(value)
                shape: Shape = (len(elements[name]),) if isinstance(value, tuple) else ()
                spec = TensorSpec(name, _widest(elements[name]), shape, elements=elements[name])
                constants[name] = constant(spec)
                continue
            attributes[name] = value
        for parameter in listed.parameters(opset):
            name = parameter.name
            if name in constants:
                present[name] = TensorType(PLACEHOLDER, constants[name].shape)
            elif name in picked and relations.get(name) == IMPLIED:
                continue  # left out, and its element types are listed
            elif name in relations and relations[name] != OMITTED:
                call = Call(present, {**defaults, **attributes}, constants, opset)
                for key, shape in self._shapes(parameter, relations[name], call):
                    present[key] = TensorType(PLACEHOLDER, shape)
        call = make_call(
            operator, opset, present, attributes, constants, options.variant, options.outputs, options.omit
        )
        self._check_sizes(call)
        broken = operator.broken_rule(call)
        inputs = tuple(Input(name, each.shape, elements.get(name)) for name, each in present.items())
        return SweepStep(
            opset, tuple(attributes.items()), options, inputs, broken, asked, api.unfit(operator, asked, call)
        )

    def _explicit(self, opset: int, relations: Mapping[str, Relation]) -> dict[str, TensorType]:
        """Return the inputs whose shapes are known before any attribute is: the first, and those that are
        written out."""
        parameters = self.listed.parameters(opset)
        variadic = {p.name for p in parameters if p.variadic}
        written = {
            name: shape
            for name, each in relations.items()
            if name not in variadic and (shape := as_shape(each)) is not None
        }
        first = next((p.name for p in parameters if p.name in relations), None)
        if first is not None and first not in written:
            written = {first: named_shape(relations[first]), **written}
        return {name: TensorType(PLACEHOLDER, shape) for name, shape in written.items()}

    def _value(self, name: str, given: Value | Nth | None, call: Call) -> Value | None:
        if not isinstance(given, Nth):
            return given
        domain = list(self.operator.family.domain(self.operator, name, call))
        if given.place >= len(domain):
            raise Impossible
        return domain[given.place]

    def _shapes(self, parameter: Parameter, relation: Relation, call: Call) -> Iterator[tuple[str, Shape]]:
        """Yield the names and shapes of an input, or of all that a variadic one stands for."""
        name = parameter.name
        written = as_shape(relation)
        if written is not None:
            if not parameter.variadic:
                yield name, written
                return
            relation = Choices((("of", written),))
        elif relation == IMPLIED:
            relation = Choices(())
        if isinstance(relation, Choices):
            wanted: Mapping[str, Choice] | str = {
                key: self._choice(name, key, choice, call) for key, choice in relation.by_key
            }
        else:
            assert isinstance(relation, str)
            wanted = relation
        try:
            found = self.operator.family.shape(self.operator, name, wanted, call)
            every: Any = () if found is None else found if parameter.variadic else (found,)
            if not all(isinstance(extent, int) for shape in every for extent in shape):
                raise TypeError("extents are integers")
        except (KeyError, AssertionError, TypeError) as error:
            given = (
                wanted
                if isinstance(wanted, str)
                else ", ".join(f"{key}: {_written(choice)}" for key, choice in wanted.items()) or IMPLIED
            )
            why = f": {error}" if isinstance(error, TypeError) else ""  # a hook's own mistake says so
            self.wrong = f"{self.operator.name} makes no shape of {name} by {given!r}{why}"
            raise Impossible from error
        if found is None:
            raise Impossible
        for number, each in enumerate(every):
            yield f"{name}.{number}" if parameter.variadic else name, each

    def _choice(self, name: str, key: str, choice: Choice | Nth, call: Call) -> Choice:
        if not isinstance(choice, Nth):
            return choice
        every = self.listed.every(name, key, call)
        if choice.place >= len(every):
            raise Impossible
        return every[choice.place]

    def _check_sizes(self, call: Call) -> None:
        """Note a shape that no tensor can have: the sweep is wrong, not the combination."""
        outputs = self.operator.family.output_shapes(self.operator, call)
        schema = self.listed.schema(call.opset)
        named = [
            *((name, each.shape) for name, each in call.inputs.items()),
            *((schema.output_name(n), s) for n, s in enumerate(outputs)),
        ]
        for what, shape in named:
            if problem := shape_problem([0 if extent == UNKNOWN else extent for extent in shape]):
                self.wrong = f"{what} would have shape {list(shape)}: {problem}"
                raise Impossible

    # with element types and kinds of values

    def inputs(
        self, step: SweepStep, dtypes: Mapping[str, str], kinds: Sequence[str]
    ) -> tuple[Input, ...] | None:
        """Return the inputs of a step; None where a kind of values has no shape for the element type."""
        if step.inputs is not None:
            return step.inputs
        name = self.listed.chosen[0]
        natural = self.operator.family.natural_shape(
            self.operator, kinds[0], dtypes[self.listed.type_params(step.opset)[name]]
        )
        return None if natural is None else (Input(name, natural),)

    def call(self, step: SweepStep, inputs: Sequence[Input], dtypes: Mapping[str, str]) -> Call:
        """Return the call of a step with element types, by type parameter; raise Impossible where a type
        lacks a constant."""
        types: dict[str, TensorType] = {}
        constants: dict[str, Array] = {}
        type_params = self.listed.type_params(step.opset)
        for name, shape, elements in inputs:
            dtype = dtypes[type_params[name.partition(".")[0]]]
            types[name] = TensorType(dtype, shape)
            if elements is not None:
                try:
                    constants[name] = constant(TensorSpec(name, dtype, shape, elements=elements))
                except ValueError:
                    raise Impossible from None
        return make_call(
            self.operator,
            step.opset,
            types,
            dict(step.attributes),
            constants,
            step.options.variant,
            step.options.outputs,
            step.options.omit,
        )

    def group(self, step: SweepStep, inputs: Sequence[Input], call: Call, kept: list[Kinds]) -> CallGroup:
        """Return the group of a step with its call."""
        specs = tuple(_tensor_spec(each, call.inputs[each.name].dtype) for each in inputs)
        return CallGroup(step, call, specs, kept, {})

    def no_meaning(self, kinds: Sequence[str]) -> str:
        """Say that kinds of values have none for a call."""
        return f"values={','.join(kinds)} has no meaning there"

    def refusals(
        self, step: SweepStep, call: Call, every: Sequence[Kinds], *, illegal: bool
    ) -> list[str | None]:
        """Say of a call with each of some kinds of values why it is no case of the sweep; None if it is one."""
        if step.unfit is not None:
            return [step.unfit] * len(every)
        meant = self._meant(call, every)
        if not any(meant):
            return [self.no_meaning(kinds) for kinds in every]
        of_all = None if step.options.after is None else sessions.refusal(self.operator, call, step.options)
        broken = None if of_all else self.operator.broken_rule(call)
        return [
            of_all or self._refused(broken or self._broken_by(kinds), illegal=illegal)
            if means
            else self.no_meaning(kinds)
            for kinds, means in zip(every, meant, strict=True)
        ]

    def _meant(self, call: Call, every: Sequence[Kinds]) -> list[bool]:
        """Say which kinds of values all have a meaning for the inputs of a call."""
        operator = self.operator
        applies = operator.family.applies
        meant = [True] * len(every)
        for name in call.inputs:
            place = self._places.get(name.partition(".")[0])
            if place is not None:
                means: dict[str, bool] = {}
                for number, kinds in enumerate(every):
                    kind = kinds[place]
                    if kind not in means:
                        means[kind] = applies(operator, kind, name, call)
                    meant[number] &= means[kind]
        return meant

    def _refused(self, breaks: str | None, *, illegal: bool) -> str | None:
        sweep = self.listed.sweep
        if sweep.validity is Validity.VALID:
            return breaks
        if sweep.validity is Validity.INVALID and sweep.directml is None and not (breaks or illegal):
            return "breaks no rule"
        return None

    def refusal(self, step: SweepStep, call: Call, kinds: Kinds, *, illegal: bool) -> str | None:
        """Say why one combination is no case of the sweep; None if it is one."""
        return self.refusals(step, call, (kinds,), illegal=illegal)[0]

    def breaks(self, call: Call, kinds: Kinds) -> str | None:
        """Return the rule that types, shapes and attributes break, or the one that the kinds of values break."""
        return self.operator.broken_rule(call) or self._broken_by(kinds)

    def _broken_by(self, kinds: Kinds) -> str | None:
        """Return the rule that the kinds of values themselves break."""
        if kinds not in self._by_kinds:
            chosen = zip(self.listed.chosen, kinds, strict=True)
            of_kinds = (self.operator.kind(name, kind).breaks for name, kind in chosen)
            self._by_kinds[kinds] = next(filter(None, of_kinds), None)
        return self._by_kinds[kinds]

    def forbids(self, step: SweepStep) -> bool:
        """Say whether a step breaks a rule with every element type of the sweep."""
        if step.broken is None or step.inputs is None:
            return step.broken is not None
        by_param = self.listed.dtypes(step.opset)
        for picked in product(*by_param.values()):
            try:
                call = self.call(step, step.inputs, dict(zip(by_param, picked, strict=True)))
            except Impossible:
                continue
            if self.operator.broken_rule(call) is None:
                return False
        return True


def _tensor_spec(given: Input, dtype: str) -> TensorSpec:
    """Return an input with its type, and elements of that: a number that is listed as 3.0 is the integer 3 where the
    input holds integers."""
    elements = given.elements
    if elements is not None and DTYPES[dtype].is_integer:
        elements = tuple(map(int, elements))
    return TensorSpec(given.name, dtype, given.shape, elements=elements)


def _written(choice: Choice) -> str:
    return str(list(choice)) if isinstance(choice, tuple) else str(choice)


def _numbers(value: Value) -> Elements:
    listed = value if isinstance(value, tuple) else (value,)
    return tuple(each for each in listed if isinstance(each, (int, float)))


def _widest(elements: Sequence[int | float | bool]) -> str:
    return "int64" if all(isinstance(each, int) for each in elements) else "float64"


def graph_key(
    step: SweepStep,
) -> tuple[int, tuple[tuple[str, Value], ...], Options, str, DirectmlOptions | None]:
    """Return a key that the cases of one graph with symbolic dimensions share."""
    ranks = "" if step.inputs is None else ",".join(str(len(each.shape)) for each in step.inputs)
    return step.opset, step.attributes, step.options, ranks, step.directml


def sort_key(step: SweepStep) -> str:
    """Return what puts the steps of a sweep in order."""
    terms = option_terms(step.options) + directml_terms(step.directml)
    return f"{step.opset:4d} {terms} {graph_key(step)[3]} {step.attributes}"
