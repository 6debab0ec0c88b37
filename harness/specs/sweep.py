"""The combinations of one sweep: which of them the operator allows, and the groups of cases that they make.

A combination is made in an order in which each choice can depend on those before it: opset and options, the shape of the first input,
the attributes, the shapes of the other inputs by their relation to the first, element types, kinds of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, product
from typing import NamedTuple

from harness.calls import constant, make_call
from harness.caseid import directml_terms, option_terms
from harness.dtypes import Array
from harness.onnx_schemas import OperatorSchema, Parameter
from harness.operators.base import Call, Choice, Operator, Shape, TensorType
from harness.records import DirectmlOptions, Options, TensorSpec, Validity, Value
from harness.specs import api
from harness.specs.attribute_values import NUMBERS, alternatives
from harness.specs.covering import covering
from harness.specs.literals import shape_problem
from harness.specs.load import LoadedSpec
from harness.specs.schema import ALL, OMITTED, Sweep, SweepInput

PLACEHOLDER = "float32"
"""The element type of inputs as long as none is chosen: no rule on shapes and attributes asks for it."""
NO_NEW_PAIR = "adds no new pair"
INEXACT = "a constant is not exact in the element type"
ILLEGAL_TYPE = "element type not allowed at this opset"


class Nth(NamedTuple):
    """The value at a place of what `all` stands for, which depends on the shapes."""

    place: int


IMPLIED = "implied"
"""The relation of an input of which the sweep says none: the family's usual one."""
Relation = Shape | str | tuple[tuple[str, Choice | Nth], ...]
"""A shape, a word, or choices by the keys of an operator."""


class Input(NamedTuple):
    """An input of a step: its shape, and its elements where they decide shapes."""

    name: str
    shape: Shape
    elements: tuple[int | float | bool, ...] | None = None


class Step(NamedTuple):
    """One combination of a sweep before element types and values are chosen."""

    opset: int
    attributes: tuple[tuple[str, Value], ...]
    options: Options
    inputs: tuple[Input, ...] | None
    """None where the kind of values decides the shape (lists of special values)."""
    broken: str | None
    directml: DirectmlOptions | None = None
    unfit: str | None = None
    """Why the tensors do not fit in the DimensionCount that is asked for."""


class Group(NamedTuple):
    """One combination of element types and shapes with its call, and the combinations of kinds of values that it is called with."""

    step: Step
    call: Call
    inputs: tuple[TensorSpec, ...]
    kinds: list[tuple[str, ...]]


class Impossible(Exception):
    """A combination that makes no call."""


