"""Finds contradictions within a line of a run file: no measurement can produce them, so the line was altered
or damaged.

Each rule holds whatever the target does, since it follows from how outcomes and verdicts are made. A failure
that is `expected` without an expectation in the header is no contradiction: it may be known from an earlier
run, and older files do not name entries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from msgspec import UNSET

from harness.model.case import Validity
from harness.model.caseid import operator_of
from harness.model.header import End, Header
from harness.model.result import (
    ORACLE_ERROR,
    Diff,
    Repeats,
    Result,
)
from harness.model.target_info import DIRECTML
from harness.model.verdict import (
    NOT_EXECUTED,
    Outcome,
    Verdict,
    conforms,
)

_WITH_OUTPUT = frozenset({Outcome.PASS, Outcome.MISMATCH, Outcome.ACCEPTED_INVALID, Outcome.ORACLE_ERROR})
"""Outcomes of cases whose output was there, from the provider under test."""
_WITH_DIFF = frozenset({Outcome.MISMATCH, Outcome.ORACLE_ERROR})
_WITH_ERROR = frozenset(
    {
        Outcome.REJECTED,
        Outcome.UNSUPPORTED,
        Outcome.NOT_PLACED,
        Outcome.CRASH,
        Outcome.TIMEOUT,
        Outcome.NOT_RUN,
    }
)
_WITH_HASH = (_WITH_OUTPUT - {Outcome.PASS}) | {Outcome.NOT_PLACED}
_ORACLE_ASKED = frozenset({Outcome.PASS, Outcome.MISMATCH, Outcome.ORACLE_ERROR})
_OUTPUT = re.compile(r"[0-9a-f]{16}")
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_CUT = 200
"""Characters from which two different strings may be written alike."""


Kind = tuple[object, ...]


class Count:
    """How many results of a kind there are; `first` stands for all of them, `detailed` says whether
    `contradiction` looks at each."""

    __slots__ = ("detailed", "first", "number")

    def __init__(self, first: Result) -> None:
        self.first = first
        self.detailed = first.diff is not None or first.output is not UNSET or first.repeats is not UNSET
        self.number = 0


def kind_of(result: Result) -> Kind:
    """Return what decides whether a result is possible, its outcome and verdict first: a run has few kinds,
    so each is looked at once."""
    error = result.error
    return (
        result.outcome,
        result.verdict,
        result.validity,
        result.target,
        result.placed_on,
        result.stage,
        None if error is None else error.class_,
        result.diff is None,
        result.output is UNSET,
        result.call is UNSET,
        result.function_nodes is UNSET,
        result.repeats is UNSET,
        result.outside,
        result.expectation,
        result.operator,
        operator_of(result.case),
    )


def impossible(result: Result, header: Header) -> str | None:
    """Say why there are no results of this one's kind, None if there can be some; `header` has its target."""
    outcome, validity = result.outcome, result.validity
    target = header.targets[result.target]
    if not result.case.startswith(f"{result.operator}@"):
        return f"operator {result.operator[:40]!r} of a case of {operator_of(result.case)[:40]!r}"
    if target.unavailable and outcome not in NOT_EXECUTED:
        return f"{outcome.value} on {result.target}, which was unavailable according to the header"
    if (validity is Validity.INVALID and outcome in _ORACLE_ASKED) or (
        validity is Validity.VALID and outcome is Outcome.ACCEPTED_INVALID
    ):
        return f"{outcome.value} of a case that is {validity.value}"
    return _fields(result, target.provider) or _verdict(result) or _expectation(result, header)


def _fields(result: Result, provider: str) -> str | None:
    """Hold what an outcome comes with against what stands there."""
    outcome, name = result.outcome, result.outcome.value
    for what, there, wanted in (
        ("a difference", result.diff is not None, outcome in _WITH_DIFF and not _formula_failed(result)),
        ("an error", result.error is not None, outcome in _WITH_ERROR or _formula_failed(result)),
    ):
        if there is not wanted:
            return f"{name} {'with' if there else 'without'} {what}"
    if outcome in _WITH_OUTPUT and result.placed_on != provider:
        return f"{name} on {result.placed_on}, but {result.target} is {provider}"
    if outcome is Outcome.NOT_PLACED and result.placed_on == provider:
        return f"{name}, yet placed on {provider}"
    if outcome in NOT_EXECUTED and result.placed_on is not None:
        return f"{name}, yet placed on {result.placed_on}"
    if result.output is not UNSET and outcome not in _WITH_HASH:
        return f"{name} with the hash of an output that is not the oracle's"
    if result.as_function and outcome not in _WITH_OUTPUT:
        return f"{name} {result.as_function}"
    if result.call is not UNSET and provider != DIRECTML:
        return f"a call of DirectML's own API on {provider}"
    return None


