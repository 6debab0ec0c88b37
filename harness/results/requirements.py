"""Both sides of each sentence of Microsoft's documents: a target's results on the calls that keep it and on
those that break it.

`data/directml_rules.yaml` has the sentences, with the queries that name their cases; everything else comes
from the run file.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

from harness.model.case import Validity
from harness.model.caseid import CaseKey
from harness.model.query import Query
from harness.model.reference.feature_levels import load
from harness.model.result import Result, inexpressible
from harness.model.verdict import Outcome


class Requirement(NamedTuple):
    """A sentence. `without` says why a side has no case."""

    document: str
    section: str
    sentence: str
    holds: tuple[Query, ...]
    breaks: tuple[Query, ...]
    without: str


class ObservedResult(NamedTuple):
    """The cases that ended in the same way on one target; `error` is the class of the error: the failed call
    and the HRESULT."""

    validity: Validity
    outcome: Outcome
    stage: str
    error: str


class Side(NamedTuple):
    """The cases on one side of a rule: counts by outcome, and one case of each."""

    counts: dict[ObservedResult, int]
    examples: dict[ObservedResult, str]


class Tested(NamedTuple):
    """A rule on a target."""

    rule: Requirement
    holds: Side
    breaks: Side


@cache
def rules() -> tuple[Requirement, ...]:
    """Return every rule, in the order of the file."""
    return tuple(
        Requirement(
            each["document"],
            each["section"],
            each["sentence"],
            tuple(map(Query.parse, each["holds"])),
            tuple(map(Query.parse, each["breaks"])),
            each.get("without", ""),
        )
        for each in load("directml_rules.yaml")
    )


@cache
def by_origin() -> dict[str, list[tuple[int, bool, Query]]]:
    """Return number of the rule, side and query, by what the query begins with: `operator:sweep=…` or
    `operator:case=…`."""
    found: dict[str, list[tuple[int, bool, Query]]] = {}
    for number, rule in enumerate(rules()):
        for holds, queries in ((True, rule.holds), (False, rule.breaks)):
            for query in queries:
                found.setdefault(query.text.partition(";")[0], []).append((number, holds, query))
    return found


class Rules:
    """Collects the results of one target for the cases that rules name."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, bool, ObservedResult]] = Counter()
        self._examples: dict[tuple[int, bool, ObservedResult], str] = {}

    def add(self, result: Result) -> None:
        """Take one result of the target."""
        if inexpressible(result):
            return
        key = CaseKey.of(result.case)
        candidates = by_origin().get(f"{key.operator}:{key.origin}")
        if candidates is None:
            return
        observed = ObservedResult(
            result.validity, result.outcome, result.stage or "", result.error.class_ if result.error else ""
        )
        for number, holds in {
            (number, holds) for number, holds, query in candidates if query.matches(result.case)
        }:
            self._counts[number, holds, observed] += 1
            shortest = self._examples.get((number, holds, observed), result.case)
            self._examples[number, holds, observed] = min(
                shortest, result.case, key=lambda case: (len(case), case)
            )

    def tested(self) -> list[Tested]:
        """Return every rule with both of its sides."""
        return [
            Tested(rule, self._side(number, True), self._side(number, False))
            for number, rule in enumerate(rules())
        ]

    def _side(self, number: int, holds: bool) -> Side:
        found = {
            observed: count
            for (rule, side, observed), count in self._counts.items()
            if (rule, side) == (number, holds)
        }
        counts = dict(sorted(found.items(), key=lambda each: (-each[1], each[0].outcome.value, *each[0])))
        return Side(counts, {observed: self._examples[number, holds, observed] for observed in counts})
