"""Finds what separates some rows of a feature table from others, in terms of the case features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from harness.results.rules.bitsets import Bits, pack, size, unpack
from harness.results.rules.feature_table import FeatureTable, Rows
from harness.results.rules.features import FIRST_INPUT
from harness.results.rules.search import (
    MOST_RULES,
    Problem,
    cheapest_conjunction,
    cover,
    interchangeable,
    without_noise,
)
from harness.results.rules.terms import Term, reading_order

FAR_FETCHED = 3.6
"""The cost from which one conjunction is held against several: two causes can look like one that takes many
terms to say."""
_ONE_MORE = 0.5
_TERMS = 4_000
"""Terms that several rules are made of, those that hold for the most failing rows: each has a bit for each row."""
_REMEMBERED = 32 << 20
"""Bytes of bits that a population remembers."""


class Rule(NamedTuple):
    """A conjunction; `failing` and `passing` count the rows for which it holds.

    `alternatives` says for each term which terms of other columns could stand in its place without any row
    changing sides: what the rows cannot tell apart, cheapest first, one a column.
    """

    terms: tuple[Term, ...]
    failing: int
    passing: int
    alternatives: tuple[tuple[Term, ...], ...]
    nearest: tuple[int | None, ...] = ()
    """For each term that is a threshold, the value nearest to it that still passes where the other terms hold."""


class Separation(NamedTuple):
    """Rules that separate failing from passing rows; `exact` if they are one conjunction that does so without
    exceptions.

    `missed` are failing rows for which no rule holds, `wrong` passing rows for which one does.
    """

    rules: tuple[Rule, ...]
    exact: bool
    missed: Rows
    wrong: Rows
    noise: bool = False
    """The exceptions are noise: so few beside what the rules hold for that no rule is told for them."""


def none() -> Separation:
    """Return the separation of no rows."""
    return Separation((), False, np.empty(0, np.intp), np.empty(0, np.intp))


class Population:
    """Passing rows that several groups of failing rows are held against; remembers the bits of terms."""

    def __init__(self, table: FeatureTable, rows: Rows) -> None:
        self.table = table
        self.rows = rows
        self._values = table.values(rows)
        self._bits: dict[Term, Bits] = {}

    def bits(self, term: Term) -> Bits:
        """Return for which rows a term holds."""
        found = self._bits.get(term)
        if found is None:
            found = pack(self.table.mask(term, self.rows))
            if len(self._bits) * found.nbytes < _REMEMBERED:
                self._bits[term] = found
        return found

    def separate(self, failing: Rows, most: int = MOST_RULES) -> Separation:
        """Return the rules that hold for the failing rows and not for the rows of the population."""
        own = self.table.values(failing)
        terms = list(self.table.candidates(own, self._values))
        # bits of all of them can take hundreds of MiB
        held = np.array([np.count_nonzero(self.table.mask(term, failing)) for term in terms], np.intp)
        common = [terms[place] for place in np.flatnonzero(held == len(failing))]
        problem = self._problem(failing, common)
        if not len(self.rows):
            return self._separation(failing, problem, common, [()])
        whole = cheapest_conjunction(problem, problem.all_failing)
        single = None if whole is None else self._separation(failing, problem, common, [whole])
        if single is not None and _cost(single) < FAR_FETCHED:
            return single
        del problem  # before the larger one is made
        terms = [terms[place] for place in np.sort(np.argsort(-held, kind="stable")[:_TERMS])]
        problem = self._problem(failing, terms)
        rules = cover(problem, most)
        several = self._separation(failing, problem, terms, rules)
        if single is not None and (
            len(several.missed) or len(several.wrong) or _cost(several) >= _cost(single)
        ):
            return single
        if len(several.missed) or len(several.wrong):
            fewer = without_noise(problem, rules)
            if fewer is not None:
                return self._separation(failing, problem, terms, fewer)._replace(noise=True)
        return several

    def _problem(self, failing: Rows, terms: list[Term]) -> Problem:
        of_failing = (pack(self.table.mask(term, failing)) for term in terms)
        return Problem(
            np.array([term.cost for term in terms]),
            _stacked(of_failing, len(terms), len(failing)),
            _stacked(map(self.bits, terms), len(terms), len(self.rows)),
            len(failing),
            len(self.rows),
        )

    def _separation(
        self, failing: Rows, problem: Problem, terms: list[Term], rules: Sequence[tuple[int, ...]]
    ) -> Separation:
        made = []
        hit, wrong = np.zeros(len(failing), np.bool_), np.zeros(len(self.rows), np.bool_)
        for numbers in rules:
            ordered = tuple(sorted(numbers, key=lambda number: reading_order(terms[number])))
            holds, against = problem.extension(ordered)
            alternatives = tuple(
                _telling(terms[number], (terms[other] for other in interchangeable(problem, ordered, place)))
                for place, number in enumerate(ordered)
            )
            made.append(
                Rule(
                    tuple(terms[number] for number in ordered),
                    int(size(holds)),
                    int(size(against)),
                    alternatives,
                    self._nearest(problem, ordered, terms),
                )
            )
            hit |= unpack(holds, len(failing))
            wrong |= unpack(against, len(self.rows))
        exact = len(made) == 1 and bool(hit.all()) and not wrong.any()
        return Separation(tuple(made), exact, failing[~hit], self.rows[wrong])

    def _nearest(
        self, problem: Problem, rule: Sequence[int], terms: Sequence[Term]
    ) -> tuple[int | None, ...]:
        found: list[int | None] = []
        for place, number in enumerate(rule):
            near = None
            if terms[number].relation in (">=", "<="):
                passing = problem.extension([*rule[:place], *rule[place + 1 :]])[1]
                near = self.table.nearest_outside(terms[number], self.rows[unpack(passing, len(self.rows))])
            found.append(near)
        return tuple(found)


def _stacked(sets: Iterable[Bits], number: int, rows: int) -> Bits:
    """Return sets of rows as one array, one by one: shape (number, words)."""
    found = np.empty((number, -(-rows // 64)), np.uint64)
    for place, each in enumerate(sets):
        found[place] = each
    return found


def _cost(separation: Separation) -> float:
    return sum(_ONE_MORE + sum(term.cost for term in rule.terms) for rule in separation.rules) - _ONE_MORE


def _telling(term: Term, others: Iterable[Term]) -> tuple[Term, ...]:
    """Drop terms with equal columns, keeping the cheapest one of each."""
    found: dict[str, Term] = {}
    for other in others:
        if other.column not in (term.column, *FIRST_INPUT):
            found.setdefault(other.column, other)
    return tuple(found.values())