def _formula_failed(result: Result) -> bool:
    """Say whether the formula failed, so that there is an error in place of a difference."""
    return (
        result.outcome is Outcome.ORACLE_ERROR
        and result.error is not None
        and result.error.class_ == ORACLE_ERROR
    )


def _verdict(result: Result) -> str | None:
    """Hold the verdict against the outcome."""
    outcome, verdict, validity = result.outcome, result.verdict, result.validity
    if outcome in NOT_EXECUTED:
        allowed = {Verdict.MISSING} if outcome is Outcome.UNAVAILABLE else {Verdict.EXPECTED, Verdict.MISSING}
    elif validity is Validity.UNSPECIFIED:
        allowed = {Verdict.EXPECTED, Verdict.IMPROVEMENT, Verdict.CHANGED, Verdict.NEW}
        allowed |= set() if result.conforms else {Verdict.REGRESSION}
    elif conforms(validity, outcome):
        allowed = {Verdict.EXPECTED, Verdict.IMPROVEMENT, Verdict.NEW}
    else:
        allowed = {Verdict.EXPECTED, Verdict.REGRESSION, Verdict.CHANGED, Verdict.NEW}
    return (
        None
        if verdict in allowed
        else f"the verdict {verdict.value!r} for {outcome.value} of a case that is {validity.value}"
    )


def _expectation(result: Result, header: Header) -> str | None:
    """Hold outcome and verdict against the entry that a result names."""
    number, outcome, verdict = result.expectation, result.outcome, result.verdict
    if not isinstance(number, int):
        return None
    entry = header.expectations.get(number)
    if entry is None:
        return f"expectation {number} is not in the header"
    if outcome in NOT_EXECUTED or verdict not in (Verdict.EXPECTED, Verdict.CHANGED, Verdict.IMPROVEMENT):
        return f"{outcome.value} with the verdict {verdict.value!r} by expectation {number}"
    if entry.expect and (outcome in entry.expect) is not (verdict is Verdict.EXPECTED):
        return f"{outcome.value} with the verdict {verdict.value!r} by expectation {number}, which expects {entry.expect[0].value}"
    return None


def contradiction(result: Result) -> str | None:
    """Say what in the details of a result contradicts itself, None if nothing does."""
    if result.diff is not None and (why := _difference(result.diff)) is not None:
        return why
    if isinstance(result.output, str) and not _OUTPUT.fullmatch(result.output):
        return "the hash of the output is not 16 hexadecimal digits"
    return _repeats(result, result.repeats) if isinstance(result.repeats, Repeats) else None


def _difference(diff: Diff) -> str | None:
    if diff.differing > diff.total:
        return f"{diff.differing:,} of {diff.total:,} elements differ"
    if diff.first_index is not None and not diff.differing:
        return "a difference of no element"
    if diff.expected == diff.actual and len(diff.expected) < _CUT:
        return f"a difference of {diff.expected[:40]!r} to itself"
    return None


def _repeats(result: Result, repeats: Repeats) -> str | None:
    found = repeats.outcomes
    unknown = next((name for name in found if name not in _OUTCOMES), None)
    if unknown is not None:
        return f"{unknown[:40]!r} among the repeats is not an outcome"
    failed = sum(number for name, number in found.items() if not conforms(result.validity, _OUTCOMES[name]))
    if sum(found.values()) != repeats.runs or failed != repeats.failed:
        return f"repeats: {repeats.failed:,} of {repeats.runs:,} failed, but by outcome {failed:,} of {sum(found.values()):,}"
    return None if repeats.runs else "repeats of a case that was not repeated"


def miscounted(end: End, counts: Collection[Count]) -> str | None:
    """Say what the end of a run counts that is not in its file, None if it counts what is there."""
    there: Counter[str] = Counter()
    for count in counts:
        result = count.first
        there[f"that are {result.outcome.value!r}"] += count.number
        there[f"with the verdict {result.verdict.value!r}"] += count.number
        there["that ran"] += count.number * (result.outcome not in NOT_EXECUTED)
    counted = {f"that are {name!r}": number for name, number in end.outcomes.items()}
    counted |= {f"with the verdict {name!r}": number for name, number in end.verdicts.items()}
    counted |= {"that ran": end.run}
    for what in sorted({*there, *counted}):
        if there[what] != counted.get(what, 0):
            return f"the end counts {counted.get(what, 0):,} results {what}, the file holds {there[what]:,}"
    if end.run > end.selected:
        return f"the end counts {end.selected:,} results selected, but {end.run:,} that ran"
    return None
