"""Chooses the fewest cases of a sweep that cover every pair of its alternatives (`covering`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from harness.model.case import (
    Options,
    TensorSpec,
    Validity,
    Value,
)
from harness.operators.base import Call
from harness.specs import api
from harness.specs.attribute_values import alternatives
from harness.specs.combination import CallGroup, Combinations, Impossible, Input, Kinds, SweepStep, sort_key
from harness.specs.covering import covering
from harness.specs.listed import Listed, Nth, stands_for_all

NO_NEW_PAIR = "adds no new pair"
BEYOND_BUDGET = "pairs of alternatives beyond the budget"
_MOST_OF_ALL = 8
"""As many values are tried of a domain that depends on the shapes."""


class _Case(NamedTuple):
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


class Pairs:
    """The groups that cover the pairs of a sweep's alternatives."""

    def __init__(self, listed: Listed, combinations: Combinations) -> None:
        self.listed = listed
        self.combinations = combinations

    @property
    def groups(self) -> list[CallGroup]:
        """What the sweep keeps."""
        return self._covered[0]

    @property
    def left_out(self) -> Counter[str]:
        """What it leaves out, by reason."""
        return self._covered[1]

    @cached_property
    def _covered(self) -> tuple[list[CallGroup], Counter[str]]:
        factors = self.factors()
        names, levels = list(factors), list(factors.values())
        taken: dict[tuple[SweepStep, tuple[Input, ...], tuple[str, ...]], tuple[Call, list[Kinds]]] = {}

        def take(row: tuple[int, ...]) -> bool:
            found = self._case(
                {name: level[place] for name, level, place in zip(names, levels, row, strict=True)}
            )
            if found is None:
                return False
            _, kept = taken.setdefault((found.step, found.inputs, found.dtypes), (found.call, []))
            if found.kinds not in kept:
                kept.append(found.kinds)
            return True

        sweep = self.listed.sweep
        found = covering(
            [len(level) for level in levels], take, f"{self.listed.operator.name}:{sweep.name}", sweep.budget
        )
        ordered = sorted(taken.items(), key=lambda item: (sort_key(item[0][0]), item[0][2]))
        number = sum(len(kept) for _, kept in taken.values())
        left_out = Counter({NO_NEW_PAIR: max(0, prod(map(len, levels)) - number)})
        if found.left:
            left_out[BEYOND_BUDGET] = found.left
        groups = (
            self.combinations.group(step, inputs, call, kept) for (step, inputs, _), (call, kept) in ordered
        )
        return list(once(groups)), left_out

    def factors(self) -> dict[tuple[str, str], Sequence[object]]:
        """Return what can be chosen independently, by the part of a case that it decides."""
        listed, sweep = self.listed, self.listed.sweep
        found: dict[tuple[str, str], Sequence[object]] = {("opset", ""): listed.opsets}
        found |= {("options", field): getattr(sweep.options, field) for field in sweep.options.varied}
        for name, given in sweep.inputs.items():
            found["shape", name] = listed.relations(given, name, None)
        types: dict[str, dict[str, None]] = {}
        for opset in listed.opsets:
            for param, dtypes in listed.dtypes(opset).items():
                types.setdefault(param, {}).update(dict.fromkeys(dtypes))
        found |= {("dtype", param): list(dtypes) for param, dtypes in types.items()}
        for name, each in sweep.attributes.items():
            kind = next(
                kinds[name] for opset in listed.opsets if name in (kinds := listed.attribute_kinds(opset))
            )
            found["attribute", name] = (
                self._places(name) if stands_for_all(kind, each) else alternatives(kind, each)
            )
        for name in listed.chosen:
            found["values", name] = listed.kinds(name)
        if sweep.directml is not None:
            found["directml", ""] = list(api.sweep_options(sweep.directml))
        return found

    def _places(self, name: str) -> list[Nth]:
        """Return the places of the largest domain that an attribute has with any shapes; of one that is the same
        whatever the shapes are, all."""
        domains: set[tuple[Value | None, ...]] = set()
        for opset in self.listed.opsets:
            for relations in self.listed.relation_choices(opset):
                domains.add(tuple(self.listed.domain(opset, name, relations or {}, {})))
                if len(domains) > 1 and max(map(len, domains)) > _MOST_OF_ALL:
                    return [Nth(place) for place in range(_MOST_OF_ALL)]
        return [Nth(place) for place in range(max(map(len, domains), default=0))]

    def _case(self, chosen: Mapping[tuple[str, str], Any]) -> _Case | None:
        """Make the case of one choice for every factor; None where there is none."""
        listed, combinations = self.listed, self.combinations
        by_part: dict[str, dict[str, Any]] = {}
        for (what, name), value in chosen.items():
            by_part.setdefault(what, {})[name] = value
        opset: int = chosen["opset", ""]
        options = Options(**by_part["options"])
        known = listed.attribute_kinds(opset)
        picked = {name: value for name, value in by_part.get("attribute", {}).items() if name in known}
        there = listed.dtypes(opset)
        dtypes = {param: dtype for param, dtype in by_part.get("dtype", {}).items() if param in there}
        kinds = tuple(chosen["values", name] for name in listed.chosen)
        illegal = listed.illegal(opset, dtypes)
        if illegal and listed.sweep.validity is not Validity.INVALID:
            return None
        try:
            step = combinations.step(
                opset, options, by_part.get("shape", {}), picked, chosen.get(("directml", ""))
            )
        except Impossible:
            return None
        inputs = combinations.inputs(step, dtypes, kinds)
        if inputs is None:
            return None
        try:
            call = combinations.call(step, inputs, dtypes)
        except Impossible:
            return None
        if combinations.refusal(step, call, kinds, illegal=illegal) is not None:
            return None
        return _Case(step, inputs, tuple(dtypes.values()), call, kinds)
