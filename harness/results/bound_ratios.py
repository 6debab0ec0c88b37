"""Measures how near the results of a run came to their bounds, by operator, target and element type."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from harness.model.facets import Facets, dtype_key
from harness.model.result import Accuracy, Result
from harness.model.verdict import Outcome


class Nearness(NamedTuple):
    """`ratio` is the largest error divided by its bound, of `example`; `ulp` the largest error in units of
    the last place.

    `results` counts what was held against a bound, `outside` what was not within it. Of `unclaimed` results
    nothing was claimed: they test nothing and count in no ratio.
    """

    dtypes: tuple[str, ...]
    ratio: float
    ulp: float
    results: int
    outside: int
    unclaimed: int
    example: str

    def join(self, other: Nearness) -> Nearness:
        """Take two together."""
        worse = max(self, other, key=lambda each: each.ratio)
        return Nearness(
            tuple(sorted({*self.dtypes, *other.dtypes}, key=dtype_key)),
            worse.ratio,
            max(self.ulp, other.ulp),
            self.results + other.results,
            self.outside + other.outside,
            self.unclaimed + other.unclaimed,
            worse.example or self.example or other.example,
        )


class NearnessRow(NamedTuple):
    """One operator on one target: all its element types, and the one with the largest ratio."""

    operator: str
    target: str
    all: Nearness
    worst: str


class Nearnesses:
    """Collects the accuracy of results as they stream by."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Nearness] = {}

    def add(self, result: Result, read: Facets, number: int = 1) -> None:
        """Take one result, or `number` that come no nearer; those without a bound say nothing."""
        near = result.accuracy
        if not isinstance(near, Accuracy):
            return
        outside = result.outcome is Outcome.MISMATCH
        example = result.case if near.claims else ""
        one = Nearness(
            (read.dtype,),
            near.ratio if near.claims else 0.0,
            near.ulp,
            number,
            number * outside,
            number * (not near.claims),
            example,
        )
        key = result.operator, result.target, read.dtype
        before = self._found.get(key)
        self._found[key] = one if before is None else before.join(one)

    def rows(self, targets: list[str]) -> list[NearnessRow]:
        """Return a row for each operator and target that has bounds, in the order of the targets."""
        joined: dict[tuple[str, str], list[Nearness]] = {}
        for (operator, target, _), found in sorted(self._found.items()):
            joined.setdefault((operator, target), []).append(found)
        order = {target: place for place, target in enumerate(targets)}
        rows = []
        for (operator, target), each in joined.items():
            worst = max(each, key=lambda found: found.ratio)
            rows.append(NearnessRow(operator, target, reduce(Nearness.join, each), worst.dtypes[0]))
        return sorted(rows, key=lambda row: (row.operator, order.get(row.target, len(order))))


def in_words(near: Accuracy) -> str:
    """Say how near one result came: `error 0.31 of its bound, 1.5 ULP; nothing claimed of 2 of 12
    elements`."""
    if not near.claims:
        return f"nothing is claimed of its {near.compared:,} elements"
    unclaimed = (
        f"; nothing claimed of {near.unclaimed:,} of {near.compared:,} elements" if near.unclaimed else ""
    )
    return f"error {ratio_text(near.ratio)} of its bound, {ulp_text(near.ulp)}{unclaimed}"


def ulp_text(ulp: float) -> str:
    """Write an error in units of the last place; from 2**53 on no digit of any type is right."""
    return f"{ulp:.2g} ULP" if ulp < 2**53 else "no digit right"


def ratio_text(ratio: float) -> str:
    """Write a ratio in two digits; one that is not exactly 1 is never written as 1: `0.31`, `0.999`, `12`,
    `1.0002`."""
    if ratio > 1e30:
        return "another number"
    for digits in range(2, 18):
        text = f"{ratio:.{digits}g}"
        if ratio == 1 or float(text) != 1:
            return text
    return text
