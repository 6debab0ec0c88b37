"""The cases of a graph: the first level of each factor, each other level of one factor, and each two other levels
of two; each at every level of optimisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from harness.model.case import (
    DEPLOYMENTS,
    Case,
    LeftOut,
    Optimization,
    Optionals,
    Options,
    Shapes,
    TensorSpec,
    Value,
)
from harness.model.caseid import input_term, option_terms, value_text
from harness.model.onnx_schemas import OpsetUnavailable, UnknownOperator
from harness.operators import elements
from harness.operators.base import Undefined
from harness.specs.graphs.pattern import INNER, OPTIONS, Pattern, Unfit, plain
from harness.specs.reading.literals import LiteralError, shape_problem
from harness.specs.reading.source import shown, suggestion
from harness.specs.sweeps.calls import call_of

if TYPE_CHECKING:
    from harness.specs.graphs.schema import GraphSweep

LEVELS: tuple[Optimization, ...] = ("off", "basic", "extended", "all")
DEPLOYED: Mapping[str, tuple[Any, ...]] = {
    "optimization": ("all", "extended", "basic", "off"),
    "binding": (None, "own", "device", "outlived"),
    "saved": (None, "onnx", "ort"),
    "exposed": (None, "value"),
    "concurrent": (None, 4),
    "execution": (None, "parallel"),
    "memory_pattern": (None, "off"),
    "arena": (None, "off"),
    "prepacking": (None, "off"),
    "dimensions": (None, "fixed"),
    "initializers": (None, "shared"),
}
"""The usual level of each option first; of `exposed` whether an inner value is an output as well."""
_LEVELS: Mapping[str, tuple[Any, ...]] = {
    **{name: DEPLOYED[name] for name in DEPLOYMENTS},
    "optionals": (None, *get_args(Optionals)),
    "left_out": (None, *get_args(LeftOut)),
}
"""The levels of options that usually are not there."""
_WORDS: Mapping[str, tuple[str, ...]] = {"shapes": get_args(Shapes), "constants": ("initializer", "node")}
"""The levels of factors that always have one."""
NODE_OPTIONS = ("initializer", "shapes", "optionals", "left_out")
Levels = Mapping[str, Any]
"""A level of each factor."""


def cases_of(pattern: Pattern, sweep: GraphSweep, left_out: Counter[str]) -> Iterator[Case]:
    """Yield the cases of a sweep, those of one graph at its levels of optimisation one after another; count by reason
    the combinations that make no graph."""
    for _, case, wrong in _tried(pattern, sweep):
        if wrong is not None:
            left_out[wrong] += 1
            continue
        yield from at_levels(case)


def lost_levels(pattern: Pattern, sweep: GraphSweep) -> Iterator[tuple[str, int, str]]:
    """Yield the levels that no case of a sweep has: the factor, the position in its list, and why the first combination
    with it is left out."""
    tried = list(_tried(pattern, sweep))
    for name, listed in sweep.factors.items():
        for number, level in enumerate(listed):
            reasons = [wrong for levels, _, wrong in tried if levels[name] is level]
            if None not in reasons:
                yield name, number, str(next(iter(reasons), "another level makes the same graph"))


def _tried(pattern: Pattern, sweep: GraphSweep) -> Iterator[tuple[Levels, Case, str | None]]:
    """Yield the combinations of levels, each graph once, with its case and why it is none."""
    seen: set[str] = set()
    for levels in combined(pattern, sweep):
        case = made(pattern, sweep, levels)
        if case.id not in seen:
            seen.add(case.id)
            yield levels, case, misfit(case)


def at_levels(case: Case) -> Iterator[Case]:
    """Yield the case at each level of optimisation."""
    for level in LEVELS:
        yield with_option(case, "optimization", level)


def with_option(case: Case, name: str, level: Any) -> Case:
    """Return the case with a level of an option."""
    options = msgspec.structs.replace(case.options, **{name: level})
    head = case.id.removesuffix(option_terms(case.options))
    return msgspec.structs.replace(case, id=head + option_terms(options), options=options)


def misfit(case: Case) -> str | None:
    """Return why the nodes of a case do not fit together; None where they do."""
    for each in case.inputs:
        if not elements.applies(each.values, each.dtype):
            return f"{each.dtype} has no values of the kind {each.values}"
    try:
        call_of(case)
    except (Unfit, LiteralError, OpsetUnavailable, UnknownOperator) as error:
        return str(error)
    except Undefined:
        return None  # of these elements alone
    return None


def combined(pattern: Pattern, sweep: GraphSweep) -> Iterator[Levels]:
    """Yield the combinations of levels; the newest opset is the first level of its factor."""
    factors = {"opset": tuple(reversed(pattern.spec.opsets)), **sweep.factors}
    base = {name: levels[0] for name, levels in factors.items()}
    yield base
    for name, levels in factors.items():
        for level in levels[1:]:
            yield {**base, name: level}
    for one, other in combinations([name for name in factors if name not in sweep.alone], 2):
        for first in factors[one][1:]:
            for second in factors[other][1:]:
                yield {**base, one: first, other: second}


def made(pattern: Pattern, sweep: GraphSweep, levels: Levels) -> Case:
    """Return the case of a combination, not optimised."""
    spec, opset = pattern.spec, levels["opset"]
    types = {name: levels.get(name, listed[0]) for name, listed in spec.types.items()}
    inputs = tuple(
        TensorSpec(
            name,
            types.get(given.type, given.type),
            tuple(levels.get(f"{name}.shape", given.shape)),
            levels.get(f"{name}.values", given.values),
        )
        for name, given in spec.inputs.items()
    )
    attributes: dict[str, Value] = {}
    for name, usual in {**pattern.defaults, **OPTIONS}.items():
        value = plain(levels.get(name, usual))
        if value != usual:
            attributes[name] = value
    others: dict[str, Any] = {name: levels.get(name) for name in ("optionals", "left_out", *DEPLOYMENTS)}
    initializer = levels.get("initializer") or None
    options = Options(shapes=levels.get("shapes", "symbolic"), initializer=initializer, **others)
    terms = [f"{spec.graph}@{opset}:sweep={sweep.name}", *map(input_term, inputs)]
    terms += [f"{name}={value_text(value)}" for name, value in attributes.items()]
    terms += [
        f"{each.name}.values={each.values}" for each in inputs if each.values != spec.inputs[each.name].values
    ]
    return Case(
        id=";".join(terms) + option_terms(options),
        operator=spec.graph,
        opset=opset,
        attributes=attributes,
        inputs=inputs,
        options=options,
        source=spec.source,
    )


def factor_problem(pattern: Pattern, name: str, level: Any) -> str | None:
    """Say why a level is none of a factor; None where it is one."""
    spec = pattern.spec
    head, _, what = name.partition(".")
    if what and head in spec.inputs:
        if what == "shape":
            return shape_problem(level) if _is_shape(level) else "should be a shape such as [2, 3]"
        return None
    if name in spec.types:
        return None if level in spec.types[name] else f"{level!r} is none of the types that {name} may be"
    if name == "opset":
        return None if level in spec.opsets else f"opset {level!r} is not one of the spec's"
    if name in ("initializer", "overridable"):
        unknown = [each for each in (level or "").split(",") if each and each not in spec.inputs]
        return f"{spec.graph} has no input {unknown[0]!r}" if unknown else None
    if name in INNER:
        inner = {output for node in spec.nodes for output in node.outputs} | set(spec.inputs)
        unknown = [each for each in level.split(",") if each and each not in inner]
        return f"no node makes {unknown[0]!r}" if unknown else None
    if name in _WORDS and level not in _WORDS[name]:
        given = level if isinstance(level, str) else None
        return f"{shown(level)} is no level of {name}{suggestion(given, _WORDS[name])}"
    if name in _LEVELS and level not in _LEVELS[name]:
        return f"{level!r} is no level of {name}; allowed: {', '.join(map(str, _LEVELS[name][1:]))}, null"
    return None


def _is_shape(level: Any) -> bool:
    return isinstance(level, tuple) and all(type(extent) is int and extent >= 0 for extent in level)


def factor_names(pattern: Pattern) -> list[str]:
    """Return the names that factors of a graph may have."""
    spec = pattern.spec
    return [
        *spec.parameters,
        *spec.types,
        "opset",
        *(f"{name}.{what}" for name in spec.inputs for what in ("shape", "values")),
        *NODE_OPTIONS,
        *OPTIONS,
        *DEPLOYMENTS,
    ]
