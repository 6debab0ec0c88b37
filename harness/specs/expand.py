"""Expands specs to cases: literal ones as written, sweeps as the product of their lists without what the
operator forbids, or as the fewest cases that cover every pair.

A plan is made eagerly, from shapes and attributes alone, so that every mistake in a spec is found before
anything runs. The cases are made lazily, one after the other, in an order that keeps the cases of one graph
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from harness.model.case import Case, TensorSpec, Validity
from harness.model.caseid import directml_terms, input_term, option_terms, value_text
from harness.model.errors import SpecError
from harness.model.query import Query
from harness.model.reference.directml import operator_names
from harness.operators import OPERATORS
from harness.operators.base import NoDomain, Operator
from harness.operators.directml.levels import levels
from harness.specs.cache import kept_plans
from harness.specs.cache.kept_plans import KeptCalls, KeptPlan
from harness.specs.cache.planning import plan_ahead
from harness.specs.coverage.kind_cases import is_of_kind, kind_cases
from harness.specs.graphs.deployments import graph_cases
from harness.specs.reading.entry_schema import Sweep
from harness.specs.reading.literal_cases import literal_cases
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.source import KeyPath
from harness.specs.reading.sweep_problems import sweep_problems
from harness.specs.sweeps.api_cases import api_cases
from harness.specs.sweeps.combination import CallGroup, Kinds
from harness.specs.sweeps.family_sweeps import sweeps_of
from harness.specs.sweeps.sweep import SweepCalls

if TYPE_CHECKING:
    from harness.specs.graphs.schema import GraphSweep


class Piece(NamedTuple):
    """A literal case, or a combination of a sweep with its kinds of values: its name, which begins with the operator
    and says with the specs which cases it has; the most cases that it can have, what their ids are made of, and the cases themselves."""

    name: str
    most: int
    text: Callable[[], str]
    cases: Callable[[], Iterable[Case]]


def pieces_of(cases: Iterable[Case], *, valid: bool) -> Iterator[Piece]:
    """Yield the valid cases, or the others, each as a piece of its own."""
    for case in cases:
        if (case.validity is Validity.VALID) is valid:
            yield Piece(case.id, 1, partial(str, case.id), partial(iter, (case,)))


class _KindTerms(NamedTuple):
    """A combination of kinds of values: its terms in an id, whether there are negative indices, and the kind by the
    formal name of an input."""

    terms: str
    negative: bool
    by_name: Mapping[str, str]


@dataclass(frozen=True)
class SweepPlan:
    """A checked sweep."""

    spec: LoadedSpec
    operator: Operator
    sweep: Sweep
    calls: SweepCalls

    def may_have(self, query: Query) -> bool:
        """Say whether a query can select any of the sweep's cases."""
        return query.may_select(self.operator.name, f"sweep={self.sweep.name}")

    def cases(self, left_out: Counter[str]) -> Iterator[Case]:
        """Yield the sweep's cases, and count the left-out ones by reason."""
        for piece in self.pieces(left_out):
            yield from piece.cases()

    def _cases(self, group: CallGroup, terms_of: dict[Kinds, _KindTerms]) -> Iterator[Case]:
        """Yield the cases of one combination of element types and shapes, one for each combination of kinds of
        values. `terms_of` caches these combinations for all groups."""
        sweep, operator, step = self.sweep, self.operator, group.step
        prefix, suffix = self._text(group)
        attributes = dict(step.attributes)
        lowers_to, lowered = self.spec.directml, group.levels
        named = [(each, each.name.partition(".")[0]) for each in group.inputs]
        for kinds in group.kinds:
            if kinds not in terms_of:
                terms_of[kinds] = self._kind_terms(kinds)
            terms, negative, by_name = terms_of[kinds]
            if negative not in lowered:
                lowered[negative] = levels(operator, group.call, lowers_to, negative, step.directml)
            yield Case(
                id=prefix + terms + suffix,
                operator=operator.name,
                opset=step.opset,
                attributes=attributes,
                inputs=tuple(
                    [
                        TensorSpec(each.name, each.dtype, each.shape, by_name[formal], each.elements)
                        if formal in by_name
                        else each
                        for each, formal in named
                    ]
                ),
                options=step.options,
                validity=sweep.validity,
                rule=sweep.rule,
                source=sweep.source,
                levels=lowered[negative],
                lowers_to=lowers_to,
                directml=step.directml,
            )

    def _kind_terms(self, kinds: Kinds) -> _KindTerms:
        listed, operator = self.calls.listed, self.operator
        by_name = dict(zip(listed.chosen, kinds, strict=True))
        negative = any(
            operator.kind(name, by_name[name]).negative
            for name in operator.family.unsigned_inputs(operator)
            if name in by_name
        )
        return _KindTerms(listed.value_terms(kinds), negative, by_name)

    def kept(self) -> KeptCalls:
        """Return all that planning can find of the sweep, the levels of its cases included."""
        groups, left_out = self.calls.found
        for group in groups:
            for _ in self._cases(group, {}):
                pass
        return KeptCalls(groups, left_out, self.calls.arrays)

    def pieces(self, left_out: Counter[str]) -> Iterator[Piece]:
        """Yield the sweep's combinations, without making their cases."""
        terms_of: dict[Kinds, _KindTerms] = {}
        calls = self.calls
        name = f"{self.operator.name}@{self.sweep.name} {calls.by_group} {calls.everything} {calls.thorough}"
        for number, (most, find) in enumerate(calls.parts(left_out)):
            yield Piece(
                f"{name} {number}", most, partial(self._says, find), partial(self._made, find, terms_of)
            )

    def _says(self, find: Callable[[], Iterable[CallGroup]]) -> str:
        return "\n".join(f"{self._text(group)} {group.kinds}" for group in find())

    def _made(
        self, find: Callable[[], Iterable[CallGroup]], terms_of: dict[Kinds, _KindTerms]
    ) -> Iterator[Case]:
        for group in find():
            yield from self._cases(group, terms_of)

    def _text(self, group: CallGroup) -> tuple[str, str]:
        """Return the id up to the kinds of values and after them."""
        step = group.step
        terms = [f"{self.operator.name}@{step.opset}:sweep={self.sweep.name}", *map(input_term, group.inputs)]
        terms.extend(f"{name}={value_text(value)}" for name, value in step.attributes)
        return ";".join(terms), option_terms(step.options) + directml_terms(step.directml)


