"""Expands specs to cases: literal ones as written, sweeps as the product of their lists without what the
operator forbids, or as the fewest cases that cover every pair.

A plan is made eagerly, from shapes and attributes alone, so that every mistake in a spec is found before
anything runs. The cases are made lazily, one after the other, in an order that keeps the cases of one graph
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.model.caseid import directml_terms, input_term, option_terms, value_text
from harness.model.errors import SpecError
from harness.model.query import Query
from harness.model.records import Case, TensorSpec, Validity
from harness.model.shares import WHOLE, Share
from harness.operators import OPERATORS
from harness.operators.base import NoDomain, Operator
from harness.operators.directml.levels import known_operators, levels
from harness.specs.api_cases import api_cases
from harness.specs.combination import CallGroup
from harness.specs.family_sweeps import sweeps_of
from harness.specs.literal_cases import literal_cases
from harness.specs.load import LoadedSpec
from harness.specs.schema import Sweep
from harness.specs.sweep import SweepCalls
from harness.specs.sweep_problems import sweep_problems


@dataclass(frozen=True)
class SweepPlan:
    """A checked sweep."""

    spec: LoadedSpec
    operator: Operator
    sweep: Sweep
    calls: SweepCalls

    def cases(self, left_out: Counter[str], share: Share = WHOLE) -> Iterator[Case]:
        """Yield the sweep's cases, or a share of its calls, and count by reason what the whole sweep leaves
        out."""
        for group in share.of(self.calls.groups(left_out)):
            yield from self._cases(group)

    def _cases(self, group: CallGroup) -> Iterator[Case]:
        """Yield the cases of one combination of element types and shapes: one for each combination of kinds
        of values."""
        sweep, operator, step = self.sweep, self.operator, group.step
        prefix, suffix = self._text(group)
        indices = operator.family.unsigned_inputs(operator)
        lowered: dict[bool, dict[str, str]] = {}
        for kinds in group.kinds:
            by_name = dict(zip(self.calls.listed.chosen, kinds, strict=True))
            negative = any(operator.kind(name, by_name[name]).negative for name in indices if name in by_name)
            if negative not in lowered:
                lowered[negative] = levels(operator, group.call, self.spec.directml, negative, step.directml)
            yield Case(
                id=prefix + self.calls.listed.value_terms(kinds) + suffix,
                operator=operator.name,
                opset=step.opset,
                attributes=dict(step.attributes),
                inputs=tuple(_with_values(each, by_name) for each in group.inputs),
                options=step.options,
                validity=sweep.validity,
                rule=sweep.rule,
                source=sweep.source,
                levels=lowered[negative],
                lowers_to=self.spec.directml,
                directml=step.directml,
            )

    def count(self, left_out: Counter[str]) -> int:
        """Count the sweep's cases without making them, and by reason what it leaves out."""
        return sum(len(group.kinds) for group in self.calls.groups(left_out))

    def _text(self, group: CallGroup) -> tuple[str, str]:
        """Return the id up to the kinds of values and after them."""
        step = group.step
        terms = [f"{self.operator.name}@{step.opset}:sweep={self.sweep.name}", *map(input_term, group.inputs)]
        terms.extend(f"{name}={value_text(value)}" for name, value in step.attributes)
        return ";".join(terms), option_terms(step.options) + directml_terms(step.directml)


def _with_values(spec: TensorSpec, kinds: Mapping[str, str]) -> TensorSpec:
    kind = kinds.get(spec.name.partition(".")[0])
    return spec if kind is None else TensorSpec(spec.name, spec.dtype, spec.shape, kind, spec.elements)


@dataclass(frozen=True)
class Plan:
    """All cases of some specs; `left_out` counts by reason the combinations that iterating has passed
    over."""

    specs: tuple[LoadedSpec, ...]
    literals: tuple[Case, ...]
    sweeps: tuple[SweepPlan, ...]
    left_out: Counter[str]

    def __iter__(self) -> Iterator[Case]:
        yield from self.cases(valid=True)
        yield from self.cases(valid=False)

    @property
    def operators(self) -> frozenset[str]:
        """The operators that there are cases of, before a query chooses among these."""
        return frozenset(case.operator for case in self.literals) | {
            sweep.operator.name for sweep in self.sweeps
        }

    def count(self) -> int:
        """Count the cases without making them, and by reason what is left out."""
        return len(self.literals) + sum(sweep.count(self.left_out) for sweep in self.sweeps)

    def cases(
        self, *, valid: bool, share: Share = WHOLE, wanted: Callable[[SweepPlan], bool] | None = None
    ) -> Iterator[Case]:
        """Yield the valid cases, or the others: the two kinds never share a worker. A share walks through
        both, in this order.

        Of sweeps only those that are `wanted`.
        """
        yield from share.of(case for case in self.literals if (case.validity is Validity.VALID) is valid)
        for sweep in self.sweeps:
            if (sweep.sweep.validity is Validity.VALID) is valid and (wanted is None or wanted(sweep)):
                yield from sweep.cases(self.left_out, share)

    def searched(self, query: Query) -> Iterator[Case]:
        """Yield the literal cases, and those of the sweeps that a query can select cases of: all that need
        be made to find what it matches."""
        for valid in (True, False):
            yield from self.cases(
                valid=valid,
                wanted=lambda each: query.may_select(each.operator.name, f"sweep={each.sweep.name}"),
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
    seconds, and they were checked when they were written. With `everything` a sweep that keeps as few cases
    as show every pair keeps the whole product; with it or with `thorough`, one that covers interactions covers
    triples. `tell` is told how many of the specs are planned.
    """
    problems: list[str] = []
    literals: list[Case] = []
    sweeps: list[SweepPlan] = []
    wanted = [
        spec
        for spec in specs
        if not (queries and spec.built_in) or any(query.speaks_of(spec.model.operator) for query in queries)
    ]
    for done, spec in enumerate(wanted):
        tell(done, len(wanted))
        operator = OPERATORS.get(spec.model.operator)
        if operator is None:
            what = f"the harness has no oracle for {spec.model.operator}; add harness/operators/{spec.model.operator.lower()}.py"
            problems.append(spec.problem(("operator",), what, allowed=OPERATORS))
            continue
        unknown = [name for name in spec.directml if name not in known_operators()]
        for name in unknown:
            what = f"no published table for {name!r}"
            problems.append(
                spec.problem(("lowers_to", "directml"), what, given=name, allowed=known_operators())
            )
        if unknown:
            continue  # no level of its cases could be told
        written, planned, before = list(literal_cases(spec, operator, problems)), len(sweeps), len(problems)
        for number, sweep in sweeps_of(spec, operator, problems):
            found = sweep_problems(spec, operator, number, sweep)
            if not found:
                calls = SweepCalls(
                    spec,
                    operator,
                    sweep,
                    pairwise=sweep.select == "pairwise" and not everything,
                    thorough=everything or thorough,
                )
                try:
                    found = calls.problems(number)
                except NoDomain as error:
                    what = f"{operator.name} does not say what `all` stands for; list values"
                    found = [spec.problem(("sweeps", number, "attributes", error.args[0]), what)]
                sweeps.append(SweepPlan(spec, operator, sweep, calls))
            problems.extend(found)
        literals.extend(written)
        if spec.built_in and len(problems) == before:
            literals.extend(api_cases(spec, written, sweeps[planned:]))
    tell(len(wanted), len(wanted))
    if problems:
        raise SpecError(problems)
    return Plan(tuple(specs), tuple(literals), tuple(sweeps), Counter())
