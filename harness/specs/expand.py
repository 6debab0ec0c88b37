"""Expands specs to cases: literal ones as written, sweeps as the product of their lists without what the operator forbids.

A plan is made eagerly, from shapes and attributes alone, so that every mistake in a spec is found before anything runs; the cases are made
lazily, one after the other, in an order that keeps the cases of one graph together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import NamedTuple

from harness.caseid import directml_terms, option_terms, tensor_term
from harness.dtypes import DTYPES
from harness.errors import SpecError
from harness.lanes.portions import WHOLE, Portion
from harness.levels import known_operators, levels
from harness.operators import OPERATORS
from harness.operators.base import Choice, Operator, Shape, Shapes
from harness.records import Case, DirectmlOptions, Options, TensorSpec, Validity
from harness.specs import api
from harness.specs.literal_cases import literal_cases, option_problems
from harness.specs.literals import shape_problem
from harness.specs.load import LoadedSpec
from harness.specs.schema import ALL, Sweep, SweepInput


class Step(NamedTuple):
    """One combination of a sweep before element types and values are chosen."""

    opset: int
    attributes: tuple[tuple[str, int], ...]
    options: Options
    shapes: Shapes | None
    """None where the kind of values decides the shape (Round's lists of special values)."""
    broken: str | None
    directml: DirectmlOptions | None = None
    unfit: str | None = None
    """Why the tensors do not fit in the DimensionCount that is asked for."""


class Call(NamedTuple):
    """One combination of element types and shapes, with the kinds of values that it is called with."""

    step: Step
    dtypes: tuple[str, ...]
    shapes: Shapes
    kinds: list[str]


class SweepPlan(NamedTuple):
    """A checked sweep."""

    spec: LoadedSpec
    operator: Operator
    sweep: Sweep
    steps: list[Step]
    kinds: tuple[str, ...]

    def cases(self, left_out: Counter[str], portion: Portion = WHOLE) -> Iterator[Case]:
        """Yield the sweep's cases, or a portion of its calls, and count by reason what the whole sweep leaves out."""
        sweep = self.sweep
        lowers_to = self.spec.model.lowers_to.directml
        values = {kind: self._values(kind) for kind in self.kinds}
        for call in portion.of(self.calls(left_out)):
            step, dtypes, shapes, kinds = call
            prefix, suffix = self._text(step, dtypes, shapes)
            attributes = dict(step.attributes)
            lowered: dict[bool, dict[str, str]] = {}
            for kind in kinds:
                negative = self.operator.kind(kind).negative
                if negative not in lowered:
                    lowered[negative] = levels(self.operator, lowers_to, dtypes, shapes, attributes, negative, step.directml)
                inputs = tuple(map(TensorSpec, self.operator.inputs, dtypes, shapes, values[kind]))
                yield Case(
                    id=f"{prefix}{kind}{suffix}" if sweep.inputs[self.operator.values_input].values else prefix + suffix,
                    operator=self.operator.name,
                    opset=step.opset,
                    attributes=attributes,
                    inputs=inputs,
                    options=step.options,
                    validity=sweep.validity,
                    rule=sweep.rule,
                    source=sweep.source,
                    levels=lowered[negative],
                    directml=step.directml,
                )

    def count(self, left_out: Counter[str]) -> int:
        """Count the sweep's cases without making them, and by reason what it leaves out."""
        return sum(len(call.kinds) for call in self.calls(left_out))

    def calls(self, left_out: Counter[str]) -> Iterator[Call]:
        """Yield what the sweep keeps of its product, the cases of one graph together."""
        for (opset, *_), steps in groupby(self.steps, key=_graph_key):
            group = list(steps)
            legal = [parameter.dtypes for parameter in self.spec.schema(opset).inputs]
            for dtypes in product(*self._dtypes(opset)):
                illegal = self.sweep.directml is None and any(dtype not in legal[n] for n, dtype in enumerate(dtypes))
                if illegal and self.sweep.validity is not Validity.INVALID:
                    left_out["element type not allowed at this opset"] += len(group) * len(self.kinds)
                    continue
                for step in group:
                    by_shape: dict[Shapes, list[str]] = {}
                    for kind in self.kinds:
                        shapes = self._shapes(step, dtypes, kind, illegal, left_out)
                        if shapes is not None:
                            by_shape.setdefault(shapes, []).append(kind)
                    for shapes, kinds in by_shape.items():
                        yield Call(step, dtypes, shapes, kinds)

    def _text(self, step: Step, dtypes: tuple[str, ...], shapes: Shapes) -> tuple[str, str]:
        """Return the id up to the kind of values and after it."""
        terms = [f"{self.operator.name}@{step.opset}:sweep={self.sweep.name}"]
        terms.extend(map(tensor_term, self.operator.inputs, dtypes, shapes))
        terms.extend(f"{name}={value}" for name, value in step.attributes)
        named = ";values=" if self.sweep.inputs[self.operator.values_input].values else ""
        return ";".join(terms) + named, option_terms(step.options) + directml_terms(step.directml)

    def _values(self, kind: str) -> tuple[str, ...]:
        return tuple(kind if name == self.operator.values_input else "random" for name in self.operator.inputs)

    def _dtypes(self, opset: int) -> list[tuple[str, ...]]:
        schema = self.spec.schema(opset)
        chosen = [self.sweep.inputs[name].dtype for name in self.operator.inputs]
        if self.sweep.directml is not None:
            return [api.DTYPES_OF_DIRECTML if given == ALL else tuple(given) for given in chosen]
        return [schema.inputs[n].dtypes if given == ALL else tuple(given) for n, given in enumerate(chosen)]

    def _shapes(self, step: Step, dtypes: tuple[str, ...], kind: str, illegal: bool, left_out: Counter[str]) -> Shapes | None:
        """Return the shapes of a case of the sweep, or count why it has none."""
        operator = self.operator
        if step.unfit is not None:
            left_out[step.unfit] += 1
            return None
        dtype = dtypes[operator.inputs.index(operator.values_input)]
        shapes = step.shapes
        if shapes is None:
            natural = operator.natural_shape(kind, dtype)
            shapes = None if natural is None else (natural,)
        if shapes is None or not operator.applies(kind, dtype, shapes):
            left_out[f"values={kind} has no meaning there"] += 1
            return None
        validity = self.sweep.validity
        if validity is Validity.VALID and (step.broken or operator.kind(kind).invalid):
            left_out[step.broken or "index values within [-s, s-1]"] += 1
            return None
        if validity is Validity.INVALID and self.sweep.directml is None and not (step.broken or operator.kind(kind).invalid or illegal):
            left_out["breaks no rule"] += 1
            return None
        return shapes


@dataclass(frozen=True)
class Plan:
    """All cases of some specs; `left_out` counts by reason the combinations that iterating has passed over."""

    specs: tuple[LoadedSpec, ...]
    literals: tuple[Case, ...]
    sweeps: tuple[SweepPlan, ...]
    left_out: Counter[str]

    def __iter__(self) -> Iterator[Case]:
        yield from self.cases(valid=True)
        yield from self.cases(valid=False)

    def count(self) -> int:
        """Count the cases without making them, and by reason what is left out."""
        return len(self.literals) + sum(sweep.count(self.left_out) for sweep in self.sweeps)

    def cases(self, *, valid: bool, portion: Portion = WHOLE, wanted: Callable[[SweepPlan], bool] | None = None) -> Iterator[Case]:
        """Yield the valid cases, or the others: the two kinds never share a worker. A portion walks through both, in this order.

        Of sweeps only those that are `wanted`.
        """
        yield from portion.of(case for case in self.literals if (case.validity is Validity.VALID) is valid)
        for sweep in self.sweeps:
            if (sweep.sweep.validity is Validity.VALID) is valid and (wanted is None or wanted(sweep)):
                yield from sweep.cases(self.left_out, portion)


def expand(specs: Sequence[LoadedSpec]) -> Plan:
    """Check what only the operator can tell and plan all cases; raise SpecError with every problem."""
    problems: list[str] = []
    literals: list[Case] = []
    sweeps: list[SweepPlan] = []
    for spec in specs:
        operator = OPERATORS.get(spec.model.operator)
        if operator is None:
            what = f"the harness has no oracle for {spec.model.operator}; add harness/operators/{spec.model.operator.lower()}.py"
            problems.append(spec.problem(("operator",), what, allowed=OPERATORS))
            continue
        unknown = [name for name in spec.model.lowers_to.directml if name not in known_operators()]
        for name in unknown:
            what = f"no published table for {name!r}"
            problems.append(spec.problem(("lowers_to", "directml"), what, given=name, allowed=known_operators()))
        if unknown:
            continue  # no level of its cases could be told
        literals.extend(literal_cases(spec, operator, problems))
        for number, sweep in enumerate(spec.model.sweeps):
            found = _sweep_problems(spec, operator, number, sweep)
            problems.extend(found)
            if not found:
                sweeps.append(_plan(spec, operator, number, sweep, problems))
    if problems:
        raise SpecError(problems)
    return Plan(tuple(specs), tuple(literals), tuple(sweeps), Counter())


def _graph_key(step: Step) -> tuple[int, tuple[tuple[str, int], ...], Options, str, DirectmlOptions | None]:
    shapes = "" if step.shapes is None else ",".join(str(len(shape)) for shape in step.shapes)
    return step.opset, step.attributes, step.options, shapes, step.directml


def _sort_key(step: Step) -> str:
    terms = option_terms(step.options) + directml_terms(step.directml)
    return f"{step.opset:4d} {terms} {_graph_key(step)[3]} {step.attributes}"


def _plan(spec: LoadedSpec, operator: Operator, number: int, sweep: Sweep, problems: list[str]) -> SweepPlan:
    steps: dict[Step, None] = {}
    used: set[tuple[str, int]] = set()
    asked = list(api.sweep_options(sweep.directml))
    for opset in api.opsets(sweep, spec):
        known = spec.schema(opset).attributes
        names = [name for name in sweep.attributes if name in known]
        for options in _options(sweep):
            for shapes, chosen in _shape_choices(operator, sweep):
                for attributes in _attribute_choices(operator, sweep, names, shapes):
                    derived = operator.shapes(shapes[0], chosen, dict(attributes)) if shapes and len(shapes) == 1 else shapes
                    if shapes and derived is None:
                        continue
                    wrong = derived and _size_problem(operator, derived, dict(attributes))
                    if wrong:
                        problems.append(spec.problem(("sweeps", number), wrong))
                        return SweepPlan(spec, operator, sweep, [], ())
                    broken = operator.broken_rule(derived, dict(attributes)) if derived else None
                    for each in asked:
                        unfit = api.unfit(operator, each, derived or ((1,),), dict(attributes))
                        steps[Step(opset, attributes, options, derived, broken, each, unfit)] = None
                    if not broken or sweep.validity is not Validity.VALID:
                        used.update(attributes)
    for name, values in sweep.attributes.items():
        for value in values if values != ALL else ():
            if (name, value) not in used:
                what = f"{name}: {value} is outside its domain for every shape of the sweep; if that is meant, write validity: invalid"
                problems.append(spec.problem(("sweeps", number, "attributes", name), what))
    kinds = sweep.inputs[operator.values_input].values or (operator.value_kinds[0].name,)
    plan = SweepPlan(spec, operator, sweep, sorted(steps, key=_sort_key), kinds)
    if not problems and next(plan.calls(Counter()), None) is None:
        problems.append(spec.problem(("sweeps", number), "the sweep has no case: the operator forbids every combination"))
    return plan


def _size_problem(operator: Operator, shapes: Shapes, attributes: dict[str, int]) -> str | None:
    for what, shape in (*zip(operator.inputs, shapes, strict=True), (operator.output, operator.output_shape(shapes, attributes))):
        wrong = shape_problem(shape)
        if wrong is not None:
            return f"{what} would have shape {list(shape)}: {wrong}"
    return None


def _options(sweep: Sweep) -> Iterator[Options]:
    fields = Options.__struct_fields__
    for values in product(*(getattr(sweep.options, field) for field in fields)):
        yield Options(**dict(zip(fields, values, strict=True)))


def _shape_choices(operator: Operator, sweep: Sweep) -> Iterator[tuple[Shapes | None, dict[str, Choice]]]:
    """Yield the first input's shape with one value per choice, or the shapes of all inputs where the sweep writes them all out."""
    given = [sweep.inputs[name] for name in operator.inputs]
    if given[0].shape is None:
        yield None, {}
        return
    if len(given) > 1 and all(one.shape is not None for one in given):
        for shapes in product(*(one.shape or () for one in given)):
            yield tuple(shapes), {}
        return
    for first in given[0].shape:
        keys = [(key, one) for name, one in zip(operator.inputs, given, strict=True) for key in operator.choices.get(name, ())]
        alternatives = [_alternatives(one, key, first) for key, one in keys]
        for picked in product(*alternatives):
            yield (first,), {key: value for (key, _), value in zip(keys, picked, strict=True) if value is not None}


def _alternatives(given: SweepInput, key: str, first: Shape) -> Sequence[Choice | None]:
    values = getattr(given, "tuple_" if key == "tuple" else key)
    if values == ALL:
        return range(1, len(first) + 1)
    return values or (None,)


def _attribute_choices(operator: Operator, sweep: Sweep, names: list[str], shapes: Shapes | None) -> Iterator[tuple[tuple[str, int], ...]]:
    lists = []
    for name in names:
        values = sweep.attributes[name]
        if values == ALL:
            given = (
                shapes * len(operator.inputs) if shapes and len(shapes) == 1 else shapes
            )  # shapes that derive from it follow the attribute
            values = tuple(operator.domain(name, given)) if given else ()
        lists.append([(name, int(value)) for value in values])
    yield from product(*lists)


def _sweep_problems(spec: LoadedSpec, operator: Operator, number: int, sweep: Sweep) -> list[str]:
    problems: list[str] = []
    at = ("sweeps", number)
    for name in operator.inputs:
        given = sweep.inputs[name]
        for key in ("extent", "outer", "tuple_"):
            written = key.rstrip("_")
            if getattr(given, key) is not None and written not in operator.choices.get(name, ()):
                keys = ("dtype", "shape", "values", *operator.choices.get(name, ()))
                problems.append(spec.problem((*at, name, written), f"{operator.name} has no choice {written!r} for {name}", allowed=keys))
        if name != operator.values_input and given.values is not None:
            what = f"{operator.name} lets only {operator.values_input} choose its values; {name} takes any bits"
            problems.append(spec.problem((*at, name, "values"), what))
        for position, word in enumerate(given.extent or () if "extent" in operator.choices.get(name, ()) else ()):
            if word not in operator.extents:
                what = f"unknown extent {word!r}"
                problems.append(spec.problem((*at, name, "extent", position), what, given=word, allowed=operator.extents))
        for position, kind in enumerate(given.values or ()):
            if name == operator.values_input and kind not in {entry.name for entry in operator.value_kinds}:
                allowed = [entry.name for entry in operator.value_kinds]
                problems.append(
                    spec.problem((*at, name, "values", position), f"unknown kind of values {kind!r}", given=kind, allowed=allowed)
                )
    first = sweep.inputs[operator.inputs[0]]
    kinds = sweep.inputs[operator.values_input].values or ()
    natural = [kind for kind in kinds if any(operator.natural_shape(kind, dtype) for dtype in DTYPES if DTYPES[dtype].is_float)]
    if first.shape is None and (not kinds or len(natural) < len(kinds)):
        problems.append(spec.problem((*at, operator.inputs[0]), "the input needs a 'shape'"))
    for options in _options(sweep):
        problems.extend(option_problems(spec, operator, options, (*at, "options")))
        for asked in api.sweep_options(sweep.directml):
            problems.extend(api.problems(spec, operator, options, asked, at))
    return list(dict.fromkeys(problems))
