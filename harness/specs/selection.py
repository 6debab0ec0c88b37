"""Selects the planned cases that run: queries, shards, pairwise selection.

Blocks are the one division of a selection: a shard, a run process and a node of a cluster each take some of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import combinations, count
from typing import NamedTuple

from harness.model.case import Case, Validity
from harness.model.caseid import CaseKey
from harness.model.errors import HarnessFault, NothingRan
from harness.model.header import Shard
from harness.model.query import Query, explain_no_match
from harness.specs.expand import Piece, Plan, SweepPlan, pieces_of

NOT_ASKED, OTHER_SHARD, NO_NEW_PAIR = "not in the query", "in another shard", "adds no new pair"
_FEW = 5000
_SHARD_CASES = 4
"""Cases of the blocks of which a shard takes every N-th: few, so that no shard of a small run is empty."""
MOST_CASES = 512
_LEAST_CASES = 16
_EACH_PROCESS = 8
"""Blocks that each process of a small run has about."""


class CaseBlock(NamedTuple):
    """Neighbouring cases of a selection, which share graphs: all valid or all not. Of a sweep's combination it has every
    case that is `chosen`."""

    number: int
    valid: bool
    pieces: Sequence[Piece]
    chosen: Callable[[Case], bool] | None = None

    def digest(self) -> str:
        """Return 16 hexadecimal digits that prove that two machines mean the same cases by a block's number."""
        total = blake2b(digest_size=8)
        for piece in self.pieces:
            total.update(piece.text().encode("utf-8", "surrogatepass") + b"\0")
        return total.hexdigest()

    def cases(self) -> list[Case]:
        """Make the cases."""
        made = [case for piece in self.pieces for case in piece.cases()]
        return made if self.chosen is None else list(filter(self.chosen, made))


