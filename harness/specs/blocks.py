"""Blocks: the one division of a selection. A shard, a run process and a node of a cluster each take some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

from harness.model.case import Case
from harness.model.errors import HarnessFault
from harness.specs.expand import Piece

_MOST = 512
_LEAST = 16
_EACH = 8
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
    return max(_LEAST, min(_MOST, total // (max(1, processes) * _EACH)))


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
