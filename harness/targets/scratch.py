"""A worker's temporary folder: removed with the worker, or by the next harness if this one was killed.

A folder is locked as long as the process that made it lives, even for processes that cannot see its process
id. It gets its name once it is locked, so that no other process can take a new folder for an abandoned one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.model.file_lock import SHARED, lock

PREFIX = "harness-scratch-"
_NEW = f".{PREFIX}"
_NEW_SECONDS = 60.0


class Scratch:
    """A temporary folder, at `name`, that no other process removes while this one lives."""

    def __init__(self) -> None:
        sweep_once()
        if not SHARED:
            self.name = tempfile.mkdtemp(prefix=PREFIX)
            held = None
        else:
            new = tempfile.mkdtemp(prefix=_NEW)
            held = os.open(new, os.O_RDONLY)
            with contextlib.suppress(OSError):
                lock(held)
            self.name = os.path.join(os.path.dirname(new), f"{PREFIX}{secrets.token_hex(8)}")
            os.rename(new, self.name)
        self._remove = weakref.finalize(self, _remove, self.name, held)

    def cleanup(self) -> None:
        """Remove the folder; safe to call twice."""
        self._remove()


def _remove(name: str, held: int | None) -> None:
    shutil.rmtree(name, ignore_errors=True)
    if held is not None:
        os.close(held)


@cache
def sweep_once() -> None:
    """Do `sweep` the first time that this process asks for it."""
    sweep()


def sweep() -> None:
    """Remove this user's folders whose process is gone. A file system without locks keeps them."""
    if not SHARED:
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
        yield lock(handle)
    finally:
        os.close(handle)
