"""Selects the planned cases that run: queries, shards, pairwise selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, combinations
from typing import NamedTuple

from harness.model.case import Case, Validity
from harness.model.caseid import CaseKey
from harness.model.errors import NothingRan
from harness.model.query import Query, explain_no_match
from harness.model.shares import WHOLE, Share
from harness.specs.expand import Plan, SweepPlan

NOT_ASKED, OTHER_SHARD, NO_NEW_PAIR = "not in the query", "in another shard", "adds no new pair"
_FEW = 5000


class Shard(NamedTuple):
    """Shard `number` of `of`, counted from 1; a case belongs to one shard by the hash of its id, wherever it
    stands."""

    number: int
    of: int

    def holds(self, case_id: str) -> bool:
        return (
            int.from_bytes(blake2b(case_id.encode(), digest_size=8).digest(), "little") % self.of
            == self.number - 1
        )


@dataclass(frozen=True)
class Selection:
    """A selection of a plan's cases; `left_out` counts by reason what looking for them passes over."""

    plan: Plan
    queries: tuple[Query, ...] = ()
    shard: Shard | None = None
    pairwise: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    _few: list[Case] = field(default_factory=list)
    """All selected cases, where counting them found few enough to remember: each target would look for them
    again."""
    _unmatched: list[Query] = field(default_factory=list)
    """The queries that have matched no case yet, while cases are counted."""

    @property
    def complete(self) -> bool:
        """Say whether every planned case runs: only then is an expectation that matches nothing known to be
        stale."""
        return not self.queries and self.shard is None and not self.pairwise

    def __iter__(self) -> Iterator[Case]:
        """Yield every selected case, the valid ones first."""
        yield from self.cases(valid=True)
        yield from self.cases(valid=False)

    def cases(self, *, valid: bool, share: Share = WHOLE) -> Iterator[Case]:
        """Yield the selected valid cases, or the selected others; a share of them can be had where
        `divisible`."""
        if self._few:
            yield from share.of(case for case in self._few if (case.validity is Validity.VALID) is valid)
        else:
            yield from self._found(valid=valid, share=share)

    def _found(self, *, valid: bool, share: Share = WHOLE) -> Iterator[Case]:
        if self.complete:
            yield from self.plan.cases(valid=valid, share=share)
            return
        pairs = _Pairs() if self.pairwise else None
        for case in self.plan.cases(valid=valid, share=share, wanted=self._wants if self.queries else None):
            if self._unmatched:
                self._unmatched[:] = [query for query in self._unmatched if not query.matches(case.id)]
            if self.queries and not any(query.matches(case.id) for query in self.queries):
                self.left_out[NOT_ASKED] += 1
            elif (
                pairs is not None
                and case.validity is Validity.VALID
                and case.literals is None
                and not pairs.adds(case.id)
            ):
                self.left_out[NO_NEW_PAIR] += 1
            elif self.shard is not None and not self.shard.holds(case.id):
                self.left_out[OTHER_SHARD] += 1
            else:
                yield case

    def _wants(self, sweep: SweepPlan) -> bool:
        """Say whether a query can select any case of a sweep; count its cases if not."""
        if any(query.may_select(sweep.operator.name, f"sweep={sweep.sweep.name}") for query in self.queries):
            return True
        self.left_out[NOT_ASKED] += sweep.count(self.plan.left_out)
        return False

    @property
    def divisible(self) -> bool:
        """Say whether a case is selected whatever the others are."""
        return not self.pairwise

    def total(self) -> int:
        """Count the selected cases; NothingRan with a hint if there are none."""
        return self.counted()[0]

    def counted(self) -> tuple[int, dict[str, int]]:
        """Count the selected cases, and by reason what is left out; NothingRan with a hint if none is selected,
        or if one of several queries matches none: a mistyped one would else go unnoticed beside the others."""
        self._unmatched[:] = self.queries
        count = self.plan.count() if self.complete else self._count_one_by_one()
        left_out = dict(sorted((self.plan.left_out + self.left_out).items()))
        self.left_out.clear()
        self.plan.left_out.clear()
        if hopeless := tuple(self._unmatched):
            self._unmatched.clear()
            raise NothingRan(self._no_match(hopeless))
        if not count:
            raise NothingRan(
                "no case is selected: the shard is empty"
                if self.shard
                else "no case is selected: the specs expand to none"
            )
        return count, left_out

    def _count_one_by_one(self) -> int:
        few: list[Case] = []
        count = 0
        for case in chain(self._found(valid=True), self._found(valid=False)):
            count += 1
            if count <= _FEW:
                few.append(case)
        self._few[:] = few if count <= _FEW else ()
        return count

    def _no_match(self, queries: Sequence[Query]) -> str:
        operators = {spec.model.operator for spec in self.plan.specs}
        hint = explain_no_match(queries, operators, (case.id for case in self.plan))
        return f"no case matches {' or '.join(query.text for query in queries)}; {hint}"


class ChosenCases(NamedTuple):
    """Cases that were chosen one by one, out of any plans."""

    chosen: Sequence[Case]

    @property
    def divisible(self) -> bool:
        """They are not shared out among lanes."""
        return False

    def cases(self, *, valid: bool, share: Share = WHOLE) -> Iterator[Case]:
        """Yield the chosen cases that are valid, or the others."""
        yield from share.of(case for case in self.chosen if (case.validity is Validity.VALID) is valid)


def select(
    plan: Plan, queries: tuple[Query, ...] = (), shard: Shard | None = None, *, pairwise: bool = False
) -> Selection:
    """Choose cases of a plan."""
    return Selection(plan, queries, shard, pairwise)


class _Pairs:
    """Keeps a case if it shows a pair of terms that no case before it showed: every pair that occurs at all
    stays covered."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def adds(self, case_id: str) -> bool:
        key = CaseKey.of(case_id)
        found = set(combinations((key.head, *key.terms), 2))
        new = not found <= self._seen
        self._seen |= found
        return new
