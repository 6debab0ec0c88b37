"""The cases of one sweep: the product of its lists without what the operator forbids, or the fewest cases
that cover every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby, product

from harness.model.records import Validity, Value
from harness.operators.base import Call, Operator
from harness.specs import api
from harness.specs.attribute_values import alternatives
from harness.specs.combination import (
    CallGroup,
    Combinations,
    Impossible,
    Input,
    Kinds,
    SweepStep,
    graph_key,
    sort_key,
)
from harness.specs.interactions import ILLEGAL_TYPE, Interactions
from harness.specs.listed import Listed
from harness.specs.load import LoadedSpec
from harness.specs.pairs import Pairs, once
from harness.specs.schema import ALL, OMITTED, Sweep

INEXACT = "a constant is not exact in the element type"


class SweepCalls:
    """All groups of a sweep."""

    def __init__(
        self, spec: LoadedSpec, operator: Operator, sweep: Sweep, *, pairwise: bool, thorough: bool = False
    ) -> None:
        """Take a sweep whose names and words have been checked; a `thorough` one covers interactions of one factor
        more."""
        self.spec = spec
        self.sweep = sweep
        self.pairwise = pairwise
        self.listed = Listed(spec, operator, sweep)
        self.combinations = Combinations(self.listed)
        self.pairs = Pairs(self.listed, self.combinations)
        self.interactions = (
            None
            if sweep.cover is None
            else Interactions(self.listed, self.combinations, sweep.cover, thorough=thorough)
        )
        self._used: set[tuple[str, object]] = set()

    @cached_property
    def steps(self) -> list[SweepStep]:
        """Every combination of shapes and attributes in the product of the lists, the cases of one graph
        together."""
        found: dict[SweepStep, None] = {}
        listed = self.listed
        asked = list(api.sweep_options(self.sweep.directml))
        for opset in listed.opsets:
            kinds = listed.attribute_kinds(opset)
            for options in listed.options():
                for relations in listed.relation_choices(opset):
                    for picked in listed.attribute_choices(opset, kinds, relations):
                        for each in asked:
                            if relations is None:
                                given = tuple(
                                    (name, value) for name, value in picked.items() if value is not None
                                )
                                found[SweepStep(opset, given, options, None, None, each, None)] = None
                                continue
                            try:
                                step = self.combinations.step(opset, options, relations, picked, each)
                            except Impossible:
                                if self.combinations.wrong:
                                    return []
                                continue
                            found[step] = None
                            if not step.broken or self.sweep.validity is not Validity.VALID:
                                self._used.update(picked.items())
        return sorted(found, key=sort_key)

    def groups(self, left_out: Counter[str]) -> Iterator[CallGroup]:
        """Yield what the sweep keeps, the cases of one graph together, and count by reason what it leaves
        out."""
        chosen = self.interactions or (self.pairs if self.pairwise else None)
        if chosen is not None:
            yield from chosen.groups
            left_out.update(chosen.left_out)
            return
        optional = any(OMITTED in (given.shape or ()) for given in self.sweep.inputs.values())
        yield from once(self._product(left_out)) if optional else self._product(left_out)

    def _product(self, left_out: Counter[str]) -> Iterator[CallGroup]:
        """Yield the groups of the whole product."""
        listed = self.listed
        for (opset, *_), steps in groupby(self.steps, key=graph_key):
            group = list(steps)
            dtypes = listed.dtypes(opset)
            number = len(list(product(*map(listed.kinds, listed.chosen))))
            for picked in product(*dtypes.values()):
                by_param = dict(zip(dtypes, picked, strict=True))
                illegal = listed.illegal(opset, by_param)
                if illegal and self.sweep.validity is not Validity.INVALID:
                    left_out[ILLEGAL_TYPE] += len(group) * number
                    continue
                for step in group:
                    yield from self._groups(step, by_param, illegal, left_out)

    def _groups(
        self, step: SweepStep, dtypes: Mapping[str, str], illegal: bool, left_out: Counter[str]
    ) -> Iterator[CallGroup]:
        """Yield the groups of a step with element types: one, or one for each shape that kinds of values ask
        for."""
        combinations = self.combinations
        by_shape: dict[tuple[Input, ...], tuple[Call, list[Kinds]]] = {}
        for kinds in product(*map(self.listed.kinds, self.listed.chosen)):
            inputs = combinations.inputs(step, dtypes, kinds)
            if inputs is None:
                left_out[combinations.no_meaning(kinds)] += 1
                continue
            if inputs not in by_shape:
                try:
                    by_shape[inputs] = combinations.call(step, inputs, dtypes), []
                except Impossible:
                    left_out[INEXACT] += 1
                    continue
            call, kept = by_shape[inputs]
            why = combinations.refusal(step, call, kinds, illegal=illegal)
            if why is None:
                kept.append(kinds)
            else:
                left_out[why] += 1
        for inputs, (call, kept) in by_shape.items():
            if kept:
                yield combinations.group(step, inputs, call, kept)

    def problems(self, number: int) -> list[str]:
        """Return what is wrong with the sweep as a whole."""
        at = ("sweeps", number)
        first = None
        if self.interactions is not None:
            wrong = self.interactions.problems()
            if wrong:
                return [
                    self.spec.problem((*at, "cover", *path), what, given=given or None, allowed=allowed)
                    for path, what, given, allowed in wrong
                ]
            first = next(iter(self.interactions.groups), None)
        elif not self.pairwise:
            steps = self.steps
            if self.combinations.wrong is None:
                unused = self._unused(at)
                if unused:
                    return unused
            first = next(self.groups(Counter()), None) if steps else None
        elif self.pairs.groups:
            first = self.pairs.groups[0]
        if self.combinations.wrong is not None:
            return [self.spec.problem(at, self.combinations.wrong)]
        return (
            []
            if first is not None
            else [self.spec.problem(at, "the sweep has no case: the operator forbids every combination")]
        )

    def _unused(self, at: tuple[str, int]) -> list[str]:
        found = []
        for name, listed in self.sweep.attributes.items():
            for value in (
                ()
                if listed == ALL
                else dict.fromkeys(v for o in self.listed.opsets for v in self._values(o, name))
            ):
                if (name, value) not in self._used and any(step.inputs is not None for step in self.steps):
                    shown = list(value) if isinstance(value, tuple) else value
                    what = f"{name}: {shown} is outside its domain for every shape of the sweep; if that is meant, write validity: invalid"
                    found.append(self.spec.problem((*at, "attributes", name), what))
        return found

    def _values(self, opset: int, name: str) -> Sequence[Value | None]:
        kind = self.listed.attribute_kinds(opset).get(name)
        return () if kind is None else alternatives(kind, self.sweep.attributes[name])
