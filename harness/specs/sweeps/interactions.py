"""Chooses the cases of a sweep that cover the interactions of its factors (`covering`).

A factor is all that can be chosen independently: opset, element types, shapes, attributes, kinds of values, options,
what is asked of DirectML. The shape of an input is one factor; where it has keys for which there are words (`rank`,
`size`, and those of the family), each key is one. Where coverage is counted by these factors, a row stands for a case
only if the case shows all its levels, so that what is chosen and what is counted cannot differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from harness.model.case import Options, TensorSpec, Validity, Value
from harness.model.operator_schema import Parameter
from harness.operators.base import Call, Operator
from harness.specs.coverage.factors import level, shape_level, type_factor
from harness.specs.reading.attribute_values import alternatives
from harness.specs.reading.entry_schema import Cover, Levels
from harness.specs.reading.schema_types import ALL
from harness.specs.reading.source import KeyPath
from harness.specs.sweeps import api
from harness.specs.sweeps.alternatives import Choices, Listed, Nth, stands_for_all
from harness.specs.sweeps.combination import (
    CallGroup,
    Combinations,
    Impossible,
    Input,
    Kinds,
    SweepStep,
    sort_key,
)
from harness.specs.sweeps.covering import CoveringArray, Row, covering
from harness.specs.sweeps.shape_words import KEYS, RANK, Chosen, with_words

ILLEGAL_TYPE = "element type not allowed at this opset"
NO_NEW_PAIR = "adds no new pair"
BEYOND_BUDGET = "pairs of alternatives beyond the budget"
_BUILT: dict[tuple[object, ...], tuple[Operator, list[CoveringArray]]] = {}
"""The arrays that this process has built, by what they follow from: commands that a process runs one after the
other, as tests do, build them once. The operator is kept, so that its identity stays its own."""
_MOST_OF_ALL = 8
"""As many values are tried of a domain that depends on the shapes."""
_TRIES, _TRIES_OF_SIZES = 16, 300
"""Tries for a tuple, and for one where so much is chosen freely that most rows are impossible."""
_UNFIT = "the shapes do not fit together"


class Factor(NamedTuple):
    """One factor: its name as in `factors`, the part of a case that it decides, and its levels with their
    values."""

    name: str
    part: tuple[str, ...]
    levels: Mapping[str, Any]


class _Made(NamedTuple):
    """One choice for every factor, made a case."""

    step: SweepStep
    inputs: tuple[Input, ...]
    dtypes: tuple[str, ...]
    call: Call
    kinds: Kinds


def once(groups: Iterable[CallGroup]) -> Iterator[CallGroup]:
    """Yield each case once: the element type of an input that is left out makes no other."""
    seen: dict[tuple[SweepStep, tuple[TensorSpec, ...]], set[Kinds]] = {}
    for group in groups:
        known = seen.setdefault((group.step, group.inputs), set())
        fresh = [kinds for kinds in group.kinds if kinds not in known]
        known.update(fresh)
        if fresh:
            yield group._replace(kinds=fresh)


class Interactions:
    """The groups that cover the interactions of a sweep's factors at its strength; one `of_sizes` that is to be
    `thorough` at the next."""

    def __init__(
        self, listed: Listed, combinations: Combinations, cover: Cover, *, thorough: bool = False
    ) -> None:
        self.listed = listed
        self.combinations = combinations
        self.cover = cover
        key = (listed.operator.name, id(listed.operator), listed.opsets, repr(listed.sweep))
        _, self.built = _BUILT.setdefault(key, (listed.operator, []))
        self.of_sizes = any(
            RANK in each.shape for each in listed.sweep.inputs.values() if isinstance(each.shape, dict)
        )
        """Whether shapes are chosen by rank and size: such a sweep has all factors of its operator, and a product
        that nobody can run."""
        self.strength = min(3, cover.strength + (thorough and self.of_sizes))

    # factors

    @cached_property
    def factors(self) -> list[Factor]:
        """All factors, those with most levels first."""
        listed, sweep = self.listed, self.listed.sweep
        found = [Factor("opset", ("opset",), {level(opset): opset for opset in listed.opsets})]
        found += [
            Factor(field, ("options", field), {level(v): v for v in getattr(sweep.options, field)})
            for field in sweep.options.varied
        ]
        for name in sweep.inputs:
            found += self._of_shape(name)
        typed: dict[str, Parameter] = {}
        for parameter in (each for opset in listed.opsets for each in listed.parameters(opset)):
            typed.setdefault(parameter.type_param, parameter)
        for parameter in typed.values():
            dtypes = dict.fromkeys(
                dtype
                for opset in listed.opsets
                for dtype in listed.dtypes(opset).get(parameter.type_param, ())
            )
            found.append(
                Factor(type_factor(parameter), ("dtype", parameter.type_param), {d: d for d in dtypes})
            )
        for name, given in sweep.attributes.items():
            found.append(Factor(name, ("attribute", name), self._of_attribute(name, given)))
        for name in listed.chosen:
            found.append(Factor(f"{name}.values", ("values", name), {k: k for k in listed.kinds(name)}))
        if sweep.directml is not None:
            asked = {str(each): each for each in api.sweep_options(sweep.directml)}
            found.append(Factor("directml", ("directml",), asked))
        return sorted(found, key=lambda factor: -len(factor.levels)) if self.of_sizes else found

    def _of_shape(self, name: str) -> Iterator[Factor]:
        given, words = self.listed.sweep.inputs[name], self._words
        if not isinstance(given.shape, dict) or not any(key in KEYS or words(key) for key in given.shape):
            relations = self.listed.relations(given, name, None)
            yield Factor(f"{name}.shape", ("shape", name), {_written(each): each for each in relations})
            return
        for key, choices in given.shape.items():
            each = choices if isinstance(choices, tuple) else (choices,)
            if choices == ALL:
                each = self._legal(key)
            yield Factor(key, ("shape", name, key), {_written(choice): choice for choice in each})

    def _words(self, name: str) -> Mapping[str, bool]:
        return self.listed.operator.family.positions(self.listed.operator, name) if self.of_sizes else {}

    def _legal(self, name: str) -> tuple[str, ...]:
        return tuple(word for word, legal in self._words(name).items() if legal)

    def _of_attribute(self, name: str, given: Any) -> dict[str, Any]:
        known = self._words(name)
        kind = next(
            kinds[name]
            for opset in self.listed.opsets
            if name in (kinds := self.listed.attribute_kinds(opset))
        )
        if stands_for_all(kind, given):
            return {word: word for word in self._legal(name)} or self._places_of(name)
        found: dict[str, Any] = {}
        if known:
            each = given if isinstance(given, tuple) else (given,)
            found = {word: word for word in each if isinstance(word, str) and word in known}
            given = tuple(value for value in each if value not in found)
        for value in alternatives(kind, given) if given != () or not found else ():
            found[repr(value) if level(value) in found else level(value)] = value
        return found

    def _places_of(self, name: str) -> dict[str, Any]:
        """Return the places of an attribute's largest domain over all shapes; all places if the domain does not
        depend on shapes."""
        domains: set[tuple[Value | None, ...]] = set()
        for opset in self.listed.opsets:
            for relations in self.listed.relation_choices(opset):
                domains.add(tuple(self.listed.domain(opset, name, relations or {}, {})))
                if len(domains) > 1 and max(map(len, domains)) > _MOST_OF_ALL:
                    return _places(_MOST_OF_ALL)
        return _places(max(map(len, domains), default=0))

    def problems(self, at: KeyPath) -> Iterator[str]:
        """Yield the problems of names of factors and levels; `at` is the place of `cover`."""
        spec = self.listed.spec
        known = {factor.name: list(factor.levels) for factor in self.factors}
        named: list[tuple[KeyPath, Levels]] = [
            (("alone",), self.cover.alone),
            (("illegal",), self.cover.illegal),
        ]
        named += [(("forbid", n, "levels"), each.levels) for n, each in enumerate(self.cover.forbid)]
        for key, levels in named:
            for name, listed in levels.items():
                place = (*at, *key, name)
                if name not in known:
                    yield spec.problem(place, f"the sweep has no factor {name!r}", given=name, allowed=known)
                    continue
                for one in listed:
                    if one not in known[name]:
                        what = f"the factor {name} has no level {one!r}"
                        yield spec.problem(place, what, given=one, allowed=known[name])
        invalid = self.listed.sweep.validity is Validity.INVALID
        if (self.cover.illegal and not invalid) or (invalid and self.of_sizes and not self.cover.illegal):
            what = "an invalid sweep of ranks and sizes names its `illegal` levels, and no valid sweep does"
            yield spec.problem(at, what)

    # rows

    @cached_property
    def _named(self) -> list[tuple[str, str]]:
        """The factor and the level at each place."""
        return [(factor.name, one) for factor in self.factors for one in factor.levels]

    def _places(self, levels: Levels) -> set[int]:
        return {place for place, (name, one) in enumerate(self._named) if one in levels.get(name, ())}

    def covered(self, strength: int) -> list[CoveringArray]:
        """Return what covers levels, pairs and triples, up to a strength: each goes on from the one before. A sweep
        that is not `of_sizes` covers its own strength alone."""
        if not self.of_sizes:
            self.built[:] = self.built or [self._array(self.cover.strength, None)]
            return self.built
        while len(self.built) < strength:
            start = self.built[-1] if self.built else None
            self.built.append(self._array(len(self.built) + 1, start))
        return self.built[:strength]

    def _array(self, strength: int, start: CoveringArray | None) -> CoveringArray:
        illegal = self._places(self.cover.illegal)
        return covering(
            [len(factor.levels) for factor in self.factors],
            lambda row: why if isinstance(why := self.case(row), str) else None,
            f"{self.listed.operator.name}:{self.listed.sweep.name}",
            strength=strength,
            budget=None if self.of_sizes else self.listed.sweep.budget,
            tries=_TRIES_OF_SIZES if self.of_sizes else _TRIES,
            alone=self._places(self.cover.alone) | illegal,
            one_of=illegal,
            start=start,
        )

    def named(self, places: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Return the factors and levels at places."""
        return tuple(self._named[place] for place in places)

    @cached_property
    def groups(self) -> list[CallGroup]:
        """What the sweep keeps."""
        taken: dict[tuple[SweepStep, tuple[Input, ...], tuple[str, ...]], tuple[Call, list[Kinds]]] = {}
        for row in self.covered(self.strength)[-1].rows:
            made = self.case(row)
            assert isinstance(made, _Made)
            _, kept = taken.setdefault((made.step, made.inputs, made.dtypes), (made.call, []))
            if made.kinds not in kept:
                kept.append(made.kinds)
        ordered = sorted(taken.items(), key=lambda item: (sort_key(item[0][0]), item[0][2]))
        groups = (
            self.combinations.group(step, inputs, call, kept) for (step, inputs, _), (call, kept) in ordered
        )
        return list(once(groups))

    @property
    def left_out(self) -> Counter[str]:
        """How many combinations the sweep leaves out; one `of_sizes`, which no list could hold, says how many levels,
        pairs and triples no case can have."""
        found = self.covered(self.strength)
        if self.of_sizes:
            return Counter(
                f"no case has all levels: {why}" for each in found for why in each.refused.values()
            )
        number = prod(len(factor.levels) for factor in self.factors) - sum(
            len(group.kinds) for group in self.groups
        )
        return +Counter({NO_NEW_PAIR: number, BEYOND_BUDGET: found[-1].left})

    # one row

    def case(self, row: Row) -> _Made | str:
        """Make the case of a row, or say why there is none."""
        chosen = [levels[place] for levels, place in zip(self._levels, row, strict=True)]
        if self.cover.forbid:
            texts = {name: text for name, _, text, _ in chosen}
            for forbidden in self.cover.forbid:
                if all(texts.get(name) in levels for name, levels in forbidden.levels.items()):
                    return forbidden.because
        made = self._made({part: value for _, part, _, value in chosen})
        if isinstance(made, str) or not self.of_sizes:
            return made
        texts = {name: text for name, _, text, _ in chosen}
        for name, shown in self.listed.operator.family.shown(self.listed.operator, made.call).items():
            if name in texts and texts[name] not in shown:
                return f"no case shows {name}={texts[name]} there"
        return made

    @cached_property
    def _levels(self) -> list[list[tuple[str, tuple[str, ...], str, Any]]]:
        return [
            [(factor.name, factor.part, text, value) for text, value in factor.levels.items()]
            for factor in self.factors
        ]

    def _made(self, chosen: Chosen) -> _Made | str:
        listed, combinations = self.listed, self.combinations
        opset: int = chosen["opset",]
        options = Options(**{part[1]: value for part, value in chosen.items() if part[0] == "options"})
        there = listed.dtypes(opset)
        dtypes = {part[1]: value for part, value in chosen.items() if part[0] == "dtype" and part[1] in there}
        kinds = tuple(chosen["values", name] for name in listed.chosen)
        illegal = listed.illegal(opset, dtypes)
        if illegal and listed.sweep.validity is not Validity.INVALID:
            return ILLEGAL_TYPE
        resolved = with_words(listed, opset, chosen)
        if isinstance(resolved, str):
            return resolved
        relations, picked = resolved
        try:
            step = combinations.step(opset, options, relations, picked, chosen.get(("directml",)))
            inputs = combinations.inputs(step, dtypes, kinds)
            if inputs is None:
                return combinations.no_meaning(kinds)
            call = combinations.call(step, inputs, dtypes)
        except Impossible:
            return _UNFIT
        why = combinations.refusal(step, call, kinds, illegal=illegal)
        if why == combinations.no_meaning(kinds):
            why = next(self._without_meaning(call, kinds), why)
        if why is None and self.cover.illegal:
            why = self._other_rule(combinations.breaks(call, kinds), illegal=illegal)
        return _Made(step, inputs, tuple(dtypes.values()), call, kinds) if why is None else why

    def _without_meaning(self, call: Call, kinds: Kinds) -> Iterator[str]:
        applies, operator = self.listed.operator.family.applies, self.listed.operator
        for name, kind in zip(self.listed.chosen, kinds, strict=True):
            if name in call.inputs and not applies(operator, kind, name, call):
                yield f"{name}.values={kind} has no meaning there"

    def _other_rule(self, breaks: str | None, *, illegal: bool) -> str | None:
        """Say that a case breaks another rule than the sweep's, or one more."""
        of_types = not self.typed_factors.isdisjoint(self.cover.illegal)
        if illegal is not of_types or (breaks is not None and illegal):
            return "breaks another rule: " + (ILLEGAL_TYPE if illegal else str(breaks))
        rule = self.listed.sweep.rule or ""
        return None if breaks is None or rule.startswith(breaks) else f"breaks another rule: {breaks}"

    @cached_property
    def typed_factors(self) -> set[str]:
        """The factors that are element types."""
        return {factor.name for factor in self.factors if factor.part[0] == "dtype"}


def _places(number: int) -> dict[str, Any]:
    return {str(place): Nth(place) for place in range(number)}


def _written(choice: object) -> str:
    if isinstance(choice, Nth):
        return str(choice)
    if isinstance(choice, Choices):
        return ",".join(f"{key}:{_written(value)}" for key, value in choice.by_key)
    return shape_level(choice) if isinstance(choice, tuple) else level(choice)
