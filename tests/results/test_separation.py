"""Finds planted defects again: 50 rules of up to three terms, drawn at random over the features of the
default specs."""

from __future__ import annotations

import tracemalloc
from itertools import islice

import numpy as np
import pytest

from harness.results.rules import separation
from harness.results.rules.feature_table import FeatureTable
from harness.results.rules.separation import Population
from harness.results.rules.terms import Term
from tests.planted import FEWEST, default_cases, draw, holds

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "wanted", "lengths"),
    [(7, 6, {1, 2, 3}), pytest.param(50, 45, {1, 2, 3}, marks=pytest.mark.slow)],
)
def test_planted_rules_are_found_again(rules: int, wanted: int, lengths: set[int]) -> None:
    planted = list(islice(draw(SEED), rules))
    assert {len(rule) for rule in planted} == lengths
    lost = [" and ".join(map(str, rule)) for rule in planted if not recovered(rule)]
    assert rules - len(lost) >= wanted, lost


QUARTER = 4
"""The parts of a disjunction hold for at most such a part of the cases: a defect does not fail everywhere."""


def given_back(parts: list[tuple[Term, ...]], noise: float, rng: np.random.Generator) -> bool:
    """Say whether the rules that are found hold for exactly the cases of the planted ones, of either validity.

    Of the planted failures `noise` pass, and as many other cases fail. What a part alone holds for is left out
    where that is fewer than `FEWEST` cases, which are listed rather than told by a rule.
    """
    cases = default_cases()
    each = [holds(cases.table, part) for part in parts]
    for invalid in (False, True):
        kept = cases.invalid == invalid
        for number, own in enumerate(each):
            alone = (
                own & ~np.logical_or.reduce([np.zeros_like(own), *each[:number], *each[number + 1 :]]) & kept
            )
            if alone.sum() < FEWEST:
                kept = kept & ~alone
        rows = np.flatnonzero(kept)
        true = np.logical_or.reduce(each)[rows]
        failing = true.copy()
        flipped = min(round(int(true.sum()) * noise), int((~true).sum()) // 2)
        failing[rng.choice(np.flatnonzero(true), flipped, replace=False)] = False
        failing[rng.choice(np.flatnonzero(~true), flipped, replace=False)] = True
        if true.sum() < FEWEST or failing.all():
            continue
        found = Population(cases.table, rows[~failing]).separate(rows[failing])
        said = np.logical_or.reduce([holds(cases.table, rule.terms)[rows] for rule in found.rules])
        if not (said == true).all():
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "noise", "wanted"), [(1, 0.0, 19), (2, 0.0, 15), (1, 0.02, 15)], ids=["one", "either", "noise"]
)
def test_hidden_rules_with_disjunctions_and_noise_are_given_back(
    parts: int, noise: float, wanted: int
) -> None:
    cases, rng = default_cases(), np.random.default_rng(SEED)
    rules = (
        rule for rule in draw(SEED + parts) if holds(cases.table, rule).sum() * QUARTER <= len(cases.ids)
    )
    hidden = [[next(rules) for _ in range(parts)] for _ in range(20)]
    lost = [each for each in hidden if not given_back(each, noise, rng)]
    print(f"{len(hidden) - len(lost)} of {len(hidden)}", lost)
    assert len(hidden) - len(lost) >= wanted, lost


OUTLIERS = (-(2**63), -(2**63) + 1, 2**63 - 1, 10**18)


@pytest.mark.parametrize("outlier", [*OUTLIERS, 2**63, "a word"])
def test_an_outlier_does_not_cost_a_column_its_order(outlier: int | str) -> None:
    table = FeatureTable()
    values = [*range(-6, 7), outlier]
    for value in values:
        table.add(f"GatherElements@13:case=x{value};data=float32[2,2];axis={value}", "2_1")
    failing = np.array(
        [row for row, value in enumerate(values) if isinstance(value, int) and 3 <= value <= 6]
    )
    passing = np.setdiff1d(np.arange(len(values)), failing)
    found = Population(table, passing).separate(failing)
    (rule,) = found.rules
    assert found.exact
    said = {str(term) for term in rule.terms} | {str(each) for of in rule.alternatives for each in of}
    assert {"axis>=3", "axis<=6"} & said or "axis>=3" in {str(term) for term in rule.terms}
    whole = table.mask(Term("axis", ">=", 3), np.arange(len(values)))
    assert whole.tolist() == [isinstance(value, int) and value >= 3 for value in values]


def test_noise_is_named_and_no_rule_is_told_for_it() -> None:
    table = FeatureTable()
    ids = [
        f"Round@22:case=x{size};X={dtype}[{size}]"
        for size in range(1, 301)
        for dtype in ("float16", "float32", "float64")
    ]
    for each in ids:
        table.add(each, "2_1")
    true = np.array(["float16" in each for each in ids])
    failing = true.copy()
    failing[[0, 300, 600]] = False  # of float16, which is every third
    failing[[1, 100, 701]] = True
    found = Population(table, np.flatnonzero(~failing)).separate(np.flatnonzero(failing))
    (rule,) = found.rules
    assert [str(term) for term in rule.terms] in (
        ["dtype=float16"],
        ["X=float16"],
        ["bits<=16"],
        ["X.bits<=16"],
    )
    assert (found.noise, found.exact, len(found.missed), len(found.wrong)) == (True, False, 3, 3)
    exact = Population(table, np.flatnonzero(~true)).separate(np.flatnonzero(true))
    assert (exact.noise, exact.exact) == (False, True)


def test_beside_a_threshold_stands_the_value_that_still_passes() -> None:
    """Only of cases for which the other terms hold: float16 passes at a size of 40 and fails from 50 on."""
    table = FeatureTable()
    ids = [
        f"Round@22:case=x{size};X={dtype}[{size}]"
        for size in (10, 20, 30, 40, 45, 50, 60, 70)
        for dtype in ("float16", "float32", "float64")
        if (size, dtype) != (45, "float16")
    ]
    for each in ids:
        table.add(each, "2_1")
    true = np.array(
        [size >= 50 and "float16" in each for each in ids for size in [int(each.split("[")[1][:-1])]]
    )
    (rule,) = Population(table, np.flatnonzero(~true)).separate(np.flatnonzero(true)).rules
    told = dict(zip(map(str, rule.terms), rule.nearest, strict=True))
    (threshold,) = (term for term in rule.terms if term.relation == ">=")
    assert (threshold.value, told[str(threshold)]) == (50, 40)
    assert [near for term, near in told.items() if term != str(threshold)] == [None] * (len(told) - 1)
    below = np.array([int(each.split("[")[1][:-1]) <= 30 for each in ids])
    (rule,) = Population(table, np.flatnonzero(~below)).separate(np.flatnonzero(below)).rules
    assert (rule.terms[0].relation, rule.nearest) == ("<=", (40,))


@pytest.mark.slow
def test_memory_grows_with_the_terms_of_rules_and_not_with_all_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failing row has a term of its own."""
    monkeypatch.setattr(separation, "_TERMS", 100)
    table = FeatureTable()
    for number in range(6_000):
        table.add(f"Abs@13:case=c{number};X=float32[3]", "1_0")
        table.add(f"Abs@13:case=p{number};X=float32[3]", "1_0")
    passing, failing = np.arange(1, 12_000, 2), np.arange(0, 12_000, 2)
    population = Population(table, passing)
    tracemalloc.start()
    try:
        population.separate(failing)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20  # a bit for each failing row and term is 4.5 MB alone
