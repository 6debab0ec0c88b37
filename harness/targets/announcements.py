"""The case that a worker is at, as the worker itself tells it in memory that both processes map (`PROGRESS`
in `worker.py`)."""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path
from typing import NamedTuple

from harness.worker.worker import IDLE, LOADING, PROGRESS

SHARES = os.name == "posix"
"""Whether processes of this system can map a file whose folder is then removed."""


class AtCase(NamedTuple):
    """What a worker is at: the batch, counted from 0, the case within it, and since when, on the monotonic
    clock; `loading` says that it creates the session for the cases from this one on."""

    batch: int
    case: int
    loading: bool
    idle: bool
    since: float


class Announcements:
    """Memory that a worker writes and this process reads; `path` is None where there is none."""

    def __init__(self, folder: str) -> None:
        self.path: str | None = None
        self._memory: mmap.mmap | None = None
        path = Path(folder) / "progress"
        with contextlib.suppress(OSError):  # without it the worker announces with frames
            path.write_bytes(bytes(PROGRESS.size))
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), PROGRESS.size)
            self.path = str(path)

    def read(self) -> AtCase | None:
        """Return what the worker is at; None where it has never said so here."""
        if self._memory is None:
            return None
        position, since = PROGRESS.unpack_from(self._memory)
        if not since:
            return None
        stage = position & 3
        return AtCase(position >> 34, position >> 2 & 0xFFFFFFFF, stage == LOADING, stage == IDLE, since)