@dataclass(frozen=True)
class Plan:
    """All cases of some specs."""

    specs: tuple[LoadedSpec, ...]
    literals: tuple[Case, ...]
    sweeps: tuple[SweepPlan, ...]

    def __iter__(self) -> Iterator[Case]:
        yield from self.cases(valid=True)
        yield from self.cases(valid=False)

    @cached_property
    def by_operator(self) -> Mapping[str, LoadedSpec]:
        """The spec of each operator."""
        return {spec.model.operator: spec for spec in self.specs}

    @property
    def operators(self) -> frozenset[str]:
        """The operators that there are cases of, before a query chooses among these."""
        return frozenset(case.operator for case in self.literals) | {
            sweep.operator.name for sweep in self.sweeps
        }

    def counted(self) -> tuple[int, Counter[str]]:
        """Count the cases without making them, and the left-out ones by reason."""
        left_out = Counter[str]()
        return len(self.literals) + sum(sweep.calls.count(left_out) for sweep in self.sweeps), left_out

    def cases(self, *, valid: bool, wanted: Callable[[SweepPlan], bool] | None = None) -> Iterator[Case]:
        """Yield the valid cases, or the others: the two kinds never share a worker. Of sweeps only those that are
        `wanted`."""
        for piece in self.pieces(Counter(), valid=valid, wanted=wanted):
            yield from piece.cases()

    def pieces(
        self, left_out: Counter[str], *, valid: bool, wanted: Callable[[SweepPlan], bool] | None = None
    ) -> Iterator[Piece]:
        """Yield the sources of the cases, in the order of `cases`, and count the left-out ones by reason."""
        yield from pieces_of(self.literals, valid=valid)
        for sweep in self.sweeps:
            if (sweep.sweep.validity is Validity.VALID) is valid and (wanted is None or wanted(sweep)):
                yield from sweep.pieces(left_out)

    def searched(self, query: Query) -> Iterator[Case]:
        """Yield the literal cases, and the cases of the sweeps that a query can select from: all cases needed to find
        its matches."""
        for valid in (True, False):
            yield from self.cases(
                valid=valid,
                wanted=lambda each: each.may_have(query),
            )