class SweepCalls:
    """All groups of a sweep."""

    def __init__(self, spec: LoadedSpec, operator: Operator, sweep: Sweep, *, pairwise: bool) -> None:
        """Take a sweep whose names and words have been checked."""
        self.spec = spec
        self.operator = operator
        self.sweep = sweep
        self.pairwise = pairwise
        self.opsets = api.opsets(sweep, spec)
        self.wrong: str | None = None
        schema = spec.schema(self.opsets[-1])
        named = [p.name for p in schema.inputs if p.name in sweep.inputs]
        self.chosen = tuple(name for name in named if operator.family.kinds(operator, name))
        """The inputs whose values are chosen by kind, by their formal names."""
        self._used: set[tuple[str, object]] = set()

    # what the sweep lists

    def schema(self, opset: int) -> OperatorSchema:
        return self.spec.schema(opset)

    def kinds(self, name: str) -> tuple[str, ...]:
        """Return the kinds of values of an input."""
        return self.sweep.inputs[name].values or (self.operator.family.kinds(self.operator, name)[0].name,)

    def value_terms(self, kinds: Sequence[str]) -> str:
        """Write the kinds of values that the sweep lists as terms of an id: those of the first input that has any carry no name."""
        given = [(n, name) for n, name in enumerate(self.chosen) if self.sweep.inputs[name].values]
        return "".join(f";{'' if n == 0 else f'{name}.'}values={kinds[n]}" for n, name in given)

    def options(self) -> Iterator[Options]:
        """Yield every combination of options."""
        fields = Options.__struct_fields__
        for values in product(*(getattr(self.sweep.options, field) for field in fields)):
            yield Options(**dict(zip(fields, values, strict=True)))

    def attribute_kinds(self, opset: int) -> dict[str, str]:
        """Return the types of what stands under `attributes` and exists at an opset; NUMBER or NUMBERS for an input."""
        schema, constants = self.schema(opset), self.operator.constants
        found = {}
        for name in self.sweep.attributes:
            if name in schema.attributes:
                found[name] = schema.attributes[name].type
            elif schema.input(name) is not None:
                found[name] = NUMBERS[constants.get(name, 1)]
        return found

    def _parameters(self, opset: int) -> list[Parameter]:
        """Return the inputs that the sweep speaks of at an opset."""
        return [p for p in self.schema(opset).inputs if p.name in self.sweep.inputs or p.name in self.sweep.attributes]

    def dtypes(self, opset: int) -> dict[str, tuple[str, ...]]:
        """Return the element types that the sweep lists for each type parameter."""
        found: dict[str, tuple[str, ...]] = {}
        parameters = self._parameters(opset)
        for parameter in parameters:
            if parameter.type_param in found:
                continue
            sharing = [p.name for p in parameters if p.type_param == parameter.type_param]
            given = next((d for name in sharing if (one := self.sweep.inputs.get(name)) and (d := one.dtype) is not None), None)
            if given is None and all(name in self.sweep.attributes for name in sharing):
                found[parameter.type_param] = ("int64",) if "int64" in parameter.dtypes else parameter.dtypes[:1]
            elif given is None or given == ALL:
                found[parameter.type_param] = parameter.dtypes if self.sweep.directml is None else api.DTYPES_OF_DIRECTML
            else:
                found[parameter.type_param] = tuple(given)
        return found

    def relations(self, given: SweepInput, name: str, first: Call | None) -> list[Relation]:
        """Return the alternatives for the shape of an input; without the first input's shape `all` stands for its places."""
        shape = given.shape
        if shape is None:
            return [IMPLIED]
        if not isinstance(shape, dict):
            return list(shape)
        lists = []
        for key, listed in shape.items():
            if listed == ALL:
                if first is None:
                    count = max(len(list(self._every(name, key, one))) for one in self._first_calls())
                    choices: Sequence[Choice | Nth] = [Nth(place) for place in range(count)]
                else:
                    choices = list(self._every(name, key, first))
            else:
                choices = listed if isinstance(listed, tuple) else (listed,)
            lists.append([(key, choice) for choice in choices])
        return list(product(*lists))

    def _every(self, name: str, key: str, first: Call) -> Sequence[Choice]:
        return list(self.operator.family.every(self.operator, name, key, first))

    def _first_calls(self) -> Iterator[Call]:
        name = next(iter(self.schema(self.opsets[-1]).inputs)).name
        for relation in self.sweep.inputs[name].shape or ((),):
            yield Call({name: TensorType(PLACEHOLDER, relation if isinstance(relation, tuple) else ())}, {})

    # one combination

    def step(
        self,
        opset: int,
        options: Options,
        relations: Mapping[str, Relation],
        picked: Mapping[str, Value | Nth | None],
        asked: DirectmlOptions | None,
    ) -> Step:
        """Make one combination of shapes and attributes; raise Impossible where it makes no call."""
        operator, family = self.operator, self.operator.family
        schema = self.schema(opset)
        defaults = schema.defaults()
        types: dict[str, TensorType] = {}
        explicit = {name: TensorType(PLACEHOLDER, r) for name, r in relations.items() if _is_shape(r) and not self._variadic(schema, name)}
        parameters = self._parameters(opset)
        first = next((p.name for p in parameters if p.name in relations), None)
        if first is not None and first not in explicit:
            explicit = {first: TensorType(PLACEHOLDER, _of(relations[first])), **explicit}
        attributes: dict[str, Value] = {}
        constants: dict[str, Array] = {}
        elements: dict[str, tuple[int | float | bool, ...]] = {}
        kinds = self.attribute_kinds(opset)
        for name, value in picked.items():
            if isinstance(value, Nth):
                domain = list(family.domain(operator, name, Call(explicit, {**defaults, **attributes}, constants, opset)))
                if value.place >= len(domain):
                    raise Impossible
                value = domain[value.place]
            if value is None:
                continue
            if kinds[name] in NUMBERS:
                elements[name] = value if isinstance(value, tuple) else (value,)  # type: ignore[assignment,arg-type] # numbers
                shape = (len(elements[name]),) if isinstance(value, tuple) else ()
                types[name] = TensorType(PLACEHOLDER, shape)
                constants[name] = constant(TensorSpec(name, _widest(elements[name]), shape, elements=elements[name]))
            else:
                attributes[name] = value
        every = {**defaults, **attributes}
        present: dict[str, TensorType] = {}
        for parameter in parameters:
            name = parameter.name
            if name in types:
                present[name] = types[name]
                continue
            if name not in relations or relations[name] == OMITTED:
                continue
            for key, shape in self._shapes(parameter, relations[name], Call(present, every, constants, opset)):
                present[key] = TensorType(PLACEHOLDER, shape)
        call = make_call(operator, opset, present, attributes, constants, options.variant, options.outputs)
        self._check_sizes(call)
        broken = operator.broken_rule(call)
        inputs = tuple(Input(name, each.shape, elements.get(name)) for name, each in present.items())
        return Step(opset, tuple(attributes.items()), options, inputs, broken, asked, api.unfit(operator, asked, call))

    def _variadic(self, schema: OperatorSchema, name: str) -> bool:
        parameter = schema.input(name)
        return parameter is not None and parameter.variadic

    def _shapes(self, parameter: Parameter, relation: Relation, call: Call) -> Iterator[tuple[str, Shape]]:
        """Yield the names and shapes of an input, or of all that a variadic one stands for."""
        operator, name = self.operator, parameter.name
        if _is_shape(relation) and not parameter.variadic:
            yield name, relation  # type: ignore[misc] # a shape
            return
        if _is_shape(relation):
            relation = (("of", relation),)  # type: ignore[assignment] # a shape
        if relation == IMPLIED:
            relation = ()
        wanted = relation if isinstance(relation, str) else {key: self._choice(name, key, choice, call) for key, choice in relation}  # type: ignore[misc] # choices
        found = operator.family.shape(operator, name, wanted, call)
        if found is None:
            raise Impossible
        if parameter.variadic:
            yield from ((f"{name}.{n}", each) for n, each in enumerate(found))  # type: ignore[misc] # shapes
        else:
            yield name, found

    def _choice(self, name: str, key: str, choice: Choice | Nth, call: Call) -> Choice:
        if not isinstance(choice, Nth):
            return choice
        every = self._every(name, key, call)
        if choice.place >= len(every):
            raise Impossible
        return every[choice.place]

    def _check_sizes(self, call: Call) -> None:
        """Note a shape that no tensor can have: the sweep is wrong, not the combination."""
        outputs = self.operator.family.output_shapes(self.operator, call)
        schema = self.schema(call.opset)
        named = [*((name, each.shape) for name, each in call.inputs.items()), *((schema.output_name(n), s) for n, s in enumerate(outputs))]
        for what, shape in named:
            if problem := shape_problem(shape):
                self.wrong = f"{what} would have shape {list(shape)}: {problem}"
                raise Impossible

    # the product

    @cached_property
    def steps(self) -> list[Step]:
        """Every combination of shapes and attributes in the product of the lists, the cases of one graph together."""
        found: dict[Step, None] = {}
        asked = list(api.sweep_options(self.sweep.directml))
        for opset in self.opsets:
            kinds = self.attribute_kinds(opset)
            for options in self.options():
                for relations in self._relation_choices(opset):
                    for picked in self._attribute_choices(opset, kinds, relations):
                        for each in asked:
                            if relations is None:
                                attributes = tuple((n, v) for n, v in picked.items() if v is not None)
                                found[Step(opset, attributes, options, None, None, each, None)] = None
                                continue
                            try:
                                step = self.step(opset, options, relations, picked, each)
                            except Impossible:
                                if self.wrong:
                                    return []
                                continue
                            found[step] = None
                            if not step.broken or self.sweep.validity is not Validity.VALID:
                                self._used.update(picked.items())
        return sorted(found, key=_sort_key)

    def _relation_choices(self, opset: int) -> Iterator[dict[str, Relation] | None]:
        """Yield a relation for each input; None where the kind of values decides the only input's shape."""
        names = [p.name for p in self._parameters(opset) if p.name in self.sweep.inputs]
        if not names:
            yield {}
            return
        given = [self.sweep.inputs[name] for name in names]
        if given[0].shape is None:
            yield None
            return
        for first in self.relations(given[0], names[0], None):
            call = Call({names[0]: TensorType(PLACEHOLDER, _of(first))}, {}, {}, opset)
            others = [self.relations(one, name, call) for name, one in zip(names[1:], given[1:], strict=True)]
            for picked in product(*others):
                yield dict(zip(names, (first, *picked), strict=True))

    def _attribute_choices(
        self, opset: int, kinds: Mapping[str, str], relations: Mapping[str, Relation] | None
    ) -> Iterator[dict[str, Value | Nth | None]]:
        lists: list[Sequence[Value | None]] = []
        for name, kind in kinds.items():
            listed = self.sweep.attributes[name]
            if listed == ALL and kind != "STRING":
                lists.append(self._domain(opset, name, relations or {}))
            else:
                lists.append(alternatives(kind, listed))
        for picked in product(*lists):
            yield dict(zip(kinds, picked, strict=True))

    def _domain(self, opset: int, name: str, relations: Mapping[str, Relation]) -> list[Value]:
        """Return what `all` stands for with these shapes, as far as they do not depend on attributes."""
        schema = self.schema(opset)
        explicit = {key: TensorType(PLACEHOLDER, _of(r)) for n, (key, r) in enumerate(relations.items()) if n == 0 or _is_shape(r)}
        return list(self.operator.family.domain(self.operator, name, Call(explicit, schema.defaults(), {}, opset))) if explicit else []

    def groups(self, left_out: Counter[str]) -> Iterator[Group]:
        """Yield what the sweep keeps, the cases of one graph together, and count by reason what it leaves out."""
        if self.pairwise:
            yield from self._covering
            left_out.update(self._not_covered)
            return
        for (opset, *_), steps in groupby(self.steps, key=_graph_key):
            group = list(steps)
            listed = self.dtypes(opset)
            number = len(list(product(*map(self.kinds, self.chosen))))
            for dtypes in product(*listed.values()):
                by_param = dict(zip(listed, dtypes, strict=True))
                illegal = self._illegal(opset, by_param)
                if illegal and self.sweep.validity is not Validity.INVALID:
                    left_out[ILLEGAL_TYPE] += len(group) * number
                    continue
                for step in group:
                    yield from self._groups(step, by_param, illegal, left_out)

    def _illegal(self, opset: int, by_param: Mapping[str, str]) -> bool:
        if self.sweep.directml is not None:
            return False
        return any(by_param[p.type_param] not in p.dtypes for p in self._parameters(opset))

    def _groups(self, step: Step, by_param: Mapping[str, str], illegal: bool, left_out: Counter[str]) -> Iterator[Group]:
        """Yield the groups of a step with element types: one, or one for each shape that kinds of values ask for."""
        by_shape: dict[tuple[Input, ...], tuple[Call, list[tuple[str, ...]]]] = {}
        for kinds in product(*map(self.kinds, self.chosen)):
            inputs = self._inputs(step, by_param, kinds)
            if inputs is None:
                left_out[self._no_meaning(kinds)] += 1
                continue
            if inputs not in by_shape:
                try:
                    by_shape[inputs] = self._call(step, inputs, by_param), []
                except Impossible:
                    left_out[INEXACT] += 1
                    continue
            call, kept = by_shape[inputs]
            why = self._refusal(step, call, kinds, illegal)
            if why is None:
                kept.append(kinds)
            else:
                left_out[why] += 1
        for inputs, (call, kept) in by_shape.items():
            if kept:
                yield self._group(step, inputs, call, kept)

    def _group(self, step: Step, inputs: tuple[Input, ...], call: Call, kept: list[tuple[str, ...]]) -> Group:
        specs = tuple(TensorSpec(name, call.inputs[name].dtype, shape, "random", elements) for name, shape, elements in inputs)
        return Group(step, call, specs, kept)

    def _inputs(self, step: Step, by_param: Mapping[str, str], kinds: Sequence[str]) -> tuple[Input, ...] | None:
        if step.inputs is not None:
            return step.inputs
        name = self.chosen[0]
        parameter = self.schema(step.opset).input(name)
        assert parameter is not None
        natural = self.operator.family.natural_shape(self.operator, kinds[0], by_param[parameter.type_param])
        return None if natural is None else (Input(name, natural),)

    def _call(self, step: Step, inputs: Sequence[Input], by_param: Mapping[str, str]) -> Call:
        schema = self.schema(step.opset)
        types: dict[str, TensorType] = {}
        constants: dict[str, Array] = {}
        for name, shape, elements in inputs:
            parameter = schema.input(name)
            assert parameter is not None
            dtype = by_param[parameter.type_param]
            types[name] = TensorType(dtype, shape)
            if elements is not None:
                try:
                    constants[name] = constant(TensorSpec(name, dtype, shape, elements=elements))
                except ValueError:
                    raise Impossible from None
        return make_call(self.operator, step.opset, types, dict(step.attributes), constants, step.options.variant, step.options.outputs)

    def _no_meaning(self, kinds: Sequence[str]) -> str:
        return f"values={','.join(kinds)} has no meaning there"

    def _refusal(self, step: Step, call: Call, kinds: Sequence[str], illegal: bool) -> str | None:
        """Say why a combination is no case of the sweep; None if it is one."""
        operator, validity = self.operator, self.sweep.validity
        if step.unfit is not None:
            return step.unfit
        for name in call.inputs:
            formal = name.partition(".")[0]
            if formal in self.chosen and not operator.family.applies(operator, kinds[self.chosen.index(formal)], name, call):
                return self._no_meaning(kinds)
        breaks = next((b for name, kind in zip(self.chosen, kinds, strict=True) if (b := operator.kind(name, kind).breaks)), None)
        if validity is Validity.VALID and (step.broken or breaks):
            return step.broken or breaks
        if validity is Validity.INVALID and self.sweep.directml is None and not (step.broken or breaks or illegal):
            return "breaks no rule"
        return None

    # as few as show every pair

    @cached_property
    def _covered(self) -> tuple[list[Group], Counter[str]]:
        factors = self._factors()
        names = list(factors)
        levels = list(factors.values())
        taken: dict[tuple[Step, tuple[Input, ...], tuple[str, ...]], tuple[Call, list[tuple[str, ...]]]] = {}

        def take(row: tuple[int, ...]) -> bool:
            found = self._resolved({name: level[place] for name, level, place in zip(names, levels, row, strict=True)})
            if found is None:
                return False
            step, inputs, dtypes, call, kinds = found
            _, kept = taken.setdefault((step, inputs, dtypes), (call, []))
            if kinds not in kept:
                kept.append(kinds)
            return True

        found = covering([len(level) for level in levels], take, f"{self.operator.name}:{self.sweep.name}", self.sweep.budget)
        ordered = sorted(taken.items(), key=lambda item: (_sort_key(item[0][0]), item[0][2]))
        number = sum(len(kept) for _, kept in taken.values())
        product_size = 1
        for level in levels:
            product_size *= len(level)
        left_out = Counter({NO_NEW_PAIR: max(0, product_size - number)})
        if found.left:
            left_out["pairs of alternatives beyond the budget"] = found.left
        return [self._group(step, inputs, call, kept) for (step, inputs, _), (call, kept) in ordered], left_out

    @property
    def _covering(self) -> list[Group]:
        return self._covered[0]

    @property
    def _not_covered(self) -> Counter[str]:
        return self._covered[1]

    def _factors(self) -> dict[tuple[str, str], Sequence[object]]:
        """Return what can be chosen independently, by the part of a case that it decides."""
        found: dict[tuple[str, str], Sequence[object]] = {("opset", ""): self.opsets}
        found |= {("options", field): getattr(self.sweep.options, field) for field in Options.__struct_fields__}
        for name, given in self.sweep.inputs.items():
            found["shape", name] = self.relations(given, name, None)
        types: dict[str, dict[str, None]] = {}
        for opset in self.opsets:
            for param, dtypes in self.dtypes(opset).items():
                types.setdefault(param, {}).update(dict.fromkeys(dtypes))
        found |= {("dtype", param): list(dtypes) for param, dtypes in types.items()}
        for name, listed in self.sweep.attributes.items():
            kind = next(kinds[name] for opset in self.opsets if name in (kinds := self.attribute_kinds(opset)))
            found["attribute", name] = self._nths(name) if listed == ALL and kind != "STRING" else alternatives(kind, listed)
        for name in self.chosen:
            found["values", name] = self.kinds(name)
        if self.sweep.directml is not None:
            found["directml", ""] = list(api.sweep_options(self.sweep.directml))
        return found

    def _nths(self, name: str) -> list[Nth]:
        most = 0
        for opset in self.opsets:
            for relations in self._relation_choices(opset):
                most = max(most, len(self._domain(opset, name, relations or {})))
                if most > _MOST_OF_ALL:
                    return [Nth(place) for place in range(_MOST_OF_ALL)]
        return [Nth(place) for place in range(most)]

    def _resolved(
        self, chosen: Mapping[tuple[str, str], object]
    ) -> tuple[Step, tuple[Input, ...], tuple[str, ...], Call, tuple[str, ...]] | None:
        """Make the case of one choice for every factor; None where there is none."""
        opset = chosen["opset", ""]
        assert isinstance(opset, int)
        options = Options(**{field: value for (what, field), value in chosen.items() if what == "options"})
        known = self.attribute_kinds(opset)
        picked = {name: value for (what, name), value in chosen.items() if what == "attribute" and name in known}
        relations = {name: value for (what, name), value in chosen.items() if what == "shape"}
        by_param = {name: str(value) for (what, name), value in chosen.items() if what == "dtype"}
        kinds = tuple(str(chosen["values", name]) for name in self.chosen)
        illegal = self._illegal(opset, by_param)
        if illegal and self.sweep.validity is not Validity.INVALID:
            return None
        try:
            step = self.step(opset, options, relations, picked, chosen.get(("directml", "")))  # type: ignore[arg-type] # by factor
        except Impossible:
            return None
        inputs = self._inputs(step, by_param, kinds)
        if inputs is None:
            return None
        try:
            call = self._call(step, inputs, by_param)
        except Impossible:
            return None
        if self._refusal(step, call, kinds, illegal) is not None:
            return None
        return step, inputs, tuple(by_param.values()), call, kinds

    # what is wrong

    def problems(self, number: int) -> list[str]:
        """Return what is wrong with the sweep as a whole."""
        at = ("sweeps", number)
        first = None
        if not self.pairwise:
            steps = self.steps
            if self.wrong is None:
                unused = self._unused(at)
                if unused:
                    return unused
            first = next(self.groups(Counter()), None) if steps else None
        elif self._covering:
            first = self._covering[0]
        if self.wrong is not None:
            return [self.spec.problem(at, self.wrong)]
        return [] if first is not None else [self.spec.problem(at, "the sweep has no case: the operator forbids every combination")]

    def _unused(self, at: tuple[str, int]) -> list[str]:
        found = []
        for name, listed in self.sweep.attributes.items():
            for value in () if listed == ALL else dict.fromkeys(v for o in self.opsets for v in self._listed(o, name)):
                if (name, value) not in self._used and any(step.inputs is not None for step in self.steps):
                    shown = list(value) if isinstance(value, tuple) else value
                    what = f"{name}: {shown} is outside its domain for every shape of the sweep; if that is meant, write validity: invalid"
                    found.append(self.spec.problem((*at, "attributes", name), what))
        return found

    def _listed(self, opset: int, name: str) -> Sequence[Value | None]:
        kind = self.attribute_kinds(opset).get(name)
        return () if kind is None else alternatives(kind, self.sweep.attributes[name])


