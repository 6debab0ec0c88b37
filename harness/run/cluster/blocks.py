"""Divides a selection into numbered blocks of neighbouring cases, the same on every machine that plans it.

A block is told by its number; its digest, over what the ids of its cases are made of, proves that two machines mean
the same cases by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from harness.model.case import Case
from harness.model.errors import HarnessFault
from harness.specs.expand import Piece
from harness.specs.selection import Selection


class CaseBlock(NamedTuple):
    """Neighbouring cases of a selection, all valid or all not; of a sweep's combination it has every case."""

    valid: bool
    number: int
    pieces: Sequence[Piece]

    @property
    def size(self) -> int:
        """How many cases it has."""
        return sum(piece.number for piece in self.pieces)

    def digest(self) -> str:
        """Return 16 hexadecimal digits that say which cases these are."""
        total = blake2b(digest_size=8)
        for piece in self.pieces:
            total.update(piece.text().encode("utf-8", "surrogatepass") + b"\0")
        return total.hexdigest()

    def cases(self) -> list[Case]:
        """Make the cases."""
        return [case for piece in self.pieces for case in piece.cases()]


def blocks(selection: Selection, size: int, *, valid: bool) -> Iterator[CaseBlock]:
    """Yield the valid cases, or the others, in blocks of at least `size` cases, the last one apart."""
    number = count = 0
    pieces: list[Piece] = []
    for piece in _pieces(selection, valid=valid):
        pieces.append(piece)
        count += piece.number
        if count >= size:
            yield CaseBlock(valid, number, pieces)
            number, count, pieces = number + 1, 0, []
    if pieces:
        yield CaseBlock(valid, number, pieces)


def _pieces(selection: Selection, *, valid: bool) -> Iterator[Piece]:
    if selection.complete:
        yield from selection.plan.pieces(valid=valid)
        return
    for case in selection.cases(valid=valid):  # which of them are chosen, their ids alone can tell
        yield Piece(1, partial(str, case.id), partial(iter, (case,)))


class BlockWalk:
    """Finds blocks by their numbers; cheap where these increase."""

    def __init__(self, selection: Selection, size: int) -> None:
        self._selection = selection
        self._size = size
        self._valid: bool | None = None
        self._next = 0
        self._blocks: Iterator[CaseBlock] = iter(())

    def find(self, number: int, *, valid: bool) -> CaseBlock:
        """Return a block. Errors: HarnessFault where the selection has no such block."""
        if valid is not self._valid or number < self._next:
            self._valid, self._next = valid, 0
            self._blocks = blocks(self._selection, self._size, valid=valid)
        for block in self._blocks:
            self._next = block.number + 1
            if block.number == number:
                return block
        raise HarnessFault(f"the plan has no block {number}: it is another than that of the first process")
