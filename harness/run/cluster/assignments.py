"""Assigns blocks to nodes: the blocks of a dead node run again elsewhere, and a block that ends two nodes is
divided into its cases.

Nodes are told by their addresses, attempts to run a block by tickets. A node holds two blocks, so that it need not wait
for the next one; it runs them in the order in which it was given them. A block that ended a node is given to one that
holds nothing else, so that it alone can be the reason if that one dies too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

_AHEAD = 2
_DEATHS = 2
"""So many nodes may die with a block before each of its cases runs alone, and so many more with a case alone before it
is the reason: nodes also die for reasons of their own."""


class PendingBlock(NamedTuple):
    """A block to run, or the cases at some of its positions; `deaths` are the nodes that ended with it."""

    number: int
    digest: str
    positions: tuple[int, ...] | None
    deaths: int = 0

    @property
    def suspect(self) -> bool:
        """Say whether it may be the reason why a node ended."""
        return self.deaths > 0


@dataclass
class Assignments:
    """The blocks of a target, from `supply` and from nodes that are gone; `positions` says which cases a block has."""

    supply: Iterator[PendingBlock]
    positions: Callable[[PendingBlock], Iterable[int]]
    _again: deque[PendingBlock] = field(default_factory=deque)
    _suspects: deque[PendingBlock] = field(default_factory=deque)
    _held: dict[str, dict[int, PendingBlock]] = field(default_factory=dict)
    _clearing: str | None = None
    """A node that gets nothing until it can take a suspect."""
    _tickets: Iterator[int] = field(default_factory=count)
    _exhausted: bool = False

    @property
    def done(self) -> bool:
        """Say whether every block has been run."""
        return self._exhausted and not (self._again or self._suspects or any(self._held.values()))

    @property
    def waiting(self) -> bool:
        """Say whether some node still runs a block."""
        return any(self._held.values())

    def next_for(self, node: str) -> tuple[int, PendingBlock] | None:
        """Return a block for a node, with its ticket; None if it should have none now."""
        held = self._held.setdefault(node, {})
        if len(held) >= _AHEAD or any(block.suspect for block in held.values()):
            return None
        block = self._choose(node, free=not held)
        if block is None:
            return None
        ticket = next(self._tickets)
        held[ticket] = block
        return ticket, block

    def _choose(self, node: str, *, free: bool) -> PendingBlock | None:
        if self._suspects and self._clearing in (None, node):
            self._clearing = None if free else node
            return self._suspects.popleft() if free else None
        if self._again:
            return self._again.popleft()
        found = next(self.supply, None)
        self._exhausted = found is None
        return found

    def finished(self, node: str, ticket: int) -> PendingBlock | None:
        """Take a block as run; None if it is no longer this node's."""
        return self._held.get(node, {}).pop(ticket, None)

    def returned(self, node: str, ticket: int) -> None:
        """Take a block back that a node could not run, for no fault of the block's."""
        block = self.finished(node, ticket)
        if block is not None:
            self._put(block)

    def tickets(self, node: str) -> list[int]:
        """Return the tickets that a node holds."""
        return list(self._held.get(node, {}))

    def lost(self, node: str) -> list[PendingBlock]:
        """Take back the blocks of a node that ended; return the case that is the cause, which does not run
        again."""
        held = list(self._held.pop(node, {}).values())
        self._clearing = None if self._clearing == node else self._clearing
        for block in held[1:]:
            self._put(block)
        if not held:
            return []
        first = held[0]
        ended = first._replace(deaths=first.deaths + 1)
        if ended.deaths >= 2 * _DEATHS:
            return [ended]
        if ended.deaths == _DEATHS:
            for position in self.positions(ended):
                self._put(ended._replace(positions=(position,)))
        else:
            self._put(ended)
        return []

    def _put(self, block: PendingBlock) -> None:
        (self._suspects if block.suspect else self._again).append(block)
