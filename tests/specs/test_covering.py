"""Covering arrays with constraints: every tuple that a possible row can show is shown, and no row is impossible."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import pytest

from harness.specs.sweeps.covering import Row, covering

Judge = Callable[[Row], str | None]
ANY: Judge = lambda _row: None  # noqa: E731
RULES: dict[str, tuple[tuple[int, ...], Judge]] = {
    "no rule": ((3, 4, 2, 5), ANY),
    "one level": ((1, 4, 1, 3), ANY),
    "not both": ((3, 4, 2, 5), lambda row: "both" if row[0] == 2 and row[3] > 2 else None),
    "ordered": ((5, 5, 3), lambda row: "disorder" if row[0] > row[1] else None),
    "three at once": ((3, 3, 3, 3), lambda row: "alike" if row[0] == row[1] == row[2] else None),
    "never": ((2, 3), lambda row: "never" if row[1] == 2 else None),
    "a middle needs three": (
        (6, 4, 3, 3, 2),
        lambda row: (
            "no middle" if row[0] < 2 and row[1] == 1 else "empty" if row[2] == 0 and row[3] else None
        ),
    ),
}


def tuples(row: Row, strength: int) -> set[tuple[tuple[int, int], ...]]:
    return set(combinations(enumerate(row), strength))


def named(sizes: tuple[int, ...], places: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    every = [(factor, level) for factor, size in enumerate(sizes) for level in range(size)]
    return tuple(every[place] for place in places)


@pytest.mark.parametrize("strength", [1, 2, 3])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_every_possible_tuple_is_covered_and_what_is_impossible_is_told(
    name: str, seed: str, strength: int
) -> None:
    sizes, judge = RULES[name]
    strength = min(strength, len(sizes))
    found = covering(sizes, judge, seed, strength=strength)
    possible = [row for row in product(*map(range, sizes)) if judge(row) is None]
    wanted = set().union(*(tuples(row, strength) for row in possible))
    assert all(judge(row) is None for row in found.rows)
    assert set().union(*(tuples(row, strength) for row in found.rows)) == wanted
    every = set().union(*(tuples(row, strength) for row in product(*map(range, sizes))))
    assert {named(sizes, places) for places in found.refused} == every - wanted
    assert set(found.refused.values()) <= {judge(row) for row in product(*map(range, sizes))}


@pytest.mark.parametrize(
    "sizes", [(16, 9, 7, 6, 6, 4, 3, 3, 2, 2, 2, 2), (10, 6, 5, 4, 4, 3, 3, 2, 2), (8,) * 6]
)
def test_there_are_few_rows(sizes: tuple[int, ...]) -> None:
    """At least as many are needed as the two largest factors have pairs."""
    least = sizes[0] * sizes[1]
    assert least <= len(covering(sizes, ANY, "seed").rows) <= 1.5 * least


def test_the_same_seed_gives_the_same_rows_and_another_others() -> None:
    first, again, other = (covering((5, 4, 4, 4), ANY, seed).rows for seed in ("one", "one", "two"))
    assert first == again
    assert first != other


def test_rows_do_not_change_from_release_to_release() -> None:
    """The ids of cases follow from them."""
    sizes, judge = RULES["a middle needs three"]
    rows = covering(sizes, judge, "GatherElements:interactions").rows
    assert rows[:3] == [(0, 0, 2, 0, 1), (0, 2, 1, 2, 0), (0, 2, 2, 1, 1)]
    assert len(rows) == 36


def test_a_lower_strength_is_gone_on_from() -> None:
    sizes, judge = RULES["a middle needs three"]
    pairs = covering(sizes, judge, "seed")
    triples = covering(sizes, judge, "seed", strength=3, start=pairs)
    assert triples.rows[: len(pairs.rows)] == pairs.rows
    assert not any(set(pair) <= set(triple) for pair in pairs.refused for triple in triples.refused)


def test_a_row_with_a_level_that_stands_alone_shows_only_pairs_with_it() -> None:
    sizes, alone = (4, 3, 3, 2), {0, 4}  # the first level of the first two factors
    found = covering(sizes, ANY, "seed", alone=alone)
    shown: set[frozenset[int]] = set()
    starts = (0, 4, 7, 10)
    for row in found.rows:
        places = {start + level for start, level in zip(starts, row, strict=True)}
        hiding = places & alone
        shown |= {frozenset(pair) for pair in combinations(places, 2) if hiding <= set(pair)}
    owner = [0] * 4 + [1] * 3 + [2] * 3 + [3] * 2
    every = {frozenset((a, b)) for a, b in combinations(range(12), 2) if owner[a] != owner[b]}
    assert shown == every


def test_of_levels_that_break_rules_each_row_has_one() -> None:
    sizes, illegal = (4, 3, 3), {3, 6}  # the last level of the first two factors
    judge: Judge = lambda row: None if (row[0] == 3) + (row[1] == 2) == 1 else "breaks none, or two"  # noqa: E731
    found = covering(sizes, judge, "seed", alone=illegal, one_of=illegal)
    assert all((row[0] == 3) + (row[1] == 2) == 1 for row in found.rows)
    shown = set().union(*(tuples(row, 2) for row in found.rows))
    others = [(1, 0), (1, 1), *((2, n) for n in range(3))]
    assert {((0, 3), other) for other in others} <= shown
    assert found.refused == {}


def test_the_budget_bounds_the_rows_and_counts_the_tuples_that_are_left() -> None:
    sizes = (4, 4, 4)
    found = covering(sizes, ANY, "seed", budget=5)
    assert len(found.rows) == 5
    assert found.left == 3 * 16 - len(set().union(*(tuples(row, 2) for row in found.rows))) > 0
    assert covering(sizes, ANY, "seed", budget=1000).left == 0
    one_by_one = covering((3,), ANY, "seed", budget=2)
    assert (len(one_by_one.rows), one_by_one.left) == (2, 1)


@pytest.mark.parametrize(("sizes", "wanted"), [((), [()]), ((3,), [(0,), (1,), (2,)]), ((2, 0), [])])
def test_fewer_than_two_factors(sizes: tuple[int, ...], wanted: list[Row]) -> None:
    assert sorted(covering(sizes, ANY, "seed").rows) == wanted
    assert covering((2, 2), lambda _row: "nothing is possible", "seed").rows == []