def expand(
    specs: Sequence[LoadedSpec],
    queries: Sequence[Query] = (),
    *,
    everything: bool = False,
    thorough: bool = False,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> Plan:
    """Check what only the operator can tell and plan all cases; raise SpecError with every problem.

    Of operators that no query can select, the harness's own specs are passed over: planning all takes many
    seconds, and they were checked when they were written. With `everything` a sweep that covers
    interactions keeps its whole product; where shapes are chosen by rank and size, it covers triples, as with
    `thorough`. `tell` is called with the number of planned specs.
    """
    problems: list[str] = []
    literals: list[Case] = []
    sweeps: list[SweepPlan] = []
    wanted = [
        spec
        for spec in specs
        if not (queries and spec.built_in) or any(query.speaks_of(spec.model.operator) for query in queries)
    ]
    with kept_plans.uncollected():
        ahead = 0 if everything or thorough else _plan_ahead(wanted, tell)
        for done, spec in enumerate(wanted):
            tell(max(done, ahead), len(wanted))
            operator = _operator_of(spec, problems)
            if operator is not None:
                found = _planned(spec, operator, problems, everything=everything, thorough=thorough)
                literals.extend(found[0])
                sweeps.extend(found[1])
    tell(len(wanted), len(wanted))
    if problems:
        raise SpecError(list(dict.fromkeys(problems)))
    return Plan(tuple(specs), tuple(literals), tuple(sweeps))


def _plan_ahead(specs: Sequence[LoadedSpec], tell: Callable[[int, int], None]) -> int:
    """Keep plans of the specs that have none, where these are many; return of how many."""
    done = 0

    def lacks(spec: LoadedSpec) -> bool:
        operator = OPERATORS.get(spec.model.operator)
        return operator is not None and kept_plans.could_have(spec, operator)

    def count(number: int) -> None:
        nonlocal done
        done = number
        tell(done, len(specs))

    def keep(spec: LoadedSpec) -> None:
        _planned(spec, OPERATORS[spec.model.operator], [], everything=False, thorough=False)

    plan_ahead(specs, lacks, keep, count)
    return done


def _operator_of(spec: LoadedSpec, problems: list[str]) -> Operator | None:
    """Return the operator of a spec; None, and a problem, where it or a DirectML operator of it is unknown."""
    operator = OPERATORS.get(spec.model.operator)
    if operator is None:
        what = f"the harness has no oracle for {spec.model.operator}; add harness/operators/{spec.model.operator.lower()}.py"
        problems.append(spec.problem(("operator",), what, allowed=OPERATORS))
        return None
    unknown = [name for name in spec.directml if name not in operator_names()]
    for name in unknown:
        what = f"no published table for {name!r}"
        problems.append(spec.problem(("lowers_to", "directml"), what, given=name, allowed=operator_names()))
    return None if unknown else operator


def _planned(
    spec: LoadedSpec, operator: Operator, problems: list[str], *, everything: bool, thorough: bool
) -> tuple[Sequence[Case], Sequence[SweepPlan]]:
    """Plan the literal cases and the sweeps of a spec, or read its kept plan; add errors of the spec to
    `problems`."""
    keeps, before = not (everything or thorough), len(problems)
    kept = kept_plans.read(spec, operator) if keeps else None
    if kept is not None:
        return kept.literals, list(_read(spec, operator, kept.sweeps))
    if spec.graph is not None:
        from harness.specs.graphs.load import misfits  # loaded with the graph

        cases: list[Case] = []
        problems.extend(_names_used_twice(spec, enumerate(spec.graph.spec.sweeps)))
        problems.extend(misfits(spec.source, spec.graph))
        with spec.noting((), problems):
            if len(problems) == before:
                cases += [*literal_cases(spec, operator, problems), *graph_cases(spec.graph, Counter())]
        if keeps and len(problems) == before and kept_plans.keeps(spec, operator):
            kept_plans.write(spec, KeptPlan(cases, []))
        return cases, ()
    written = list(literal_cases(spec, operator, problems))
    sweeps: list[SweepPlan] = []
    listed = list(sweeps_of(spec, operator, problems))
    problems.extend(_names_used_twice(spec, listed))
    for number, sweep in listed:
        with spec.noting(("sweeps", number), problems):
            found = sweep_problems(spec, operator, number, sweep)
            if not found:
                calls = SweepCalls(spec, operator, sweep, everything=everything, thorough=thorough)
                try:
                    found = calls.problems(number)
                except NoDomain as error:
                    what = f"{operator.name} does not say what `all` stands for; list values"
                    found = [spec.problem(("sweeps", number, "attributes", error.args[0]), what)]
                sweeps.append(SweepPlan(spec, operator, sweep, calls))
            problems.extend(found)
    if spec.built_in and len(problems) == before:
        own = tuple(written)
        written.extend(api_cases(spec, own, sweeps))
        if keeps:
            written.extend(kind_cases(spec, chain(own, *(sweep.cases(Counter()) for sweep in sweeps))))
        else:  # those that the default cases lack
            default, _ = _planned(spec, operator, [], everything=False, thorough=False)
            written.extend(case for case in default if is_of_kind(case))
        if keeps and kept_plans.keeps(spec, operator):
            kept_plans.write(spec, KeptPlan(written, [each.kept() for each in sweeps]))
    return written, sweeps


def _names_used_twice(spec: LoadedSpec, sweeps: Iterable[tuple[int, Sweep | GraphSweep]]) -> Iterator[str]:
    """Yield a problem for each name of a case or a sweep that another one has: ids differ by them."""
    first: dict[tuple[str, str], KeyPath] = {}
    cases = (("cases", number, case.name) for number, case in enumerate(spec.model.cases))
    for key, number, name in (*cases, *(("sweeps", number, sweep.name) for number, sweep in sweeps)):
        used = (key, number, "use") in spec.source.lines
        path = (key, number, "use" if used else "name")
        earlier = first.setdefault((key, name), path)
        if earlier is not path:
            yield spec.problem(path, f"the name {name!r} is already used, {spec.source.where(*earlier)}")


def _read(spec: LoadedSpec, operator: Operator, kept: Iterable[KeptCalls]) -> Iterator[SweepPlan]:
    """Yield the sweeps of a spec, each with its kept plan."""
    for (_, sweep), found in zip(sweeps_of(spec, operator, []), kept, strict=True):
        calls = SweepCalls(spec, operator, sweep)
        calls.take(*found)
        yield SweepPlan(spec, operator, sweep, calls)
