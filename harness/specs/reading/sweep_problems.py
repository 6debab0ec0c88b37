"""Finds errors of a sweep for its operator, before any combination of it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.dtypes import DTYPES
from harness.operators.base import RANDOM, Operator
from harness.specs.reading.load import LoadedSpec
from harness.specs.reading.option_problems import option_problems
from harness.specs.reading.schema_types import ALL, OMITTED
from harness.specs.reading.source import KeyPath, shown
from harness.specs.reading.sweep_schema import Sweep, SweepInput
from harness.specs.sweeps import api
from harness.specs.sweeps.alternatives import IMPLIED, Listed
from harness.specs.sweeps.rank_shapes import KEYS


def sweep_problems(spec: LoadedSpec, operator: Operator, number: int, sweep: Sweep) -> list[str]:
    """Return what is wrong with words, kinds and options of a sweep."""
    problems: list[str] = []
    at = ("sweeps", number)
    for name, given in sweep.inputs.items():
        covering = sweep.cover is not None
        problems += _shape_problems(spec, operator, name, given, (*at, name), covering=covering)
        fills = operator.family.fills(operator, name)
        kinds = [kind.name for kind in operator.family.kinds(operator, name)]
        kinds = kinds or [kind.name for kind in fills and (RANDOM, *fills)]
        if given.values is not None and not kinds:
            choosing = ", ".join(n for n in sweep.inputs if operator.family.kinds(operator, n)) or "no input"
            what = f"{operator.name} lets only {choosing} choose its values; {name} takes any bits"
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
    return (
        []
        if kinds and len(natural) == len(kinds)
        else [spec.problem((*at, names[0]), "the input needs a 'shape'")]
    )