_MOST_OF_ALL = 8
"""As many values of a domain are tried where a sweep keeps as few cases as show every pair."""


def _is_shape(relation: Relation) -> bool:
    """Say whether a relation is a shape: the empty tuple is a scalar's."""
    return isinstance(relation, tuple) and (not relation or isinstance(relation[0], int))


def _of(relation: Relation) -> Shape:
    """Return the shape that a relation of the first input names."""
    if _is_shape(relation):
        return relation  # type: ignore[return-value] # a shape
    return (
        next((choice for key, choice in relation if key == "of" and isinstance(choice, tuple)), ()) if isinstance(relation, tuple) else ()
    )  # type: ignore[misc,return-value] # choices


def _widest(elements: Sequence[int | float | bool]) -> str:
    return "int64" if all(isinstance(each, int) for each in elements) else "float64"


def _graph_key(step: Step) -> tuple[int, tuple[tuple[str, Value], ...], Options, str, DirectmlOptions | None]:
    shapes = "" if step.inputs is None else ",".join(str(len(each.shape)) for each in step.inputs)
    return step.opset, step.attributes, step.options, shapes, step.directml


def _sort_key(step: Step) -> str:
    terms = option_terms(step.options) + directml_terms(step.directml)
    return f"{step.opset:4d} {terms} {_graph_key(step)[3]} {step.attributes}"
