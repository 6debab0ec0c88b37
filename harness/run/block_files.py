"""The files of kept blocks in the user's cache: groups of cases as MessagePack, compressed, written when the last case of a
block has its result."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.model.cache_folder import cache_folder
from harness.model.case import Case
from harness.specs.cache import kept
from harness.specs.selection import CaseBlock
from harness.targets.execution import Graph, KeptCase

FOLDER = "blocks"
"""The folder of the cache that holds them."""
_SPACE = 400 << 20
"""Bytes of all files together."""


class Group(msgspec.Struct, array_like=True):
    """Neighbouring cases with their graph, None where all of them are made again."""

    graph: Graph | None
    cases: list[KeptCase]


class OpenedBlock:
    """A block whose cases are executed for the first time: its groups as they are made. It knows where it will be kept,
    how many cases have no result yet, which of them are held back, and what these came to after it was written."""

    def __init__(self, path: Path, left: int) -> None:
        self._path = path
        self.groups: list[Group] = []
        self._left = left
        self._held: set[tuple[int, int]] = set()
        self._late: dict[tuple[int, int], KeptCase] = {}
        if not left:
            self._write(self.groups)

    def settle(self, record: KeptCase, found: KeptCase) -> None:
        """Keep what a case came to. When all cases have a result or are held back the block is written, and once more with
        the last that was."""
        place = record.piece, record.position
        held = place in self._held
        self._held.discard(place)
        if not held or self._left:
            _fill(record, found)
        elif found.result is not None:
            self._late[place] = found
        if not held:
            self._done()
        elif self._late and not self._held and (groups := read(self._path)) is not None:
            for case in (case for group in groups for case in group.cases):
                _fill(case, self._late.get((case.piece, case.position), case))
            self._write(groups)

    def hold(self, record: KeptCase) -> None:
        """Count a case whose result is held back."""
        self._held.add((record.piece, record.position))
        self._done()

    def _done(self) -> None:
        self._left -= 1
        if not self._left:
            self._write(self.groups)
            self.groups = []

    def _write(self, groups: list[Group]) -> None:
        for group in groups:
            sent = [case for case in group.cases if case.sent is not None]
            if not sent and not self._held:
                group.graph = None
            for case in sent[1:]:
                case.optimized = None
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            kept.put(self._path, zlib.compress(msgspec.msgpack.encode(groups), 1))


def _fill(record: KeptCase, found: KeptCase) -> None:
    if found.result is not None:
        record.digest, record.result = found.digest, found.result
        record.entries, record.sent, record.optimized = found.entries, found.sent, found.optimized


class RereadBlock:
    """A block that was kept."""

    def __init__(self, path: Path, block: CaseBlock, groups: Sequence[Group]) -> None:
        self.groups = groups
        self._path = path
        self._pieces = block.pieces
        self._made: dict[int, list[Case]] = {}
        self._differing = 0

    def case(self, record: KeptCase) -> Case:
        """Make a case of the block."""
        if record.piece not in self._made:
            self._made[record.piece] = list(self._pieces[record.piece].cases())
        return self._made[record.piece][record.position]

    def differs(self) -> None:
        """Count an answer that is not the kept one; if most are, the block is to be kept anew."""
        self._differing += 1
        if 2 * self._differing > sum(bool(case.digest) for group in self.groups for case in group.cases):
            with contextlib.suppress(OSError):
                self._path.unlink()


def read(path: Path) -> list[Group] | None:
    """Return the groups of a kept block; None where the file is absent or damaged."""
    data = kept.read(path)
    with contextlib.suppress(OSError, zlib.error, msgspec.MsgspecError):
        if data is not None:
            found: list[Group] = _decode(zlib.decompress(data))
            with contextlib.suppress(OSError):
                os.utime(path)  # what is used stays
            return found
    return None


_decode = msgspec.msgpack.Decoder(list[Group]).decode


def make_room(since: float) -> None:
    """Where the blocks of all runs take too much space, remove those not used `since` a time, and then the last ones
    that were: the first ones of a large run stay for the next."""
    found: list[tuple[float, int, str]] = []
    with contextlib.suppress(OSError):
        for each in os.scandir(cache_folder(FOLDER)):
            with contextlib.suppress(OSError):
                state = each.stat()
                found.append((state.st_mtime, state.st_size, each.path))
    found.sort()
    unused = [each for each in found if each[0] < since]
    total = sum(size for _, size, _ in found)
    for _, size, path in (*unused, *reversed(found[len(unused) :])):
        if total <= _SPACE:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size
