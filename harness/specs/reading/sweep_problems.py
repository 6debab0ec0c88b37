"""Finds errors of a sweep for its operator, before any combination of it is made, and errors of options, those of a
literal case too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.case import CONSTANTS, DEPLOYMENTS, Options
from harness.model.dtypes import DTYPES
from harness.operators.base import RANDOM, Operator
from harness.specs.reading.entry_schema import Sweep, SweepInput
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.schema_types import ALL, OMITTED
from harness.specs.reading.source import KeyPath, shown
from harness.specs.sweeps import api
from harness.specs.sweeps.alternatives import IMPLIED, Listed
from harness.specs.sweeps.shape_words import KEYS


def sweep_problems(spec: LoadedSpec, operator: Operator, number: int, sweep: Sweep) -> list[str]:
    """Return the problems of a sweep's words, kinds and options."""
    problems: list[str] = []
    at = ("sweeps", number)
    for name, given in sweep.inputs.items():
        covering = sweep.cover is not None
        problems += _shape_problems(spec, operator, name, given, (*at, name), covering=covering)
        fills = operator.family.fills(operator, name)
        kinds = [kind.name for kind in operator.family.kinds(operator, name)]
        kinds = kinds or [kind.name for kind in fills and (RANDOM, *fills)]
        if given.values is not None and not kinds:
            choosing = ", ".join(n for n in sweep.inputs if operator.family.kinds(operator, n))
            why = f"only {choosing} does" if choosing else "its family defines no kinds of values"
            what = f"{name} of {operator.name} takes no `values:`; {why}; remove the key"
            problems.append(spec.problem((*at, name, "values"), what))
            continue
        for position, kind in enumerate(given.values or ()):
            if kind not in kinds:
                what = f"unknown kind of values {kind!r}"
                problems.append(
                    spec.problem((*at, name, "values", position), what, given=kind, allowed=kinds)
                )
    problems += _first_problems(spec, operator, sweep, at)
    for options in Listed(spec, operator, sweep).options():
        problems.extend(option_problems(spec, operator, options, (*at, "options")))
        for asked in api.sweep_options(sweep.directml):
            problems.extend(api.problems(spec, operator, options, sweep.directml, asked, at))
    return list(dict.fromkeys(problems))


def _shape_problems(
    spec: LoadedSpec, operator: Operator, name: str, given: SweepInput, at: KeyPath, *, covering: bool
) -> list[str]:
    """Return the words and keys under `shape:` that the family has not."""
    known = operator.family.relations.get(name, operator.family.relations.get("*", ()))
    if covering and name == next(iter(spec.schema(spec.opsets[-1]).inputs)).name:
        known = (*known, *KEYS)
    if isinstance(given.shape, dict):
        wrong = [key for key in given.shape if key not in known]
        what = f"{operator.name} has no choice {{!r}} for {name}"
        if not wrong:
            return _word_problems(spec, operator, given.shape, at)
    else:
        listed = given.shape if isinstance(given.shape, tuple) else ()
        wrong = [word for word in listed if isinstance(word, str) and word not in (*known, OMITTED, IMPLIED)]
        what = f"{operator.name} has no relation {{!r}} for {name}"
    return [spec.problem((*at, "shape"), what.format(word), given=word, allowed=known) for word in wrong]


def _word_problems(spec: LoadedSpec, operator: Operator, shape: Mapping[str, Any], at: KeyPath) -> list[str]:
    """Return the words below a key of `shape:` that the family has not, and what should be a number or a
    shape."""
    found = []
    for key, given in shape.items():
        allowed = operator.family.words.get(key, KEYS.get(key, ()))
        if not allowed:
            continue  # the family says itself what it lacks
        for position, word in enumerate(given if isinstance(given, tuple) else (given,)):
            if word != ALL and (
                word not in allowed if isinstance(word, str) else not isinstance(word, (int, tuple))
            ):
                what = f"unknown {key} {shown(word)}"
                given_word = word if isinstance(word, str) else None
                found.append(
                    spec.problem((*at, "shape", key, position), what, given=given_word, allowed=allowed)
                )
    return found


