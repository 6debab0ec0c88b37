"""The search for rules: exact on small tables against trying every conjunction, and sound on any."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.results.rules.bitsets import pack, size, unpack
from harness.results.rules.search import (
    EXCEPTION,
    MOST_TERMS,
    Problem,
    cheapest_conjunction,
    cover,
    interchangeable,
)

TABLES = st.tuples(
    st.integers(1, 7), st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**32 - 1), st.floats(0.3, 0.95)
)


def problem(terms: int, failing: int, passing: int, seed: int, dense: float) -> Problem:
    rng = np.random.default_rng(seed)
    hold = rng.random((terms, failing)) < dense
    hold[: terms // 2 + 1] |= rng.random((terms // 2 + 1, 1)) < 0.7
    against = rng.random((terms, passing)) < dense / 2
    costs = np.round(1 + rng.random(terms), 2)
    return Problem(
        costs, np.stack(list(map(pack, hold))), np.stack(list(map(pack, against))), failing, passing
    )


def by_trying(given_problem: Problem) -> float | None:
    """Return the least cost of a conjunction that holds for all failing rows and no passing one."""
    best = None
    terms = range(len(given_problem.costs))
    for number in range(1, MOST_TERMS + 1):
        for rule in combinations(terms, number):
            failing, passing = given_problem.extension(rule)
            if size(failing) == given_problem.failing_rows and size(passing) == 0:
                cost = sum(given_problem.costs[list(rule)])
                best = cost if best is None else min(best, cost)
    return best


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_bits_keep_every_row(rows: list[bool]) -> None:
    truth = np.array(rows, np.bool_)
    assert unpack(pack(truth), len(rows)).tolist() == rows
    assert size(pack(truth)) == sum(rows)


@settings(deadline=None)
@given(TABLES)
def test_one_conjunction_is_the_cheapest_there_is(table: tuple[int, int, int, int, float]) -> None:
    posed = problem(*table)
    found = cheapest_conjunction(posed, posed.all_failing)
    best = by_trying(posed)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        failing, passing = posed.extension(found)
        assert size(failing) == posed.failing_rows
        assert size(passing) == 0
        assert abs(sum(posed.costs[list(found)]) - best) < 1e-6


@settings(deadline=None)
@given(TABLES)
def test_a_cover_pays_and_no_rule_of_it_is_needless(table: tuple[int, int, int, int, float]) -> None:
    posed = problem(*table)
    rules = cover(posed)
    hit, wrong = np.zeros_like(posed.all_failing), np.zeros_like(posed.all_passing)
    for rule in rules:
        failing, passing = posed.extension(rule)
        others = [posed.extension(other)[0] for other in rules if other is not rule]
        assert len(rules) == 1 or size(failing & ~np.bitwise_or.reduce(others)) > 0
        hit, wrong = hit | failing, wrong | passing
    cost = sum(posed.costs[list(rule)].sum() for rule in rules)
    assert (
        cost + EXCEPTION * (posed.failing_rows - size(hit) + size(wrong))
        <= EXCEPTION * posed.failing_rows + 1e-6
    )


@settings(deadline=None)
@given(TABLES)
def test_a_term_that_can_stand_for_another_moves_no_row(table: tuple[int, int, int, int, float]) -> None:
    posed = problem(*table)
    for rule in cover(posed):
        for place in range(len(rule)):
            for other in interchangeable(posed, rule, place):
                exchanged = [*rule[:place], other, *rule[place + 1 :]]
                assert all(
                    (a == b).all()
                    for a, b in zip(posed.extension(exchanged), posed.extension(rule), strict=True)
                )


def test_two_causes_are_two_rules() -> None:
    failing = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]], np.bool_)
    passing = np.array([[0] * 9, [0] * 9, [1] * 9], np.bool_)
    posed = Problem(np.ones(3), np.stack(list(map(pack, failing))), np.stack(list(map(pack, passing))), 6, 9)
    assert cheapest_conjunction(posed, posed.all_failing) is None
    assert sorted(cover(posed)) == [(0,), (1,)]


def test_one_exception_is_cheaper_than_a_list() -> None:
    failing = np.array([[1] * 40 + [0], [1] * 41], np.bool_)
    passing = np.array([[0] * 29 + [1], [1] * 30], np.bool_)
    posed = Problem(
        np.ones(2), np.stack(list(map(pack, failing))), np.stack(list(map(pack, passing))), 41, 30
    )
    assert cover(posed) == ((0,),)
