"""Chooses the cases of a sweep that cover the interactions of its factors (`arrays`).

A factor is all that can be chosen independently: opset, element types, rank and size of the first input, each key
of the other shapes, attributes, kinds of values, options. A row stands for a case only if the case shows all its
levels (`factors`), so that what is chosen and what is counted cannot differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from harness.model.case import Options, Validity
from harness.model.onnx_schemas import Parameter
from harness.operators.base import Call, Operator
from harness.specs import arrays
from harness.specs.attribute_values import alternatives
from harness.specs.combination import CallGroup, Combinations, Impossible, Input, Kinds, SweepStep, sort_key
from harness.specs.factors import level, shape_level, shown, type_factor
from harness.specs.listed import Choices, Listed
from harness.specs.pairs import once
from harness.specs.schema_types import ALL
from harness.specs.sweep_schema import Cover, Levels
from harness.specs.worded import Chosen, with_words

ILLEGAL_TYPE = "element type not allowed at this opset"
_BUILT: dict[tuple[object, ...], tuple[Operator, list[arrays.CoveringArray]]] = {}
"""The arrays that this process has built, by what they follow from: commands that a process runs one after the
other, as tests do, build them once. The operator is kept, so that its identity stays its own."""
_UNFIT = "the shapes do not fit together"


class Factor(NamedTuple):
    """One factor: its name as `factors` has it, the part of a case that it decides, and its levels with what
    they stand for."""

    name: str
    part: tuple[str, ...]
    levels: Mapping[str, Any]


class _Row(NamedTuple):
    step: SweepStep
    inputs: tuple[Input, ...]
    dtypes: tuple[str, ...]
    call: Call
    kinds: Kinds


class Interactions:
    """The groups that cover the interactions of a sweep's factors at its strength, or at the next when it is to be
    `thorough`."""

    def __init__(
        self, listed: Listed, combinations: Combinations, cover: Cover, *, thorough: bool = False
    ) -> None:
        self.listed = listed
        self.combinations = combinations
        self.cover = cover
        key = (listed.operator.name, id(listed.operator), listed.opsets, listed.sweep.model_dump_json())
        _, self.built = _BUILT.setdefault(key, (listed.operator, []))
        self.strength = min(3, cover.strength + thorough)

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
        for parameter in self._typed():
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
        return sorted(found, key=lambda factor: -len(factor.levels))

    def _typed(self) -> Iterator[Parameter]:
        seen = set()
        for opset in self.listed.opsets:
            for parameter in self.listed.parameters(opset):
                if parameter.type_param not in seen:
                    seen.add(parameter.type_param)
                    yield parameter

    def _of_shape(self, name: str) -> Iterator[Factor]:
        shape = self.listed.sweep.inputs[name].shape
        if not isinstance(shape, dict):
            relations = self.listed.relations(self.listed.sweep.inputs[name], name, None)
            yield Factor(f"{name}.shape", ("shape", name), {_written(each): each for each in relations})
            return
        words = self.listed.operator.family.positions
        for key, given in shape.items():
            known = words(self.listed.operator, key)
            each = given if isinstance(given, tuple) else (given,)
            if given == ALL:
                each = tuple(word for word, legal in known.items() if legal)
            yield Factor(
                key,
                ("shape", name, key),
                {_written(choice): choice for choice in each},
            )

    def _of_attribute(self, name: str, given: Any) -> dict[str, Any]:
        known = self.listed.operator.family.positions(self.listed.operator, name)
        each = given if isinstance(given, tuple) else (given,)
        if given == ALL:
            each = tuple(word for word, legal in known.items() if legal)
        kind = next(
            kinds[name]
            for opset in self.listed.opsets
            if name in (kinds := self.listed.attribute_kinds(opset))
        )
        values = [value for value in each if not (isinstance(value, str) and value in known)]
        found: dict[str, Any] = {word: word for word in each if word not in values}
        return found | {
            level(value): value for value in (alternatives(kind, tuple(values)) if values else ())
        }

    def problems(self) -> list[tuple[tuple[str, ...], str, str, list[str]]]:
        """Return what is wrong with names of factors and levels: where, what, the word, and those allowed."""
        known = {factor.name: list(factor.levels) for factor in self.factors}
        found: list[tuple[tuple[str, ...], str, str, list[str]]] = []
        named: list[tuple[tuple[str, ...], Levels]] = [
            (("alone",), self.cover.alone),
            (("illegal",), self.cover.illegal),
        ]
        named += [(("forbid", str(n), "levels"), each.levels) for n, each in enumerate(self.cover.forbid)]
        for at, levels in named:
            for name, listed in levels.items():
                if name not in known:
                    found.append(((*at, name), f"the sweep has no factor {name!r}", name, list(known)))
                    continue
                found += [
                    ((*at, name), f"the factor {name} has no level {one!r}", one, known[name])
                    for one in listed
                    if one not in known[name]
                ]
        if (self.listed.sweep.validity is Validity.INVALID) is not bool(self.cover.illegal):
            what = "an invalid sweep names its `illegal` levels, and no other does"
            found.append(((), what, "", []))
        return found

    # rows

    def _places(self, levels: Levels) -> set[int]:
        named = ((factor.name, one) for factor in self.factors for one in factor.levels)
        return {place for place, (name, one) in enumerate(named) if one in levels.get(name, ())}

    def covered(self, strength: int) -> list[arrays.CoveringArray]:
        """Return what covers levels, pairs and triples, up to a strength: each goes on from the one before."""
        while len(self.built) < strength:
            start = self.built[-1] if self.built else None
            self.built.append(self._array(len(self.built) + 1, start))
        return self.built[:strength]

    def _array(self, strength: int, start: arrays.CoveringArray | None) -> arrays.CoveringArray:
        illegal = self._places(self.cover.illegal)
        return arrays.array(
            [len(factor.levels) for factor in self.factors],
            lambda row: why if isinstance(why := self.case(row), str) else None,
            f"{self.listed.operator.name}:{self.listed.sweep.name}",
            strength=strength,
            alone=self._places(self.cover.alone) | illegal,
            one_of=illegal,
            start=start,
        )

    def named(self, places: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Return the factors and levels at places."""
        every = [(factor.name, one) for factor in self.factors for one in factor.levels]
        return tuple(every[place] for place in places)

    @cached_property
    def _groups(self) -> list[CallGroup]:
        taken: dict[tuple[SweepStep, tuple[Input, ...], tuple[str, ...]], tuple[Call, list[Kinds]]] = {}
        for row in self.covered(self.strength)[-1].rows:
            made = self.case(row)
            assert isinstance(made, _Row)
            _, kept = taken.setdefault((made.step, made.inputs, made.dtypes), (made.call, []))
            if made.kinds not in kept:
                kept.append(made.kinds)
        ordered = sorted(taken.items(), key=lambda item: (sort_key(item[0][0]), item[0][2]))
        groups = (
            self.combinations.group(step, inputs, call, kept) for (step, inputs, _), (call, kept) in ordered
        )
        return list(once(groups))

    @property
    def groups(self) -> list[CallGroup]:
        """What the sweep keeps."""
        return self._groups

    @property
    def left_out(self) -> Counter[str]:
        """How many levels, pairs and triples no case can have, by reason."""
        refused = [why for found in self.covered(self.strength) for why in found.refused.values()]
        return Counter(f"no case has all levels: {why}" for why in refused)

    # one row

    def case(self, row: arrays.Row) -> _Row | str:
        """Make the case of a row, or say why there is none."""
        texts = {
            factor.name: list(factor.levels)[place] for factor, place in zip(self.factors, row, strict=True)
        }
        for forbidden in self.cover.forbid:
            if all(texts.get(name) in levels for name, levels in forbidden.levels.items()):
                return forbidden.because
        chosen: Chosen = {factor.part: factor.levels[texts[factor.name]] for factor in self.factors}
        made = self._made(chosen)
        if isinstance(made, str):
            return made
        kinds = dict(zip(self.listed.chosen, made.kinds, strict=True))
        shows = shown(self.listed.operator, made.call, kinds, made.step.options)
        for name, one in texts.items():
            if name != "outputs" and one not in shows.get(name, ()):
                return f"no case shows {name}={one} there"
        return made

    def _made(self, chosen: Chosen) -> _Row | str:
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
            step = combinations.step(opset, options, relations, picked, None)
            inputs = combinations.inputs(step, dtypes, kinds)
            if inputs is None:
                return combinations.no_meaning(kinds)
            call = combinations.call(step, inputs, dtypes)
        except Impossible:
            return _UNFIT
        for name, kind in zip(listed.chosen, kinds, strict=True):
            if not listed.operator.family.applies(listed.operator, kind, name, call):
                return f"{name}.values={kind} has no meaning there"
        why = combinations.refusal(step, call, kinds, illegal=illegal)
        if why is None and listed.sweep.validity is Validity.INVALID:
            why = self._other_rule(combinations.breaks(call, kinds), illegal=illegal)
        return _Row(step, inputs, tuple(dtypes.values()), call, kinds) if why is None else why

    def _other_rule(self, breaks: str | None, *, illegal: bool) -> str | None:
        """Say that a case breaks another rule than the sweep's, or one more."""
        of_types = not self.typed_factors.isdisjoint(self.cover.illegal)
        if illegal is not of_types or (breaks is not None and illegal):
            return "breaks another rule: " + (ILLEGAL_TYPE if illegal else str(breaks))
        told = self.listed.sweep.rule or ""
        return None if breaks is None or told.startswith(breaks) else f"breaks another rule: {breaks}"

    @cached_property
    def typed_factors(self) -> set[str]:
        """The factors that are element types."""
        return {factor.name for factor in self.factors if factor.part[0] == "dtype"}


def _written(choice: object) -> str:
    if isinstance(choice, Choices):
        return ",".join(f"{key}:{_written(value)}" for key, value in choice.by_key)
    return shape_level(choice) if isinstance(choice, tuple) else level(choice)
