"""A worker's temporary folder: gone with the worker; what a harness that was killed could not remove, the
next one removes.

A folder is locked as long as the process that made it lives, whoever else could see its process id. It gets
its name when it is locked, so that no other process can take a new one for one that was left.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

PREFIX = "harness-scratch-"
_NEW = f".{PREFIX}"
_NEW_SECONDS = 60.0
_locking: Any = importlib.import_module("fcntl") if sys.platform != "win32" else None


class Scratch:
    """A temporary folder, at `name`, that nobody else removes as long as this process lives."""

    def __init__(self) -> None:
        sweep_once()
        if _locking is None:
            self.name = tempfile.mkdtemp(prefix=PREFIX)
            lock = None
        else:
            new = tempfile.mkdtemp(prefix=_NEW)
            lock = os.open(new, os.O_RDONLY)
            with contextlib.suppress(OSError):
                _locking.flock(lock, _locking.LOCK_EX | _locking.LOCK_NB)
            self.name = os.path.join(os.path.dirname(new), f"{PREFIX}{secrets.token_hex(8)}")
            os.rename(new, self.name)
        self._remove = weakref.finalize(self, _remove, self.name, lock)

    def cleanup(self) -> None:
        """Remove the folder; safe to call twice."""
        self._remove()


def _remove(name: str, lock: int | None) -> None:
    shutil.rmtree(name, ignore_errors=True)
    if lock is not None:
        os.close(lock)


@cache
def sweep_once() -> None:
    """Do `sweep` the first time that this process asks for it."""
    sweep()


def sweep() -> None:
    """Remove this user's folders whose process is gone. A file system without locks keeps them."""
    if _locking is None:
        return
    base = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for path in [*base.glob(f"{PREFIX}*"), *base.glob(f"{_NEW}*")]:
            with contextlib.suppress(OSError), _unused(path) as unused:
                if unused:
                    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _unused(path: Path) -> Iterator[bool]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(handle)
        young = path.name.startswith(_NEW) and time.time() - status.st_mtime < _NEW_SECONDS
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or young:
            yield False
            return
        _locking.flock(handle, _locking.LOCK_EX | _locking.LOCK_NB)
        yield True
    finally:
        os.close(handle)
