"""Finds planted defects again: 50 rules of up to three terms, drawn at random over the features of the
default specs."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from harness.results.rules.separation import Population
from harness.results.rules.terms import Term
from tests.planted import default_cases, draw, holds

SEED = 2026


def recovered(rule: tuple[Term, ...]) -> bool:
    """Say whether what is found is one conjunction of no more terms that holds for exactly the planted cases,
    of either validity."""
    cases = default_cases()
    planted = holds(cases.table, rule)
    for invalid in (False, True):
        population = cases.invalid == invalid
        failing = np.flatnonzero(planted & population)
        passing = np.flatnonzero(~planted & population)
        if not len(failing) or not len(passing):
            continue
        found = Population(cases.table, passing).separate(failing)
        (single, *more) = found.rules
        same = holds(cases.table, single.terms)[population] == planted[population]
        if more or not found.exact or not same.all() or len(single.terms) > len(rule):
            return False
    return True


@pytest.mark.parametrize(
    ("rules", "wanted", "lengths"),
    [(15, 13, {2, 3}), pytest.param(50, 45, {1, 2, 3}, marks=pytest.mark.slow)],
)
def test_planted_rules_are_found_again(rules: int, wanted: int, lengths: set[int]) -> None:
    planted = list(islice(draw(SEED), rules))
    assert {len(rule) for rule in planted} == lengths
    lost = [" and ".join(map(str, rule)) for rule in planted if not recovered(rule)]
    assert rules - len(lost) >= wanted, lost
