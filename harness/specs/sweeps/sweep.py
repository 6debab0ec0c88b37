"""The cases of one sweep: the product of its lists without what the operator forbids, or few cases that cover the
interactions of its factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby, product

from harness.model.case import Validity, Value
from harness.operators.base import Operator
from harness.specs.reading.attribute_values import alternatives
from harness.specs.reading.entry_schema import Sweep
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.schema_types import ALL, OMITTED
from harness.specs.sweeps import api
from harness.specs.sweeps.alternatives import Listed
from harness.specs.sweeps.combination import (
    CallGroup,
    Combinations,
    Impossible,
    Input,
    Kinds,
    SweepStep,
    graph_key,
    sort_key,
)
from harness.specs.sweeps.covering import CoveringArray
from harness.specs.sweeps.interactions import ILLEGAL_TYPE, Interactions, once

_FEW = 20_000
"""Groups of a sweep that may stay in memory: some 2 KB each, so that a million cases need no more than they did."""
INEXACT = "a constant is not exact in the element type"


class SweepCalls:
    """All groups of a sweep."""

    def __init__(
        self,
        spec: LoadedSpec,
        operator: Operator,
        sweep: Sweep,
        *,
        everything: bool = False,
        thorough: bool = False,
    ) -> None:
        """Take a sweep whose names and words have been checked. With `everything` it keeps its product, if there is
        one; a `thorough` one covers interactions of one factor more."""
        self.spec = spec
        self.sweep = sweep
        self.everything, self.thorough = everything, thorough
        self.listed = Listed(spec, operator, sweep)
        self.combinations = Combinations(self.listed)
        self.interactions: Interactions | None = None
        if sweep.cover is not None:
            found = Interactions(self.listed, self.combinations, sweep.cover, thorough=everything or thorough)
            if found.of_sizes or not everything:
                self.interactions = found
        self._used: set[tuple[str, object]] = set()
        self._found: tuple[Sequence[CallGroup], Counter[str]] | None = None

    @cached_property
    def _kinds(self) -> tuple[Kinds, ...]:
        """Every combination of the kinds of values of the inputs that have some."""
        return tuple(product(*map(self.listed.kinds, self.listed.chosen)))

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
                            if self.sweep.validity is not Validity.VALID or not self.combinations.forbids(
                                step
                            ):
                                self._used.update(picked.items())
        return sorted(found, key=sort_key)

    @property
    def by_group(self) -> bool:
        """Whether `parts` are groups, and not steps of which groups are yet to be found."""
        omits = any(OMITTED in (given.shape or ()) for given in self.sweep.inputs.values())
        return self._found is not None or self.interactions is not None or omits

    def groups(self, left_out: Counter[str]) -> Iterator[CallGroup]:
        """Yield the cases that the sweep keeps, those of one graph together, and count by reason the combinations
        left out."""
        for _, find in self.parts(left_out):
            yield from find()

    def parts(self, left_out: Counter[str]) -> Iterator[tuple[int, Callable[[], Iterable[CallGroup]]]]:
        """Yield the groups in parts, each with the most cases that it can have.

        A part of a product that is not kept looks for its groups, and counts what it leaves out, when it is called.
        """
        found: tuple[Iterable[CallGroup], Counter[str]] | None = self._found
        if found is None and self.interactions is not None:
            found = self.interactions.groups, self.interactions.left_out
        if not self.by_group:
            for step, by_param, illegal in self._typed_steps(left_out):
                yield len(self._kinds), partial(self._groups, step, by_param, illegal, left_out)
            return
        if found is None:
            found = once(self._product(left_out)), Counter()
        for group in found[0]:
            yield len(group.kinds), partial(iter, (group,))
        left_out.update(found[1])

    def count(self, left_out: Counter[str]) -> int:
        """Count the cases, and by reason the combinations left out; if there are few groups, they are kept for the
        next caller, including forked processes."""
        passed_over = Counter[str]()
        kept: list[CallGroup] = []
        total = number = 0
        for number, group in enumerate(self.groups(passed_over), start=1):
            total += len(group.kinds)
            if number <= _FEW:
                kept.append(group)
            elif kept:
                kept.clear()
        left_out.update(passed_over)
        if self._found is None and number <= _FEW:
            self._found = kept, passed_over
        return total

    @property
    def found(self) -> tuple[Sequence[CallGroup], Counter[str]]:
        """All groups, and the left-out cases by reason; found once, at first use, or kept by an earlier command."""
        if self._found is None:
            left_out = Counter[str]()
            self._found = list(self.groups(left_out)), left_out
        return self._found

    @property
    def arrays(self) -> list[CoveringArray]:
        """The covering arrays that the groups are from, as far as coverage is counted by them."""
        return self.interactions.built if self.interactions is not None and self.interactions.of_sizes else []

    def take(
        self, groups: Sequence[CallGroup], left_out: Counter[str], arrays: Sequence[CoveringArray]
    ) -> None:
        """Take what an earlier command found of the sweep."""
        self._found = groups, left_out
        if self.interactions is not None and arrays:
            self.interactions.built[:] = arrays

    def _product(self, left_out: Counter[str]) -> Iterator[CallGroup]:
        """Yield the groups of the whole product."""
        for step, by_param, illegal in self._typed_steps(left_out):
            yield from self._groups(step, by_param, illegal, left_out)

    def _typed_steps(self, left_out: Counter[str]) -> Iterator[tuple[SweepStep, Mapping[str, str], bool]]:
        """Yield each step with element types, and whether ONNX lacks one of them."""
        listed = self.listed
        for (opset, *_), steps in groupby(self.steps, key=graph_key):
            group = list(steps)
            dtypes = listed.dtypes(opset)
            number = len(self._kinds)
            for picked in product(*dtypes.values()):
                by_param = dict(zip(dtypes, picked, strict=True))
                illegal = listed.illegal(opset, by_param)
                if illegal and self.sweep.validity is not Validity.INVALID:
                    left_out[ILLEGAL_TYPE] += len(group) * number
                    continue
                for step in group:
                    yield step, by_param, illegal

    def _groups(
        self, step: SweepStep, dtypes: Mapping[str, str], illegal: bool, left_out: Counter[str]
    ) -> Iterator[CallGroup]:
        """Yield the groups of a step with element types: one, or one for each shape that kinds of values ask
        for."""
        combinations = self.combinations
        for inputs, every in self._by_shape(step, dtypes, left_out):
            try:
                call = combinations.call(step, inputs, dtypes)
            except Impossible:
                left_out[INEXACT] += len(every)
                continue
            refused = combinations.refusals(step, call, every, illegal=illegal)
            kept = [kinds for kinds, why in zip(every, refused, strict=True) if why is None]
            if len(kept) < len(every):
                left_out.update(filter(None, refused))
            if kept:
                yield combinations.group(step, inputs, call, kept)

    def _by_shape(
        self, step: SweepStep, dtypes: Mapping[str, str], left_out: Counter[str]
    ) -> Iterable[tuple[tuple[Input, ...], Sequence[Kinds]]]:
        """Return the inputs of a step with all kinds of values, or where these decide shapes each with those that
        ask for it."""
        if step.inputs is not None:
            return ((step.inputs, self._kinds),)
        by_shape: dict[tuple[Input, ...], list[Kinds]] = {}
        for kinds in self._kinds:
            inputs = self.combinations.inputs(step, dtypes, kinds)
            if inputs is None:
                left_out[self.combinations.no_meaning(kinds)] += 1
            else:
                by_shape.setdefault(inputs, []).append(kinds)
        return by_shape.items()

    def problems(self, number: int) -> list[str]:
        """Return the problems of the sweep as a whole."""
        at = ("sweeps", number)
        first = None
        if self.interactions is not None:
            if wrong := list(self.interactions.problems((*at, "cover"))):
                return wrong
            first = next(iter(self.interactions.groups), None)
        else:
            steps = self.steps
            if self.combinations.wrong is None:
                unused = self._unused(at)
                if unused:
                    return unused
            first = next(self.groups(Counter()), None) if steps else None
        if self.combinations.wrong is not None:
            return [self.spec.problem(at, self.combinations.wrong)]
        if first is not None:
            return []
        return [self.spec.problem(at, "the sweep has no case: the operator forbids every combination")]

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