def _first_problems(spec: LoadedSpec, operator: Operator, sweep: Sweep, at: KeyPath) -> list[str]:
    names = [
        p.name
        for p in spec.schema(spec.opsets[-1]).inputs
        if p.name in sweep.inputs and p.name not in sweep.attributes
    ]
    if not names or sweep.inputs[names[0]].shape is not None:
        return []
    kinds = sweep.inputs[names[0]].values or ()
    floats = [dtype for dtype in DTYPES if DTYPES[dtype].is_float]
    natural = [
        kind
        for kind in kinds
        if any(operator.family.natural_shape(operator, kind, dtype) for dtype in floats)
    ]
    if kinds and len(natural) == len(kinds):
        return []
    return [spec.problem((*at, names[0]), "the input needs a 'shape'")]


def option_problems(spec: LoadedSpec, operator: Operator, options: Options, at: KeyPath) -> Iterator[str]:
    """Yield the problems of options for an operator."""
    schema = spec.schema(spec.opsets[-1])
    inputs = [parameter.name for parameter in schema.inputs]
    allowed = inputs if spec.graph is not None else [*inputs, CONSTANTS]
    maps = [parameter.name for parameter in schema.inputs if parameter.map]
    named = [name for name in (options.initializer or "").split(",") if name]
    for name in named:
        if name.partition(".")[0] not in allowed:
            what = f"{operator.name} has no input {shown(name)}"
            yield spec.problem((*at, "initializer"), what, given=name, allowed=allowed)
        elif name in maps:
            yield spec.problem((*at, "initializer"), f"{shown(name)} is of a map, which is no initializer")
    if spec.graph is None and named == inputs and len(inputs) == 1:
        yield spec.problem(
            (*at, "initializer"),
            f"the only input of {operator.name} as initializer is folded away and tests nothing",
        )
    if options.variant is not None and options.variant not in operator.variants:
        what = f"{operator.name} has no variant {options.variant!r}"
        yield spec.problem((*at, "variant"), what, given=options.variant, allowed=tuple(operator.variants))
    if (
        options.optionals is not None
        and spec.graph is None
        and not any(each.optional_type for each in (*schema.inputs, *schema.outputs))
    ):
        yield spec.problem((*at, "optionals"), f"no input or output of {operator.name} is an optional")
    if options.optionals is not None and options.neighbours:
        yield spec.problem(
            (*at, "neighbours"), "an optional of the graph has no node beside it: leave out one of both"
        )
    if options.omit is not None:
        yield from _omission_problems(spec, operator, options, (*at, "omit"))
    for name in DEPLOYMENTS if spec.graph is None else ():
        if getattr(options, name) is not None:
            what = f"{name} is an option of graphs (docs/graphs.md); {operator.name} is one operator"
            yield spec.problem((*at, name), what)
    if options.in_place and len(inputs) != 1:
        yield spec.problem(
            (*at, "in_place"), f"in_place needs an operator with one input; {operator.name} has {len(inputs)}"
        )


def _omission_problems(spec: LoadedSpec, operator: Operator, options: Options, at: KeyPath) -> Iterator[str]:
    schema = spec.schema(spec.opsets[-1])
    count = options.outputs or len(schema.outputs)
    optional = tuple(
        schema.output_name(n) for n in range(count) if schema.output(n).optional or schema.output(n).variadic
    )
    omitted = (options.omit or "").split(",")
    for name in omitted:
        if name not in optional:
            yield spec.problem(
                at, f"{operator.name} has no optional output {name!r}", given=name, allowed=optional
            )
            return
    if options.outputs is None:
        yield spec.problem(at, "say by 'outputs' how many outputs there are with those that are left out")
    elif schema.output_name(options.outputs - 1) in omitted:
        what = "what follows the last one is left out by 'outputs'"
        yield spec.problem(at, f"the last of {options.outputs} outputs is omitted; {what}")
