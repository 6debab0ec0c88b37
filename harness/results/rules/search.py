"""Finds rules: the cheapest conjunctions of terms that hold for failing rows and for no passing row.

One conjunction for all failing rows is searched exactly: only terms that hold for every failing row can be in
it, each passing row must be excluded by one of them, and the cheapest such choice is a minimum hitting set,
found by branch and bound over at most `MOST_TERMS` terms. Where none exists, several conjunctions are chosen
greedily (weighted set cover), each by a beam search and then made as short as the exact search can for the
rows that it covers; a row on the wrong side costs `EXCEPTION`, so that a short rule with few exceptions beats
a long list. This module knows rows and terms alone, and nothing of what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from harness.results.rules.bitsets import Bits, size, unpack

MOST_TERMS = 4
MOST_RULES = 8
EXCEPTION = 2.0
"""What one row on the wrong side costs; a term costs about 1."""
NOISE = 0.025
"""Exceptions on either side, as a part of the failing rows, that are noise beside rules that hold for the rest."""
_FEW = 5
"""A rule for no more rows than that, which no other rule covers, is a list of exceptions where there is noise."""
_BEAM = 16
_SAMPLE = 1 << 10
"""Words of 64 passing rows that the beam search looks at, evenly spread; what it finds is then counted on all
rows."""
_STEPS = 200_000
"""Nodes of the exact search after which the best choice so far is taken."""
_CELLS = 1 << 22
"""Terms times passing rows that are unpacked at once, a byte each."""


@dataclass(frozen=True)
class Problem:
    """Rows and terms: `failing` and `passing` have one row of bits a term, `costs` one number a term."""

    costs: NDArray[np.float64]
    failing: Bits
    passing: Bits
    failing_rows: int
    passing_rows: int
    weight: float = 1.0
    """How many rows one passing row stands for."""

    @cached_property
    def all_failing(self) -> Bits:
        return _full(self.failing_rows)

    @cached_property
    def all_passing(self) -> Bits:
        return _full(self.passing_rows)

    def sample(self) -> Problem:
        """Return the same problem with at most about `64 * _SAMPLE` passing rows."""
        step = -(-self.passing.shape[1] // _SAMPLE)
        if step <= 1:
            return self
        words = np.ascontiguousarray(self.passing[:, ::step])
        last = (self.passing.shape[1] - 1) % step == 0
        rows = words.shape[1] * 64 - (-self.passing_rows % 64 if last else 0)
        return Problem(
            self.costs, self.failing, words, self.failing_rows, rows, weight=self.passing_rows / rows
        )

    def extension(self, rule: Sequence[int]) -> tuple[Bits, Bits]:
        """Return the failing and the passing rows for which every term of a rule holds."""
        failing, passing = self.all_failing, self.all_passing
        for term in rule:
            failing, passing = failing & self.failing[term], passing & self.passing[term]
        return failing, passing


def cheapest_conjunction(problem: Problem, covered: Bits) -> tuple[int, ...] | None:
    """Return the cheapest conjunction that holds for all `covered` rows and for no passing row, None where
    `MOST_TERMS` terms cannot."""
    candidates = np.flatnonzero(size(problem.failing & covered) == size(covered))
    candidates = _undominated(problem, candidates)
    if not len(candidates):
        return None
    excluded = _patterns(problem, candidates)
    if 0 in excluded:
        return None
    chosen = _hit(_minimal(excluded), problem.costs[candidates].tolist())
    return None if chosen is None else tuple(int(candidates[place]) for place in chosen)


def interchangeable(problem: Problem, rule: Sequence[int], place: int) -> list[int]:
    """Return the terms that could stand in a place of a rule without any row changing sides, cheapest
    first."""
    failing, passing = problem.extension([*rule[:place], *rule[place + 1 :]])
    own_failing, own_passing = problem.extension(rule)
    same = ((problem.failing & failing) == own_failing).all(axis=1) & (
        (problem.passing & passing) == own_passing
    ).all(axis=1)
    found = [int(term) for term in np.flatnonzero(same) if term not in rule]
    return sorted(found, key=lambda term: (problem.costs[term], term))


def _full(rows: int) -> Bits:
    bits = np.full(-(-rows // 64), ~np.uint64(0), np.uint64)
    if rows % 64:
        bits[-1] = np.uint64((1 << rows % 64) - 1)
    return bits


def _undominated(problem: Problem, candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Leave out terms that exclude no passing row, or nothing that a term of no greater cost does not exclude
    as well."""
    held = problem.passing[candidates]
    holds = size(held)
    order = sorted(
        np.flatnonzero(holds < problem.passing_rows).tolist(),
        key=lambda place: (problem.costs[candidates[place]], holds[place], candidates[place]),
    )
    kept: list[int] = []
    narrower = np.empty((len(order), held.shape[1]), np.uint64)
    for place in order:
        if kept and bool(((narrower[: len(kept)] & ~held[place]) == 0).all(axis=1).any()):
            continue
        narrower[len(kept)] = held[place]
        kept.append(place)
    return candidates[kept]