def block_size(total: int, processes: int) -> int:
    """Return how many cases a block has at least, in a run of `total` cases."""
    return max(_LEAST_CASES, min(MOST_CASES, total // (max(1, processes) * _EACH_PROCESS)))


def divided(pieces: Iterable[Piece], size: int) -> Iterator[list[Piece]]:
    """Yield neighbouring pieces that can have at least `size` cases together; the last ones may have fewer."""
    block: list[Piece] = []
    most = 0
    for piece in pieces:
        block.append(piece)
        most += piece.most
        if most >= size:
            yield block
            block, most = [], 0
    if block:
        yield block


def numbered(
    pieces: Callable[[bool], Iterable[Piece]], size: int, chosen: Callable[[Case], bool] | None = None
) -> Iterator[CaseBlock]:
    """Yield blocks of at least `size` cases, numbered from 0: of the valid cases first, whose pieces are those for
    True."""
    numbers = count()
    for valid in (True, False):
        for block in divided(pieces(valid), size):
            yield CaseBlock(next(numbers), valid, block, chosen)


class BlockWalk:
    """Finds blocks by their numbers; cheap where these increase."""

    def __init__(self, blocks: Callable[[], Iterator[CaseBlock]]) -> None:
        self._blocks = blocks
        self._next = 0
        self._left: Iterator[CaseBlock] = iter(())

    def find(self, number: int) -> CaseBlock:
        """Return a block. Errors: HarnessFault where there is no such block."""
        if not self._next or number < self._next:
            self._left = self._blocks()
        for block in self._left:
            self._next = block.number + 1
            if block.number == number:
                return block
        raise HarnessFault(f"the plan has no block {number}: it is another than that of the first process")


@dataclass(frozen=True)
class Selection:
    """A selection of a plan's cases."""

    plan: Plan
    queries: tuple[Query, ...] = ()
    shard: Shard | None = None
    pairwise: bool = False
    _few: list[Case] = field(default_factory=list)
    """All selected cases, where counting them found few enough to remember: each target would look for them
    again."""

    @property
    def complete(self) -> bool:
        """Say whether every planned case runs: only then is an expectation that matches nothing known to be
        stale."""
        return not self.queries and self.shard is None and not self.pairwise

    def __iter__(self) -> Iterator[Case]:
        """Yield every selected case, the valid ones first."""
        for block in self.blocks(1):
            yield from block.cases()

    def cases(self, *, valid: bool) -> Iterator[Case]:
        """Yield the selected valid cases, or the selected others."""
        for block in self.blocks(1):
            if block.valid is valid:
                yield from block.cases()

    def blocks(self, size: int) -> Iterator[CaseBlock]:
        """Return the cases in blocks of at least `size`, numbered from 0, the valid ones first; cases that no query
        selects count too."""
        return numbered(self._own, size, self._asked if self._choosing and not self._few else None)

    def _own(self, valid: bool) -> Iterable[Piece]:
        """Return the pieces of this shard."""
        if self._few:
            return pieces_of(self._few, valid=valid)
        return self._planned(Counter(), valid=valid) if self.shard is None else self._sharded[valid]

    @cached_property
    def _sharded(self) -> dict[bool, list[Piece]]:
        """The pieces of this shard, found once: those of the others are passed over, and their cases not made."""
        return {
            valid: [piece for mine, piece in self._divided(Counter(), valid=valid) if mine]
            for valid in (True, False)
        }

    def _divided(self, left_out: Counter[str], *, valid: bool) -> Iterator[tuple[bool, Piece]]:
        """Yield the pieces that a query can select cases of, each with whether it is of this shard; count what the plan
        leaves out."""
        for number, part in enumerate(divided(self._planned(left_out, valid=valid), _SHARD_CASES)):
            mine = self.shard is None or self.shard.holds(number)
            yield from ((mine, piece) for piece in part)

    def _planned(self, left_out: Counter[str], *, valid: bool) -> Iterator[Piece]:
        """Yield the pieces that a query can select cases of, of all shards; count what the plan leaves out."""
        if self.pairwise:
            return pieces_of(self._paired[0], valid=valid)
        return self.plan.pieces(left_out, valid=valid, wanted=self._wants if self._choosing else None)

    @cached_property
    def _paired(self) -> tuple[list[Case], Counter[str]]:
        """The cases of a pairwise selection, which depend on the earlier cases, and the left-out ones by
        reason."""
        found: list[Case] = []
        left_out = Counter[str]()
        pairs = _Pairs()
        for case in Selection(self.plan, self.queries)._selected(left_out):
            if case.validity is Validity.VALID and case.literals is None and not pairs.adds(case.id):
                left_out[NO_NEW_PAIR] += 1
            else:
                found.append(case)
        return found, left_out

    @cached_property
    def _choosing(self) -> bool:
        """Whether queries choose among the planned cases. Queries that only name all operators of the plan do not, so
        that counting need not make the cases."""
        operators, queries = self.plan.operators, self.queries
        return not (
            all(each.bare and any(map(each.speaks_of, operators)) for each in queries)
            and all(any(each.speaks_of(name) for each in queries) for name in operators if queries)
        )

    def _wants(self, sweep: SweepPlan) -> bool:
        """Say whether a query can select any case of a sweep."""
        return any(map(sweep.may_have, self.queries))

    def _asked(self, case: Case) -> bool:
        return any(query.matches(case.id) for query in self.queries)

    def total(self) -> int:
        """Count the selected cases; NothingRan with a hint if there are none."""
        return self.counted()[0]

    def counted(self) -> tuple[int, dict[str, int]]:
        """Count the selected cases, and by reason the cases left out. Raises NothingRan with a hint if none is
        selected, or if one of several queries matches none: a mistyped one would go unnoticed beside the others."""
        if self._choosing:
            left_out, number, few = Counter[str](), 0, list[Case]()
            for number, case in enumerate(self._selected(left_out), start=1):
                if number <= _FEW:
                    few.append(case)
            self._few[:] = few if number <= _FEW else ()
        else:
            every, left_out = (
                (len(self._paired[0]), self._paired[1].copy()) if self.pairwise else self.plan.counted()
            )
            number = every if self.shard is None else sum(1 for _ in self)
            if number < every:
                left_out[OTHER_SHARD] = every - number
        if not number:
            raise NothingRan(
                "no case is selected: the shard is empty"
                if self.shard
                else "no case is selected: the specs expand to none"
            )
        return number, dict(sorted(left_out.items()))

    def _selected(self, left_out: Counter[str]) -> Iterator[Case]:
        """Find all cases that queries select, and count by reason the cases left out. Errors: NothingRan after the
        last one if a query matches none."""
        if self.pairwise:
            left_out.update(self._paired[1])
        unmatched = [] if self.pairwise else list(self.queries)
        for sweep in self.plan.sweeps if unmatched else ():
            if not self._wants(sweep):
                left_out[NOT_ASKED] += sweep.calls.count(left_out)
        for valid in (True, False):
            for mine, piece in self._divided(left_out, valid=valid):
                for case in piece.cases():
                    if unmatched:
                        unmatched = [query for query in unmatched if not query.matches(case.id)]
                    if self.queries and not self._asked(case):
                        left_out[NOT_ASKED] += 1
                    elif not mine:
                        left_out[OTHER_SHARD] += 1
                    else:
                        yield case
        if unmatched:
            raise NothingRan(self._no_match(unmatched))

    def _no_match(self, queries: Sequence[Query]) -> str:
        operators = {spec.model.operator for spec in self.plan.specs}
        hint = explain_no_match(queries, operators, (case.id for case in self.plan))
        return f"no case matches {' or '.join(query.text for query in queries)}; {hint}"


class ChosenCases(NamedTuple):
    """Cases that were chosen one by one, out of any plans."""

    chosen: Sequence[Case]

    def blocks(self, size: int) -> Iterator[CaseBlock]:
        """Return the cases in blocks of `size`, numbered from 0, the valid ones first."""
        return numbered(lambda valid: pieces_of(self.chosen, valid=valid), size)


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
