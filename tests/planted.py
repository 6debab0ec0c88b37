"""Hidden rules to find again: drawn at random over the features of the cases of the default specs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model.case import Validity
from harness.results.rules.feature_table import FeatureTable
from harness.results.rules.features import features
from harness.results.rules.terms import Term
from tests.plans import DEEPEST, plan_of

FEWEST = 10


class Cases(NamedTuple):
    """All specified cases of the default specs."""

    ids: list[str]
    invalid: NDArray[np.bool_]
    table: FeatureTable


@cache
def default_cases() -> Cases:
    ids, invalid, table = [], [], FeatureTable()
    for case in plan_of(*DEEPEST):
        if case.validity is not Validity.UNSPECIFIED:
            ids.append(case.id)
            invalid.append(case.validity is Validity.INVALID)
            table.add(case.id, case.levels["directml"])
    return Cases(ids, np.array(invalid), table)


def holds(table: FeatureTable, rule: tuple[Term, ...]) -> NDArray[np.bool_]:
    """Say for every case whether all terms hold."""
    rows = np.arange(len(table))
    return np.logical_and.reduce([table.mask(term, rows) for term in rule])


def draw(seed: int) -> Iterator[tuple[Term, ...]]:
    """Yield rules of one to three terms without end; each holds for at least `FEWEST` cases and at most half,
    and needs every term."""
    cases = default_cases()
    rng = random.Random(seed)
    values = cases.table.values(np.arange(len(cases.ids)))
    every = [term for term in cases.table.candidates(values, values) if term.column != "level"]
    while True:
        of = features(rng.choice(cases.ids))
        holding: dict[str, list[Term]] = {}
        for term in every:
            if term.holds(of):
                holding.setdefault(term.column, []).append(term)
        rule = tuple(
            rng.choice(holding[column]) for column in rng.sample(sorted(holding), rng.choice((1, 2, 3)))
        )
        number = int(holds(cases.table, rule).sum())
        without = (tuple(term for term in rule if term is not left_out) for left_out in rule)
        if FEWEST <= number <= len(cases.ids) // 2 and all(
            not rest or holds(cases.table, rest).sum() > number for rest in without
        ):
            yield rule