def _patterns(problem: Problem, candidates: NDArray[np.intp]) -> set[int]:
    """Return which candidates exclude a passing row, as a bit mask, once for all rows that the same ones
    exclude."""
    found: set[bytes] = set()
    words = max(1, _CELLS // 64 // len(candidates))
    for start in range(0, problem.passing.shape[1], words):
        block = problem.passing[candidates, start : start + words]
        rows = min(problem.passing_rows - start * 64, block.shape[1] * 64)
        excluded = ~np.stack([unpack(bits, rows) for bits in np.ascontiguousarray(block)])
        packed = np.ascontiguousarray(np.packbits(excluded, axis=0, bitorder="little").T)
        found.update(np.unique(packed.view(f"V{packed.shape[1]}")).tolist())
    return {int.from_bytes(bytes(mask), "little") for mask in found}


def _minimal(masks: set[int]) -> list[int]:
    """Leave out the masks that contain another: hitting that one hits them."""
    kept: list[int] = []
    for mask in sorted(masks, key=lambda mask: (mask.bit_count(), mask)):
        if not any(smaller & mask == smaller for smaller in kept):
            kept.append(mask)
    return kept


def _hit(masks: list[int], costs: list[float]) -> tuple[int, ...] | None:
    """Return the cheapest set of at most `MOST_TERMS` places that meets every mask."""
    best: tuple[float, tuple[int, ...]] | None = None
    cheapest = min(costs)
    steps = 0

    def search(left: list[int], chosen: tuple[int, ...], cost: float, banned: int) -> None:
        nonlocal best, steps
        steps += 1
        if not left:
            ordered = tuple(sorted(chosen))
            if best is None or (cost, ordered) < best:
                best = cost, ordered
            return
        if (
            len(chosen) == MOST_TERMS
            or steps > _STEPS
            or (best is not None and cost + cheapest > best[0] + 1e-9)
        ):
            return
        narrowest = min((mask & ~banned for mask in left), key=int.bit_count)
        for place in sorted(_places(narrowest), key=lambda place: (costs[place], place)):
            search(
                [mask for mask in left if not mask >> place & 1],
                (*chosen, place),
                round(cost + costs[place], 6),
                banned,
            )
            banned |= 1 << place

    search(masks, (), 0.0, 0)
    return None if best is None else best[1]


def _places(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def cover(problem: Problem, most: int = MOST_RULES) -> tuple[tuple[int, ...], ...]:
    """Choose conjunctions one by one, each the one that pays most for rows not covered yet; none where
    listing the rows is cheaper."""
    left = problem.all_failing
    sample = problem.sample()
    apart = _apart(sample)
    sample = replace(
        sample, costs=sample.costs[apart], failing=sample.failing[apart], passing=sample.passing[apart]
    )
    rules: list[tuple[int, ...]] = []
    while len(rules) < most and size(left):
        best = _best(sample, left)
        if best is None:
            break
        rule = tuple(int(apart[place]) for place in best)
        covered, wrong = problem.extension(rule)
        if not size(wrong):
            rule = cheapest_conjunction(problem, covered & left) or rule
        elif EXCEPTION * (int(size(covered & left)) - int(size(wrong))) <= sum(
            problem.costs[term] for term in rule
        ):
            break
        rules.append(rule)
        left = left & ~problem.extension(rule)[0]
    return tuple(_needed(problem, _exactly(problem, rules, most)))


def _apart(problem: Problem) -> NDArray[np.intp]:
    """Return the cheapest of the terms that hold for the same rows, of all such."""
    found: dict[bytes, int] = {}
    for term in np.argsort(problem.costs, kind="stable").tolist():
        digest = blake2b(problem.failing[term], digest_size=16)
        digest.update(problem.passing[term])
        found.setdefault(digest.digest(), term)
    return np.array(sorted(found.values()), np.intp)


def _exactly(problem: Problem, rules: list[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """Replace each rule that also holds for passing rows by an exact one for the rows that it alone covers, and add
    one for the rows that none covers, where such rules exist."""
    made = list(rules)
    for place, rule in enumerate(made):
        covered, wrong = problem.extension(rule)
        if size(wrong):
            others = _covered(problem, [*made[:place], *made[place + 1 :]])
            exact = cheapest_conjunction(problem, covered & ~others)
            if exact is not None and _price(problem, exact, 0) < _price(problem, rule, int(size(wrong))):
                made[place] = exact
    left = problem.all_failing & ~_covered(problem, made)
    if size(left) and len(made) < most:
        exact = cheapest_conjunction(problem, left)
        if exact is not None and _price(problem, exact, 0) < EXCEPTION * int(size(left)):
            made.append(exact)
    return made


def _covered(problem: Problem, rules: Sequence[tuple[int, ...]]) -> Bits:
    found = np.zeros_like(problem.all_failing)
    for rule in rules:
        found |= problem.extension(rule)[0]
    return found


def _price(problem: Problem, rule: tuple[int, ...], wrong: int) -> float:
    return float(problem.costs[list(rule)].sum()) + EXCEPTION * wrong


def without_noise(problem: Problem, rules: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...] | None:
    """Return the fewest rules and terms that hold for all failing rows but `NOISE` of them, and for no more
    passing rows; None where that many exceptions are not noise.

    Rules with exceptions fit terms to them: a term goes if hardly any passing row comes in without it, and a
    rule that covers a few rows which no other does is a list of exceptions.
    """
    number = problem.failing_rows
    shorter = [_generalised(problem, rule) for rule in dict.fromkeys(rules)]
    covered = np.zeros_like(problem.all_failing)
    wrong = np.zeros_like(problem.all_passing)
    kept: list[tuple[int, ...]] = []
    for rule in sorted(shorter, key=lambda rule: -int(size(problem.extension(rule)[0]))):
        failing, passing = problem.extension(rule)
        if int(size(failing & ~covered)) > max(_FEW, NOISE * number / 2):
            kept.append(rule)
            covered, wrong = covered | failing, wrong | passing
    missed = number - int(size(covered))
    if not kept or max(missed, int(size(wrong))) > NOISE * number:
        return None
    return tuple(kept)


def _generalised(problem: Problem, rule: tuple[int, ...]) -> tuple[int, ...]:
    """Leave out terms one by one, the one that lets the fewest passing rows in first, as long as these are
    noise; a term that parts several passing rows from no failing one fits nothing and stays."""
    while len(rule) > 1:
        own = tuple(int(size(rows)) for rows in problem.extension(rule))
        found: list[tuple[int, tuple[int, ...]]] = []
        for place in range(len(rule)):
            shorter = rule[:place] + rule[place + 1 :]
            failing, passing = (int(size(rows)) for rows in problem.extension(shorter))
            fits = failing > own[0] or passing - own[1] <= _FEW
            if fits and passing <= NOISE * failing:
                found.append((passing, shorter))
        if not found:
            break
        rule = min(found)[1]
    return rule


def _needed(problem: Problem, rules: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Leave out rules whose failing rows the others cover."""
    kept = list(rules)
    for rule in reversed(rules):
        others = _covered(problem, [other for other in kept if other is not rule])
        if len(kept) > 1 and not size(problem.extension(rule)[0] & ~others):
            kept.remove(rule)
    return kept


def _best(problem: Problem, left: Bits) -> tuple[int, ...] | None:
    """Return the conjunction that gains most: what its failing rows would cost as exceptions, less its
    passing rows and its terms."""
    beam: list[tuple[int, ...]] = [()]
    best: tuple[float, tuple[int, ...]] = (0.0, ())
    for _ in range(MOST_TERMS):
        grown: dict[tuple[int, ...], tuple[float, float]] = {}
        for rule in beam:
            failing, passing = problem.extension(rule)
            hits = size(problem.failing & (failing & left))
            wrong = size(problem.passing & passing) * problem.weight
            narrower = (hits > 0) & ((wrong < size(passing) * problem.weight) | (hits < size(failing & left)))
            cost = sum(problem.costs[term] for term in rule)
            gains = EXCEPTION * (hits - wrong) - cost - problem.costs
            purity = hits / (wrong + 1.0)
            usable = np.flatnonzero(narrower)
            for term in _top(usable, gains, purity * np.sqrt(hits)):
                if term not in rule:
                    grown[tuple(sorted((*rule, int(term))))] = (
                        float(gains[term]),
                        float(purity[term] * np.sqrt(hits[term])),
                    )
        if not grown:
            break
        best = max(
            best,
            *((round(gain, 6), rule) for rule, (gain, _) in grown.items()),
            key=lambda pair: (pair[0], [-t for t in pair[1]]),
        )
        by_gain = sorted(grown, key=lambda rule: (-grown[rule][0], rule))[:_BEAM]
        by_purity = sorted(grown, key=lambda rule: (-grown[rule][1], rule))[:_BEAM]
        beam = list(dict.fromkeys((*by_gain, *by_purity)))
    return best[1] or None


def _top(usable: NDArray[np.intp], *scores: NDArray[np.float64]) -> list[int]:
    found: dict[int, None] = {}
    for score in scores:
        order = usable[np.argsort(-score[usable], kind="stable")][:_BEAM]
        found.update(dict.fromkeys(order.tolist()))
    return list(found)
