"""Covering arrays: every pair of alternatives that some possible row holds stands in a row that was taken."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import pytest

from harness.specs.covering import Row, covering

Rule = Callable[[Row], bool]
ANY: Rule = lambda _row: True  # noqa: E731
RULES: dict[str, tuple[tuple[int, ...], Rule]] = {
    "no rule": ((3, 4, 2, 5), ANY),
    "one alternative": ((1, 4, 1, 3), ANY),
    "not both": ((3, 4, 2, 5), lambda row: not (row[0] == 2 and row[3] > 2)),
    "ordered": ((5, 5, 3), lambda row: row[0] <= row[1]),
    "three at once": ((3, 3, 3, 3), lambda row: not (row[0] == row[1] == row[2])),
    "never": ((2, 3), lambda row: row[1] != 2),
}


def pairs(row: Row) -> set[tuple[int, int, int, int]]:
    return {(i, row[i], j, row[j]) for i, j in combinations(range(len(row)), 2)}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_every_possible_pair_is_covered(name: str, seed: str) -> None:
    sizes, possible = RULES[name]
    found = covering(sizes, possible, seed, 1000)
    rows = list(filter(possible, product(*map(range, sizes))))
    assert all(map(possible, found.rows))
    assert set().union(*map(pairs, found.rows)) == set().union(*map(pairs, rows))
    assert found.left == 0
    assert len(found.rows) <= max(a * b for a, b in combinations(sizes, 2)) + sum(sizes)
    everything = {
        (i, x, j, y)
        for i, j in combinations(range(len(sizes)), 2)
        for x in range(sizes[i])
        for y in range(sizes[j])
    }
    assert found.refused == len(everything - set().union(*map(pairs, rows)))


def test_the_same_seed_gives_the_same_rows_and_another_others() -> None:
    sizes = (4, 4, 4, 4, 4)
    first, again, other = (covering(sizes, ANY, seed, 1000).rows for seed in ("one", "one", "two"))
    assert first == again
    assert first != other
    assert len(first) < 45  # of 1,024


def test_the_budget_bounds_the_rows_and_counts_the_pairs_that_are_left() -> None:
    sizes = (4, 4, 4)
    found = covering(sizes, ANY, "seed", 5)
    assert len(found.rows) == 5
    assert found.left == 3 * 16 - len(set().union(*map(pairs, found.rows))) > 0
    assert covering(sizes, ANY, "seed", 1000).left == 0


@pytest.mark.parametrize(("sizes", "wanted"), [((), [()]), ((3,), [(0,), (1,), (2,)]), ((0,), [])])
def test_fewer_than_two_factors(sizes: tuple[int, ...], wanted: list[Row]) -> None:
    assert covering(sizes, ANY, "seed", 10).rows == wanted
    assert covering((3,), lambda row: row != (1,), "seed", 10).rows == [(0,), (2,)]
    assert (covering((3,), ANY, "seed", 2).rows, covering((3,), ANY, "seed", 2).left) == ([(0,), (1,)], 1)
