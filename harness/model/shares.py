"""Divides the cases of a run among its lanes, and holds the numbers that they share for it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import TypeVar

BLOCK = 64
"""Neighbouring cases that one lane takes together."""
_Item = TypeVar("_Item")


class LocalNumbers:
    """Some integers, all 0 at first; whoever takes them puts them back."""

    def __init__(self, count: int) -> None:
        self._values = (0,) * count

    def take(self) -> tuple[int, ...]:
        return self._values

    def put(self, *values: int) -> None:
        self._values = values

    def close(self) -> None:
        """Release what holds them."""


class SharedNumbers(LocalNumbers):
    """Integers that processes forked later share. They lie in a pipe: who has taken them out has them alone,
    the others wait."""

    def __init__(self, count: int) -> None:
        self._record = struct.Struct(f"<{count}q")
        self._reading, self._writing = os.pipe()
        self.put(*(0,) * count)

    def take(self) -> tuple[int, ...]:
        return self._record.unpack(os.read(self._reading, self._record.size))

    def put(self, *values: int) -> None:
        os.write(self._writing, self._record.pack(*values))

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


class Share:
    """What one lane takes of a sequence that every lane walks through: the next free block whenever it has
    use for one.

    Neighbours share graphs, so they stay together; and since a block is taken only when it is needed, all
    lanes end at about the same time.
    """

    def __init__(self, blocks: LocalNumbers | None = None) -> None:
        """Take the blocks that nobody else who holds the same `blocks` takes; without them everything."""
        self._blocks = blocks
        self._position = 0
        self._mine = -1

    def of(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield this share's items; with a further sequence it goes on where the last one ended."""
        if self._blocks is None:
            yield from items
            return
        for item in items:
            block = self._position // BLOCK
            self._position += 1
            if block > self._mine:
                (self._mine,) = self._blocks.take()
                self._blocks.put(self._mine + 1)
            if block == self._mine:
                yield item


WHOLE = Share()
