"""Whether the conditions of expectations are tried on both sides.

An entry claims that each condition of its queries matters: `GatherND:axis=1;data=float16` speaks of float16
alone because other types do otherwise. That is tried if there is a case that lacks this condition and has all
others. Where there is none, the query without the condition selects the same cases: the condition says more
than any case shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.query import Query
from harness.specs.expand import expand
from harness.specs.expectations.target_expectations import Located, of_models
from harness.specs.reading.load import LoadedSpec

Met = NDArray[np.bool_]


class Conditions:
    """Which conditions of queries the cases of each operator meet; a condition that many queries have is asked once.

    `ids` gives the ids of an operator's cases, and is called when they are first needed.
    """

    def __init__(self, operators: Iterable[str], ids: Callable[[str], Sequence[str]]) -> None:
        self._ids = ids
        self._cases: dict[str, Sequence[str] | None] = dict.fromkeys(operators)
        self._met: dict[tuple[str, str], Met] = {}

    @classmethod
    def thorough(cls, specs: Sequence[LoadedSpec]) -> Conditions:
        """Of the cases of a thorough run."""

        def ids(operator: str) -> Sequence[str]:
            own = [spec for spec in specs if spec.model.operator == operator]
            return [case.id for case in expand(own, thorough=True)]

        return cls({spec.model.operator for spec in specs}, ids)

    def operators(self, query: Query) -> list[str]:
        """Return the operators of whose cases a query speaks."""
        return [operator for operator in self._cases if query.speaks_of(operator)]

    def cases(self, operator: str) -> Sequence[str]:
        """Return the ids of an operator's cases."""
        found = self._cases[operator]
        if found is None:
            found = self._cases[operator] = self._ids(operator)
        return found

    def met(self, query: Query, operator: str) -> Met:
        """Say which conditions of a query the cases of an operator meet, shape (conditions, cases)."""
        cases = self.cases(operator)
        rows = []
        for condition, holds in query.conditions.items():
            found = self._met.get((operator, condition))
            if found is None:
                found = np.fromiter((holds(case) for case in cases), np.bool_, len(cases))
                self._met[operator, condition] = found
            rows.append(found)
        return np.array(rows, np.bool_).reshape(len(rows), len(cases))

    def select(self, query: Query, operator: str) -> Met:
        """Say which cases of an operator a query selects, shape (cases,)."""
        return np.asarray(self.met(query, operator).all(axis=0))


class Neighbours(NamedTuple):
    """The cases of a query's operators: whether it selects any, and by condition the cases that lack that condition
    alone."""

    selects: bool
    lacking: Mapping[str, Sequence[str]]

    def __or__(self, other: Neighbours) -> Neighbours:
        return Neighbours(self.selects or other.selects, {**other.lacking, **self.lacking})


def untried(located: Located, default: Conditions, thorough: Conditions) -> Iterator[str]:
    """Yield the untried parts of an entry: alternatives and exceptions that select no case, and conditions that no
    case lacks alone.

    `default` has the cases of a default run, `thorough` those of a thorough one, which is asked where the others do
    not tell.
    """
    for query in located.queries:
        if of_models(query):
            continue
        found = _neighbours(query, default)
        if not found.selects or not found.lacking.keys() >= query.conditions.keys():
            found |= _neighbours(query, thorough)
        if not found.selects:
            if len(located.queries) > 1:  # of one alone, `lint` says that the entry matches none
                yield located.problem(f"{query.text!r} matches no case; remove it")
            continue
        for condition in query.conditions:
            if condition not in found.lacking and located.entry.one_sided is None:
                yield located.problem(
                    f"{condition!r} of {query.text!r} is tried on one side only, no case lacks it alone; "
                    "drop it, add a case, or say in 'one_sided' why there can be none"
                )
    for query in located.exceptions:
        if not _excepts(located, query, default) and not _excepts(located, query, thorough):
            yield located.problem(f"'unless' {query.text!r} excepts no case that 'match' selects; remove it")


def not_separating(
    located: Located, ran: Conditions, otherwise: Callable[[str], bool | None]
) -> Iterator[str]:
    """Yield the conditions that a run contradicts: all cases that lack one alone end as the entry expects.

    `otherwise` says whether a case ended otherwise on a target that the entry speaks of; None where that is
    not known.
    """
    for query in located.queries:
        for condition, cases in _neighbours(query, ran).lacking.items():
            others = [case for case in cases if not located.matches(case)]
            known = [ended for case in others if (ended := otherwise(case)) is not None]
            if known and not any(known):
                yield located.problem(
                    f"{condition!r} of {query.text!r} separates nothing: what lacks it alone ends in "
                    f"{located.entry.expect.value} too ({len(known):,} of {len(known):,}), for example {others[0]}"
                )


def _excepts(located: Located, exception: Query, of: Conditions) -> bool:
    """Say whether an exception selects a case that a query of its entry selects."""
    return any(
        bool((of.select(exception, operator) & of.select(query, operator)).any())
        for query in located.queries
        for operator in of.operators(query)
        if exception.speaks_of(operator)
    )


def _neighbours(query: Query, of: Conditions) -> Neighbours:
    lacking: dict[str, list[str]] = {}
    selects = False
    for operator in of.operators(query):
        met = of.met(query, operator)
        number = met.sum(axis=0)
        selects = selects or bool((number == len(met)).any())
        alone = number == len(met) - 1
        for condition, row in zip(query.conditions, met, strict=True):
            places = np.flatnonzero(alone & ~row).tolist()
            if places:
                lacking.setdefault(condition, []).extend(of.cases(operator)[place] for place in places)
    return Neighbours(selects, lacking)
